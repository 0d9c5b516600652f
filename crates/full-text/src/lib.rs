//! An index of texts by their words: analysis, queries, scores by BM25, and highlights.
//!
//! # The parts
//!
//! - [`AnalysedText`] is a text in the form in which an index takes it in: its terms, with their
//!   positions (`analysis`, `document`).
//! - [`TextQuery`] is a parsed query (`grammar`). On one document it is evaluated directly
//!   (`clause`), which is what a search of the index must equal.
//! - [`TextIndex`] has the documents, by ids that its owner chooses (`text_index`). New ones wait
//!   in memory (`waiting`), and are written as segments when they are many (`segment`).
//! - [`TextView`] is all documents at a moment, and what a search goes through (`view`).
//! - A snapshot is files of the segments, and of what waits (`snapshot`).
//!
//! Terms, postings and their merges are `tantivy`'s. Its writers with threads, its files, its merge
//! policy and its collectors are not used: segments are written and merged on the thread that
//! calls, in a directory of our own, so that an index has no thread and, while it is small, no
//! segment.
//!
//! # How a search goes
//!
//! [`TextIndex::view`] copies the state: the lists of parts, the sets of dead documents and the
//! table of ids, all of which share their pages with the index until one of them changes. Fresh
//! documents of the caller hide those of the same ids. [`TextView::statistics`] counts documents,
//! tokens and how many documents have each term, all of live documents only. [`TextView::best`]
//! then
//!
//! 1. scores fresh and waiting documents directly; of the waiting ones only those that have the
//!    query's terms;
//! 2. searches each segment by tantivy, with these statistics, for a few more than are wanted,
//!    where a document counts only if it is live and admitted: blocks of postings whose best score
//!    would not do are left out;
//! 3. scores what was found once more with the exact lengths, as segments round them;
//! 4. and keeps the best of all.
//!
//! Where few ids are admitted (less than one for eight documents), the search goes through these:
//! the table leads to their documents, and postings are looked up there. Nothing is requested in
//! excess and thrown away.
//!
//! # Invariants
//!
//! - The table of ids has the one live document of each id. All others in a part are in its set of
//!   dead documents, or became dead while a segment was written, and are found to be so by the
//!   table when that takes its place.
//! - Waiting documents are only added to. A state knows how many there were and which were dead, so
//!   it stays as it is.
//! - A segment never changes. One that replaces others has their live documents in their order.
//! - What was read from a file that could not be read, or makes no sense, does not leave: the
//!   search fails, and the damage is noted ([`TextIndex::files_state`]).
//!
//! # Limits
//!
//! - A segment that was written or merged is in memory until the next save, and mapped from its
//!   file then. [`TextMemory::segments`] counts its bytes, and those of what it was merged from go
//!   at once. It can't leave earlier without a file of its own. Only a save has a directory that is
//!   published: files outside of it would have to be found and deleted after a crash, and would
//!   take room on the disk that no snapshot counts. An index that is never saved is all in memory.
//! - The bounds by which blocks are left out are those of the segment's own average length. A
//!   search whose statistics have a very different one looks at all postings; with a slightly
//!   different one it may miss a document that is as good as the last one, within that difference.
//! - Of documents with equal scores at the limit, those that came first are taken, which need not
//!   have the lowest ids.
//! - An index has at most 2,147,483,647 documents in a segment, and ids should be dense.

#![warn(clippy::unwrap_used)]

mod analysis;
mod byte_reader;
mod clause;
mod damage;
mod document;
mod error;
mod fuzzy;
mod grammar;
mod highlight;
mod live_documents;
mod maintenance;
mod pace;
mod phrase;
mod places;
mod query;
mod segment;
mod snapshot;
mod snapshot_directory;
mod state;
mod statistics;
mod text_index;
mod view;
mod waiting;

pub use clause::QueryClause;
pub use document::AnalysedText;
pub use error::{TextFileError, TextIndexError};
pub use grammar::TextQueryError;
pub use highlight::{HighlightOptions, highlight};
pub use query::TextQuery;
pub use snapshot::{TextFilesState, TextSaveProgress, check_snapshot};
pub use statistics::QueryStatistics;
pub use text_index::{TextIndex, TextMemory};
pub use view::{AdmittedIds, FreshTexts, ScoredText, TextView};

//! Segments: documents that are written once, searched by tantivy, and merged into others.
//!
//! A segment is the one segment of a tantivy index in a directory of our own (`directory`): names
//! of pieces of memory, or of one mapped file (`container`, `stored_file`). In addition to
//! tantivy's files it has two of ours: the id and the exact length of each document.

mod build;
mod clause_query;
mod container;
mod directory;
mod exact;
mod loose_phrase;
mod merge;
mod prefix_query;
mod schema;
mod search;
mod stored_file;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tantivy::directory::OwnedBytes;
use tantivy::index::{InvertedIndexReader, SegmentReader};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Index, IndexReader, ReloadPolicy, Searcher, Segment, TERMINATED, Term};

use crate::damage::DamageNote;
use crate::live_documents::LiveDocuments;
use crate::snapshot_directory::SnapshotFolder;
use crate::{TextFileError, TextIndexError};
pub(crate) use container::{ContainerCheck, read_header};
use directory::SegmentDirectory;
pub(crate) use merge::MergeInput;
pub(crate) use search::{Admission, SegmentScores, SegmentSearch};
pub(crate) use stored_file::StoredFile;

/// The ids of a segment's documents, as numbers of 32 bits.
const IDS: &str = "ids";
/// The lengths of a segment's documents in tokens, as numbers of 32 bits.
const LENGTHS: &str = "lengths";

/// Postings that are read to count the live documents of a term; of those of a more frequent term
/// only so many are looked at, in stretches over all of the segment.
const COUNTED_POSTINGS: u32 = 1 << 16;
/// The number of such stretches.
const STRETCHES: u32 = 128;

/// A segment that can be searched.
pub(crate) struct TextSegment {
    directory: SegmentDirectory,
    segment: Segment,
    searcher: Searcher,
    ids: OwnedBytes,
    lengths: OwnedBytes,
    documents: u32,
    bytes: u64,
    /// The file that has it; `None` in memory.
    stored: Option<StoredFile>,
    damage: DamageNote,
}

impl TextSegment {
    /// Makes a segment of documents of an index with or without positions: the id of each, and its
    /// terms.
    pub fn build(
        documents: &[(u32, Arc<crate::AnalysedText>)],
        positions: bool,
        damage: &DamageNote,
    ) -> Result<TextSegment, TextIndexError> {
        let built = catch(|| build::build(documents, positions));
        let directory = built.map_err(TextIndexError::Failed)?;
        let segment = catch(|| TextSegment::over(directory, None, positions, damage));
        segment.map_err(TextIndexError::Failed)
    }

    /// Merges the live documents of segments into one, in their order. `None` if `pace` has stopped
    /// it, which leaves everything as it was.
    pub fn merge(
        inputs: &[MergeInput<'_>],
        positions: bool,
        pace: &(dyn Fn() -> bool + Sync),
        damage: &DamageNote,
    ) -> Result<Option<TextSegment>, TextIndexError> {
        for input in inputs {
            input.segment.check_readable()?;
        }
        let merged = catch(|| match merge::merge(inputs, pace)? {
            Some(directory) => TextSegment::over(directory, None, positions, damage).map(Some),
            None => Ok(None),
        });
        for input in inputs {
            input.segment.check_readable()?;
        }
        merged.map_err(TextIndexError::Failed)
    }

    /// Opens the segment in a file, of an index with or without positions.
    pub fn open(
        folder: &Arc<SnapshotFolder>,
        name: &str,
        positions: bool,
        is_sound: bool,
        damage: &DamageNote,
    ) -> Result<TextSegment, TextFileError> {
        let (stored, directory) = StoredFile::open(folder, name, &[IDS, LENGTHS], is_sound)?;
        let opened = catch(|| TextSegment::over(directory, Some(stored), positions, damage));
        opened.map_err(|error| TextFileError::damaged(&folder.path_of(name), &error))
    }

    /// Opens the segment in a directory.
    fn over(
        directory: SegmentDirectory,
        stored: Option<StoredFile>,
        positions: bool,
        damage: &DamageNote,
    ) -> tantivy::Result<TextSegment> {
        let wrong = |what: &str| tantivy::TantivyError::InternalError(what.to_owned());
        let index = Index::open(directory.clone())?;
        if index.schema() != schema::schema(positions) {
            return Err(wrong("the segment is of an index with other options"));
        }
        let mut segments = index.searchable_segments()?;
        let (Some(segment), true) = (segments.pop(), segments.is_empty()) else {
            return Err(wrong("there is not one segment"));
        };
        let reader: IndexReader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()?;
        let numbers = |name: &str| {
            let numbers = directory.get(name);
            numbers.ok_or_else(|| wrong("the segment has no ids or no lengths"))
        };
        let (ids, lengths) = (numbers(IDS)?, numbers(LENGTHS)?);
        let documents = segment.meta().max_doc();
        let expected = documents as usize * size_of::<u32>();
        if ids.len() != expected || lengths.len() != expected {
            return Err(wrong("the segment has other ids or lengths than documents"));
        }
        let files = directory.files();
        Ok(TextSegment {
            bytes: files.iter().map(|(_, bytes)| bytes.len() as u64).sum(),
            directory,
            segment,
            searcher: reader.searcher(),
            ids,
            lengths,
            documents,
            stored,
            damage: damage.clone(),
        })
    }

    /// The number of documents, dead ones included.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes its files into one, and waits for the disk. `passed` is called with the bytes of each
    /// piece, and ends it with false.
    pub fn write(
        &self,
        folder: &SnapshotFolder,
        name: &str,
        passed: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), TextFileError> {
        if let Some(stored) = &self.stored {
            return stored.copy(folder, name, passed);
        }
        container::write(folder, name, &self.directory.files(), passed)
    }

    /// The file that has it, unless it is in memory.
    pub fn stored(&self) -> Option<&StoredFile> {
        self.stored.as_ref()
    }

    /// The id of a document.
    pub fn id(&self, document: u32) -> u32 {
        number(&self.ids, document)
    }

    /// The length of a document in tokens.
    pub fn length(&self, document: u32) -> u32 {
        number(&self.lengths, document)
    }

    fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    fn reader(&self) -> &SegmentReader {
        self.searcher.segment_reader(0)
    }

    fn terms(&self) -> tantivy::Result<Arc<InvertedIndexReader>> {
        self.reader().inverted_index(schema::TEXT)
    }

    /// The number of live documents that have a term. Where few are dead it is the number of all of
    /// them, and of a frequent term an estimate, either within 1 %.
    pub fn frequency(&self, term: &str, live: &LiveDocuments) -> Result<u64, TextIndexError> {
        self.guarded(|| {
            let index = self.terms()?;
            let term = Term::from_field_text(schema::TEXT, term);
            let Some(info) = index.get_term_info(&term)? else {
                return Ok(0);
            };
            let all = info.doc_freq;
            if live.dead.len() as u64 * 100 < u64::from(all) || live.dead.is_empty() {
                return Ok(u64::from(all));
            }
            let option = IndexRecordOption::Basic;
            let mut postings = index.read_postings_from_terminfo(&info, option)?;
            if all <= COUNTED_POSTINGS {
                return Ok(u64::from(count_live(&mut postings, u32::MAX, live).0));
            }
            let (mut alive, mut seen) = (0, 0);
            for stretch in 0..STRETCHES {
                let from = u64::from(self.documents) * u64::from(stretch);
                let from = (from / u64::from(STRETCHES)) as u32;
                if postings.doc() < from {
                    postings.seek(from);
                }
                let counted = count_live(&mut postings, COUNTED_POSTINGS / STRETCHES, live);
                (alive, seen) = (alive + counted.0, seen + counted.1);
            }
            Ok(u64::from(all) * u64::from(alive) / u64::from(seen.max(1)))
        })
    }

    /// The number of those documents, which ascend, that have a term.
    pub fn frequency_among(&self, term: &str, documents: &[u32]) -> Result<u64, TextIndexError> {
        self.guarded(|| {
            let term = Term::from_field_text(schema::TEXT, term);
            let postings = self
                .terms()?
                .read_postings(&term, IndexRecordOption::Basic)?;
            let Some(mut postings) = postings else {
                return Ok(0);
            };
            let mut count = 0;
            for document in documents {
                if postings.doc() < *document {
                    postings.seek(*document);
                }
                count += u64::from(postings.doc() == *document);
            }
            Ok(count)
        })
    }

    /// Does something with the segment. Damage that it meets in a file is an error that names the
    /// file, and is noted.
    fn guarded<T>(&self, work: impl FnOnce() -> tantivy::Result<T>) -> Result<T, TextIndexError> {
        if self.stored.is_none() {
            return work().map_err(|error| TextIndexError::Failed(error.to_string()));
        }
        let done = catch(work);
        self.check_readable()?;
        done.map_err(|error| self.note_damage(&error))
    }

    /// Fails if the file could not be read, so that zeros were taken for what it held.
    fn check_readable(&self) -> Result<(), TextIndexError> {
        match &self.stored {
            Some(stored) if stored.is_unreadable() => Err(self.note_damage("it can't be read")),
            _ => Ok(()),
        }
    }

    /// Notes that the segment's file is damaged.
    fn note_damage(&self, what: &str) -> TextIndexError {
        let file = self.stored.as_ref().map(StoredFile::described);
        let file = file.unwrap_or_default();
        self.damage
            .note(format!("{file} is damaged: {what}; build the index anew"))
    }
}

/// Counts the live ones among the next postings, of which at most `most` are looked at: the live
/// ones, and all.
fn count_live<D: DocSet>(postings: &mut D, most: u32, live: &LiveDocuments) -> (u32, u32) {
    let (mut alive, mut seen) = (0, 0);
    while seen < most && postings.doc() != TERMINATED {
        seen += 1;
        alive += u32::from(live.is_live(postings.doc()));
        postings.advance();
    }
    (alive, seen)
}

/// One of the numbers in a file. 0 where the file has none, which only damage makes others look
/// for.
fn number(bytes: &OwnedBytes, at: u32) -> u32 {
    let (words, _) = bytes.as_slice().as_chunks();
    words
        .get(at as usize)
        .copied()
        .map_or(0, u32::from_le_bytes)
}

/// The bytes of numbers, for a file.
fn bytes_of(numbers: impl Iterator<Item = u32>) -> OwnedBytes {
    OwnedBytes::new(numbers.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
}

/// Does something of tantivy's, and makes a message of its error and of its panic: it does not
/// expect damage.
fn catch<T>(work: impl FnOnce() -> tantivy::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(text.unwrap_or("its bytes make no sense").to_owned())
        }
    }
}

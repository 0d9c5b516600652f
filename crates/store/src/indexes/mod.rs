//! The indexes: each one by itself, and the set of them.
//!
//! An [`IndexHandle`] is one index: its identity, its content, its state and its metrics. The
//! [`IndexEngine`] has all of them and finds the one that answers a search. Nothing here knows
//! where the rows come from.
//!
//! # The structure and its surroundings
//!
//! A [`Structure`] holds the values of an index by the ids of their rows, in a form that is quick
//! to search. There is one variant for each class of index, and a class is code of its own, as
//! [`vector`] is. It knows no key and no row.
//!
//! | operation | of a structure |
//! | --- | --- |
//! | observe | `prepare` brings a value of a row ([`crate::observed`]) into its form |
//! | apply | `change` sets or removes an id's value, `tend` does what changes leave to do |
//! | search | answers a [`StructureQuery`] of its class with ids and scores, best first |
//! | save, open | writes its files while it is searched and changed, and reads them |
//! | verify | compares its files with their checksums, in use and at rest |
//! | memory | its bytes by component, and those that its files would take |
//! | recall | its part of the status and of the metrics |
//!
//! All else belongs to the surroundings, which have it once for all classes:
//!
//! - The [`IndexContent`] has the keys by id, the values of filter columns and the expiries under
//!   one lock (`selection`), the changes that the structure does not have yet ([`ChangeBlocks`]),
//!   and the ids that searches may still use ([`RetiredIds`]).
//! - [`crate::items`] decides which reading of a row wins, and gives out ids.
//! - [`crate::apply`] makes changes fresh, has the structure take them in, and gives refusals a
//!   second try.
//! - [`crate::snapshot`] has the generations, the rows with their keys and the position in the log.
//! - `Freshness` has the progress along the log of the table.
//!
//! So a search of a structure gets [`SurroundingRows`](surrounding_rows::SurroundingRows): it hides
//! the ids that have fresh changes, looks at the fresh values by itself, checks by a `Selection`
//! which rows a filter admits, and has its best ids made into an answer. The loops over candidates
//! are code of one class, with nothing to dispatch within.
//!
//! A class that comes adds a variant to `Structure`, `PreparedValue` and [`StructureQuery`] here,
//! to `StructureOptions` in [`crate::identity`], and to `IndexableValue` and `IndexableType` in
//! [`crate::observed`]. The compiler then names each place that has to know of it. The classes are
//! [`vector`] and [`text`].

mod change;
mod content;
mod engine;
mod files;
mod filter_waits;
mod fresh;
mod freshness;
mod handle;
mod last_recall;
mod maintenance;
mod plan;
mod ranked_rows;
mod request;
mod returned;
mod selection;
mod structure;
mod structure_memory;
mod surrounding_rows;
mod text;
mod vector;

pub(crate) use change::{RefusalReason, RefusedChange};
pub(crate) use content::{IndexContent, NewFilters, RetiredIds, SampledRows};
pub(crate) use engine::{IndexEngine, NoRoute, RoutedSearch};
pub(crate) use files::{FilesFault, FilesState};
pub(crate) use fresh::{ChangeBlock, ChangeBlocks, FreshChange, FreshValue};
pub(crate) use freshness::IndexLag;
pub(crate) use handle::IndexHandle;
pub(crate) use last_recall::CheckedRecall;
pub(crate) use plan::ExecutedPlan;
pub(crate) use ranked_rows::{ColumnPieces, JsonPage, JsonScoredRows, RankedRows};
pub(crate) use request::{IndexSearch, StructureError, StructureQuery};
pub(crate) use returned::RequestedColumn;
pub(crate) use structure::{PreparedValue, Structure, check_files, check_query, file_memory};
pub(crate) use vector::recall::{QueryRecall, RecallBatch};

#[cfg(test)]
pub(crate) mod tests;

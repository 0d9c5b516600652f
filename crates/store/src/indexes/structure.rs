//! The structures: the one list of their classes.
//!
//! A structure is matched once for each operation, and then all candidates of a search are looked
//! at by code of only that class.

use std::path::Path;

use filter_columns::IdSet;
use full_text::AnalysedText;
use store_api::types::IndexRecall;

use super::change::RefusalReason;
use super::files::{FilesFault, FilesProgress, FilesState};
use super::fresh::FreshValue;
use super::ranked_rows::RankedRows;
use super::request::{IndexSearch, StructureError, StructureQuery};
use super::structure_memory::{StructureDebt, StructureMemory};
use super::surrounding_rows::SurroundingRows;
use super::text::{self, AsText, TextStructure};
use super::vector::{self, AsVector, PreparedVector, VectorIndex};
use crate::identity::{StructureClass, StructureOptions};
use crate::items::ChangeKind;
use crate::metrics::IndexMetrics;
use crate::observed::IndexableValue;
use crate::options::IndexesOptions;

/// The structure of an index: its values by id, in a form that is quick to search.
pub(crate) enum Structure {
    /// A graph of vectors.
    Vector(Box<VectorIndex>),
    /// The words of texts.
    Text(Box<TextStructure>),
}

/// A value in the form of the structure that takes it in.
pub(crate) enum PreparedValue {
    /// A vector.
    Vector(PreparedVector),
    /// The words of a text.
    Text(AnalysedText),
}

impl FreshValue for PreparedValue {
    fn memory_bytes(&self) -> usize {
        match self {
            PreparedValue::Vector(vector) => vector.memory_bytes(),
            PreparedValue::Text(text) => text.memory_bytes(),
        }
    }
}

impl AsVector for PreparedValue {
    fn as_vector(&self) -> Option<&PreparedVector> {
        match self {
            PreparedValue::Vector(vector) => Some(vector),
            PreparedValue::Text(_) => None,
        }
    }
}

impl AsText for PreparedValue {
    fn as_text(&self) -> Option<&AnalysedText> {
        match self {
            PreparedValue::Vector(_) => None,
            PreparedValue::Text(text) => Some(text),
        }
    }
}

/// Checks that an index of these options can answer a query.
///
/// # Errors
/// If it can't, for any content of the index.
pub(crate) fn check_query(
    query: StructureQuery<'_>,
    options: &StructureOptions,
) -> Result<(), StructureError> {
    match (query, options) {
        (StructureQuery::Vector(vector), StructureOptions::Vector(options)) => {
            vector::check_query(vector, options)
        }
        (
            StructureQuery::Words(_) | StructureQuery::Matches { .. },
            StructureOptions::FullText(_),
        ) => Ok(()),
        (StructureQuery::Vector(_), StructureOptions::FullText(_))
        | (
            StructureQuery::Words(_) | StructureQuery::Matches { .. },
            StructureOptions::Vector(_),
        ) => Err(of_another_class()),
    }
}

/// The error for a query of another class than the index.
fn of_another_class() -> StructureError {
    StructureError::Query("the index is of another class".to_owned())
}

/// Reads the files of a structure of this class in a directory, and compares them with their
/// checksums. Returns the number of files read. `pass` gets the number of bytes read and says
/// whether to go on.
///
/// # Errors
/// Names the first file that is not as it was written, or can't be read.
pub(crate) fn check_files(
    class: StructureClass,
    directory: &Path,
    pass: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, FilesFault> {
    match class {
        StructureClass::Vector => vector::check_files(directory, pass),
        StructureClass::FullText => text::check_files(directory, pass),
    }
}

/// About the memory that a file of a structure takes once the index is open, bytes.
pub(crate) fn file_memory(
    class: StructureClass,
    name: Option<&str>,
    bytes: u64,
    indexes: &IndexesOptions,
) -> u64 {
    match class {
        StructureClass::Vector => vector::file_memory(name, bytes, indexes),
        StructureClass::FullText => text::file_memory(bytes),
    }
}

impl Structure {
    /// Makes a structure without values.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub(crate) fn new(
        options: &StructureOptions,
        indexes: &IndexesOptions,
    ) -> Result<Structure, StructureError> {
        match options {
            StructureOptions::Vector(options) => {
                let index = VectorIndex::new(options, indexes)?;
                Ok(Structure::Vector(Box::new(index)))
            }
            StructureOptions::FullText(options) => {
                Ok(Structure::Text(Box::new(TextStructure::new(*options))))
            }
        }
    }

    /// Opens the structure whose files a directory has.
    ///
    /// # Errors
    /// If the files are not those of such a structure, or there is no memory for it.
    pub(crate) fn open(
        options: &StructureOptions,
        directory: &Path,
        indexes: &IndexesOptions,
    ) -> Result<Structure, FilesFault> {
        match options {
            StructureOptions::Vector(options) => {
                let index = VectorIndex::open(options, directory, indexes)?;
                Ok(Structure::Vector(Box::new(index)))
            }
            StructureOptions::FullText(options) => {
                let index = TextStructure::open(*options, directory)?;
                Ok(Structure::Text(Box::new(index)))
            }
        }
    }

    /// Writes the values into a directory while they are searched and changed, for as long as
    /// `keep_going` returns true.
    ///
    /// # Errors
    /// If a file can't be written, the values are damaged, or the work was stopped.
    pub(crate) fn save(
        &self,
        directory: &Path,
        keep_going: impl FnMut(FilesProgress) -> bool,
    ) -> Result<(), FilesFault> {
        match self {
            Structure::Vector(index) => index.save(directory, keep_going),
            Structure::Text(index) => index.save(directory, keep_going),
        }
    }

    /// Verifies the files of an opened structure, for as long as `keep_going` returns true.
    pub(crate) fn verify(&self, keep_going: impl FnMut(&FilesState) -> bool) -> FilesState {
        match self {
            Structure::Vector(index) => index.verify(keep_going),
            Structure::Text(index) => index.verify(keep_going),
        }
    }

    /// The state of the files of an opened structure.
    pub(crate) fn files_state(&self) -> FilesState {
        match self {
            Structure::Vector(index) => index.files_state(),
            Structure::Text(index) => index.files_state(),
        }
    }

    /// Does a piece of the work that changes have left to do: about a millisecond of it, or a piece
    /// that calls `pace` now and then, which may wait, and ends the piece by false. Returns whether
    /// there is more.
    pub(crate) fn tend(&self, pace: &(dyn Fn() -> bool + Sync)) -> bool {
        match self {
            Structure::Vector(index) => index.tend(),
            Structure::Text(index) => index.tend(pace),
        }
    }

    /// The bytes of values that wait for that work in a form that takes more memory and that
    /// searches look at one by one.
    pub(crate) fn untended_bytes(&self) -> usize {
        match self {
            // A graph takes each vector in where it belongs.
            Structure::Vector(_) => 0,
            Structure::Text(index) => index.waiting_bytes(),
        }
    }

    /// The ids whose values the structure has.
    pub(crate) fn ids(&self) -> IdSet {
        match self {
            Structure::Vector(index) => index.ids(),
            Structure::Text(index) => index.ids(),
        }
    }

    /// The bytes held, by component.
    pub(crate) fn memory(&self) -> StructureMemory {
        match self {
            Structure::Vector(index) => index.memory(),
            Structure::Text(index) => index.memory(),
        }
    }

    /// The recall that samples of the data have shown; `None` before there are any, and of a
    /// structure that finds all.
    pub(crate) fn recall(&self) -> Option<IndexRecall> {
        match self {
            Structure::Vector(index) => index.recall(),
            Structure::Text(_) => None,
        }
    }

    /// Shows in metrics how well the structure finds rows.
    pub(crate) fn show_recall(&self, metrics: &IndexMetrics) {
        match self {
            Structure::Vector(index) => index.show_recall(metrics),
            Structure::Text(_) => {}
        }
    }

    /// The structure of vectors.
    ///
    /// # Errors
    /// If it is one of texts.
    pub(crate) fn vectors(&self) -> Result<&VectorIndex, StructureError> {
        match self {
            Structure::Vector(index) => Ok(index),
            Structure::Text(_) => Err(StructureError::Query(
                "the index has no vectors, whose recall could be measured".to_owned(),
            )),
        }
    }

    /// The work that changes have left in the structure.
    pub(crate) fn debt(&self) -> StructureDebt {
        match self {
            Structure::Vector(index) => index.debt(),
            Structure::Text(index) => index.debt(),
        }
    }

    /// The structure, if it is one of texts.
    pub(crate) fn as_text(&self) -> Option<&TextStructure> {
        match self {
            Structure::Vector(_) => None,
            Structure::Text(index) => Some(index),
        }
    }

    /// Brings a value into the form of the structure.
    ///
    /// # Errors
    /// If the value is none of this index.
    pub(crate) fn prepare(&self, value: &IndexableValue) -> Result<PreparedValue, RefusalReason> {
        match (self, value) {
            (Structure::Vector(index), IndexableValue::Vector(vector)) => {
                index.prepare(vector).map(PreparedValue::Vector)
            }
            (Structure::Text(index), IndexableValue::Text(text)) => {
                Ok(PreparedValue::Text(index.prepare(text)))
            }
            (Structure::Vector(_), IndexableValue::Text(_))
            | (Structure::Text(_), IndexableValue::Vector(_)) => {
                Err(RefusalReason::Unfit(of_another_class().to_string()))
            }
        }
    }

    /// Makes a change. After a refusal the structure does not hold the id, unless that was to be
    /// removed.
    ///
    /// # Errors
    /// If there is no room, the value is none of this index, or the structure is at fault.
    pub(crate) fn change(
        &self,
        id: u32,
        operation: ChangeKind,
        value: Option<&PreparedValue>,
    ) -> Result<(), RefusalReason> {
        match self {
            Structure::Vector(index) => {
                index.change(id, operation, value.and_then(PreparedValue::as_vector))
            }
            Structure::Text(index) => {
                index.change(id, operation, value.and_then(PreparedValue::as_text))
            }
        }
    }

    /// Finds the best rows. There are fewer than requested only if the index has no more.
    ///
    /// # Errors
    /// If the query is none of this index, the answer would be too large, or the structure is at
    /// fault.
    pub(crate) fn search<'a>(
        &self,
        rows: &SurroundingRows<'a, PreparedValue>,
        search: &IndexSearch<'a>,
    ) -> Result<RankedRows<'a>, StructureError> {
        match (self, search.query) {
            (Structure::Vector(index), StructureQuery::Vector(query)) => {
                index.search(rows, query, search)
            }
            (Structure::Text(index), StructureQuery::Words(query)) => {
                index.search(rows, query, search)
            }
            (Structure::Text(index), StructureQuery::Matches { query, after }) => {
                index.page(rows, query, after, search)
            }
            (Structure::Text(_), StructureQuery::Vector(_))
            | (Structure::Vector(_), StructureQuery::Words(_) | StructureQuery::Matches { .. }) => {
                Err(of_another_class())
            }
        }
    }
}

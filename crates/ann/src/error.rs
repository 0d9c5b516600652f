//! The errors of an index.

use crate::OptionOutOfRange;
use crate::graph::SLOTS_MAX;
use crate::memory::GrowError;

/// The reason why an index did not do what was requested.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum IndexError {
    /// A vector or a query of another length than the index was made for.
    #[error("Wrong embedding dimension: expected {expected}, got {actual}")]
    Dimensions {
        /// Elements of a vector of this index.
        expected: usize,
        /// Elements of the vector given.
        actual: usize,
    },
    /// A vector or a query with a NaN or an infinity.
    #[error("element {position} of the vector is not a finite number")]
    NotFinite {
        /// The position of the first such element, counted from 0.
        position: usize,
    },
    /// An insert under an id in use.
    #[error("the index already holds id {0}")]
    Exists(u32),
    /// A replace or remove of an id not in use.
    #[error("the index holds no id {0}")]
    Missing(u32),
    /// The requested index has an option outside of its range.
    #[error(transparent)]
    Options(#[from] OptionOutOfRange),
    /// The index has no room for another vector.
    #[error("the index is full: it holds as many vectors as it can, {SLOTS_MAX}")]
    Full,
    /// No memory, or no room on the disk, for what was requested. Nothing was changed.
    #[error("the index cannot grow: {0}")]
    NoRoom(String),
    /// A file of vectors was cut short while it was in use, or its disk fails, so there is no right
    /// answer. The index should be rebuilt.
    #[error("the index cannot answer: {0}")]
    Unreadable(String),
}

impl From<GrowError> for IndexError {
    fn from(error: GrowError) -> IndexError {
        IndexError::NoRoom(error.to_string())
    }
}

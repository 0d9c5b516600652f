//! What can go wrong.

use crate::OptionOutOfRange;

/// Why an index refused, or could not do, what it was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
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
        /// Counted from 0.
        position: usize,
    },
    /// An insert under an id in use.
    #[error("the index already holds id {0}")]
    Exists(u32),
    /// A replace or remove of an id not in use.
    #[error("the index holds no id {0}")]
    Missing(u32),
    /// An index asked for with an option outside of its range.
    #[error(transparent)]
    Options(#[from] OptionOutOfRange),
    /// The engine could not go on, for want of memory for instance. What was asked for has not
    /// happened.
    #[error("the index engine failed: {0}")]
    Engine(String),
}

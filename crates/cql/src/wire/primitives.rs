//! The notations of the protocol (v4, section 3), read and written.

use crate::error::CqlError;

/// Why the bytes of a body are no such message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body ends within what it announces.
    #[error("the frame ends within {0}")]
    Truncated(&'static str),
    /// A value that the protocol does not allow.
    #[error("{0}")]
    Invalid(String),
}

impl From<DecodeError> for CqlError {
    fn from(error: DecodeError) -> CqlError {
        CqlError::protocol(error.to_string())
    }
}

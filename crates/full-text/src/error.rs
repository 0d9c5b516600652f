//! The errors of an index and of its files.

use std::io;
use std::path::Path;

/// The reason why a search or a change failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextIndexError {
    /// A file that the index was opened from is not as it was written. The message names it.
    #[error("{0}")]
    Damaged(String),
    /// The engine of segments failed.
    #[error("the index of words failed: {0}")]
    Failed(String),
}

/// The reason why files could not be written, opened or checked. Messages name the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFileError {
    /// The system refused: a full disk, a defective one, a file that can't be opened.
    #[error("{0}")]
    System(String),
    /// The files are damaged, of another version or of another index, or the work was stopped.
    #[error("{0}")]
    Unusable(String),
}

impl TextFileError {
    /// The error for an action that the system refused.
    pub(crate) fn system(action: &str, path: &Path) -> impl FnOnce(io::Error) -> TextFileError {
        let message = format!("cannot {action} {}", path.display());
        move |error| match error.kind() {
            // A file that ends too early, or is missing, was not written so.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound => {
                TextFileError::Unusable(format!("{message}: {error}"))
            }
            _ => TextFileError::System(format!("{message}: {error}")),
        }
    }

    /// The error for a file with damage.
    pub(crate) fn damaged(path: &Path, what: &str) -> TextFileError {
        TextFileError::Unusable(format!(
            "{} is damaged: {what}; put a sound copy in its place, or build the index anew",
            path.display()
        ))
    }

    /// The error of work that its caller has stopped.
    pub(crate) fn stopped() -> TextFileError {
        TextFileError::Unusable("the work was stopped before its end".to_owned())
    }
}

//! The error of a file that can't be used.

use std::path::Path;

/// A file that an option names can't be used. The text names the file, never its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {why}")]
pub struct FileError {
    file: String,
    why: String,
}

impl FileError {
    /// The error of this file.
    pub(crate) fn new(file: &Path, why: impl ToString) -> FileError {
        FileError {
            file: file.display().to_string(),
            why: why.to_string(),
        }
    }
}

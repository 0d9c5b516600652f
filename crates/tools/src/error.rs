//! The ways in which a program of this crate fails.

use credentials::FileError;
use embeddings::EmbedderError;

/// A failure of a program. Each text names the thing and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The command line, or a file that it names for the connection, can't be used.
    #[error("{0}")]
    Usage(String),
    /// The server can't be reached, or refuses the login.
    #[error("{0}")]
    Connection(String),
    /// The server refuses a statement, or it can't be read.
    #[error("{0}")]
    Statement(String),
    /// A file of data or statements, or the output, can't be read or written.
    #[error("{0}")]
    File(String),
    /// The user ended the program, by Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl From<FileError> for ToolError {
    fn from(error: FileError) -> ToolError {
        ToolError::Usage(error.to_string())
    }
}

impl From<EmbedderError> for ToolError {
    fn from(error: EmbedderError) -> ToolError {
        match error {
            EmbedderError::Options(text) => ToolError::Usage(text),
            EmbedderError::File(error) => error.into(),
            EmbedderError::Server(text) => ToolError::Connection(text),
        }
    }
}

/// The exit code of a program that failed: 2 if the command line is wrong, else 1.
pub fn exit_code(error: &ToolError) -> u8 {
    match error {
        ToolError::Usage(_) => 2,
        ToolError::Connection(_)
        | ToolError::Statement(_)
        | ToolError::File(_)
        | ToolError::Interrupted => 1,
    }
}

//! The reasons why a backup, a restore or a drill fails.

use std::io;
use std::path::{Path, PathBuf};

use backup::BackupError;
use storage::StorageError;

/// The reason why a backup, a restore or a drill was refused or has failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupTaskError {
    /// The request can't be carried out as it is.
    #[error("{0}")]
    Wrong(String),
    /// The client may not send this request.
    #[error("{0}")]
    Forbidden(String),
    /// The disk has no room for the files.
    #[error("{0}")]
    NoRoom(String),
    /// A backup, a restore or a drill is running.
    #[error("a {0} is running: wait until it has ended, or abort it (`annulus tasks`)")]
    Busy(&'static str),
    /// There is no schedule of this id.
    #[error("there is no schedule {0}")]
    NoSchedule(String),
    /// The location or its objects.
    #[error(transparent)]
    Location(#[from] BackupError),
    /// The storage.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file of this server.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The work was stopped as requested.
    #[error("stopped as requested")]
    Stopped,
    /// A drill found differences.
    #[error("{0}")]
    Differs(String),
    /// The cluster that rows are written to by CQL.
    #[error("{0}")]
    Cluster(String),
    /// A fault of the server.
    #[error("{0}")]
    Internal(String),
}

impl BackupTaskError {
    /// Whether the work was stopped as requested.
    pub fn is_stopped(&self) -> bool {
        match self {
            BackupTaskError::Stopped => true,
            BackupTaskError::Location(error) => error.is_stopped(),
            _ => false,
        }
    }

    /// The error of the system about a file.
    pub(crate) fn file(path: &Path, source: io::Error) -> BackupTaskError {
        BackupTaskError::File {
            path: path.to_owned(),
            source,
        }
    }
}

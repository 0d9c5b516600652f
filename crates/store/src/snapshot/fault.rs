//! The reasons why a snapshot can't be written or used, and why the log can't complete it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::indexes::FilesFault;
use crate::memory::NoMemory;

/// The reason why a snapshot can't be written or used. Each names the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PersistenceError {
    /// The system returned an error.
    #[error("can't {action} {}: {source}", path.display())]
    Io {
        /// The action that failed, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file differs from what was written.
    #[error("{} is damaged near byte {offset}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset from the start of the file, bytes.
        offset: u64,
        /// The kind of damage, as the end of a sentence.
        what: &'static str,
    },
    /// The snapshot belongs to another index.
    #[error("{} is of another index: {field} was {saved}, and is {now}", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// The part of the identity that differs.
        field: String,
        /// Its value in the snapshot.
        saved: String,
        /// Its value in the schema.
        now: String,
    },
    /// The files of the structure can't be written or used.
    #[error(transparent)]
    Structure(#[from] FilesFault),
    /// The index of the snapshot would exceed the memory limit.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// Another process works with the directory.
    #[error("{} is in use by another process; give each its own --index-dir", path.display())]
    InUse {
        /// The file that is locked.
        path: PathBuf,
    },
    /// The save was aborted on request.
    #[error("it was aborted")]
    Aborted,
    /// The service is stopping, or the index was dropped.
    #[error("the service is stopping")]
    Stopped,
}

impl PersistenceError {
    /// Makes an error of the system into a fault that names the action and the file.
    pub(crate) fn io(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> PersistenceError {
        let path = path.to_owned();
        move |source| PersistenceError::Io {
            action,
            path,
            source,
        }
    }

    /// Whether the system failed or memory is short, so that the files may be sound.
    pub(crate) fn is_of_the_system(&self) -> bool {
        matches!(
            self,
            PersistenceError::Io { .. }
                | PersistenceError::NoMemory(_)
                | PersistenceError::Structure(FilesFault::System(_))
        )
    }

    /// Makes a fault that names the file, the place and the damage.
    pub(crate) fn damaged(path: &Path, offset: u64, what: &'static str) -> PersistenceError {
        PersistenceError::Damaged {
            path: path.to_owned(),
            offset,
            what,
        }
    }
}

/// The reason why the log lacks changes since a snapshot's position.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum LogGap {
    /// Rows of the log may have expired.
    #[error(
        "the snapshot is {} s behind, and the log keeps rows for {} s",
        behind.as_secs(),
        log_ttl.as_secs()
    )]
    Expired {
        /// The time since the position.
        behind: Duration,
        /// The time to live of log rows.
        log_ttl: Duration,
    },
    /// The position is in the future.
    #[error("the clock was set back behind the time of the snapshot")]
    ClockSetBack,
}

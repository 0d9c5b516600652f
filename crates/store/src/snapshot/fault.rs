//! Why a snapshot can't be written, or not be used.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::memory::NoMemory;

/// Why a snapshot can't be written or not be used. Each names the file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The system refused.
    #[error("can't {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what was written.
    #[error("{} is damaged near byte {offset}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Bytes from its start.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// It is of another index.
    #[error("{} is of another index: {field} was {saved}, and is {now}", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// What differs.
        field: String,
        /// Its value in the snapshot.
        saved: String,
        /// Its value in the schema.
        now: String,
    },
    /// The vectors.
    #[error(transparent)]
    Vectors(#[from] ann::SnapshotError),
    /// What it holds would overstep the memory limit.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// Another process works with the directory.
    #[error("{} is in use by another process; give each its own --index-dir", path.display())]
    InUse {
        /// The file that is locked.
        path: PathBuf,
    },
    /// Someone wanted the save to stop.
    #[error("it was aborted")]
    Aborted,
    /// The service is stopping, or the index has gone.
    #[error("the service is stopping")]
    Stopped,
}

impl Fault {
    /// Names the file and what was tried with it.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Fault {
        let path = path.to_owned();
        move |source| Fault::Io {
            action,
            path,
            source,
        }
    }

    /// Whether the system refused, or there is no room, and the files may be sound.
    pub fn is_of_the_system(&self) -> bool {
        use ann::SnapshotError::{Io, Memory};
        matches!(
            self,
            Fault::Io { .. } | Fault::NoMemory(_) | Fault::Vectors(Io { .. } | Memory(_))
        )
    }

    /// Names the file and the place.
    pub fn damaged(path: &Path, offset: u64, what: &'static str) -> Fault {
        Fault::Damaged {
            path: path.to_owned(),
            offset,
            what,
        }
    }
}

/// Why the log can't tell all that happened since a snapshot's position.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OutOfReach {
    /// Its rows may have expired.
    #[error(
        "the snapshot is {} s behind, and the log keeps rows for {} s",
        behind.as_secs(),
        log_ttl.as_secs()
    )]
    Expired {
        /// How long ago the position was.
        behind: Duration,
        /// How long log rows live.
        log_ttl: Duration,
    },
    /// The position lies in the future.
    #[error("the clock was set back behind the time of the snapshot")]
    ClockSetBack,
}

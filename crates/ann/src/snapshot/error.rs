//! The errors of writing, opening and checking a snapshot.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::OptionOutOfRange;
use crate::memory::GrowError;

/// The reason why a snapshot could not be written, opened or checked. Messages name the file, and
/// what may be done.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The system refused: a file that is missing, a full disk, a defective one.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action that was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file was not written by this program, or was never finished.
    #[error(
        "{} is no file of a finished snapshot; give the directory of one, or build the index anew",
        path.display()
    )]
    NotASnapshot {
        /// The file.
        path: PathBuf,
    },
    /// The file is of a version that this program does not know.
    #[error(
        "{} is of version {found} of the snapshot format, and this program knows {known}; open it \
         with the program that wrote it, or build the index anew",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// The file is not what was written.
    #[error(
        "{} is damaged near byte {offset}: {what}; put a sound copy in its place, or build the index \
         anew", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset in bytes from the file's start. Where a checksum failed, it is the start of the
        /// piece (1 MiB).
        offset: u64,
        /// The damage.
        what: &'static str,
    },
    /// A file is there, but was cut short while it was in use, or its disk fails.
    #[error(
        "{file} can no longer be read: it was cut short, or its disk fails; look at the disk, and build \
         the index anew"
    )]
    Unreadable {
        /// The name of the file.
        file: String,
    },
    /// The snapshot is of an index with other options.
    #[error(
        "{} is of an index whose {option} is {found}, not {expected}; open it with its own options, \
         or build the index anew", path.display()
    )]
    Options {
        /// The file.
        path: PathBuf,
        /// The field of [`Options`](crate::NeighbourIndexOptions).
        option: &'static str,
        /// Its value in the snapshot.
        found: String,
        /// The value that was requested.
        expected: String,
    },
    /// An option that was requested is outside of its range.
    #[error(transparent)]
    OutOfRange(#[from] OptionOutOfRange),
    /// The index was opened from a snapshot that turned out to be damaged, so it is not saved.
    #[error("the index holds damaged vectors and cannot be saved: {0}")]
    Source(Arc<SnapshotError>),
    /// The caller that saved the index stopped the save.
    #[error("the save was stopped before its end; remove the directory that it has begun")]
    Stopped,
    /// There is no room for what cannot stay in the files.
    #[error(transparent)]
    Memory(#[from] GrowError),
}

impl SnapshotError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
        let path = path.to_owned();
        move |source| SnapshotError::Io {
            action,
            path,
            source,
        }
    }

    pub(super) fn damaged(path: &Path, offset: u64, what: &'static str) -> SnapshotError {
        SnapshotError::Damaged {
            path: path.to_owned(),
            offset,
            what,
        }
    }
}

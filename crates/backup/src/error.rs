//! The reasons why an operation on a location fails, each with its remedy.

use std::io;
use std::path::{Path, PathBuf};

use crate::location::LocationTextError;

/// The reason why an operation on a location failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A text of an option is not of its form.
    #[error(transparent)]
    Text(#[from] LocationTextError),
    /// A file that an option names can't be used.
    #[error("{}: {problem}", file.display())]
    OptionFile {
        /// The file.
        file: PathBuf,
        /// The fault, and its remedy.
        problem: String,
    },
    /// The settings of a provider don't make a store.
    #[error("{location}: {problem}")]
    Settings {
        /// The location.
        location: String,
        /// The fault, and its remedy.
        problem: String,
    },
    /// The store refuses the credentials, or has no such bucket.
    #[error("{location}: {problem}")]
    Refused {
        /// The location.
        location: String,
        /// The answer of the store, and the remedy.
        problem: String,
    },
    /// The store can't be reached, or answers with errors.
    #[error("{location}: {object}: {problem}")]
    Store {
        /// The location.
        location: String,
        /// The object.
        object: String,
        /// The fault.
        problem: String,
        /// Whether the same operation may succeed later.
        is_transient: bool,
    },
    /// The directory of a location is missing.
    #[error("{location}: there is no such directory: make it, or correct the location")]
    NoDirectory {
        /// The location.
        location: String,
    },
    /// The location has no backups.
    #[error(
        "{location}: no backup is there (annulus-backup.json is missing): correct the location, or \
         make a backup first"
    )]
    NotALocation {
        /// The location.
        location: String,
    },
    /// The location belongs to another server.
    #[error(
        "{location}: it belongs to server {owner}: use another prefix for each server, or \
         --take-over if that server no longer makes backups"
    )]
    OtherOwner {
        /// The location.
        location: String,
        /// Name and id of the owner.
        owner: String,
    },
    /// Another copy of this server's data directory makes backups there.
    #[error(
        "{location}: its last backup by server {owner} was not made from this data directory, which \
         seems to be a copy: use another prefix, or --take-over if the other copy is no longer used"
    )]
    CopiedState {
        /// The location.
        location: String,
        /// Name and id of the owner.
        owner: String,
    },
    /// Another server took the location while the operation ran.
    #[error("{location}: another server has taken it over meanwhile: use another prefix")]
    TakenOver {
        /// The location.
        location: String,
    },
    /// Points are to be deleted before a backup has leased the location.
    #[error("{location}: points are deleted only after a backup that succeeded")]
    NoLease {
        /// The location.
        location: String,
    },
    /// The key is not that of the location.
    #[error("{location}: {problem}")]
    Encryption {
        /// The location.
        location: String,
        /// The fault, and its remedy.
        problem: &'static str,
    },
    /// An object is not what was written.
    #[error("{location}: {object} is damaged: {problem}")]
    Damaged {
        /// The location.
        location: String,
        /// The object.
        object: String,
        /// The fault.
        problem: String,
    },
    /// An object that a point needs is missing.
    #[error("{location}: {object} is missing: `annulus backup verify` names all such objects")]
    Missing {
        /// The location.
        location: String,
        /// The object.
        object: String,
    },
    /// There is no such point.
    #[error("{location}: there is no point {id}; {known}")]
    NoSuchPoint {
        /// The location.
        location: String,
        /// The point.
        id: String,
        /// The points that there are, in words.
        known: String,
    },
    /// The location has no complete point.
    #[error("{location}: no complete backup is there yet")]
    NoPoints {
        /// The location.
        location: String,
    },
    /// A later version wrote the object.
    #[error(
        "{location}: {object} has format {format}, which this version can't read: use the version \
         that wrote it, or a later one"
    )]
    LaterFormat {
        /// The location.
        location: String,
        /// The object.
        object: String,
        /// Its format.
        format: u64,
    },
    /// A local file or directory can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file of the source is not one that a backup can hold.
    #[error("{}: {problem}", path.display())]
    SourceFile {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: &'static str,
    },
    /// The target of a download has other files.
    #[error(
        "{}: the directory has other files: name one that is empty or missing",
        path.display()
    )]
    TargetInUse {
        /// The directory.
        path: PathBuf,
    },
    /// The source has more files than one point can name.
    #[error(
        "the manifest of the point would have {bytes} bytes, and {most} are read back at most: a \
         point can't name so many files"
    )]
    ManifestLength {
        /// Bytes that it would have.
        bytes: u64,
        /// Bytes that it may have.
        most: u64,
    },
    /// The caller stopped the operation.
    #[error("stopped")]
    Stopped,
    /// All points would be deleted.
    #[error("a retention of 0 points would delete all: name 1 or more")]
    RetentionOfNone,
    /// Encryption or random numbers failed.
    #[error("the cryptography of this machine failed")]
    Cryptography,
    /// A thread of the work failed.
    #[error("a thread of the backup ended: {0}")]
    Thread(String),
}

impl BackupError {
    /// Whether the same operation may succeed later without a change by an operator.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            BackupError::Store {
                is_transient: true,
                ..
            } | BackupError::Thread(_)
        )
    }

    /// Whether the caller stopped the operation.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self, BackupError::Stopped)
    }

    /// The error of a local file.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
        move |source| BackupError::File {
            path: path.to_owned(),
            source,
        }
    }

    /// The error of a thread that panicked or was ended with its runtime.
    pub(crate) fn thread(error: tokio::task::JoinError) -> BackupError {
        BackupError::Thread(error.to_string())
    }
}

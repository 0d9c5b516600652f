//! Turns errors of the engine into errors of the storage. The error of a writer says that nothing
//! is written any more, that of a reader what is wrong with the files.

use std::path::Path;

use super::journal::{CorruptBatch, CorruptionCause};
use super::manifest::FileDamage;
use crate::StorageError;

/// The error for a damaged journal, with the remedy.
pub(crate) fn damage_error(directory: &Path, damage: &CorruptBatch) -> StorageError {
    let what = match damage.cause {
        CorruptionCause::Broken => "the batch there is not as it was written",
        CorruptionCause::Sequence => "the batch there has a sequence number that is not its own",
        CorruptionCause::Missing => "batches before the one there are missing",
    };
    StorageError::Corrupt(format!(
        "{} is damaged at offset {}: {what}, and {} whole batches stand behind it. Restore the directory \
         from a backup, or see what would be lost with `annulus recover {}`",
        damage.path.display(),
        damage.offset,
        damage.batches_after,
        directory.display()
    ))
}

pub(crate) fn fault_error(fault: FileDamage) -> StorageError {
    match fault {
        FileDamage::Io(path, error) => {
            StorageError::Io(format!("can't read {}: {error}", path.display()))
        }
        FileDamage::Missing(path) => StorageError::Corrupt(format!(
            "{} is missing: restore the directory from a backup",
            path.display()
        )),
        FileDamage::Damaged(path, what) => StorageError::Corrupt(format!(
            "{} {what}: nothing was changed; restore the directory from a backup",
            path.display()
        )),
    }
}

pub(super) fn open_error(path: &Path, error: fjall::Error) -> StorageError {
    let path = path.display();
    match error {
        fjall::Error::Locked => {
            StorageError::Locked(format!("{path} is in use by another process"))
        }
        fjall::Error::InvalidVersion(_) => StorageError::NewerFormat(format!(
            "{path} was written by another version of the storage engine"
        )),
        fjall::Error::Io(error) => StorageError::Io(format!("can't open {path}: {error}")),
        other => StorageError::Corrupt(format!("can't open {path}: {other}")),
    }
}

pub(super) fn write_error(error: fjall::Error) -> StorageError {
    let cause = match error {
        fjall::Error::Poisoned => "an earlier write failed".to_owned(),
        fjall::Error::Io(error) => error.to_string(),
        fjall::Error::Storage(error) => error.to_string(),
        other => other.to_string(),
    };
    StorageError::ReadOnly(cause)
}

pub(super) fn read_error(error: fjall::Error) -> StorageError {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            StorageError::Io(format!("reading failed: {error}"))
        }
        other => StorageError::Corrupt(format!("reading failed: {other}")),
    }
}

//! The engine's errors in our own terms: whoever writes hears that nothing is written any more, whoever
//! reads what is wrong with the files.

use std::path::Path;

use crate::StorageError;

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

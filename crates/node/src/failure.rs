//! What goes wrong in the storage, as clients see it.

use cql::error::CqlError;
use storage::StorageError;

/// The client's error for one of the storage: `Invalid` where the client is at fault.
pub fn storage_error(error: StorageError) -> CqlError {
    match error {
        StorageError::Invalid(message) => CqlError::invalid(message),
        StorageError::NoSuchTable(_) => CqlError::invalid(error.to_string()),
        StorageError::ReadOnly(reason) => CqlError::server(format!(
            "writes are refused while the storage is read-only: {reason}"
        )),
        StorageError::Locked(_)
        | StorageError::NewerFormat(_)
        | StorageError::Corrupt(_)
        | StorageError::Io(_)
        | StorageError::Closed => CqlError::server(error.to_string()),
    }
}

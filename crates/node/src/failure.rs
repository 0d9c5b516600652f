//! Errors of the storage in the form that clients see.

use cql::error::CqlError;
use storage::StorageError;

/// Converts an error of the storage to an error for the client. It is `Invalid` if the client is at
/// fault.
pub fn storage_error(error: StorageError) -> CqlError {
    match error {
        StorageError::Invalid(message) => CqlError::invalid(message),
        StorageError::NoSuchTable(_) | StorageError::NoSuchIndex(_) => {
            CqlError::invalid(error.to_string())
        }
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

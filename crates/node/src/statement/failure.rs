//! Errors that statements of several kinds have, in the form that clients see.

use cql::error::{CqlError, ErrorKind, ReplicaFailures};
use cql::wire::Consistency;
use storage::StorageError;

/// Converts an error of the storage to an error for the client. It is `Invalid` if the client is at
/// fault.
pub(crate) fn storage_error(error: StorageError) -> CqlError {
    match error {
        StorageError::Invalid(message) => CqlError::invalid(message),
        StorageError::NoSuchTable(id) => CqlError::invalid(format!(
            "the table (id {id}) was dropped while the statement was carried out"
        )),
        StorageError::NoSuchIndex(_) => CqlError::invalid(error.to_string()),
        StorageError::TooManyTombstones(_) => CqlError::new(
            ErrorKind::ReadFailure {
                consistency: Consistency::One.code(),
                received: 0,
                block_for: 1,
                failures: ReplicaFailures::Count(1),
                data_present: false,
            },
            "Operation failed - received 0 responses and 1 failures: READ_TOO_MANY_TOMBSTONES: the query scanned \
             over too many tombstones and was aborted (see tombstone_failure_threshold)",
        ),
        StorageError::ReadOnly(reason) => CqlError::server(format!(
            "writes are refused while the storage is read-only: {reason}"
        )),
        StorageError::Locked(_)
        | StorageError::NewerFormat(_)
        | StorageError::Corrupt(_)
        | StorageError::Io(_)
        | StorageError::Late
        | StorageError::Closed => CqlError::server(error.to_string()),
    }
}

/// The error of an answer that gets no more memory, of which there are so many bytes.
pub(crate) fn answer_memory_error(bytes: usize) -> CqlError {
    let message = format!(
        "Overloaded: after {} KiB there is no memory for more of this answer, as others are not read yet; read them first, \
         use paging or a LIMIT, or start the server with a larger --memory-limit",
        bytes >> 10
    );
    CqlError::new(ErrorKind::Overloaded, message)
}

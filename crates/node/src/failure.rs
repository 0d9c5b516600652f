//! Errors of the storage in the form that clients see.

use std::net::{IpAddr, Ipv4Addr};

use cql::error::{CqlError, ErrorKind, Failures};
use cql::wire::Consistency;
use storage::StorageError;

use crate::parameters::Parameters;

/// The reason of a failed read in version 5 of the protocol: too many tombstones.
pub(crate) const TOO_MANY_TOMBSTONES: u16 = 1;
/// The reason: the read is too large.
pub(crate) const READ_SIZE: u16 = 4;
/// The reason: the index is being built.
pub(crate) const INDEX_NOT_AVAILABLE: u16 = 6;

/// The error of a read that this node could not carry out.
pub(crate) fn read_failure(parameters: &Parameters, reason: u16, message: String) -> CqlError {
    let node = parameters.server_address.map(|address| address.ip());
    let node = node.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let kind = ErrorKind::ReadFailure {
        consistency: parameters.consistency.code(),
        received: 0,
        block_for: 1,
        failures: Failures::Reasons(vec![(node, reason)]),
        data_present: false,
    };
    CqlError::new(kind, message)
}

/// Converts an error of the storage to an error for the client. It is `Invalid` if the client is at
/// fault.
pub fn storage_error(error: StorageError) -> CqlError {
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
                failures: Failures::Count(1),
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
        | StorageError::Closed => CqlError::server(error.to_string()),
    }
}

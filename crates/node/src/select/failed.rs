//! Reads that this node could not carry out, and the reasons that version 5 of the protocol
//! reports.

use std::net::{IpAddr, Ipv4Addr};

use cql::error::{CqlError, ErrorKind, ReplicaFailures};

use crate::statement::ExecutionParameters;

/// The reason of a failed read in version 5 of the protocol: too many tombstones.
pub(super) const TOO_MANY_TOMBSTONES: u16 = 1;
/// The reason: the read is too large.
pub(super) const READ_SIZE: u16 = 4;
/// The reason: the index is being built.
pub(super) const INDEX_NOT_AVAILABLE: u16 = 6;

/// The error of a read that this node could not carry out.
pub(super) fn read_failure(
    parameters: &ExecutionParameters,
    reason: u16,
    message: String,
) -> CqlError {
    let node = parameters.server_address.map(|address| address.ip());
    let node = node.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let kind = ErrorKind::ReadFailure {
        consistency: parameters.consistency.code(),
        received: 0,
        block_for: 1,
        failures: ReplicaFailures::Reasons(vec![(node, reason)]),
        data_present: false,
    };
    CqlError::new(kind, message)
}

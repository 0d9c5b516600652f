//! The errors by which the gateway itself answers requests.

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use http_server::InMaintenance;

/// The error for a STARTUP after another one, in the node's words.
pub(super) fn already_started() -> CqlError {
    CqlError::new(
        ErrorKind::ProtocolError,
        "Unexpected message STARTUP, the connection is open already",
    )
}

/// The error for statements and registrations before the node has let the client in. The node would
/// refuse them as well, unless it lets the client in meanwhile. Then a statement would get through
/// that the gateway did not look at.
pub(super) fn not_let_in() -> CqlError {
    CqlError::new(
        ErrorKind::ProtocolError,
        "the connection is not open yet: send STARTUP, log in if the node asks for it, and wait for its answer",
    )
}

/// The error for writes while the snapshot is out of date. Upon this drivers try another gateway.
pub(super) fn lapsed() -> CqlError {
    CqlError::new(
        ErrorKind::IsBootstrapping,
        "the gateway has lost touch with the cluster's definitions of vector indexes and passes no writes: use another one",
    )
}

/// The error for statements during maintenance. Upon this drivers try another gateway.
pub(super) fn in_maintenance(error: InMaintenance) -> CqlError {
    CqlError::new(ErrorKind::IsBootstrapping, error.to_string())
}

/// The error for an unknown prepared id. Upon this drivers prepare the statement again and execute
/// it once more.
pub(super) fn unprepared(id: &[u8]) -> CqlError {
    let id = Bytes::copy_from_slice(id);
    let message = format!(
        "Prepared query with ID {id:02x} was not prepared through this gateway, or was forgotten: prepare it again"
    );
    CqlError::new(ErrorKind::Unprepared { id }, message)
}

/// The error for a request on a stream that is in use: no one could know which answer belongs to
/// which request.
pub(super) fn stream_in_use(stream: i16) -> CqlError {
    let message = format!(
        "stream {stream} is in use: the request before on it has no answer yet, so take another stream or wait"
    );
    CqlError::new(ErrorKind::ProtocolError, message)
}

//! Reads on threads that may block.

use cql::error::CqlError;
use machine::aside;

/// Runs a closure that reads files on a thread that may block.
///
/// # Errors
/// If the closure panics, or the runtime ends.
pub(super) async fn on_blocking_thread<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, CqlError> {
    aside(traces::carried(work))
        .await
        .map_err(|error| CqlError::server(format!("the read was broken off: {error}")))
}

//! Reads on threads that may block, each in a turn.

use cpu_scheduler::{CpuScheduler, WorkClass};
use cql::error::CqlError;
use platform::aside;

/// Runs a closure that reads files on a thread that may block, once there is a turn for it. What
/// the closure returns should hold no rows, as the turn has ended then.
///
/// # Errors
/// If the closure panics, or the runtime ends.
pub(super) async fn on_blocking_thread<R: Send + 'static>(
    turns: &CpuScheduler,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, CqlError> {
    let turn = Box::pin(turns.acquire(WorkClass::Read)).await;
    let in_turn = move || {
        let done = work();
        drop(turn);
        done
    };
    aside(traces::carried(in_turn))
        .await
        .map_err(|error| CqlError::server(format!("the read was broken off: {error}")))
}

//! Work that blocks, through one seam.

use machine::Simulation;
use tokio::task::JoinError;

/// Does work that waits for a disk or computes for long where that holds nobody up: on another thread. A thread that
/// simulates does it itself, and has others go on before and after.
///
/// # Errors
/// If the work panics, or the runtime ends before it begins.
pub async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let works = || Simulation::of_thread().map(|simulation| simulation.work_takes());
    let Some(before) = works() else {
        return tokio::task::spawn_blocking(work).await;
    };
    if !before.is_zero() {
        tokio::time::sleep(before).await;
    }
    let done = work();
    if let Some(after) = works().filter(|after| !after.is_zero()) {
        tokio::time::sleep(after).await;
    }
    Ok(done)
}

//! Blocking work, which a simulation can take over.

use tokio::task::JoinError;

use crate::Simulation;

/// Runs work that waits for a disk or computes for long on a thread for blocking work, so that it
/// holds up no other task. In a simulation the work runs on the simulating thread, with a simulated
/// pause before and after it, in which other tasks go on.
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

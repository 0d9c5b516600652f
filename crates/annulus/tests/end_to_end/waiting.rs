//! Waiting for what takes place in other processes.

use std::time::{Duration, Instant};

/// The longest wait for an event; far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until a condition holds. Panics with `what` if it does not hold in time.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

//! Waiting in a task. Where time is paused, it goes on as soon as no task has anything to do.

use std::fmt::Debug;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::PATIENCE;

/// The time between the first two looks, and the longest time between two: what takes long is not
/// disturbed by the looks at it.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Pauses between looks, each twice as long as the one before.
struct Pauses(Duration);

impl Pauses {
    fn new() -> Pauses {
        Pauses(PAUSE_MIN)
    }

    async fn pause(&mut self) {
        sleep(self.0).await;
        self.0 = PAUSE_MAX.min(self.0 * 2);
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// If it does not hold within [`PATIENCE`], with `what`.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let (began, mut pauses) = (Instant::now(), Pauses::new());
    while !is_so().await {
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        pauses.pause().await;
    }
}

/// Waits until a look succeeds, and returns what it found. A look that fails says what is there
/// instead.
///
/// # Panics
/// If none succeeds within [`PATIENCE`], with `what` and the last failure.
pub async fn until_ok<T, E: Debug>(what: &str, mut look: impl AsyncFnMut() -> Result<T, E>) -> T {
    let (began, mut pauses) = (Instant::now(), Pauses::new());
    loop {
        match look().await {
            Ok(found) => return found,
            Err(instead) => assert!(
                began.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: {what}: {instead:?}"
            ),
        }
        pauses.pause().await;
    }
}

/// Waits for a future.
///
/// # Panics
/// If it takes longer than [`PATIENCE`].
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    let done = timeout(PATIENCE, what).await;
    done.expect("it should be done by now")
}

/// Waits until looks have found an equal value for so long, and returns it.
///
/// # Panics
/// If the value still changes after [`PATIENCE`], with `what` and the last value.
pub async fn steady<T: PartialEq + Debug>(
    what: &str,
    period: Duration,
    mut look: impl AsyncFnMut() -> T,
) -> T {
    let began = Instant::now();
    let mut value = look().await;
    let mut since = Instant::now();
    while since.elapsed() < period {
        assert!(
            began.elapsed() < PATIENCE,
            "it changes for {PATIENCE:?}: {what}: {value:?}"
        );
        sleep(PAUSE_MAX).await;
        let now = look().await;
        if now != value {
            (value, since) = (now, Instant::now());
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_look_is_repeated_until_it_succeeds() {
        let mut looks = 0;
        let found = until_ok("the third look", async || {
            looks += 1;
            if looks < 3 { Err(looks) } else { Ok(looks) }
        });
        assert_eq!(found.await, 3);
    }

    #[tokio::test]
    async fn a_value_is_steady_when_it_has_not_changed_for_a_while() {
        let mut looks = 0_u8;
        let period = Duration::from_millis(100);
        let value = steady("it ends at 5", period, async || {
            looks = (looks + 1).min(5);
            looks
        });
        assert_eq!(value.await, 5);
    }
}

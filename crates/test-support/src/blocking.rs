//! Waiting on a thread, for tests without a runtime and for work that blocks.

use std::thread;
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// The time between two looks. It is short enough to see files that are there for some
/// milliseconds.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until a condition holds.
///
/// # Panics
/// If it does not hold within [`PATIENCE`], with `what`.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        thread::sleep(PAUSE);
    }
}

/// Waits until there is a value, for as long as it says.
pub(crate) fn within<T>(longest: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if began.elapsed() > longest {
            return None;
        }
        thread::sleep(PAUSE);
    }
}

/// Lets time pass in which a process works on. It is killed at a moment that no event tells.
pub(crate) fn let_pass(time: Duration) {
    thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_looked_at_until_it_holds() {
        let mut looks = 0;
        eventually("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    fn a_value_that_does_not_come_in_time_is_none() {
        assert_eq!(within(Duration::ZERO, || None::<u8>), None);
        assert_eq!(within(Duration::ZERO, || Some(7)), Some(7));
    }
}

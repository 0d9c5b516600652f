//! Limits how often a log line is written.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The least time between two lines of one kind.
const EVERY: Duration = Duration::from_secs(30);

/// The time of the last line, and the number of events since then that wrote none.
#[derive(Debug, Default)]
pub struct LogLimiter {
    last: Mutex<Option<(Instant, u64)>>,
}

impl LogLimiter {
    /// Counts an event. Returns the number of events since the last line, this one included, if a
    /// line is due now.
    pub fn is_due(&self) -> Option<u64> {
        self.is_due_at(Instant::now())
    }

    /// Takes the number of events that no line has reported.
    pub fn take_untold(&self) -> u64 {
        let mut last = self.last.lock();
        last.as_mut()
            .map_or(0, |(_, silent)| std::mem::take(silent))
    }

    fn is_due_at(&self, now: Instant) -> Option<u64> {
        let mut last = self.last.lock();
        match last.as_mut() {
            Some((said, silent)) if now.duration_since(*said) < EVERY => {
                *silent += 1;
                None
            }
            before => {
                let silent = before.map_or(0, |(_, silent)| *silent);
                *last = Some((now, 0));
                Some(silent + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_at_once_and_then_at_intervals_with_its_count() {
        let seldom = LogLimiter::default();
        let began = Instant::now();
        assert_eq!(seldom.is_due_at(began), Some(1));
        for _ in 0..4 {
            assert_eq!(seldom.is_due_at(began + EVERY / 2), None);
        }
        assert_eq!(seldom.is_due_at(began + EVERY), Some(5));
        assert_eq!(seldom.is_due_at(began + EVERY), None);
    }
}

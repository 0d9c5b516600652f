//! A rate limit for reads.

use std::thread;
use std::time::{Duration, Instant};

/// The interval at which a reader that is held back checks whether it should go on.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Holds back reads to a number of bytes in a second.
#[derive(Debug)]
pub struct ReadRateLimiter {
    started: Instant,
    bytes: u64,
    bytes_a_second: Option<u64>,
}

impl ReadRateLimiter {
    /// Begins now. `None` sets no limit.
    pub fn new(bytes_a_second: Option<u64>) -> ReadRateLimiter {
        ReadRateLimiter {
            started: Instant::now(),
            bytes: 0,
            bytes_a_second,
        }
    }

    /// Notes that more bytes were read, and blocks until the next read may begin. Returns whether
    /// to go on.
    pub fn keep(&mut self, bytes: u64, is_wanted: &dyn Fn() -> bool) -> bool {
        self.bytes += bytes;
        let Some(rate) = self.bytes_a_second else {
            return is_wanted();
        };
        let due = Duration::from_secs_f64(self.bytes as f64 / rate.max(1) as f64);
        loop {
            let left = due.saturating_sub(self.started.elapsed());
            if left.is_zero() || !is_wanted() {
                return is_wanted();
            }
            thread::sleep(left.min(LOOK_INTERVAL));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_back_and_lets_go() {
        let mut pace = ReadRateLimiter::new(Some(1_000));
        assert!(pace.keep(50, &|| true));
        assert!(pace.started.elapsed() >= Duration::from_millis(50));
        // The bytes of more than a year.
        assert!(!pace.keep(1 << 35, &|| false));
        assert!(ReadRateLimiter::new(None).keep(u64::MAX, &|| true));
    }
}

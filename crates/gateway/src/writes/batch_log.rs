//! The state of the cluster's batch log, as far as timeouts show it.
//!
//! Before a LOGGED batch is carried out, it is written to the batch logs of two other nodes, and
//! both have to answer. A node that has just died may be one of them until the others have noticed
//! its death. Each batch may then end with a timeout, although the write itself has all the
//! replicas that it needs. After one such timeout, writes avoid the batch log for a while.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time for which writes avoid the batch log. Nodes of Cassandra notice within some ten seconds
/// that one is dead.
const AVOIDED_FOR: Duration = Duration::from_secs(10);

/// The time until which writes avoid the batch log.
#[derive(Debug)]
pub(super) struct BatchLog {
    began: Instant,
    /// The end of that time in milliseconds since `began`; 0 before the first timeout.
    avoided_until_ms: AtomicU64,
}

impl BatchLog {
    /// Notes a timeout of the batch log. Writes avoid it for a while from now on.
    pub(super) fn timed_out(&self) {
        self.timed_out_at(self.began.elapsed());
    }

    /// Whether writes that can do without the batch log should avoid it.
    pub(super) fn is_avoided(&self) -> bool {
        self.is_avoided_at(self.began.elapsed())
    }

    fn timed_out_at(&self, now: Duration) {
        let until_ms = millis(now + AVOIDED_FOR);
        let before_ms = self.avoided_until_ms.swap(until_ms, Ordering::Relaxed);
        // One line for each period, not for each timeout within it.
        if before_ms < millis(now) {
            tracing::warn!(
                for_s = AVOIDED_FOR.as_secs(),
                "the batch log did not answer in time: writes have their log rows written before and after them for a while"
            );
        }
    }

    fn is_avoided_at(&self, now: Duration) -> bool {
        millis(now) < self.avoided_until_ms.load(Ordering::Relaxed)
    }
}

impl Default for BatchLog {
    fn default() -> BatchLog {
        BatchLog {
            began: Instant::now(),
            avoided_until_ms: AtomicU64::new(0),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_avoided_for_a_while_after_a_timeout() {
        let log = BatchLog::default();
        let timed_out_at = Duration::from_secs(100);
        assert!(!log.is_avoided_at(timed_out_at));
        log.timed_out_at(timed_out_at);
        assert!(log.is_avoided_at(timed_out_at + AVOIDED_FOR / 2));
        assert!(!log.is_avoided_at(timed_out_at + AVOIDED_FOR));
    }
}

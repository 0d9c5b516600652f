//! The times of log rows.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cql::value::timeuuid;
use uuid::Uuid;

/// The bit of a node that says that it is no network card's address: the lowest of its first byte.
const MULTICAST: u64 = 1 << 40;

/// Gives out timeuuids of the present, each greater than the one before, and none that another gateway gives out.
///
/// `cdc$time` is the time at which the gateway makes the log row, not the write's timestamp: readers of the log go
/// through time once, so a row that a client has dated back would be missed.
#[derive(Debug)]
pub(crate) struct LogClock {
    last_micros: AtomicI64,
    clock_and_node: u64,
}

impl Default for LogClock {
    /// A clock with a random node.
    fn default() -> Self {
        let (_, random) = Uuid::new_v4().as_u64_pair();
        LogClock {
            last_micros: AtomicI64::new(i64::MIN),
            clock_and_node: random | MULTICAST,
        }
    }
}

impl LogClock {
    /// A timeuuid of now, or of the microsecond after the last one if the system's clock has not moved since.
    pub(crate) fn next(&self) -> Uuid {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| i64::try_from(since.as_micros()).ok())
            .unwrap_or_default();
        self.at_least(now)
    }

    fn at_least(&self, now_micros: i64) -> Uuid {
        let after = |last: i64| now_micros.max(last.saturating_add(1));
        let last = self
            .last_micros
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(after(last))
            })
            .unwrap_or_else(|last| last);
        timeuuid::from_micros(after(last), self.clock_and_node)
            .expect("bug: the present lies outside of the years 1582 to 5236")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_grow_even_if_the_clock_goes_back() {
        let clock = LogClock::default();
        let micros = |now| timeuuid::unix_micros(&clock.at_least(now));
        assert_eq!(micros(1_000), 1_000);
        assert_eq!(micros(1_000), 1_001);
        assert_eq!(micros(5), 1_002);
        assert_eq!(micros(2_000), 2_000);
    }

    #[test]
    fn two_gateways_never_give_out_the_same() {
        let (one, other) = (LogClock::default(), LogClock::default());
        assert_ne!(one.at_least(7), other.at_least(7));
        assert_eq!(one.next().get_version_num(), 1);
    }
}

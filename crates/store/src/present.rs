//! The clock for the times of the database's logs. Tests and simulations put their own in its
//! place.
//!
//! Positions in a log, expiry and schedules go by this clock. Pauses and measured durations go by
//! the timers of the runtime, which stop in a simulation until nothing else is left to do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, SystemClock};

/// A source of the present time. The default is the machine's clock.
#[derive(Clone)]
pub(crate) struct TimeSource(Arc<dyn Clock>);

impl TimeSource {
    /// Makes a source that reads the given clock.
    pub(crate) fn of(clock: Arc<dyn Clock>) -> TimeSource {
        TimeSource(clock)
    }

    /// The present as the time since the epoch; zero for a time before it.
    pub(crate) fn now(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.now_micros()).unwrap_or(0))
    }

    /// The present in microseconds since the epoch.
    pub(crate) fn now_us(&self) -> i64 {
        self.0.now_micros()
    }

    /// The present in seconds since the epoch. A `u32` lasts until 2106.
    pub(crate) fn now_s(&self) -> u32 {
        u32::try_from(self.now().as_secs()).unwrap_or(u32::MAX)
    }
}

impl Default for TimeSource {
    fn default() -> TimeSource {
        TimeSource(Arc::new(SystemClock))
    }
}

impl fmt::Debug for TimeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Present").field(&self.now()).finish()
    }
}

//! Time, through one seam: the clock that the times of the database's logs go by.
//!
//! Positions in a log, expiry and schedules go by it. Pauses, and how long something took, go by the timers of the runtime,
//! which stand still in a simulation until nothing else is left to do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, SystemClock};

/// The present. The machine's by default.
#[derive(Clone)]
pub struct Present(Arc<dyn Clock>);

impl Present {
    /// The present of a clock.
    pub fn of(clock: Arc<dyn Clock>) -> Present {
        Present(clock)
    }

    /// Since the epoch.
    pub fn now(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.now_micros()).unwrap_or(0))
    }

    /// Microseconds since the epoch.
    pub fn now_us(&self) -> i64 {
        self.0.now_micros()
    }

    /// Seconds since the epoch. As `u32` they last until 2106.
    pub fn now_s(&self) -> u32 {
        u32::try_from(self.now().as_secs()).unwrap_or(u32::MAX)
    }
}

impl Default for Present {
    fn default() -> Present {
        Present(Arc::new(SystemClock))
    }
}

impl fmt::Debug for Present {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Present").field(&self.now()).finish()
    }
}

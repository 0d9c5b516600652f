//! The present, through one seam.
//!
//! A [`Clock`] shows the machine's time, and may be set back at any moment. A [`ServerClock`] is
//! made of one and never goes back: everything that orders, expires or follows goes by it. Tests
//! and simulations put a [`ManualClock`] below it.

#![warn(clippy::unwrap_used)]

mod clock_ahead;
mod hand;
mod offset;
mod server;

use std::fmt;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub use clock_ahead::{AheadEvent, AheadMonitor};
pub use hand::ManualClock;
pub use offset::OffsetClock;
pub use server::ServerClock;

/// A source of the present time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Microseconds since the epoch. They may jump, forward and back.
    fn now_micros(&self) -> i64;

    /// Microseconds since some moment of the past. They rise evenly, even if the clock is set.
    fn steady_micros(&self) -> i64;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place")]
    fn now_micros(&self) -> i64 {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX)
    }

    fn steady_micros(&self) -> i64 {
        static START: OnceLock<Instant> = OnceLock::new();
        let since = START.get_or_init(Instant::now).elapsed();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }
}

/// The second that contains a time.
pub fn seconds(micros: i64) -> i64 {
    micros.div_euclid(1_000_000)
}

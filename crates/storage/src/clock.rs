//! What time it is, so that tests can say it themselves.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of the present time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Microseconds since the epoch. May jump; whoever needs time that never goes back sees to it.
    fn now_micros(&self) -> i64;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX)
    }
}

/// The second that a time lies in.
pub(crate) fn seconds(micros: i64) -> i64 {
    micros.div_euclid(1_000_000)
}

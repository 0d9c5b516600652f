//! A clock for tests and simulations.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::Clock;

/// A clock that does not move until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    now_micros: AtomicI64,
    steady_micros: AtomicI64,
}

impl ManualClock {
    /// Makes a clock that shows `micros` since the epoch.
    pub fn new(micros: i64) -> Arc<ManualClock> {
        Arc::new(ManualClock {
            now_micros: AtomicI64::new(micros),
            steady_micros: AtomicI64::new(0),
        })
    }

    /// Lets time pass, for the clock and the steady clock.
    pub fn advance_micros(&self, micros: i64) {
        self.now_micros.fetch_add(micros, Ordering::SeqCst);
        self.steady_micros.fetch_add(micros, Ordering::SeqCst);
    }

    /// Lets whole seconds pass, as [`ManualClock::advance_micros`] does.
    pub fn advance_seconds(&self, seconds: i64) {
        self.advance_micros(seconds * 1_000_000);
    }

    /// Sets the clock, forward or back. No time passes.
    pub fn set_micros(&self, micros: i64) {
        self.now_micros.store(micros, Ordering::SeqCst);
    }

    /// The present that the clock shows, in whole seconds since the epoch.
    pub fn now_s(&self) -> i64 {
        crate::seconds(self.now_micros())
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> i64 {
        self.now_micros.load(Ordering::SeqCst)
    }

    fn steady_micros(&self) -> i64 {
        self.steady_micros.load(Ordering::SeqCst)
    }
}

//! The gate between the committer, which gives times to log rows, and the readers of a log, which
//! need that no row is added below a time any more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{CdcClock, LogTime};

#[derive(Debug)]
pub(crate) struct CdcGate {
    state: Mutex<State>,
    /// The number of the last commit that ended.
    ended: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    clock: CdcClock,
    /// The number of the last commit that began.
    begun: u64,
}

impl CdcGate {
    pub(crate) fn new(mark_micros: i64) -> CdcGate {
        CdcGate {
            state: Mutex::new(State {
                clock: CdcClock::new(mark_micros),
                begun: 0,
            }),
            ended: watch::Sender::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a commit begins. [`CdcGate::settle`] waits until the returned value is dropped.
    pub(crate) fn begin(&self) -> InFlight<'_> {
        let mut state = self.state();
        state.begun += 1;
        InFlight {
            gate: self,
            number: state.begun,
        }
    }

    pub(crate) fn take(&self, timestamp: i64, now_micros: i64) -> LogTime {
        self.state().clock.take(timestamp, now_micros)
    }

    /// The latest time that was given out or settled. Microseconds.
    pub(crate) fn latest_micros(&self) -> i64 {
        self.state().clock.latest_micros()
    }

    /// Raises the mark to `mark_micros`, so that commits that begin later take later times, and
    /// waits for the commit in flight.
    pub(crate) async fn settle(&self, mark_micros: i64) {
        let mut ended = self.ended.subscribe();
        let in_flight = {
            let mut state = self.state();
            state.clock.raise_mark(mark_micros);
            state.begun
        };
        // The sender lives as long as `self`.
        let _ = ended.wait_for(|ended| *ended >= in_flight).await;
    }
}

/// A commit under way: from before its first log time until it has succeeded or failed.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    gate: &'a CdcGate,
    number: u64,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.gate.ended.send_replace(self.number);
    }
}

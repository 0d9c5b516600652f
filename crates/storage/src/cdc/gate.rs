//! The gate between the committer, which gives times to log rows, and the readers of a log, which
//! need that no row is added below a time any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{CdcClock, GroupTime};
use crate::waiters::WaitingTasks;

#[derive(Debug)]
pub(crate) struct CdcGate {
    state: Mutex<LogCommitState>,
    /// The number of the last commit that ended.
    ended: AtomicU64,
    /// Readers that wait for the end of a commit.
    readers: WaitingTasks,
}

#[derive(Debug)]
struct LogCommitState {
    clock: CdcClock,
    /// The number of the last commit that began.
    begun: u64,
}

impl CdcGate {
    pub(crate) fn new(mark_micros: i64) -> CdcGate {
        CdcGate {
            state: Mutex::new(LogCommitState {
                clock: CdcClock::new(mark_micros),
                begun: 0,
            }),
            ended: AtomicU64::new(0),
            readers: WaitingTasks::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, LogCommitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a commit begins. [`CdcGate::settle`] waits until the returned value is dropped.
    pub(crate) fn begin(&self) -> CommitInFlight<'_> {
        let mut state = self.state();
        state.begun += 1;
        CommitInFlight {
            gate: self,
            number: state.begun,
        }
    }

    /// The number of the last commit; `None` while one is under way.
    pub(crate) fn last_commit(&self) -> Option<u64> {
        let begun = self.state().begun;
        (self.ended.load(Ordering::Acquire) == begun).then_some(begun)
    }

    pub(crate) fn take(&self, timestamp: i64, now_micros: i64, deletes: bool) -> GroupTime {
        self.state().clock.take(timestamp, now_micros, deletes)
    }

    /// The latest time that was given out or settled. Microseconds.
    pub(crate) fn latest_micros(&self) -> i64 {
        self.state().clock.latest_micros()
    }

    /// Raises the mark to `mark_micros`, so that commits that begin later take later times, and
    /// waits for the commit in flight.
    pub(crate) async fn settle(&self, mark_micros: i64) {
        let in_flight = {
            let mut state = self.state();
            state.clock.raise_mark(mark_micros);
            state.begun
        };
        let has_ended = || self.ended.load(Ordering::Acquire) >= in_flight;
        self.readers.until(has_ended).await;
    }
}

/// A commit under way: from before its first log time until it has succeeded or failed.
#[derive(Debug)]
pub(crate) struct CommitInFlight<'a> {
    gate: &'a CdcGate,
    number: u64,
}

impl Drop for CommitInFlight<'_> {
    fn drop(&mut self) {
        self.gate.ended.store(self.number, Ordering::Release);
        self.gate.readers.wake();
    }
}

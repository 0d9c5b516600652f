//! The horizon: the time back to which reads still look.
//!
//! A read hides what is dead at its start, and sees what died later. A record that is forgotten
//! when files are rewritten must have been dead before the oldest read began, as the engine
//! rewrites them without regard to snapshots.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::ServerClock;

#[derive(Debug)]
pub(crate) struct OldestRead {
    clock: Arc<ServerClock>,
    state: Mutex<ReadStarts>,
}

#[derive(Debug, Default)]
struct ReadStarts {
    /// The number of reads under way, by the second of their start.
    reads: BTreeMap<i64, usize>,
}

impl OldestRead {
    pub(crate) fn new(clock: Arc<ServerClock>) -> Arc<OldestRead> {
        Arc::new(OldestRead {
            clock,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, ReadStarts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a read begins. It ends when the hold is dropped.
    pub(crate) fn begin_read(self: &Arc<Self>) -> OldestReadGuard {
        let mut state = self.state();
        let start_s = self.clock.now_s();
        *state.reads.entry(start_s).or_default() += 1;
        OldestReadGuard {
            horizon: Arc::clone(self),
            start_s,
        }
    }

    /// Returns the latest second such that no read, now or later, sees what died at or before it.
    pub(crate) fn unread_through_s(&self) -> i64 {
        let state = self.state();
        let now_s = self.clock.now_s();
        state
            .reads
            .keys()
            .next()
            .map_or(now_s, |first| now_s.min(*first))
    }
}

/// Holds the horizon back for a read in progress.
#[derive(Debug)]
pub(crate) struct OldestReadGuard {
    horizon: Arc<OldestRead>,
    start_s: i64,
}

impl OldestReadGuard {
    /// The second in which the read began.
    pub(crate) fn start_s(&self) -> i64 {
        self.start_s
    }
}

impl Drop for OldestReadGuard {
    fn drop(&mut self) {
        let mut state = self.horizon.state();
        if let Some(count) = state.reads.get_mut(&self.start_s) {
            *count -= 1;
            if *count == 0 {
                state.reads.remove(&self.start_s);
            }
        }
    }
}

//! How far back anyone still looks.
//!
//! A read hides what is dead at its start, and sees what died later. What is forgotten when files are
//! rewritten must have been dead before the oldest read began, for the engine asks about it without
//! regard to snapshots.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::ServerClock;

#[derive(Debug)]
pub(crate) struct Horizon {
    clock: Arc<ServerClock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Reads by the second of their start.
    reads: BTreeMap<i64, usize>,
}

impl Horizon {
    pub(crate) fn new(clock: Arc<ServerClock>) -> Arc<Horizon> {
        Arc::new(Horizon {
            clock,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A read begins.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        let mut state = self.state();
        let start_s = self.clock.now_s();
        *state.reads.entry(start_s).or_default() += 1;
        Hold {
            horizon: Arc::clone(self),
            start_s,
        }
    }

    /// Whatever died at or before this second is seen by no read, now or later.
    pub(crate) fn seen_by_none_s(&self) -> i64 {
        let state = self.state();
        let now_s = self.clock.now_s();
        state
            .reads
            .keys()
            .next()
            .map_or(now_s, |first| now_s.min(*first))
    }
}

/// A read under way.
#[derive(Debug)]
pub(crate) struct Hold {
    horizon: Arc<Horizon>,
    start_s: i64,
}

impl Hold {
    /// The second in which the read began.
    pub(crate) fn start_s(&self) -> i64 {
        self.start_s
    }
}

impl Drop for Hold {
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

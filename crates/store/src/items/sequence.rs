//! Numbers for reads, in the order in which they are issued.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives every read of a table its number, and tracks the reads in flight.
#[derive(Debug, Default)]
pub(crate) struct ReadSequencer {
    state: Mutex<ReadsInFlight>,
}

#[derive(Debug, Default)]
struct ReadsInFlight {
    /// The highest number given out. Numbers begin with 1.
    last: u64,
    in_flight: BTreeSet<u64>,
}

/// The number of a read, taken before the read is issued. The read is in flight until this is
/// dropped, after all of its results have been taken in.
#[derive(Debug)]
pub struct InFlightRead {
    sequence: u64,
    sequencer: Arc<ReadSequencer>,
}

impl ReadSequencer {
    /// Takes the next number.
    pub(crate) fn issue(self: &Arc<ReadSequencer>) -> Arc<InFlightRead> {
        let mut state = self.state();
        state.last += 1;
        let sequence = state.last;
        state.in_flight.insert(sequence);
        drop(state);
        Arc::new(InFlightRead {
            sequence,
            sequencer: self.clone(),
        })
    }

    /// The lowest number of a read in flight. No observation with a lower number can arrive any
    /// more.
    pub(crate) fn oldest_in_flight(&self) -> u64 {
        let state = self.state();
        state.in_flight.first().copied().unwrap_or(state.last + 1)
    }

    fn state(&self) -> MutexGuard<'_, ReadsInFlight> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlightRead {
    /// The number of the read.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Drop for InFlightRead {
    fn drop(&mut self) {
        self.sequencer.state().in_flight.remove(&self.sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_in_flight_holds_the_floor() {
        let sequencer = Arc::new(ReadSequencer::default());
        assert_eq!(sequencer.oldest_in_flight(), 1);
        let first = sequencer.issue();
        let second = sequencer.issue();
        assert_eq!((first.sequence(), second.sequence()), (1, 2));
        assert_eq!(sequencer.oldest_in_flight(), 1);
        let held = first.clone();
        drop(first);
        assert_eq!(sequencer.oldest_in_flight(), 1);
        drop(held);
        assert_eq!(sequencer.oldest_in_flight(), 2);
        drop(second);
        assert_eq!(sequencer.oldest_in_flight(), 3);
    }
}

//! The beginning of a write, for which its caller may wait for no longer than a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Decides whether the committer begins a write or its caller gives it up: the first of them.
/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteClaim(Arc<AtomicU8>);

impl WriteClaim {
    /// Begins the write. Returns whether that may be, as its caller has not given it up.
    pub(crate) fn begin(&self) -> bool {
        self.leave_for(BEGUN)
    }

    /// Gives the write up. Returns whether that may be, as it has not begun.
    pub(crate) fn give_up(&self) -> bool {
        self.leave_for(GIVEN_UP)
    }

    fn leave_for(&self, state: u8) -> bool {
        let left = self
            .0
            .compare_exchange(WAITING, state, Ordering::AcqRel, Ordering::Acquire);
        left.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_either_begins_or_is_given_up() {
        let begun = WriteClaim::default();
        assert!(begun.begin());
        assert!(!begun.give_up(), "it is under way");
        let given_up = WriteClaim::default();
        assert!(given_up.give_up());
        assert!(!given_up.clone().begin(), "its caller has its answer");
    }
}

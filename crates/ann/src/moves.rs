//! Whether an id may have been in two slots during a search.
//!
//! A replaced vector is linked in its new slot before its old one dies, and an id that is removed and
//! inserted again may be found where it was and where it is. A search that overlaps with no such
//! change need not look for ids that it has found twice.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the changes that take an id out of a slot.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A change under way, which ends when this is dropped.
pub(crate) struct Moving<'a>(&'a Moves);

/// How many changes had ended at some moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended(u64);

impl Moves {
    /// Before the new slot is linked, and before the id leaves the old one.
    pub(crate) fn begin(&self) -> Moving<'_> {
        self.begun.fetch_add(1, Ordering::AcqRel);
        Moving(self)
    }

    /// To be asked before a search. Whatever had ended shows in what is read from now on.
    pub(crate) fn ended(&self) -> Ended {
        Ended(self.ended.load(Ordering::Acquire))
    }

    /// Whether any change was under way since then. To be asked after the search has read its last
    /// link: who sees a link also sees that the change which made it has begun.
    pub(crate) fn any_since(&self, Ended(ended): Ended) -> bool {
        self.begun.load(Ordering::Acquire) != ended
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::Moves;

    #[test]
    fn a_change_is_noticed_from_its_beginning_to_its_end() {
        let moves = Moves::default();
        let before = moves.ended();
        assert!(!moves.any_since(before));
        let moving = moves.begin();
        assert!(moves.any_since(before));
        let meanwhile = moves.ended();
        assert!(moves.any_since(meanwhile));
        drop(moving);
        assert!(moves.any_since(before) && moves.any_since(meanwhile));
        assert!(!moves.any_since(moves.ended()));
    }
}

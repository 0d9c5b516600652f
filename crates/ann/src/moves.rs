//! Counts of the changes that move an id, from which a search learns whether it may find one twice.
//!
//! A replaced vector is linked in its new slot before its old one dies, and an id that is removed
//! and inserted again may be found in its old slot and in its new one. A search that overlaps with
//! no such change need not look for ids that it has found twice.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the changes that take an id out of a slot.
#[derive(Debug, Default)]
pub(crate) struct SlotMoves {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A change under way. It ends when this is dropped.
pub(crate) struct SlotMove<'a>(&'a SlotMoves);

/// The number of changes that had ended at some moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedMoves(u64);

impl SlotMoves {
    /// Counts a change. It is called before the new slot is linked, and before the id leaves the
    /// old one.
    pub(crate) fn begin(&self) -> SlotMove<'_> {
        self.begun.fetch_add(1, Ordering::AcqRel);
        SlotMove(self)
    }

    /// The number of changes that have ended. A search reads it first, and then sees all of them.
    pub(crate) fn ended(&self) -> CompletedMoves {
        CompletedMoves(self.ended.load(Ordering::Acquire))
    }

    /// Whether any change was under way since `ended` was read. A search checks this after it has
    /// read its last link: a thread that sees a link also sees that the change which made it has
    /// begun.
    pub(crate) fn any_since(&self, CompletedMoves(ended): CompletedMoves) -> bool {
        self.begun.load(Ordering::Acquire) != ended
    }
}

impl Drop for SlotMove<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::SlotMoves;

    #[test]
    fn a_change_is_noticed_from_its_beginning_to_its_end() {
        let moves = SlotMoves::default();
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

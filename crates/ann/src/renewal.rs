//! The renewal of all vectors: its progress ([`crate::NeighbourIndex::maintain`] does it).

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// All vectors are renewed when one in so many was removed or replaced since the last time.
const CHURN_SHARE: usize = 4;

/// The fewest vectors of an index that is renewed as a whole: smaller ones are scanned.
const HELD_MIN: usize = 4_096;

/// The renewal of all vectors.
#[derive(Debug, Default)]
pub(crate) struct VectorRenewal {
    /// Number of vectors removed and replaced since all were renewed.
    churned: AtomicUsize,
    /// The slots that are still to be renewed.
    slots: Mutex<Range<u32>>,
}

impl VectorRenewal {
    /// Counts a vector that was removed or replaced.
    pub(crate) fn count_churned(&self) {
        self.churned.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins to renew all slots up to `end`.
    pub(crate) fn begin(&self, end: u32) {
        *self.slots.lock() = 0..end;
    }

    /// Whether a renewal is under way, or due in an index of so many vectors.
    pub(crate) fn is_wanted(&self, held: usize) -> bool {
        let churned = self.churned.load(Ordering::Relaxed);
        let is_due = held >= HELD_MIN && churned >= held / CHURN_SHARE;
        is_due || !self.slots.lock().is_empty()
    }

    /// The number of slots that a renewal has still to look at, in an index of so many vectors and
    /// `end` slots.
    pub(crate) fn left(&self, held: usize, end: u32) -> usize {
        let under_way = self.slots.lock().len();
        match under_way {
            0 if self.is_wanted(held) => end as usize,
            left => left,
        }
    }

    /// The next slot to renew of an index of so many vectors and `end` slots, as far as `is_linked`
    /// admits them. A renewal that is due begins here.
    pub(crate) fn next(
        &self,
        held: usize,
        end: u32,
        is_linked: impl FnMut(&u32) -> bool,
    ) -> Option<u32> {
        if !self.is_wanted(held) {
            return None;
        }
        let mut slots = self.slots.lock();
        if slots.is_empty() {
            self.churned.store(0, Ordering::Relaxed);
            *slots = 0..end;
        }
        slots.by_ref().find(is_linked)
    }
}

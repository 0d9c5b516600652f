//! Renewal: vectors get other slots, and with them better codes and links than they have.
//!
//! A vector whose code is [out of date](crate::graph::Outdated) is renewed soon, with some change.
//! All vectors are renewed, one after the other and while nothing else is to be done
//! ([`Index::tend`]), after a quarter of them was removed or replaced: what mending puts in the
//! place of links to the dead is not as good as what a walk finds. The same goes for an index from
//! a snapshot of an older version.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::Index;
use crate::graph::Haste;
use crate::ids::Entry;
use crate::index::Tools;

/// Number of vectors that are renewed with every change, while there are any out of date.
const RENEWED_PER_CHANGE: usize = 2;

/// All vectors are renewed when one in so many was removed or replaced since the last time.
const CHURN_SHARE: usize = 4;

/// The fewest vectors of an index that is renewed as a whole: smaller ones are scanned.
const HELD_MIN: usize = 4_096;

/// The renewal of all vectors.
#[derive(Debug, Default)]
pub(crate) struct Renewal {
    /// Number of vectors removed and replaced since all were renewed.
    churned: AtomicUsize,
    /// The slots that are still to be renewed.
    slots: Mutex<Range<u32>>,
}

impl Renewal {
    /// Counts a vector that was removed or replaced.
    pub(crate) fn count_churned(&self) {
        self.churned.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins to renew all slots up to `end`.
    pub(crate) fn begin(&self, end: u32) {
        *self.slots.lock() = 0..end;
    }

    fn is_under_way(&self) -> bool {
        !self.slots.lock().is_empty()
    }
}

impl Index {
    /// Does a share of the work that changes have left to do: mends the graph where vectors were
    /// removed, and renews codes and links that could be better. Returns whether there is more to
    /// do.
    ///
    /// Changes do most of this work, too, so it need not be done; but where none come for a while,
    /// searches are slower or find less meanwhile. A call takes about a millisecond. It may be
    /// called at any time, by several threads.
    pub fn tend(&self) -> bool {
        self.change_in(Haste::Idle, |_| {});
        let graph = &self.graph;
        !graph.is_mended() || !graph.outdated().is_empty() || self.wants_renewal()
    }

    fn wants_renewal(&self) -> bool {
        let held = self.len();
        let churned = self.renewal.churned.load(Ordering::Relaxed);
        let is_due = held >= HELD_MIN && churned >= held / CHURN_SHARE;
        is_due || self.renewal.is_under_way()
    }

    /// Renews some vectors: those out of date, and in idle time any.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(crate) unsafe fn renew_some(&self, haste: Haste, tools: &mut Tools) {
        for _ in 0..RENEWED_PER_CHANGE {
            let next = self.graph.outdated().take().or_else(|| match haste {
                Haste::Change => None,
                Haste::Idle => self.next_to_renew(),
            });
            // SAFETY: the caller's promise.
            match next {
                Some(slot) => unsafe { self.renew(slot, tools) },
                None => return,
            }
        }
    }

    /// The next slot of the renewal of all, which begins here if it is time.
    fn next_to_renew(&self) -> Option<u32> {
        if !self.wants_renewal() {
            return None;
        }
        let mut slots = self.renewal.slots.lock();
        if slots.is_empty() {
            self.renewal.churned.store(0, Ordering::Relaxed);
            *slots = 0..self.graph.slots().end();
        }
        let mut linked = slots.by_ref().filter(|&slot| self.graph.is_linked(slot));
        linked.next()
    }

    /// Gives the vector of a slot another one, if one id alone has it.
    ///
    /// # Safety
    /// The epoch is pinned.
    unsafe fn renew(&self, slot: u32, tools: &mut Tools) {
        let block = self.graph.block(slot);
        let (id, before) = (block.id(), Entry::Slot(slot));
        if block.is_dead() || block.is_shared() || self.ids.get(id) != before {
            return;
        }
        // SAFETY: the caller's promise; the table names filled slots.
        unsafe {
            tools.kept.bytes.clear();
            let bytes = self.contents().kept(slot);
            tools.kept.bytes.extend_from_slice(bytes);
            tools.kept.floats = self.coded(slot);
            let _moving = self.moves.begin();
            // Without room the vector stays where it is.
            tools.space.is_renewal = true;
            let after = self.place(id, tools);
            tools.space.is_renewal = false;
            let Ok(after) = after else { return };
            let after = Entry::Slot(after);
            match self.enter(id, before, after) {
                Ok(()) => self.abandon(id, before),
                Err(_) => self.abandon(id, after),
            }
        }
    }
}

//! Work that changes have left to do: the graph is mended, and vectors are *renewed*. They get
//! other slots, and with them better codes and links than they have.
//!
//! A vector whose code is out of date is renewed soon, with some change. All vectors are renewed,
//! one after the other and while nothing else is to be done ([`NeighbourIndex::maintain`]), after a
//! quarter of them was removed or replaced: what mending puts in the place of links to the dead is
//! not as good as what a walk finds. The same goes for an index from a snapshot of an older
//! version.

use crate::NeighbourIndex;
use crate::graph::RemovalOccasion;
use crate::ids::IdEntry;
use crate::neighbour_index::ScratchBuffers;

/// Number of vectors that are renewed with every change, while there are any out of date.
const RENEWED_PER_CHANGE: usize = 2;

/// The work that changes have left in an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceDebt {
    /// The number of dead entries: removed or replaced vectors that still take memory, and that
    /// links may still lead through.
    pub dead: usize,
    /// The number of entries that [`NeighbourIndex::maintain`] has still to look at. A few dead
    /// ones wait for more, and don't count.
    pub pending: usize,
}

impl NeighbourIndex {
    /// The work that changes have left. Others may make changes meanwhile.
    pub fn maintenance_debt(&self) -> MaintenanceDebt {
        let graph = &self.graph;
        let dead = graph.dead_slots();
        let to_mend = if graph.is_repaired() { 0 } else { dead };
        let to_renew = self.renewal.left(self.len(), graph.slots().end());
        MaintenanceDebt {
            dead,
            pending: to_mend + graph.outdated().len() + to_renew,
        }
    }

    /// Does a share of the work that changes have left to do: mends the graph where vectors were
    /// removed, and renews codes and links that could be better. Returns whether there is more to
    /// do.
    ///
    /// Changes do most of this work, too, so it need not be done; but where none come for a while,
    /// searches are slower or find less meanwhile. A call takes about a millisecond. It may be
    /// called at any time, by several threads.
    pub fn maintain(&self) -> bool {
        self.change_in(RemovalOccasion::Idle, |_| {});
        let graph = &self.graph;
        !graph.is_repaired() || !graph.outdated().is_empty() || self.renewal.is_wanted(self.len())
    }

    /// Renews some vectors: those out of date, and in idle time any.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(crate) unsafe fn renew_some(&self, haste: RemovalOccasion, tools: &mut ScratchBuffers) {
        for _ in 0..RENEWED_PER_CHANGE {
            let next = self.graph.outdated().take().or_else(|| match haste {
                RemovalOccasion::Change => None,
                RemovalOccasion::Idle => self.next_to_renew(),
            });
            let Some(slot) = next else { return };
            // SAFETY: the caller's promise.
            unsafe { self.renew(slot, tools) };
        }
    }

    /// The next slot of the renewal of all, if there is one.
    fn next_to_renew(&self) -> Option<u32> {
        let end = self.graph.slots().end();
        let is_linked = |slot: &u32| self.graph.is_linked(*slot);
        self.renewal.next(self.len(), end, is_linked)
    }

    /// Gives the vector of a slot another one, if only one id has it.
    ///
    /// # Safety
    /// The epoch is pinned.
    unsafe fn renew(&self, slot: u32, tools: &mut ScratchBuffers) {
        let block = self.graph.block(slot);
        let (id, before) = (block.id(), IdEntry::Slot(slot));
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
            let after = IdEntry::Slot(after);
            match self.enter(id, before, after) {
                Ok(()) => self.abandon(id, before),
                Err(_) => self.abandon(id, after),
            }
        }
    }
}

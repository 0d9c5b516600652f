//! Ids whose vectors are equal to the last bit share one slot.
//!
//! Real tables repeat themselves: empty texts, one message sent a thousand times. With a slot for
//! each, copies would link mostly to one another and fill the width of every walk that comes near,
//! so that nothing beyond them is found, and each would take the memory of a vector. So an insert
//! whose walk meets its own vector joins that slot, and a slot dies when the last id has left.
//!
//! Equal vectors that no walk meets may still have a slot each; that costs no more than the slots.

use std::collections::{BTreeMap, HashMap};
use std::mem::size_of;
use std::ops::ControlFlow;

use parking_lot::RwLock;

use crate::graph::Graph;

/// The ids of one shared slot, ascending, each with the number of times that it has joined: two
/// changes of one id at the same time may both have put it there.
type Ids = BTreeMap<u32, u32>;

/// The ids of each slot that is marked as shared in its block.
#[derive(Debug, Default)]
pub(crate) struct SharedSlots {
    // A caller that needs this lock and a block's takes this one first.
    slots: RwLock<HashMap<u32, Ids>>,
}

impl SharedSlots {
    /// Lets an id join a slot that others have; false if the slot is dead.
    pub(crate) fn join(&self, graph: &Graph, slot: u32, id: u32) -> bool {
        let mut slots = self.slots.write();
        if !graph.share(slot) {
            return false;
        }
        let first = graph.block(slot).id();
        let ids = slots
            .entry(slot)
            .or_insert_with(|| BTreeMap::from([(first, 1)]));
        *ids.entry(id).or_default() += 1;
        true
    }

    /// Takes a slot away from an id. The last one to leave takes the slot out of the graph.
    ///
    /// # Safety
    /// The epoch is pinned since the id had the slot.
    pub(crate) unsafe fn leave(&self, graph: &Graph, slot: u32, id: u32) {
        // SAFETY: the caller's promise.
        if !unsafe { graph.kill_unless_shared(slot) } {
            // SAFETY: the caller's promise.
            unsafe { self.leave_shared(graph, slot, id) };
        }
    }

    /// Takes a shared slot away from an id. Others may have left the slot a moment ago.
    ///
    /// # Safety
    /// The epoch is pinned since the id had the slot.
    unsafe fn leave_shared(&self, graph: &Graph, slot: u32, id: u32) {
        let mut slots = self.slots.write();
        let Some(ids) = slots.get_mut(&slot) else {
            // The others have left meanwhile. No one can join before the lock is released.
            // SAFETY: the caller's promise.
            let killed = unsafe { graph.kill_unless_shared(slot) };
            debug_assert!(killed, "a shared slot has ids");
            return;
        };
        if let Some(times) = ids.get_mut(&id) {
            *times -= 1;
            if *times == 0 {
                ids.remove(&id);
            }
        }
        let mut left = ids.iter();
        match (left.next(), left.next()) {
            (None, _) => {
                slots.remove(&slot);
                // SAFETY: the caller's promise.
                unsafe { graph.kill(slot) };
            }
            (Some((&id, 1)), None) => {
                graph.unshare(slot, id);
                slots.remove(&slot);
            }
            _ => {}
        }
        if slots.len() < slots.capacity() / 8 {
            let room = 2 * slots.len();
            slots.shrink_to(room);
        }
    }

    /// Shows the ids that have a slot, ascending, until the callback stops it.
    pub(crate) fn for_each(
        &self,
        graph: &Graph,
        slot: u32,
        mut show: impl FnMut(u32) -> ControlFlow<()>,
    ) {
        let slots = self.slots.read();
        // The slot was shared when the caller looked. That may have changed since.
        let _ = match slots.get(&slot) {
            Some(ids) => ids.keys().copied().try_for_each(show),
            None => show(graph.block(slot).id()),
        };
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let slots = self.slots.read();
        let of_slots = slots.capacity() * size_of::<(u32, Ids)>();
        let ids: usize = slots.values().map(BTreeMap::len).sum();
        // About half of a node of the tree is in use.
        of_slots + 2 * ids * size_of::<(u32, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::IdEntry;
    use crate::{DistanceMetric, NeighbourIndex, NeighbourIndexOptions};

    #[test]
    fn the_last_of_two_concurrent_removals_frees_the_slot() {
        let options = NeighbourIndexOptions {
            metric: DistanceMetric::Euclidean,
            ..NeighbourIndexOptions::new(2)
        };
        let index = NeighbourIndex::new(options).expect("an index");
        let vector = |id: u32| [id as f32, (id % 7) as f32];
        // Slots are shared once there is a graph.
        for id in 0..600 {
            index.insert(id, &vector(id)).expect("an insert");
        }
        index.insert(600, &vector(599)).expect("an insert");
        let IdEntry::Slot(slot) = index.ids.get(600) else {
            panic!("the id has a slot");
        };
        assert_eq!(index.ids.get(599), IdEntry::Slot(slot));
        assert!(index.graph.block(slot).is_shared());

        index.with_workspace(|workspace| {
            let _pin = workspace.participant.pin();
            // SAFETY: the epoch is pinned.
            unsafe {
                // One has just seen that the slot is shared, when the other leaves it.
                index.sharers.leave(&index.graph, slot, 600);
                assert!(!index.graph.block(slot).is_dead());
                index.sharers.leave_shared(&index.graph, slot, 599);
            }
        });
        assert!(index.graph.block(slot).is_dead());
    }
}

//! Working memory of a walk or a change, reused from one to the next.

use super::pool::CandidatePool;
use super::visited::SlotVisits;
use super::{Graph, SlotBlock};
use crate::codes::{CodeQuery, Codebook};

/// Counts of the work of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkCounts {
    /// Number of slots expanded.
    pub hops: u64,
    /// Number of codes measured.
    pub distances: u64,
}

/// Working memory; nothing in it outlives one call.
#[derive(Default)]
pub(crate) struct WalkWorkspace {
    /// The query of the walk under way.
    pub query: CodeQuery,
    /// The query that codes are compared with when links are chosen.
    pub pair: CodeQuery,
    pub pool: CandidatePool,
    /// Whether the vector that is being linked was in the graph before.
    pub is_renewal: bool,
    /// The width of the walk, as a multiple of the default one.
    pub widths: f64,
    /// The candidates of the walk through the upper level.
    pub above: CandidatePool,
    pub visited: SlotVisits,
    pub batch: SlotBatch,
    /// Dead slots that the walk has come to and is to pass through.
    pub bypassed: Vec<u32>,
    pub candidates: Vec<LinkCandidate>,
    /// Candidates that no chosen link replaces yet.
    pub left: Vec<LinkCandidate>,
    /// Candidates that are nearer to a chosen link than to the slot, but not by much.
    pub spare: Vec<LinkCandidate>,
    /// Candidates that are much nearer to a chosen link than to the slot.
    pub pruned: Vec<LinkCandidate>,
    pub chosen: Vec<u32>,
    pub rotated: Vec<f32>,
    /// The estimates of the slots that a scan of codes has retained, in their order.
    pub estimates: Vec<f32>,
    /// Number of slots that the last scan of codes had room for.
    pub room: usize,
    pub counts: WalkCounts,
}

/// A slot that may become a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinkCandidate {
    /// The distance from the slot that the link is for.
    pub distance: f32,
    pub slot: u32,
}

impl WalkWorkspace {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pool.memory_bytes()
            + self.above.memory_bytes()
            + self.visited.memory_bytes()
            + self.candidates.capacity() * size_of::<LinkCandidate>()
    }
}

/// Slots to be measured in one go.
#[derive(Default)]
pub(crate) struct SlotBatch {
    slots: Vec<u32>,
    /// The starts of the slots' blocks. They have no meaning between calls.
    blocks: Vec<*const u8>,
    distances: Vec<f32>,
}

// SAFETY: the pointers are only followed within the call that put them there.
unsafe impl Send for SlotBatch {}

impl SlotBatch {
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.blocks.clear();
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, slot: u32, block: SlotBlock<'_>) {
        self.slots.push(slot);
        self.blocks.push(block.start());
    }

    /// Fills the batch with those links of a block that have not been visited.
    #[inline(always)]
    pub(super) fn gather(&mut self, graph: &Graph, block: SlotBlock<'_>, visited: &mut SlotVisits) {
        // Every link is written, and stays if it is new: no branch to guess wrong.
        self.slots.resize(graph.layout().capacity, 0);
        let slots = &mut self.slots[..];
        let mut new = 0;
        block.for_each_link(|link| {
            slots[new] = link;
            new += usize::from(visited.insert(link));
        });
        self.slots.truncate(new);
        self.blocks.clear();
        let starts = self.slots.iter().map(|&slot| graph.block(slot).start());
        self.blocks.extend(starts);
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Measures the slots of the batch, and returns them with their distances from the query.
    ///
    /// # Safety
    /// The slots have been filled with codes of this codebook, and cannot be given away yet.
    #[inline(always)]
    pub(crate) unsafe fn measure(
        &mut self,
        codebook: &Codebook,
        query: &mut CodeQuery,
    ) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.distances.resize(self.slots.len(), 0.0);
        // SAFETY: blocks are laid out as codebooks expect, and the caller promises what they hold.
        unsafe { codebook.estimate(query, &self.blocks, &mut self.distances) };
        let distances = self.distances.iter().copied();
        self.slots.iter().copied().zip(distances)
    }
}

impl Graph {
    /// Measures the distances of some slots from `query`.
    ///
    /// # Safety
    /// The slots have been filled with codes, and the epoch is pinned since they could be reached.
    pub(super) unsafe fn measure<'b>(
        &self,
        codebook: &Codebook,
        slots: impl Iterator<Item = u32>,
        query: &mut CodeQuery,
        batch: &'b mut SlotBatch,
    ) -> impl Iterator<Item = (u32, f32)> + 'b {
        batch.clear();
        for slot in slots {
            batch.push(slot, self.block(slot));
        }
        // SAFETY: the caller's promise.
        unsafe { batch.measure(codebook, query) }
    }
}

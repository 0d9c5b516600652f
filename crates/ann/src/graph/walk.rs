//! The walk: from its starts towards a query.

use super::pool::Frontier;
use super::reach::WalkReach;
use super::space::{SlotBatch, WalkWorkspace};
use super::visited::SlotVisits;
use super::{Graph, WalkCounts};
use crate::codes::{CodeQuery, Codebook};
use crate::kernels::prefetch_bytes;

impl Graph {
    /// Walks towards `space.query` within `reach`, and leaves the nearest slots found in
    /// `space.pool`: up to `width`, or up to `most` of those that are in doubt, and at least `kept`
    /// if it comes to as many. None of them was dead when it was found.
    ///
    /// # Safety
    /// The epoch is pinned, from before until the last use of a slot found.
    pub(crate) unsafe fn walk(
        &self,
        codebook: &Codebook,
        reach: WalkReach,
        (width, most): (usize, usize),
        kept: usize,
        space: &mut WalkWorkspace,
    ) {
        let mut pool = std::mem::take(&mut space.pool);
        pool.reset_within(reach, (width, most), kept);
        // SAFETY: the caller's promise.
        unsafe { self.walk_with(codebook, &mut pool, space) };
        space.pool = pool;
    }

    /// Walks with any kind of candidates.
    ///
    /// # Safety
    /// As for [`Graph::walk`].
    pub(crate) unsafe fn walk_with(
        &self,
        codebook: &Codebook,
        frontier: &mut impl Frontier,
        space: &mut WalkWorkspace,
    ) {
        // SAFETY: the caller's promise.
        let starts = self
            .upper
            .as_ref()
            .map(|upper| unsafe { upper.starts(codebook, space) });
        let WalkWorkspace {
            query,
            visited,
            batch,
            bypassed,
            counts,
            ..
        } = space;
        // Only now, as the walk of the upper level uses the same table.
        visited.reset(self.slots.end() as usize);
        bypassed.clear();
        let Some(entry) = self.entry() else { return };
        let example = self.upper.as_ref();
        let example = example.and_then(|_| self.example_near(codebook, query));
        batch.clear();
        let is_linked = |slot: &u32| self.is_linked(*slot);
        let starts = starts.into_iter().flatten().flatten().chain(example);
        let starts = starts.filter(is_linked);
        for slot in std::iter::once(entry).chain(starts).chain(self.landmarks()) {
            if visited.insert(slot) {
                batch.push(slot, self.block(slot));
            }
        }
        let mut walker = SlotWalker {
            graph: self,
            codebook,
            query,
            visited,
            batch,
            bypassed,
            counts,
        };
        // The entry is expanded however far it is, even if that is beyond the floats.
        let mut start = Some(entry);
        loop {
            // SAFETY: the caller has pinned the epoch, and all slots come from links or are
            // landmarks.
            unsafe { walker.measure(frontier) };
            let next = walker.bypassed.pop().or_else(|| frontier.next());
            let Some(slot) = next.or(start) else {
                return;
            };
            start = None;
            walker.expand(slot);
        }
    }
}

/// The parts of a walk under way.
struct SlotWalker<'a> {
    graph: &'a Graph,
    codebook: &'a Codebook,
    query: &'a mut CodeQuery,
    visited: &'a mut SlotVisits,
    batch: &'a mut SlotBatch,
    bypassed: &'a mut Vec<u32>,
    counts: &'a mut WalkCounts,
}

impl SlotWalker<'_> {
    /// Gathers the slots that a slot links to and that have not been seen.
    #[inline(always)]
    fn expand(&mut self, slot: u32) {
        self.counts.hops += 1;
        let block = self.graph.block(slot);
        self.batch.gather(self.graph, block, self.visited);
    }

    /// Measures the gathered slots and offers those that are near enough.
    ///
    /// # Safety
    /// The epoch has been pinned since before the slots were gathered.
    #[inline(always)]
    unsafe fn measure(&mut self, frontier: &mut impl Frontier) {
        self.counts.distances += self.batch.len() as u64;
        let mut nearest = None;
        // SAFETY: a slot that a link names or that is linked itself (`Block::is_linked`) has been
        // filled, and stays as it is while the epoch is pinned.
        for (slot, distance) in unsafe { self.batch.measure(self.codebook, self.query) } {
            if distance < frontier.bound() {
                match self.graph.block(slot).is_dead() {
                    false => {
                        if distance < frontier.nearest() {
                            // SAFETY: as above.
                            let meta = unsafe { self.graph.block(slot).meta() };
                            nearest = Some(meta);
                        }
                        frontier.offer(distance, slot);
                        let (start, bytes) = self.graph.block(slot).links_at();
                        prefetch_bytes(start, bytes);
                    }
                    true => self.bypassed.push(slot),
                }
            }
        }
        // Near the query codes have about the error of the nearest one.
        if let Some(meta) = nearest {
            frontier.blur(self.codebook.deviation(self.query, &meta));
        }
    }
}

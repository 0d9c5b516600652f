//! Answers: the slots that a search found become ids with exact distances.
//!
//! A search proposes slots. Between the moment when it finds a slot and the moment when it answers,
//! the vector in the slot may have been replaced or removed. So slots become ids, each id is looked
//! up again, and the vector that it has then is measured. An id that is held throughout is never
//! left out because its vector was replaced meanwhile, and none is answered twice. One id may be
//! missed: one that leaves a [slot that ids share](crate::sharers) between the two moments.

use std::ops::ControlFlow;

use crate::graph::Graph;
use crate::ids::{IdEntry, IdTable};
use crate::kernels::prefetch_bytes;
use crate::nearest::TopNeighbours;
use crate::sharers::SharedSlots;
use crate::vectors::{StoredVectors, VectorScorer};
use crate::{IdFilter, Neighbour, SearchOptions};

/// Number of vectors fetched ahead of the one that is measured.
const AHEAD: usize = 2;

/// Bytes of a vector that are fetched ahead; the processor's own prefetching goes on from there.
/// Asking for all of a long vector fills the queue of misses, and takes a tenth longer at 1,536
/// dimensions.
const AHEAD_BYTES: usize = 512;

/// The parts of an index in which an answer is looked up.
#[derive(Clone, Copy)]
pub(crate) struct IndexParts<'a> {
    pub graph: &'a Graph,
    pub ids: &'a IdTable,
    pub sharers: &'a SharedSlots,
    /// The full vectors; None where codes are the vectors.
    pub vectors: Option<&'a StoredVectors>,
    /// Bytes of a stored vector.
    pub bytes: usize,
}

/// An id that may be in the answer, and the rank of its vector: smaller is nearer.
#[derive(Clone, Copy)]
pub(crate) struct RankedId {
    rank: f32,
    id: u32,
}

impl<'a> IndexParts<'a> {
    /// The vector in a slot.
    ///
    /// # Safety
    /// The slot has been filled, and the epoch is pinned since it could be reached.
    pub(crate) unsafe fn kept(&self, slot: u32) -> &'a [u8] {
        match self.vectors {
            // SAFETY: the caller's promise.
            Some(vectors) => unsafe { vectors.get(slot) },
            // SAFETY: as above.
            None => unsafe { &self.graph.block(slot).code()[..self.bytes] },
        }
    }

    /// The [scaled](VectorScorer::distance) distance of the vector that an id has now; None if it
    /// is not held.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(crate) unsafe fn measure(&self, id: u32, scorer: &mut VectorScorer<'_>) -> Option<f32> {
        match self.ids.get(id) {
            IdEntry::Vacant | IdEntry::Reserved => None,
            IdEntry::Undirected => Some(scorer.undirected_distance()),
            // SAFETY: the table names filled slots, and the epoch is pinned since before.
            IdEntry::Slot(slot) => Some(scorer.measure(unsafe { self.kept(slot) })),
        }
    }

    /// Adds to `ranked` the ids of the proposed slots, in no order, as far as the filter admits
    /// them. Of the ids that share a slot only the first `k` are taken.
    ///
    /// # Safety
    /// The epoch is pinned since before the slots were found.
    pub(crate) unsafe fn rank(
        &self,
        slots: &[u32],
        search: &SearchOptions<'_>,
        scorer: &mut VectorScorer<'_>,
        ranked: &mut Vec<RankedId>,
    ) {
        for (index, &slot) in slots.iter().enumerate() {
            if let Some(&ahead) = slots.get(index + AHEAD) {
                self.fetch_ahead(ahead);
            }
            let block = self.graph.block(slot);
            if block.is_shared() {
                // SAFETY: the caller's promise.
                unsafe { self.rank_sharers(slot, search, scorer, ranked) };
                continue;
            }
            let id = block.id();
            // The slot may have been found for another id that shared it, was admitted and has left
            // it since.
            if search.filter.is_some_and(|filter| !filter.admits(id)) {
                continue;
            }
            // SAFETY: the caller's promise.
            let rank = unsafe { self.rank_of(self.ids.get(id), scorer) };
            ranked.extend(rank.map(|rank| RankedId { rank, id }));
        }
    }

    /// Adds to `ranked` the first `k` admitted ids that share a slot.
    ///
    /// # Safety
    /// As for [`IndexParts::rank`].
    unsafe fn rank_sharers(
        &self,
        slot: u32,
        search: &SearchOptions<'_>,
        scorer: &mut VectorScorer<'_>,
        ranked: &mut Vec<RankedId>,
    ) {
        let (mut left, mut of_slot) = (search.k, None);
        self.sharers.for_each(self.graph, slot, |id| {
            if search.filter.is_none_or(|filter| filter.admits(id)) {
                let entry = self.ids.get(id);
                let rank = match of_slot {
                    Some(rank) if entry == IdEntry::Slot(slot) => rank,
                    // SAFETY: the caller's promise.
                    _ => unsafe { self.rank_of(entry, scorer) },
                };
                if entry == IdEntry::Slot(slot) {
                    // Ids that are on their way in or out don't count.
                    of_slot = Some(rank);
                    left -= 1;
                }
                ranked.extend(rank.map(|rank| RankedId { rank, id }));
            }
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
    }

    /// Whether a filter admits any of the ids that share a slot.
    pub(crate) fn any_admitted(&self, slot: u32, filter: IdFilter<'_>) -> bool {
        let mut any = false;
        self.sharers.for_each(self.graph, slot, |id| {
            any = filter.admits(id);
            match any {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        any
    }

    /// The rank of the vector that an entry names; None if there is no vector.
    ///
    /// # Safety
    /// The epoch is pinned since before the entry was read.
    unsafe fn rank_of(&self, entry: IdEntry, scorer: &mut VectorScorer<'_>) -> Option<f32> {
        match entry {
            IdEntry::Vacant | IdEntry::Reserved => None,
            IdEntry::Undirected => Some(scorer.undirected_rank()),
            // SAFETY: the table names filled slots, and the epoch is pinned since before.
            IdEntry::Slot(slot) => Some(scorer.rank(unsafe { self.kept(slot) })),
        }
    }

    fn fetch_ahead(&self, slot: u32) {
        if let Some(vectors) = self.vectors
            && let Some(start) = vectors.array().get(slot)
        {
            prefetch_bytes(start, self.bytes.min(AHEAD_BYTES));
        }
    }

    /// Measures the ranked ids, and returns the nearest `k`.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(crate) unsafe fn nearest(
        &self,
        mut ranked: &mut [RankedId],
        search: &SearchOptions<'_>,
        scorer: &mut VectorScorer<'_>,
    ) -> Vec<Neighbour> {
        let k = search.k;
        if ranked.len() > k && search.exact {
            // Ranks that sums of `f32` can't tell apart are all measured.
            ranked.sort_unstable_by(RankedId::compare);
            let last = ranked[k - 1].rank;
            let limit = last + scorer.rounding(last, true);
            let end = ranked.partition_point(|ranked| ranked.rank <= limit);
            ranked = &mut ranked[..end];
        } else if ranked.len() > k {
            ranked.select_nth_unstable_by(k, RankedId::compare);
            ranked = &mut ranked[..k];
        }
        let mut nearest = TopNeighbours::new(k, ranked.len());
        for RankedId { id, .. } in ranked {
            // SAFETY: the caller's promise.
            if let Some(distance) = unsafe { self.measure(*id, scorer) } {
                nearest.show(*id, distance);
            }
        }
        answered(nearest, scorer)
    }

    /// Measures every vector that the filter admits, and returns the nearest `k` and the number
    /// measured. `held` is about how many vectors the index holds. Every id that is held throughout
    /// is measured once.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(crate) unsafe fn scan(
        &self,
        k: usize,
        held: usize,
        filter: Option<IdFilter<'_>>,
        scorer: &mut VectorScorer<'_>,
    ) -> (Vec<Neighbour>, u64) {
        let mut nearest = TopNeighbours::new(k, held);
        let mut measured = 0;
        self.for_each_admitted(filter, |id| {
            // SAFETY: the caller's promise.
            if let Some(distance) = unsafe { self.measure(id, scorer) } {
                nearest.show(id, distance);
                measured += 1;
            }
        });
        (answered(nearest, scorer), measured)
    }

    /// Shows the ids that a filter admits, ascending. Some of them may not be held.
    pub(crate) fn for_each_admitted(
        &self,
        filter: Option<IdFilter<'_>>,
        mut show: impl FnMut(u32),
    ) {
        match filter {
            Some(IdFilter::Ids(ids)) => ids.iter().for_each(show),
            Some(IdFilter::Predicate(admits)) => {
                let held = self.ids.iter().map(|(id, _)| id);
                held.filter(|id| admits(*id)).for_each(show);
            }
            None => self.ids.iter().for_each(|(id, _)| show(id)),
        }
    }
}

/// Sorts the nearest, and turns what was measured into distances.
fn answered(nearest: TopNeighbours, scorer: &VectorScorer<'_>) -> Vec<Neighbour> {
    let mut neighbours = nearest.into_sorted();
    for neighbour in &mut neighbours {
        neighbour.distance = scorer.distance(neighbour.distance);
    }
    neighbours
}

impl RankedId {
    /// The rank of the `k`th nearest; None if there are fewer.
    pub(crate) fn last_of(k: usize, ranked: &mut [RankedId]) -> Option<f32> {
        let last = k.checked_sub(1).filter(|last| *last < ranked.len())?;
        let (_, last, _) = ranked.select_nth_unstable_by(last, RankedId::compare);
        Some(last.rank)
    }

    fn compare(a: &RankedId, b: &RankedId) -> std::cmp::Ordering {
        a.rank.total_cmp(&b.rank).then(a.id.cmp(&b.id))
    }

    /// Keeps the best rank of each id.
    pub(crate) fn dedup(ranked: &mut Vec<RankedId>) {
        ranked.sort_unstable_by(|a, b| a.id.cmp(&b.id).then(a.rank.total_cmp(&b.rank)));
        ranked.dedup_by_key(|ranked| ranked.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neighbour_index::{ScratchBuffers, Workspace};
    use crate::{NeighbourIndex, NeighbourIndexOptions};

    #[test]
    fn a_slot_that_was_found_for_another_id_is_no_answer() {
        let index = NeighbourIndex::new(NeighbourIndexOptions::new(2)).expect("valid options");
        for id in 0..4 {
            let vector = [1.0, id as f32];
            index.insert(id, &vector).expect("an insert");
        }
        let slot_of = |id| match index.ids.get(id) {
            IdEntry::Slot(slot) => slot,
            other => panic!("{id} has {other:?}"),
        };
        // These are left by a walk that found 1 and 3 while each shared its slot with an even id.
        let slots: Vec<u32> = (0..4).map(slot_of).collect();
        let is_even = |id: u32| id.is_multiple_of(2);
        let search = SearchOptions {
            filter: Some(IdFilter::Predicate(&is_even)),
            ..SearchOptions::new(4)
        };
        let query = [1.0, 1.0];
        index.with_workspace(|Workspace { participant, tools }| {
            let ScratchBuffers { kept, ranked, .. } = tools;
            assert!(index.form.keep(&query, kept));
            let _pin = participant.pin();
            let mut scorer = VectorScorer::new(index.form, index.options.metric, &query, kept);
            // SAFETY: the epoch is pinned, and the ids still have their slots.
            unsafe { index.contents().rank(&slots, &search, &mut scorer, ranked) };
            let mut ids: Vec<u32> = ranked.iter().map(|ranked| ranked.id).collect();
            ids.sort_unstable();
            assert_eq!(ids, [0, 2]);
        });
    }
}

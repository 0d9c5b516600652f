//! The way of a search through the index.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use crate::answer::{IndexParts, RankedId};
use crate::codes::Codebook;
use crate::graph::{
    CandidateHeaps, FilteredFrontier, Graph, WalkBounds, WalkCounts, WalkReach, WalkWorkspace,
};
use crate::ids::IdEntry;
use crate::kernels::prefetch_bytes;
use crate::nearest::TopNeighbours;
use crate::neighbour_index::{NeighbourIndex, ScratchBuffers, Workspace};
use crate::plan::{FrontierKind, SearchFacts, SearchStrategy, WalkPlan, default_beam};
use crate::vectors::{FROM_UNDIRECTED, VectorScorer};
use crate::{AccessPath, Explanation, IdFilter, IdSet, IndexError, Neighbour, SearchOptions};

/// Number of codes that a scan measures in one go.
const BATCH: usize = 16;

/// A walk for a hard query keeps up to this many times the candidates of an average one. A larger
/// factor makes the slowest searches longer. With 2 here, and 0.75 of a spread for
/// [reach](crate::graph), as much was found in as many steps in the mean, and searches of the 99th
/// percentile took a third more (docs/benchmarks/engine.md).
const HARD: f64 = 1.25;

/// A filtered scan of codes keeps this many times as many slots as are measured at first.
const KEPT: usize = 2;

/// An exact scan of codes does so with this factor: its bounds are several times the usual error.
const KEPT_EXACT: usize = 64;

/// Number of deviations of an estimate by which a slot may seem farther than it is. One in a
/// hundred and sixty does so by more.
const DOUBTS: f32 = 2.5;

/// The most candidates of a walk, whatever is in doubt.
const WIDEST: usize = 2_048;

/// The fewest candidates that are measured before the next look at what is still in doubt.
const RANKED_AT_ONCE: usize = 4;

/// Factor by which a scan keeps more slots if all those retained before had to be measured.
const KEPT_GROWTH: usize = 16;

/// Number of ids tried to estimate how many a predicate admits.
const TRIED: usize = 512;

impl NeighbourIndex {
    /// Returns the `k` nearest vectors, nearest first and by id among equals. There are always `k`,
    /// or as many as the index holds if that is less. Fails if the query is no vector of this index
    /// ([`IndexError::Dimensions`], [`IndexError::NotFinite`]), and with
    /// [`IndexError::Unreadable`].
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<Neighbour>, IndexError> {
        self.search_with(query, &SearchOptions::new(k))
    }

    /// Searches as [`NeighbourIndex::search`] does, with a width, a precision or a filter of the
    /// caller's. With a filter there are `k` answers, or as many as the filter admits of what the
    /// index holds if that is less.
    pub fn search_with(
        &self,
        query: &[f32],
        search: &SearchOptions<'_>,
    ) -> Result<Vec<Neighbour>, IndexError> {
        self.explain(query, search).map(|(answer, _)| answer)
    }

    /// Searches as [`NeighbourIndex::search_with`] does, and explains the work.
    pub fn explain(
        &self,
        query: &[f32],
        search: &SearchOptions<'_>,
    ) -> Result<(Vec<Neighbour>, Explanation), IndexError> {
        self.check(query)?;
        let answer = self.with_workspace(|workspace| self.answer(query, search, workspace));
        self.verification.require_readable()?;
        Ok(answer)
    }

    /// Returns the `k` nearest of the vectors that have one of these ids, all of which are measured
    /// in full: neither links nor codes have a part in it. So the answers of searches can be
    /// compared with it. Fails as [`NeighbourIndex::search`] does.
    pub fn scan(&self, query: &[f32], k: usize, ids: &IdSet) -> Result<Vec<Neighbour>, IndexError> {
        self.check(query)?;
        let search = SearchOptions {
            exact: true,
            filter: Some(IdFilter::Ids(ids)),
            ..SearchOptions::new(k)
        };
        let plan = Some(SearchStrategy::Scan);
        let (nearest, _) =
            self.with_workspace(|workspace| self.answer_as(plan, query, &search, workspace));
        self.verification.require_readable()?;
        Ok(nearest)
    }

    /// Answers many queries, in their order. All are checked before the first is searched.
    pub fn search_batch(
        &self,
        queries: &[&[f32]],
        search: &SearchOptions<'_>,
    ) -> Result<Vec<Vec<Neighbour>>, IndexError> {
        queries.iter().try_for_each(|query| self.check(query))?;
        let answers = self.with_workspace(|workspace| {
            let answers = queries
                .iter()
                .map(|query| self.answer(query, search, workspace));
            answers.map(|(answer, _)| answer).collect()
        });
        self.verification.require_readable()?;
        Ok(answers)
    }

    /// The neighbours of a sample by a scan of the codes.
    pub(crate) fn scan_for_sample(
        &self,
        vector: &[f32],
        k: usize,
        workspace: &mut Workspace,
    ) -> Vec<Neighbour> {
        let search = SearchOptions::new(k);
        let scan = SearchStrategy::ScanOfCodes { rescored: 2 * k };
        self.answer_as(Some(scan), vector, &search, workspace).0
    }

    /// The neighbours of a sample by a walk of so many times the default width.
    pub(crate) fn walk_for_sample(
        &self,
        vector: &[f32],
        k: usize,
        width: f64,
        workspace: &mut Workspace,
    ) -> Vec<Neighbour> {
        let search = SearchOptions {
            beam: Some(default_beam(k, width)),
            ..SearchOptions::new(k)
        };
        self.answer_as(None, vector, &search, workspace).0
    }

    fn answer(
        &self,
        query: &[f32],
        search: &SearchOptions<'_>,
        workspace: &mut Workspace,
    ) -> (Vec<Neighbour>, Explanation) {
        self.answer_as(None, query, search, workspace)
    }

    /// Answers by a plan, or by the one that seems best.
    fn answer_as(
        &self,
        plan: Option<SearchStrategy>,
        query: &[f32],
        search: &SearchOptions<'_>,
        Workspace { participant, tools }: &mut Workspace,
    ) -> (Vec<Neighbour>, Explanation) {
        let mut explanation = Explanation::default();
        if search.k == 0 {
            return (Vec::new(), explanation);
        }
        let ScratchBuffers {
            kept,
            space,
            slots,
            ranked,
        } = tools;
        if !self.form.keep_query(query, kept) {
            let nearest = self.undirected_query(search);
            return (nearest, explanation);
        }
        let _pin = participant.pin();
        let contents = self.contents();
        let scorer = VectorScorer::new(self.form, self.options.metric, query, kept);
        let mut scorer = scorer.exactly(search.exact);
        let held = self.len();
        let plan = match self.linked.load(Ordering::Acquire) {
            true => plan.unwrap_or_else(|| self.plan(held, search)),
            false => SearchStrategy::Scan,
        };
        let found = self.graph.codebook().and_then(|codebook| {
            let ended = self.moves.ended();
            codebook.prepare(&kept.floats, &mut space.query);
            space.counts = WalkCounts::default();
            let find = SlotFinder {
                graph: &self.graph,
                contents,
                codebook,
                filter: search.filter,
            };
            let mut next = Some(plan);
            while let Some(plan) = next {
                slots.clear();
                let found = (&mut *space, &mut *slots);
                // SAFETY: the epoch is pinned.
                explanation.way = unsafe { self.find(plan, &find, search, found) }?;
                ranked.clear();
                let found = (&mut *space, &mut *slots);
                // SAFETY: the epoch has been pinned since before.
                let (measured, is_open) =
                    unsafe { find.rank_found(explanation.way, search, found, &mut scorer, ranked) };
                explanation.rescored += measured as u64;
                next = plan
                    .after_doubt(held)
                    .filter(|_| is_open && explanation.way == AccessPath::Walk);
            }
            if self.moves.any_since(ended) {
                RankedId::dedup(ranked);
            }
            // SAFETY: as above.
            let nearest = unsafe { contents.nearest(ranked, search, &mut scorer) };
            // Vectors may have been removed meanwhile, or the graph may have come apart, or there
            // are too few with a direction, after which the others come. Then a scan follows.
            let enough = nearest.len() >= search.k;
            enough.then_some(nearest)
        });
        explanation.hops = space.counts.hops;
        explanation.distances = space.counts.distances;
        let nearest = found.unwrap_or_else(|| {
            explanation.way = AccessPath::Scan;
            // SAFETY: the epoch is pinned.
            let (nearest, measured) =
                unsafe { contents.scan(search.k, held, search.filter, &mut scorer) };
            explanation.rescored += measured;
            nearest
        });
        let walks = matches!(plan, SearchStrategy::Walk(_));
        explanation.walk_given_up = walks && explanation.way != AccessPath::Walk;
        explanation.bytes = self.bytes_read(&explanation);
        (nearest, explanation)
    }

    /// Finds slots as planned, and leaves them in `slots`, the nearest first, and in
    /// `space.estimates` how near they may be. Returns the way, or `None` if a scan of all vectors
    /// is better.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn find(
        &self,
        plan: SearchStrategy,
        find: &SlotFinder<'_>,
        search: &SearchOptions<'_>,
        (space, slots): (&mut WalkWorkspace, &mut Vec<u32>),
    ) -> Option<AccessPath> {
        match plan {
            SearchStrategy::Scan => None,
            SearchStrategy::ScanOfCodes { rescored } => {
                let kept = find.kept(rescored, search);
                // SAFETY: the caller's promise.
                unsafe { find.scan_codes(kept, search.exact, space, slots) };
                Some(AccessPath::ScanOfCodes)
            }
            SearchStrategy::Walk(walk) => {
                // SAFETY: the caller's promise.
                if unsafe { self.walk(walk, find, search, (space, slots)) } {
                    return Some(AccessPath::Walk);
                }
                let kept = find.kept(walk.rescored, search);
                // SAFETY: as above.
                unsafe { find.scan_codes(kept, search.exact, space, slots) };
                Some(AccessPath::ScanOfCodes)
            }
        }
    }

    /// Walks the graph as planned, and leaves what it finds as [`NeighbourIndex::find`] does.
    /// Returns false if the walk was given up.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn walk(
        &self,
        walk: WalkPlan,
        find: &SlotFinder<'_>,
        search: &SearchOptions<'_>,
        (space, slots): (&mut WalkWorkspace, &mut Vec<u32>),
    ) -> bool {
        let WalkPlan {
            beam,
            rescored,
            candidates,
        } = walk;
        space.estimates.clear();
        space.widths = beam as f64 / default_beam(search.k, 1.0) as f64;
        match candidates {
            // SAFETY: the caller's promise.
            FrontierKind::Heaps => unsafe { find.walk_heaps(beam.max(rescored), space, slots) },
            FrontierKind::Sorted => {
                let (width, reach) = self.reach(search.k, beam);
                let width = width.max(rescored);
                let most = match search.rescored {
                    None => width.max(WIDEST),
                    Some(_) => width,
                };
                // SAFETY: the caller's promise.
                unsafe { find.walk(reach, (width, most), rescored, space, slots) };
                self.pace.learn(space.counts.hops, beam);
            }
            FrontierKind::Sieved {
                hops_max,
                starved_max,
            } => {
                let (width, reach) = self.reach(rescored, beam.max(rescored));
                let bounds = WalkBounds {
                    wanted: rescored,
                    width,
                    reach,
                    hops_max,
                    starved_max,
                };
                // SAFETY: the caller's promise.
                if !unsafe { find.walk_sieved(bounds, space, slots) } {
                    return false;
                }
            }
        }
        if search.rescored.is_some() {
            slots.truncate(rescored);
            space.estimates.truncate(rescored);
        }
        true
    }

    fn plan(&self, held: usize, search: &SearchOptions<'_>) -> SearchStrategy {
        SearchStrategy::new(SearchFacts {
            search,
            options: &self.options,
            kind: self.kind,
            pace: self.pace.get(),
            width: self.samples.width(search.k),
            held,
            admitted: search
                .filter
                .map_or(held, |filter| self.admitted(filter, held)),
        })
    }

    /// The number of candidates that a walk may keep, so that it is as wide as `beam` in the mean,
    /// and how far it looks.
    fn reach(&self, k: usize, beam: usize) -> (usize, WalkReach) {
        match self.graph.spread().reach(k, beam) {
            Some(reach) => ((HARD * beam as f64) as usize, reach),
            None => (beam, WalkReach::unlimited(k)),
        }
    }

    /// Estimates how many of the vectors held a filter admits.
    fn admitted(&self, filter: IdFilter<'_>, held: usize) -> usize {
        match filter {
            IdFilter::Ids(ids) => ids.len().min(held),
            IdFilter::Predicate(admits) => {
                let (mut tried, mut admitted) = (0, 0);
                let step = (self.ids.end() as usize / TRIED).max(1);
                for id in (0..self.ids.end()).step_by(step) {
                    if self.ids.get(id as u32).is_held() {
                        tried += 1;
                        admitted += usize::from(admits(id as u32));
                    }
                }
                // As if one more had been admitted: none among the tried does not mean none at all.
                (held * (admitted + 1)).div_ceil(tried + 1)
            }
        }
    }

    /// The first `k` of the ids without direction that may be in the answer.
    fn undirected_admitted(&self, search: &SearchOptions<'_>) -> Vec<u32> {
        let undirected = self.undirected.read();
        let admitted = undirected
            .iter()
            .filter(|id| search.filter.is_none_or(|filter| filter.admits(*id)));
        admitted.take(search.k).collect()
    }

    /// The answer to a query without direction. Its distance is 0 to vectors that have none either,
    /// and the same to all others.
    fn undirected_query(&self, search: &SearchOptions<'_>) -> Vec<Neighbour> {
        let alike = self.undirected_admitted(search);
        let mut nearest: Vec<Neighbour> = alike
            .iter()
            .map(|&id| Neighbour { id, distance: 0.0 })
            .collect();
        // An id that is given a direction meanwhile is not answered twice.
        let told: HashSet<u32> = alike.into_iter().collect();
        self.contents().for_each_admitted(search.filter, |id| {
            let has_direction = matches!(self.ids.get(id), IdEntry::Slot(_));
            if nearest.len() < search.k && has_direction && !told.contains(&id) {
                nearest.push(Neighbour {
                    id,
                    distance: FROM_UNDIRECTED,
                });
            }
        });
        nearest
    }

    fn bytes_read(&self, explanation: &Explanation) -> u64 {
        let layout = self.graph.layout();
        let measured = layout.measured_bytes() as u64;
        let links = layout.stride as u64 - measured;
        let kept = self.form.bytes(self.options.dimensions) as u64;
        explanation.hops * links + explanation.distances * measured + explanation.rescored * kept
    }
}

/// The ways to find slots for an answer.
struct SlotFinder<'a> {
    graph: &'a Graph,
    contents: IndexParts<'a>,
    codebook: &'a Codebook,
    filter: Option<IdFilter<'a>>,
}

impl SlotFinder<'_> {
    /// Walks the graph with a sorted array of candidates, and adds the slots found to `slots`.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn walk(
        &self,
        reach: WalkReach,
        widths: (usize, usize),
        rescored: usize,
        space: &mut WalkWorkspace,
        slots: &mut Vec<u32>,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            self.graph
                .walk(self.codebook, reach, widths, rescored, space);
        }
        let WalkWorkspace {
            pool, estimates, ..
        } = space;
        for (distance, slot) in pool.iter() {
            slots.push(slot);
            estimates.push(distance);
        }
    }

    /// Walks the graph with heaps of candidates, and adds the slots found to `slots`.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn walk_heaps(&self, beam: usize, space: &mut WalkWorkspace, slots: &mut Vec<u32>) {
        let mut heaps = CandidateHeaps::new(beam);
        // SAFETY: the caller's promise.
        unsafe { self.graph.walk_with(self.codebook, &mut heaps, space) };
        for (distance, slot) in heaps.into_found() {
            slots.push(slot);
            space.estimates.push(distance);
        }
    }

    /// Walks the graph for slots that the filter admits, and adds those found to `slots`; false if
    /// the walk was given up.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn walk_sieved(
        &self,
        bounds: WalkBounds,
        space: &mut WalkWorkspace,
        slots: &mut Vec<u32>,
    ) -> bool {
        let admits = |slot| {
            let block = self.graph.block(slot);
            self.filter.is_none_or(|filter| match block.is_shared() {
                true => self.contents.any_admitted(slot, filter),
                false => filter.admits(block.id()),
            })
        };
        let mut sieve = FilteredFrontier::new(bounds, admits);
        // SAFETY: the caller's promise.
        unsafe { self.graph.walk_with(self.codebook, &mut sieve, space) };
        let found = sieve.into_found();
        let ended = found.is_some();
        for (distance, slot) in found.into_iter().flatten() {
            slots.push(slot);
            space.estimates.push(distance);
        }
        ended
    }

    /// The number of slots that a scan of codes keeps, of which `rescored` are measured at first.
    fn kept(&self, rescored: usize, search: &SearchOptions<'_>) -> usize {
        let factor = match search.rescored.is_none() && self.codebook.error(1.0) > 0.0 {
            _ if search.exact => KEPT_EXACT,
            true => KEPT,
            false => 1,
        };
        rescored.saturating_mul(factor)
    }

    /// Adds to `ranked` the ids of the slots that were found, as far as they may be among the
    /// nearest for all that their estimates tell, or as many as the search names. Returns the
    /// number of slots measured, and whether others may be as near as all of these.
    ///
    /// How many are in doubt depends on the data: near copies of one another all are, and so are
    /// thousands where the matches of a filter begin just where most vectors are.
    ///
    /// # Safety
    /// The epoch is pinned since before the slots were found.
    unsafe fn rank_found(
        &self,
        way: AccessPath,
        search: &SearchOptions<'_>,
        (space, slots): (&mut WalkWorkspace, &mut Vec<u32>),
        scorer: &mut VectorScorer<'_>,
        ranked: &mut Vec<RankedId>,
    ) -> (usize, bool) {
        if search.rescored.is_some() && !search.exact {
            // SAFETY: the caller's promise.
            unsafe { self.contents.rank(slots, search, scorer, ranked) };
            return (slots.len(), false);
        }
        let is_certain = self.codebook.error(1.0) == 0.0 && !search.exact;
        if way == AccessPath::Walk {
            // SAFETY: as above.
            unsafe { self.put_doubts(space, slots) };
        }
        let mut measured = 0;
        let mut rescanned = false;
        let is_open = loop {
            let more = match measured {
                0 => search.k.max(RANKED_AT_ONCE),
                _ => RANKED_AT_ONCE.max(measured / 4),
            };
            let end = slots.len().min(measured + more);
            let last = RankedId::last_of(search.k, ranked);
            let nearest_left = space.estimates.get(measured).copied();
            let is_over = match (last, nearest_left) {
                (Some(last), Some(nearest)) => {
                    let last = last + scorer.rounding(last, search.exact);
                    nearest > scorer.estimate(last)
                }
                (_, None) => true,
                (None, Some(_)) => false,
            };
            if !is_over {
                // SAFETY: the caller's promise.
                unsafe {
                    self.contents
                        .rank(&slots[measured..end], search, scorer, ranked);
                }
                measured = end;
                continue;
            }
            if nearest_left.is_some() || is_certain {
                break false;
            }
            if way == AccessPath::Walk {
                break true;
            }
            if slots.len() < space.room {
                // The scan has found no more.
                break false;
            }
            rescanned = true;
            slots.clear();
            let room = space.room.saturating_mul(KEPT_GROWTH);
            // SAFETY: as above.
            unsafe { self.scan_codes(room, search.exact, space, slots) };
            measured = measured.min(slots.len());
        };
        if rescanned {
            // Slots change places in the order while others write.
            RankedId::dedup(ranked);
        }
        (measured, is_open)
    }

    /// Makes of the estimates of a walk how near the slots may be, and puts them in that order.
    ///
    /// # Safety
    /// The epoch is pinned since before the slots were found.
    unsafe fn put_doubts(&self, space: &mut WalkWorkspace, slots: &mut [u32]) {
        let WalkWorkspace {
            query, estimates, ..
        } = space;
        if self.codebook.error(1.0) == 0.0 {
            return;
        }
        let mut order: Vec<(f32, u32)> = estimates
            .iter()
            .zip(&*slots)
            .map(|(&estimate, &slot)| {
                // SAFETY: the caller's promise.
                let meta = unsafe { self.graph.block(slot).meta() };
                let deviation = self.codebook.deviation(query, &meta);
                (estimate - DOUBTS * deviation, slot)
            })
            .collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let places = estimates.iter_mut().zip(slots);
        for ((estimate, slot), (nearest, of)) in places.zip(order) {
            (*estimate, *slot) = (nearest, of);
        }
    }

    /// Estimates how near all admitted vectors may be, and adds the nearest `kept` slots to
    /// `slots`, the nearest first.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn scan_codes(
        &self,
        kept: usize,
        exact: bool,
        space: &mut WalkWorkspace,
        slots: &mut Vec<u32>,
    ) {
        space.room = kept;
        let mut nearest = TopNeighbours::new(kept, kept.min(self.contents.ids.end() as usize));
        let WalkWorkspace {
            query,
            batch,
            counts,
            ..
        } = space;
        let mut shared = HashSet::new();
        let doubts_each = self.codebook.centres().len() > 0;
        let doubts = self.codebook.doubts(query, DOUBTS);
        if exact {
            self.codebook.prepare_bound(query);
        }
        let mut measure = |waiting: &mut Vec<u32>| {
            batch.clear();
            for slot in waiting.drain(..) {
                let block = self.graph.block(slot);
                if !block.is_shared() || shared.insert(slot) {
                    batch.push(slot, block);
                }
            }
            counts.distances += batch.len() as u64;
            // SAFETY: the table names filled slots, and the caller has pinned the epoch.
            for (slot, distance) in unsafe { batch.measure(self.codebook, query) } {
                // SAFETY: as above.
                let meta = || unsafe { self.graph.block(slot).meta() };
                if exact {
                    let least = distance - self.codebook.bound(query, &meta());
                    // What is beyond the floats may be anywhere.
                    let least = if least.is_finite() { least } else { f32::MIN };
                    nearest.show(slot, least);
                } else if doubts_each {
                    let doubt = DOUBTS * self.codebook.deviation(query, &meta());
                    nearest.show(slot, distance - doubt);
                } else {
                    nearest.show(slot, distance - doubts.of(&meta()));
                }
            }
        };
        // Blocks are fetched while those of the batch before are measured.
        let bytes = self.graph.layout().measured_bytes();
        let mut fetched = Vec::with_capacity(BATCH);
        let mut coming = Vec::with_capacity(BATCH);
        self.contents.for_each_admitted(self.filter, |id| {
            if let IdEntry::Slot(slot) = self.contents.ids.get(id) {
                prefetch_bytes(self.graph.block(slot).start(), bytes);
                coming.push(slot);
                if coming.len() == BATCH {
                    measure(&mut fetched);
                    std::mem::swap(&mut fetched, &mut coming);
                }
            }
        });
        measure(&mut fetched);
        measure(&mut coming);
        // Distances beyond the floats have no order. If too few slots are left, all vectors are
        // measured.
        let found = nearest.into_sorted().into_iter();
        let mut once = HashSet::new();
        let told_apart = found
            .take_while(|neighbour| neighbour.distance.is_finite())
            // A slot that became shared meanwhile may be there twice.
            .filter(|neighbour| shared.is_empty() || once.insert(neighbour.id));
        space.estimates.clear();
        for Neighbour { id, distance } in told_apart {
            slots.push(id);
            space.estimates.push(distance);
        }
    }
}

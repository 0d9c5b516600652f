//! The way of a search through the index.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use crate::answer::{Contents, Ranked};
use crate::codes::{Codebook, Query as Prepared};
use crate::graph::{Bounds, Counts, Graph, Heaps, Reach, Sieve, Space};
use crate::ids::Entry;
use crate::index::{Index, Tools, Workspace};
use crate::kernels::prefetch_bytes;
use crate::nearest::Nearest;
use crate::plan::{Candidates, Plan, Question, Walk};
use crate::vectors::{Scorer, UNDIRECTED};
use crate::{Error, Explanation, Filter, Metric, Neighbour, SearchOptions, Way};

/// Number of codes that a scan measures in one go.
const BATCH: usize = 64;

/// A walk for a hard query keeps up to this many times the candidates of an average one. A larger
/// factor makes the slowest searches longer. With 2 here, and 0.75 of a spread for
/// [reach](crate::graph), as much was found in as many steps in the mean, and searches of the 99th
/// percentile took a third more (docs/benchmarks/slow-searches.md).
const HARD: f64 = 1.25;

/// A filtered scan of codes keeps this many times as many slots as are measured at first.
const KEPT: usize = 2;

/// Number of deviations of an estimate by which a slot may seem farther than it is. One in a
/// hundred and sixty does so by more.
const DOUBTS: f32 = 2.5;

/// Factor by which a scan keeps more slots if all those kept before had to be measured.
const KEPT_GROWTH: usize = 16;

/// Number of ids tried to estimate how many a predicate admits.
const TRIED: usize = 512;

impl Index {
    /// Returns the `k` nearest vectors, nearest first and by id among equals. There are always `k`,
    /// or as many as the index holds if that is less. Fails if the query is no vector of this index
    /// ([`Error::Dimensions`], [`Error::NotFinite`]), and with [`Error::Unreadable`].
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<Neighbour>, Error> {
        self.search_with(query, &SearchOptions::new(k))
    }

    /// Searches as [`Index::search`] does, with a width, a precision or a filter of the caller's.
    /// With a filter there are `k` answers, or as many as the filter admits of what the index holds
    /// if that is less.
    pub fn search_with(
        &self,
        query: &[f32],
        search: &SearchOptions<'_>,
    ) -> Result<Vec<Neighbour>, Error> {
        self.explain(query, search).map(|(answer, _)| answer)
    }

    /// Searches as [`Index::search_with`] does, and explains the work.
    pub fn explain(
        &self,
        query: &[f32],
        search: &SearchOptions<'_>,
    ) -> Result<(Vec<Neighbour>, Explanation), Error> {
        self.check(query)?;
        let answer = self.with_workspace(|workspace| self.answer(query, search, workspace));
        self.verification.require_readable()?;
        Ok(answer)
    }

    /// Answers many queries, in their order. All are checked before the first is searched.
    pub fn search_batch(
        &self,
        queries: &[&[f32]],
        search: &SearchOptions<'_>,
    ) -> Result<Vec<Vec<Neighbour>>, Error> {
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

    fn answer(
        &self,
        query: &[f32],
        search: &SearchOptions<'_>,
        Workspace { participant, tools }: &mut Workspace,
    ) -> (Vec<Neighbour>, Explanation) {
        let mut explanation = Explanation::default();
        if search.k == 0 {
            return (Vec::new(), explanation);
        }
        let Tools {
            kept,
            space,
            slots,
            ranked,
        } = tools;
        if !self.form.keep(query, kept) {
            let nearest = self.undirected_query(search);
            return (nearest, explanation);
        }
        let _pin = participant.pin();
        let contents = self.contents();
        let mut scorer = Scorer::new(self.form, self.options.metric, query, kept);
        let held = self.len();
        let plan = match self.linked.load(Ordering::Acquire) {
            true => self.plan(held, search),
            false => Plan::Scan,
        };
        let found = self.graph.codebook().and_then(|codebook| {
            let ended = self.moves.ended();
            let undirected = self.undirected_admitted(search);
            codebook.prepare(&kept.floats, &mut space.query);
            space.counts = Counts::default();
            slots.clear();
            let find = Find {
                graph: &self.graph,
                contents,
                codebook,
                filter: search.filter,
            };
            let found = (&mut *space, &mut *slots);
            // SAFETY: the epoch is pinned.
            explanation.way = unsafe { self.find(plan, &find, search, scorer.squared(), found) }?;
            ranked.clear();
            explanation.rescored = match (explanation.way, search.filter, plan.rescored()) {
                (Way::ScanOfCodes, Some(_), Some(first)) if search.rescored.is_none() => {
                    let found = (&mut *space, &mut *slots);
                    // SAFETY: the epoch has been pinned since before.
                    unsafe { find.rank_doubtful(search, first, found, &mut scorer, ranked) }
                }
                _ => {
                    // SAFETY: as above.
                    unsafe { contents.rank(slots, search, &mut scorer, ranked) };
                    slots.len()
                }
            } as u64;
            let ranks = undirected.into_iter();
            ranked.extend(ranks.map(|id| Ranked::undirected(id, &scorer)));
            if self.moves.any_since(ended) {
                Ranked::dedup(ranked);
            }
            // SAFETY: as above.
            let nearest = unsafe { contents.nearest(ranked, search.k, &mut scorer) };
            // Vectors may have gone away meanwhile, or the graph may have come apart. Then a scan
            // follows.
            let enough = nearest.len() >= search.k;
            enough.then_some(nearest)
        });
        explanation.hops = space.counts.hops;
        explanation.distances = space.counts.distances;
        let nearest = found.unwrap_or_else(|| {
            explanation.way = Way::Scan;
            // SAFETY: the epoch is pinned.
            let (nearest, measured) =
                unsafe { contents.scan(search.k, held, search.filter, &mut scorer) };
            explanation.rescored += measured;
            nearest
        });
        let walks = matches!(plan, Plan::Walk(_));
        explanation.walk_given_up = walks && explanation.way != Way::Walk;
        explanation.bytes = self.bytes_read(&explanation);
        (nearest, explanation)
    }

    /// Finds slots as planned, and leaves in `slots` those to measure. Returns the way, or `None`
    /// if a scan of all vectors is better. `squared` is the query's squared length.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn find(
        &self,
        plan: Plan,
        find: &Find<'_>,
        search: &SearchOptions<'_>,
        squared: f64,
        (space, slots): (&mut Space, &mut Vec<u32>),
    ) -> Option<Way> {
        match plan {
            Plan::Scan => None,
            Plan::ScanOfCodes { rescored } => {
                let kept = find.kept(rescored, search);
                // SAFETY: the caller's promise.
                unsafe { find.scan_codes(kept, space, slots) };
                Some(Way::ScanOfCodes)
            }
            Plan::Walk(walk) => {
                // SAFETY: the caller's promise.
                if unsafe { self.walk(walk, find, search, squared, (space, slots)) } {
                    return Some(Way::Walk);
                }
                let kept = find.kept(walk.rescored, search);
                // SAFETY: as above.
                unsafe { find.scan_codes(kept, space, slots) };
                Some(Way::ScanOfCodes)
            }
        }
    }

    /// Walks the graph as planned, and leaves in `slots` those to measure, the nearest first.
    /// Returns false if the walk was given up. `squared` is the query's squared length.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn walk(
        &self,
        walk: Walk,
        find: &Find<'_>,
        search: &SearchOptions<'_>,
        squared: f64,
        (space, slots): (&mut Space, &mut Vec<u32>),
    ) -> bool {
        let Walk {
            beam,
            rescored,
            candidates,
        } = walk;
        match candidates {
            // SAFETY: the caller's promise.
            Candidates::Heaps => unsafe { find.walk_heaps(beam.max(rescored), space, slots) },
            Candidates::Sorted => {
                let wide = (search.k, beam);
                let (width, reach) = self.reach(find.codebook, &space.query, wide, squared);
                let width = width.max(rescored);
                // SAFETY: the caller's promise.
                unsafe { find.walk(reach, width, rescored, space, slots) };
                self.pace.learn(space.counts.hops, beam);
                if search.rescored.is_none() {
                    // Slots that seem much too far are not among the nearest.
                    slots.truncate(space.in_doubt(reach));
                }
            }
            Candidates::Sieved {
                hops_max,
                starved_max,
            } => {
                let wide = (rescored, beam.max(rescored));
                let (width, reach) = self.reach(find.codebook, &space.query, wide, squared);
                let bounds = Bounds {
                    wanted: rescored,
                    width,
                    reach,
                    hops_max,
                    starved_max,
                };
                // SAFETY: the caller's promise.
                return unsafe { find.walk_sieved(bounds, space, slots) };
            }
        }
        slots.truncate(rescored);
        true
    }

    fn plan(&self, held: usize, search: &SearchOptions<'_>) -> Plan {
        Plan::new(Question {
            search,
            options: &self.options,
            kind: self.kind,
            pace: self.pace.get(),
            held,
            admitted: search
                .filter
                .map_or(held, |filter| self.admitted(filter, held)),
        })
    }

    /// The number of candidates that a walk may keep, so that it is as wide as `beam` in the mean,
    /// and how far it looks for `prepared`. `squared` is the query's squared length.
    fn reach(
        &self,
        codebook: &Codebook,
        prepared: &Prepared,
        (k, beam): (usize, usize),
        squared: f64,
    ) -> (usize, Reach) {
        let Some(reach) = self.graph.spread().reach(k, beam) else {
            return (beam, Reach::UNLIMITED);
        };
        let reach = match self.options.metric {
            Metric::DotProduct => {
                // The query is made as long as the longest vector, see `codes::space`.
                let lengths = (f64::from(self.graph.longest()) * squared).sqrt() as f32;
                reach.lifted(2.0 * lengths).blurred(codebook.error(lengths))
            }
            Metric::Cosine | Metric::Euclidean | Metric::Hamming => {
                reach.blurred(codebook.error(prepared.squared_length()))
            }
        };
        ((HARD * beam as f64) as usize, reach)
    }

    /// Estimates how many of the vectors held a filter admits.
    fn admitted(&self, filter: Filter<'_>, held: usize) -> usize {
        match filter {
            Filter::Ids(ids) => ids.len().min(held),
            Filter::Predicate(admits) => {
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
            let has_direction = matches!(self.ids.get(id), Entry::Slot(_));
            if nearest.len() < search.k && has_direction && !told.contains(&id) {
                nearest.push(Neighbour {
                    id,
                    distance: UNDIRECTED,
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
struct Find<'a> {
    graph: &'a Graph,
    contents: Contents<'a>,
    codebook: &'a Codebook,
    filter: Option<Filter<'a>>,
}

impl Find<'_> {
    /// Walks the graph with a sorted array of candidates, and adds the slots found to `slots`.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn walk(
        &self,
        reach: Reach,
        width: usize,
        rescored: usize,
        space: &mut Space,
        slots: &mut Vec<u32>,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            self.graph
                .walk(self.codebook, reach, width, rescored, space);
        }
        slots.extend(space.found().map(|(_, slot)| slot));
    }

    /// Walks the graph with heaps of candidates, and adds the slots found to `slots`.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn walk_heaps(&self, beam: usize, space: &mut Space, slots: &mut Vec<u32>) {
        let mut heaps = Heaps::new(beam);
        // SAFETY: the caller's promise.
        unsafe { self.graph.walk_with(self.codebook, &mut heaps, space) };
        slots.extend(heaps.into_found().map(|(_, slot)| slot));
    }

    /// Walks the graph for slots that the filter admits, and adds those found to `slots`; false if
    /// the walk was given up.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn walk_sieved(&self, bounds: Bounds, space: &mut Space, slots: &mut Vec<u32>) -> bool {
        let admits = |slot| {
            let block = self.graph.block(slot);
            self.filter.is_none_or(|filter| match block.is_shared() {
                true => self.contents.any_admitted(slot, filter),
                false => filter.admits(block.id()),
            })
        };
        let mut sieve = Sieve::new(bounds, admits);
        // SAFETY: the caller's promise.
        unsafe { self.graph.walk_with(self.codebook, &mut sieve, space) };
        let found = sieve.into_found();
        let ended = found.is_some();
        slots.extend(found.into_iter().flatten());
        ended
    }

    /// The number of slots that a scan of codes keeps, of which `rescored` are measured at first.
    fn kept(&self, rescored: usize, search: &SearchOptions<'_>) -> usize {
        let in_doubt = search.filter.is_some() && search.rescored.is_none();
        match in_doubt && self.codebook.error(1.0) > 0.0 {
            true => rescored.saturating_mul(KEPT),
            false => rescored,
        }
    }

    /// Adds to `ranked` the ids of the slots that a scan left in `slots`, as far as they may be
    /// among the nearest for all that their estimates tell. Returns the number of slots measured.
    ///
    /// Matches of a filter may begin just where most vectors lie. Then thousands are about as near
    /// as the nearest.
    ///
    /// # Safety
    /// The epoch is pinned since before the slots were found.
    unsafe fn rank_doubtful(
        &self,
        search: &SearchOptions<'_>,
        first: usize,
        (space, slots): (&mut Space, &mut Vec<u32>),
        scorer: &mut Scorer<'_>,
        ranked: &mut Vec<Ranked>,
    ) -> usize {
        let error = DOUBTS * self.codebook.error(space.query.squared_length());
        let mut room = self.kept(first, search);
        let (mut measured, mut more) = (0, first);
        loop {
            let end = slots.len().min(measured + more);
            let before = ranked.len();
            let last = Ranked::last_of(search.k, ranked);
            // SAFETY: the caller's promise.
            unsafe {
                self.contents
                    .rank(&slots[measured..end], search, scorer, ranked);
            }
            let is_nearer = |new: &Ranked| last.is_none_or(|last| new.rank() < last);
            let any_nearer = ranked[before..].iter().any(is_nearer);
            let last = Ranked::last_of(search.k, ranked);
            measured = end;
            more = measured.div_ceil(2);
            let is_over = match last.map(|last| scorer.squared_distance(last)) {
                // Exact codes leave no doubt.
                _ if error == 0.0 => true,
                None => false,
                Some(Some(last)) => space
                    .estimates
                    .get(measured)
                    .is_some_and(|next| *next > last + error),
                Some(None) => !any_nearer,
            };
            if is_over {
                break;
            }
            if measured == slots.len() {
                if measured < room {
                    break;
                }
                room = room.saturating_mul(KEPT_GROWTH);
                slots.clear();
                // SAFETY: as above.
                unsafe { self.scan_codes(room, space, slots) };
                measured = measured.min(slots.len());
            }
        }
        if room > self.kept(first, search) {
            // Slots change places in the order while others write.
            Ranked::dedup(ranked);
        }
        measured
    }

    /// Estimates the distances of all admitted vectors, and adds the nearest `kept` slots to
    /// `slots`, the nearest first.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn scan_codes(&self, kept: usize, space: &mut Space, slots: &mut Vec<u32>) {
        let mut nearest = Nearest::new(kept, kept.min(self.contents.ids.end() as usize));
        let Space {
            query,
            batch,
            counts,
            ..
        } = space;
        let mut shared = HashSet::new();
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
                nearest.show(slot, distance);
            }
        };
        // Blocks are fetched while others are on their way.
        let bytes = self.graph.layout().measured_bytes();
        let mut waiting = Vec::with_capacity(BATCH);
        self.contents.for_each_admitted(self.filter, |id| {
            if let Entry::Slot(slot) = self.contents.ids.get(id) {
                prefetch_bytes(self.graph.block(slot).start(), bytes);
                waiting.push(slot);
                if waiting.len() == BATCH {
                    measure(&mut waiting);
                }
            }
        });
        measure(&mut waiting);
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

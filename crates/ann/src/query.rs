//! The way of a search through the index.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use crate::answer::{Contents, Ranked};
use crate::codes::{Codebook, Query as Prepared};
use crate::graph::{Batch, Counts, Graph, Heaps, Reach, Space};
use crate::ids::Entry;
use crate::index::{Index, Tools, Workspace};
use crate::nearest::Nearest;
use crate::plan::{Plan, Question};
use crate::vectors::{Scorer, UNDIRECTED};
use crate::{Error, Explanation, Filter, Metric, Neighbour, SearchOptions, Way};

/// Codes measured in one go by a scan.
const BATCH: usize = 64;

/// How many times as many candidates as in the mean a walk keeps if a query is hard. The more, the longer the slowest
/// searches take: with 2 and 0.75 of a spread for [reach](crate::graph) as much was found in as many steps in the mean, and
/// those of the 99th percentile were a third more (docs/benchmarks/slow-searches.md).
const HARD: f64 = 1.25;

/// Ids tried to see how many a predicate admits.
const TRIED: usize = 512;

impl Index {
    /// The up to `k` nearest vectors, nearest first and by id among equals. There are always as
    /// many as `k` or the index holds, whichever is less. With `k` at or above the count every
    /// vector is returned.
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<Neighbour>, Error> {
        self.search_with(query, &SearchOptions::new(k))
    }

    /// The same, with a width, a precision or a filter of one's own. With a filter there are as
    /// many answers as `k` or the filter admits of what the index holds, whichever is less.
    pub fn search_with(
        &self,
        query: &[f32],
        search: &SearchOptions<'_>,
    ) -> Result<Vec<Neighbour>, Error> {
        self.explain(query, search).map(|(answer, _)| answer)
    }

    /// The same, and what was done for it.
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

    /// The answers to many queries, in their order. All are checked before the first is searched.
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
            explanation.way = match plan {
                Plan::Scan => return None,
                Plan::ScanOfCodes { rescored } => {
                    // SAFETY: the epoch is pinned.
                    unsafe { find.scan_codes(rescored, space, slots) };
                    Way::ScanOfCodes
                }
                Plan::Walk {
                    beam,
                    rescored,
                    heaps,
                    hops_max,
                } => {
                    let ended = match heaps {
                        // SAFETY: the epoch is pinned.
                        true => unsafe {
                            find.walk_heaps(beam.max(rescored), hops_max, space, slots)
                        },
                        false => {
                            let wide = (search.k, beam);
                            let (width, reach) =
                                self.reach(codebook, &space.query, wide, scorer.squared());
                            let width = width.max(rescored);
                            // SAFETY: the same.
                            unsafe { find.walk(reach, width, rescored, space, slots) };
                            if search.rescored.is_none() {
                                // What seems much too far is not among the nearest.
                                slots.truncate(space.in_doubt(reach));
                            }
                            true
                        }
                    };
                    if !ended {
                        return None;
                    }
                    slots.truncate(rescored);
                    Way::Walk
                }
            };
            // SAFETY: the epoch has been pinned since before.
            unsafe { contents.rank(slots, search, &mut scorer, ranked) };
            let ranks = undirected.into_iter();
            ranked.extend(ranks.map(|id| Ranked::undirected(id, &scorer)));
            if self.moves.any_since(ended) {
                Ranked::dedup(ranked);
            }
            // SAFETY: the same.
            let nearest = unsafe { contents.nearest(ranked, search.k, &mut scorer) };
            // Fewer than there are if vectors went away meanwhile, or if the graph has come apart.
            let enough = nearest.len() >= search.k;
            enough.then_some(nearest)
        });
        explanation.hops = space.counts.hops;
        explanation.distances = space.counts.distances;
        explanation.rescored = slots.len() as u64;
        let nearest = found.unwrap_or_else(|| {
            explanation.way = Way::Scan;
            // SAFETY: the epoch is pinned.
            let (nearest, measured) =
                unsafe { contents.scan(search.k, held, search.filter, &mut scorer) };
            explanation.rescored += measured;
            nearest
        });
        explanation.bytes = self.bytes_read(&explanation);
        (nearest, explanation)
    }

    fn plan(&self, held: usize, search: &SearchOptions<'_>) -> Plan {
        Plan::new(Question {
            search,
            options: &self.options,
            kind: self.kind,
            held,
            admitted: search
                .filter
                .map_or(held, |filter| self.admitted(filter, held)),
        })
    }

    /// How many candidates a walk may keep that is to be as wide as `beam` in the mean, and how far it
    /// looks for `prepared`. `squared` is the query's squared length.
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
                // The query as long as the longest vector, see `codes::space`.
                let lengths = (f64::from(self.graph.longest()) * squared).sqrt() as f32;
                reach.lifted(2.0 * lengths).blurred(codebook.error(lengths))
            }
            Metric::Cosine | Metric::Euclidean | Metric::Hamming => {
                reach.blurred(codebook.error(prepared.squared_length()))
            }
        };
        ((HARD * beam as f64) as usize, reach)
    }

    /// About how many of the vectors held a filter admits.
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
                // As if one more had been: none among the tried does not mean none at all.
                (held * (admitted + 1)).div_ceil(tried + 1)
            }
        }
    }

    /// The first of the ids without direction that may be in the answer.
    fn undirected_admitted(&self, search: &SearchOptions<'_>) -> Vec<u32> {
        let undirected = self.undirected.read();
        let admitted = undirected
            .iter()
            .filter(|id| search.filter.is_none_or(|filter| filter.admits(*id)));
        admitted.take(search.k).collect()
    }

    /// The answer to a query without direction: it is at the distance 0 from vectors that have none either, and as far
    /// from all others.
    fn undirected_query(&self, search: &SearchOptions<'_>) -> Vec<Neighbour> {
        let alike = self.undirected_admitted(search);
        let mut nearest: Vec<Neighbour> = alike
            .iter()
            .map(|&id| Neighbour { id, distance: 0.0 })
            .collect();
        // One that is given a direction meanwhile is not told of twice.
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

/// Ways to propose slots.
struct Find<'a> {
    graph: &'a Graph,
    contents: Contents<'a>,
    codebook: &'a Codebook,
    filter: Option<Filter<'a>>,
}

impl Find<'_> {
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
                .walk(self.codebook, reach, width, rescored, space)
        };
        slots.extend(space.found().map(|(_, slot)| slot));
    }

    /// False if the walk was given up.
    ///
    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn walk_heaps(
        &self,
        beam: usize,
        hops_max: usize,
        space: &mut Space,
        slots: &mut Vec<u32>,
    ) -> bool {
        let wants = |slot| {
            let block = self.graph.block(slot);
            self.filter.is_none_or(|filter| match block.is_shared() {
                true => self.contents.any_admitted(slot, filter),
                false => filter.admits(block.id()),
            })
        };
        let mut heaps = Heaps::new(beam, hops_max, wants);
        // SAFETY: the caller's promise.
        unsafe { self.graph.walk_with(self.codebook, &mut heaps, space) };
        let (found, ended) = heaps.into_found();
        slots.extend(found.into_iter().map(|(_, slot)| slot));
        ended
    }

    /// # Safety
    /// The epoch is pinned until the last use of the slots.
    unsafe fn scan_codes(&self, rescored: usize, space: &mut Space, slots: &mut Vec<u32>) {
        let mut nearest = Nearest::new(rescored, rescored);
        let Space {
            query,
            batch,
            counts,
            ..
        } = space;
        batch.clear();
        let mut measure = |batch: &mut Batch| {
            counts.distances += batch.len() as u64;
            // SAFETY: the table names filled slots, and the caller has pinned the epoch.
            for (slot, distance) in unsafe { batch.measure(self.codebook, query) } {
                nearest.show(slot, distance);
            }
            batch.clear();
        };
        let mut shared = HashSet::new();
        self.contents.for_each_admitted(self.filter, |id| {
            if let Entry::Slot(slot) = self.contents.ids.get(id) {
                let block = self.graph.block(slot);
                if block.is_shared() && !shared.insert(slot) {
                    return;
                }
                batch.push(slot, block);
                if batch.len() == BATCH {
                    measure(batch);
                }
            }
        });
        measure(batch);
        // What is beyond the floats has no order: without enough slots all vectors are measured.
        let found = nearest.into_sorted().into_iter();
        let told_apart = found.take_while(|neighbour| neighbour.distance.is_finite());
        slots.extend(told_apart.map(|neighbour| neighbour.id));
        if !shared.is_empty() {
            // One that came to be shared meanwhile may be there twice.
            slots.sort_unstable();
            slots.dedup();
        }
    }
}

//! The choice of a way to search: a walk, a scan of all codes, or a scan of all full vectors.
//!
//! The constants are measured with `make bench-ann` (`curve`) on real embeddings in 384 dimensions:
//! 50,000 dictionary senses and 10,000 film descriptions. `bench-ann filtered` shows whether they
//! choose well for filters, on a million made-up vectors in 48 dimensions too.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::codes::CodeKind;
use crate::graph::BEAM_PER_PASSED;
use crate::{NeighbourIndexOptions, SearchOptions};

/// Width of the narrowest walk, if no width is requested.
const BEAM_MIN: usize = 192;

/// Width that each requested neighbour adds.
const BEAM_PER_NEIGHBOUR: f64 = 1.5;

/// Number of codes that a scan passes in the time that a walk takes for one unit of beam width.
const SCANNED_PER_BEAM: usize = 40;

/// Number of codes that a scan passes in the time that it takes to measure one full vector.
const SCANNED_PER_MEASURED: usize = 8;

/// Number of dimensions below which codes are coarse, as fewer errors even out. Of 300,000 made-up
/// vectors in 96 dimensions a walk finds 0.988 with this value, and 0.981 with 96. Where codes tell
/// neighbours apart, nothing more is measured.
const COARSE_BELOW: f64 = 384.0;

/// Factor by which a unit of width takes longer when the width is too large for a sorted array.
const HEAPS_FACTOR: usize = 2;

/// Factor by which a hop takes longer when a filter decides.
const FILTERED_FACTOR: f64 = 1.3;

/// A walk that has found fewer than wanted after this many times as many hops as it was expected to
/// take is given up: what the filter admits is far from the query.
const STARVED_AFTER: f64 = 4.0;

/// Width of the widest walk with a sorted array of candidates.
const SORTED_BEAM_MAX: usize = 2_048;

/// Factor by which a walk for a filter looks for more if all that it has found is in doubt.
const DOUBTED_GROWTH: usize = 4;

/// Number of walks that the pace is about the mean of.
const PACE_SAMPLES: f32 = 64.0;

/// The least and the largest pace: walks that end early say little of others.
const PACES: (f32, f32) = (0.25, 1.25);

/// A way to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchStrategy {
    /// Measure every vector that may be an answer: exact.
    Scan,
    /// Estimate the distance of every vector that may be an answer, and measure the nearest.
    ScanOfCodes { rescored: usize },
    /// Walk the graph about as wide as this many candidates, and measure the nearest.
    Walk(WalkPlan),
}

/// A walk through the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkPlan {
    pub beam: usize,
    pub rescored: usize,
    pub candidates: FrontierKind,
}

/// The way in which a walk keeps its candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrontierKind {
    /// In a sorted array.
    Sorted,
    /// In heaps, for great widths.
    Heaps,
    /// Those that a filter admits apart from the others. The walk is given up after `hops_max`
    /// hops, as a scan would have been better, and after `starved_max` if it has found too few.
    Sieved { hops_max: usize, starved_max: usize },
}

/// The facts that a plan is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchFacts<'a> {
    pub search: &'a SearchOptions<'a>,
    pub options: &'a NeighbourIndexOptions,
    pub kind: CodeKind,
    /// Number of hops of a walk for each unit of its width, as [`WalkPace`] has learned it.
    pub pace: f64,
    /// The width that the data need, as a multiple of the default one.
    pub width: f64,
    /// Number of vectors held.
    pub held: usize,
    /// About how many of the vectors held the filter admits; all if there is no filter.
    pub admitted: usize,
}

/// The pace of walks: the mean number of hops of a plain walk for each unit of its width. Where the
/// neighbours of a query are much nearer than all others, walks [end](crate::graph::WalkReach) long
/// before they are as wide as they may be, and those for a filter do too.
///
/// Threads that learn at the same time may lose one another's samples.
#[derive(Debug)]
pub(crate) struct WalkPace(AtomicU32);

impl Default for WalkPace {
    fn default() -> WalkPace {
        WalkPace(AtomicU32::new(1f32.to_bits()))
    }
}

impl WalkPace {
    /// Learns from a walk as wide as `beam`.
    pub(crate) fn learn(&self, hops: u64, beam: usize) {
        let sample = (hops as f32 / beam as f32).clamp(PACES.0, PACES.1);
        let mean = self.get() as f32;
        let mean = mean + (sample - mean) / PACE_SAMPLES;
        self.0.store(mean.to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> f64 {
        f64::from(f32::from_bits(self.0.load(Ordering::Relaxed)))
    }
}

impl SearchStrategy {
    /// The plan after a walk that has left in doubt whether others are as near as all that it has
    /// found; None if the answer has to do. `held` is the number of vectors.
    pub(crate) fn after_doubt(self, held: usize) -> Option<SearchStrategy> {
        let SearchStrategy::Walk(walk) = self else {
            return None;
        };
        let rescored = DOUBTED_GROWTH * walk.rescored;
        let scan = SearchStrategy::ScanOfCodes { rescored };
        match walk.candidates {
            FrontierKind::Sieved { .. } if rescored <= SORTED_BEAM_MAX => {
                Some(SearchStrategy::Walk(WalkPlan { rescored, ..walk }))
            }
            FrontierKind::Sieved { .. } => Some(scan),
            FrontierKind::Sorted | FrontierKind::Heaps => {
                let is_cheap = held <= SORTED_BEAM_MAX * SCANNED_PER_BEAM;
                is_cheap.then_some(scan)
            }
        }
    }

    pub(crate) fn new(question: SearchFacts<'_>) -> SearchStrategy {
        let SearchFacts {
            search,
            options,
            kind,
            pace,
            width,
            held,
            admitted,
        } = question;
        let k = search.k;
        if k >= admitted {
            return SearchStrategy::Scan;
        }
        if search.exact {
            return SearchStrategy::ScanOfCodes { rescored: k };
        }
        // At least what the answer needs, at most what there is, whatever was requested.
        let rescored = search
            .rescored
            .unwrap_or_else(|| rescored(kind, options.dimensions, k));
        let rescored = rescored.max(k).min(held);
        let by_default = default_beam(k, width);
        let beam = search
            .beam
            .unwrap_or(by_default.max(options.search_beam_width))
            .min(held)
            .max(k);

        let scan_of_codes = (admitted + SCANNED_PER_MEASURED * rescored) as f64;
        let scan = (admitted * SCANNED_PER_MEASURED) as f64;
        let (candidates, walk) = if search.filter.is_some() {
            // The last one to find has this rank among all.
            let rank = rescored as f64 * held as f64 / admitted as f64;
            let hops = pace * (beam as f64 + (rank - rescored as f64) * BEAM_PER_PASSED);
            let candidates = FrontierKind::Sieved {
                hops_max: (scan_of_codes / SCANNED_PER_BEAM as f64) as usize + beam,
                starved_max: (hops * STARVED_AFTER) as usize,
            };
            (candidates, hops * FILTERED_FACTOR)
        } else if beam > SORTED_BEAM_MAX {
            (FrontierKind::Heaps, pace * (beam * HEAPS_FACTOR) as f64)
        } else {
            (FrontierKind::Sorted, pace * beam as f64)
        };
        let asked_for_a_walk = search.beam.is_some() && search.filter.is_none();
        if asked_for_a_walk || walk * (SCANNED_PER_BEAM as f64) < scan_of_codes.min(scan) {
            return SearchStrategy::Walk(WalkPlan {
                beam,
                rescored,
                candidates,
            });
        }
        match scan_of_codes < scan {
            true => SearchStrategy::ScanOfCodes { rescored },
            false => SearchStrategy::Scan,
        }
    }
}

/// The width of a walk for `k` neighbours if none is requested. `width` is a multiple of that which
/// most data need.
pub(crate) fn default_beam(k: usize, width: f64) -> usize {
    (width * (BEAM_MIN as f64 + k as f64 * BEAM_PER_NEIGHBOUR)) as usize
}

/// The most candidates to measure for `k` answers. They keep the error of the codes out of the
/// answer even where neighbours are as near together as they ever are.
fn rescored(kind: CodeKind, dimensions: usize, k: usize) -> usize {
    match kind {
        // Errors of many dimensions even out.
        CodeKind::Nibbles => k + ((k / 3 + 6) as f64 * coarseness(dimensions)) as usize,
        CodeKind::Bytes => k + k / 4 + 10,
        CodeKind::Floats | CodeKind::Bits => k,
    }
}

/// The error of a code, relative to that of a code with [`COARSE_BELOW`] dimensions; at least 1.
fn coarseness(dimensions: usize) -> f64 {
    (COARSE_BELOW / dimensions as f64).sqrt().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_becomes_that_of_the_walks() {
        let pace = WalkPace::default();
        (0..1_000).for_each(|_| pace.learn(80, 200));
        assert!((pace.get() - 0.4).abs() < 1e-3, "{}", pace.get());
        (0..1_000).for_each(|_| pace.learn(1_000, 200));
        assert!((pace.get() - 1.25).abs() < 1e-3, "{}", pace.get());
    }
}

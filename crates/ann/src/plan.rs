//! The choice of a way to search: a walk, a scan of all codes, or a scan of all full vectors.
//!
//! The constants are measured with `make bench-ann` (`curve`) on real embeddings in 384 dimensions:
//! 50,000 dictionary senses and 10,000 film descriptions.

use crate::codes::Kind;
use crate::{Options, SearchOptions};

/// Width of the narrowest walk, if no width is asked for.
const BEAM_MIN: usize = 192;

/// Width that each neighbour asked for adds.
const BEAM_PER_NEIGHBOUR: f64 = 1.5;

/// Number of codes that a scan passes in the time that a walk takes for one unit of beam width.
const SCANNED_PER_BEAM: usize = 40;

/// Number of codes that a scan passes in the time that it takes to measure one full vector.
const SCANNED_PER_MEASURED: usize = 8;

/// Number of dimensions below which codes are coarse, as fewer errors even out. Of 300,000 made-up
/// vectors in 96 dimensions a walk finds 0.988 with this value, and 0.981 with 96. Where codes tell
/// neighbours apart, nothing more is measured.
const COARSE_BELOW: f64 = 384.0;

/// Factor by which a unit of width takes longer when a filter decides, or when the width is too
/// large for a sorted array.
const HEAPS_FACTOR: usize = 2;

/// Width of the widest walk with a sorted array of candidates.
const SORTED_BEAM_MAX: usize = 2_048;

/// A way to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Measure every vector that may be an answer: exact.
    Scan,
    /// Estimate the distance of every vector that may be an answer, and measure the nearest.
    ScanOfCodes { rescored: usize },
    /// Walk the graph about as wide as this many candidates, and measure the nearest.
    Walk(Walk),
}

/// A walk through the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    pub beam: usize,
    pub rescored: usize,
    /// Whether candidates lie in heaps, for filters and great widths, and not in a sorted array.
    pub heaps: bool,
    /// Number of hops after which the walk is given up, as a scan would have been better.
    pub hops_max: usize,
}

/// The facts that a plan is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub search: &'a SearchOptions<'a>,
    pub options: &'a Options,
    pub kind: Kind,
    /// Number of vectors held.
    pub held: usize,
    /// About how many of the vectors held the filter admits; all if there is no filter.
    pub admitted: usize,
}

impl Plan {
    pub(crate) fn new(question: Question<'_>) -> Plan {
        let Question {
            search,
            options,
            kind,
            held,
            admitted,
        } = question;
        let k = search.k;
        if k >= admitted {
            return Plan::Scan;
        }
        // At least what the answer needs, at most what there is, whatever was asked for.
        let rescored = search
            .rescored
            .unwrap_or_else(|| rescored(kind, options.dimensions, k));
        let rescored = rescored.max(k).min(held);
        let by_default = BEAM_MIN + (k as f64 * BEAM_PER_NEIGHBOUR) as usize;
        let beam = search
            .beam
            .unwrap_or(by_default.max(options.search_beam_width))
            .min(held)
            .max(k);

        let heaps = search.filter.is_some() || beam > SORTED_BEAM_MAX;
        // A walk for few among many goes over most of the others.
        let share = held as f64 / admitted as f64;
        let factor = if heaps { HEAPS_FACTOR } else { 1 };
        let walk = beam as f64 * share * (SCANNED_PER_BEAM * factor) as f64;
        let scan_of_codes = (admitted + SCANNED_PER_MEASURED * rescored) as f64;
        let scan = (admitted * SCANNED_PER_MEASURED) as f64;
        let asked_for_a_walk = search.beam.is_some() && search.filter.is_none();
        if asked_for_a_walk || walk < scan_of_codes.min(scan) {
            let hops_max = match search.filter {
                Some(_) => (scan_of_codes / SCANNED_PER_BEAM as f64) as usize + beam,
                None => usize::MAX,
            };
            return Plan::Walk(Walk {
                beam,
                rescored,
                heaps,
                hops_max,
            });
        }
        match scan_of_codes < scan {
            true => Plan::ScanOfCodes { rescored },
            false => Plan::Scan,
        }
    }
}

/// The most candidates to measure for `k` answers. They keep the error of the codes out of the
/// answer even where neighbours are as near together as they ever are.
fn rescored(kind: Kind, dimensions: usize, k: usize) -> usize {
    match kind {
        // Errors of many dimensions even out.
        Kind::Nibbles => k + ((k / 3 + 6) as f64 * coarseness(dimensions)) as usize,
        Kind::Bytes => k + k / 4 + 10,
        Kind::Floats | Kind::Bits => k,
    }
}

/// The error of a code, relative to that of a code with [`COARSE_BELOW`] dimensions; at least 1.
fn coarseness(dimensions: usize) -> f64 {
    (COARSE_BELOW / dimensions as f64).sqrt().max(1.0)
}

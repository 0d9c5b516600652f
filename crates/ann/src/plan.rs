//! How to search: by a walk, over all codes, or over all full vectors.
//!
//! The constants are measured with `make bench-ann` (`curve`) on real embeddings in 384 dimensions:
//! 50,000 dictionary senses and 10,000 film descriptions.

use crate::codes::Kind;
use crate::{Options, SearchOptions};

/// Width of the narrowest walk, if none is asked for.
const BEAM_MIN: usize = 192;

/// What each neighbour asked for adds to the width.
const BEAM_PER_NEIGHBOUR: f64 = 1.5;

/// Codes that a scan passes in the time that a walk takes for one unit of beam width.
const SCANNED_PER_BEAM: usize = 40;

/// Codes that a scan passes in the time that it takes to measure one full vector.
const SCANNED_PER_MEASURED: usize = 8;

/// Dimensions below which it shows that there are few errors to even out. Of 300,000 made-up vectors in 96 dimensions a walk
/// finds 0.988 with this, and 0.981 with 96; where codes tell neighbours apart nothing more is measured.
const COARSE_BELOW: f64 = 384.0;

/// How much longer a walk takes for a unit of width when a filter decides, or when the width is too
/// large for a sorted array.
const HEAPS_FACTOR: usize = 2;

/// The widest walk with a sorted array of candidates.
const SORTED_BEAM_MAX: usize = 2_048;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Measure every vector that may be an answer: exact.
    Scan,
    /// Estimate the distance of every vector that may be an answer, and measure the nearest.
    ScanOfCodes { rescored: usize },
    /// Walk the graph about as wide as this many candidates, and measure the nearest.
    Walk {
        beam: usize,
        rescored: usize,
        /// For filters and great widths.
        heaps: bool,
        /// Where a scan would have been better after all.
        hops_max: usize,
    },
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub search: &'a SearchOptions<'a>,
    pub options: &'a Options,
    pub kind: Kind,
    /// Vectors held.
    pub held: usize,
    /// How many of them the filter admits, about; all without one.
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
            return Plan::Walk {
                beam,
                rescored,
                heaps,
                hops_max,
            };
        }
        match scan_of_codes < scan {
            true => Plan::ScanOfCodes { rescored },
            false => Plan::Scan,
        }
    }
}

/// Candidates to measure for `k` answers, at most: as many as keep the error of the codes out of the answer
/// where neighbours are as near together as they ever are.
fn rescored(kind: Kind, dimensions: usize, k: usize) -> usize {
    match kind {
        // Errors of many dimensions even out.
        Kind::Nibbles => k + ((k / 3 + 6) as f64 * coarseness(dimensions)) as usize,
        Kind::Bytes => k + k / 4 + 10,
        Kind::Floats | Kind::Bits => k,
    }
}

/// How many times as large the error of a code is as where codes are common.
fn coarseness(dimensions: usize) -> f64 {
    (COARSE_BELOW / dimensions as f64).sqrt().max(1.0)
}

//! The reach of a walk: how far it looks beyond the nearest slots that it has found.
//!
//! A walk that ends when a fixed number of the nearest slots has been expanded takes as long for a
//! query whose neighbours are much nearer than all others as for one that has many of them, all
//! about as far. It finds as much in fewer steps if it ends at a *distance*: some factor beyond
//! that of the last neighbour wanted (Al-Jazzazi et al., "Distance adaptive beam search for
//! provably accurate graph-based nearest neighbor search", 2025, arXiv 2505.15636). On real
//! embeddings a recall of 0.99 takes a quarter fewer comparisons.
//!
//! The right factor depends on the data: the more dimensions they fill, the closer together are the
//! distances of a query's neighbours. So a caller still says how *wide* to walk, and the index
//! learns which factor goes with a width. Near a point of data that fill `m` dimensions the squared
//! distance of the `r`th neighbour grows as `r^(2 / m)`. [`DistanceGrowth`] is that exponent,
//! learned from the neighbours that new vectors find (as Levina and Bickel, "Maximum likelihood
//! estimation of intrinsic dimension", 2004, do).

use std::sync::atomic::{AtomicU32, Ordering};

/// The share of a spread that makes the factor. With all of it, a walk would find more than one of
/// a fixed width, and take longer. With this share it finds about as much: a little more where data
/// fill few dimensions, a little less where they fill many.
const SHARE: f32 = 0.8;

/// Number of deviations of an estimate by which a slot may seem farther than it is.
const ERRORS: f32 = 2.5;

/// The two ranks whose distances are compared, counted from 1.
const RANKS: (usize, usize) = (8, 32);

/// Number of samples before a spread is believed.
const SAMPLES_MIN: u32 = 64;

/// The most samples that count, as the data may change.
const SAMPLES_MAX: u32 = 4_096;

/// The least and the largest exponent: no data spread less or more.
const EXPONENTS: (f32, f32) = (1e-3, 4.0);

/// The distance at which a walk ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WalkReach {
    /// Number of neighbours wanted; at least 1.
    wanted: usize,
    /// A slot up to this many times as far as the last neighbour wanted may be worth expanding; at
    /// least 1.
    factor: f32,
    /// The growth of the factor with the width: that of distances with ranks.
    exponent: f32,
    /// The error that an estimate may have. Where neighbours are nearer together than that, as
    /// copies with small differences are, their order says nothing.
    error: f32,
}

impl WalkReach {
    /// A reach without a limit: as far as there is room for candidates.
    pub(crate) const UNLIMITED: WalkReach = WalkReach {
        wanted: usize::MAX,
        factor: f32::INFINITY,
        exponent: 0.0,
        error: 0.0,
    };

    /// A reach without a limit for so many neighbours, at least 1.
    pub(crate) fn unlimited(wanted: usize) -> WalkReach {
        WalkReach {
            wanted: wanted.max(1),
            ..WalkReach::UNLIMITED
        }
    }

    /// The reach for estimates that are off by some `error`.
    pub(crate) fn blurred(self, error: f32) -> WalkReach {
        WalkReach { error, ..self }
    }

    /// The reach of a walk that is `width` wide, and whose last neighbour wanted has this rank
    /// among all; without a limit if this one has none.
    pub(super) fn widened(self, rank: usize, width: usize) -> WalkReach {
        let ratio = width as f32 / rank as f32;
        let factor = match self.factor.is_finite() {
            true => ratio.powf(self.exponent).max(1.0),
            false => f32::INFINITY,
        };
        WalkReach { factor, ..self }
    }

    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    /// The distance up to which a slot may be among the neighbours wanted, if the last of those
    /// seems to be at `last`.
    pub(super) fn doubt(&self, last: f32) -> f32 {
        last + ERRORS * self.error
    }

    /// The distance beyond which no slot is worth expanding, if the last neighbour wanted is at
    /// `last`. It is infinite if it is beyond the floats.
    pub(super) fn limit(&self, last: f32) -> f32 {
        if self.factor == f32::INFINITY {
            return f32::INFINITY;
        }
        // An estimate may come out below 0.
        (last.max(0.0) * self.factor).max(self.doubt(last))
    }
}

/// The growth of distances from neighbour to neighbour: the exponent of their ranks.
///
/// Threads that learn at the same time may lose one another's samples. A single thread learns the
/// same from the same neighbours.
#[derive(Debug, Default)]
pub(crate) struct DistanceGrowth {
    /// The bits of the mean of the samples.
    exponent: AtomicU32,
    /// Number of samples in the mean, up to [`SAMPLES_MAX`].
    samples: AtomicU32,
}

impl DistanceGrowth {
    /// Learns from the neighbours of one vector, by the distance of the neighbour of each rank,
    /// counted from 1; None if there are fewer.
    pub(super) fn learn(&self, distance: impl Fn(usize) -> Option<f32>) {
        let (near, far) = RANKS;
        let distances = distance(near).zip(distance(far));
        let Some((nearer, farther)) = distances.filter(|(nearer, _)| *nearer > 0.0) else {
            return;
        };
        // The logarithm of the distances' ratio that is expected at an exponent of 1, to a
        // hundredth.
        let ranks = ((far as f32 - 0.5) / (near as f32 - 0.5)).ln();
        let sample = (farther / nearer).ln() / ranks;
        if sample.is_finite() {
            let samples = (self.samples.load(Ordering::Relaxed) + 1).min(SAMPLES_MAX);
            let mean = f32::from_bits(self.exponent.load(Ordering::Relaxed));
            let mean = mean + (sample - mean) / samples as f32;
            self.exponent.store(mean.to_bits(), Ordering::Relaxed);
            self.samples.store(samples, Ordering::Relaxed);
        }
    }

    /// The exponent that has been learned; None if there are too few samples.
    pub(crate) fn exponent(&self) -> Option<f32> {
        let learned = self.samples.load(Ordering::Relaxed) >= SAMPLES_MIN;
        let exponent = f32::from_bits(self.exponent.load(Ordering::Relaxed));
        learned.then(|| exponent.clamp(EXPONENTS.0, EXPONENTS.1))
    }

    /// Takes over the exponent that an index had learned.
    pub(crate) fn restore(&mut self, exponent: Option<f32>) {
        *self.exponent.get_mut() = exponent.unwrap_or(0.0).to_bits();
        *self.samples.get_mut() = exponent.map_or(0, |_| SAMPLES_MAX);
    }

    #[cfg(test)]
    pub(super) fn of(exponent: f32) -> DistanceGrowth {
        let mut spread = DistanceGrowth::default();
        spread.restore(Some(exponent));
        spread
    }

    /// The reach of a walk for `wanted` neighbours that is to be `width` wide; None as long as too
    /// little has been learned.
    pub(crate) fn reach(&self, wanted: usize, width: usize) -> Option<WalkReach> {
        let wanted = wanted.max(1);
        let exponent = SHARE * self.exponent()?;
        let reach = WalkReach {
            exponent,
            factor: 1.0,
            ..WalkReach::UNLIMITED
        };
        Some(WalkReach {
            wanted,
            ..reach.widened(wanted, width)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::{CandidatePool, Frontier};
    use super::*;

    /// The neighbours of a point of data that fill `dimensions`.
    fn neighbours(dimensions: f32) -> CandidatePool {
        let mut pool = CandidatePool::default();
        pool.reset(64);
        for rank in 1..=64 {
            pool.offer((rank as f32 - 0.5).powf(2.0 / dimensions), rank);
        }
        pool
    }

    fn learn(spread: &DistanceGrowth, neighbours: &CandidatePool) {
        spread.learn(|rank| neighbours.distance(rank));
    }

    #[test]
    fn a_spread_is_that_of_the_dimensions_that_data_fill() {
        for dimensions in [3.0, 20.0, 100.0] {
            let spread = DistanceGrowth::default();
            for _ in 0..SAMPLES_MIN {
                assert_eq!(spread.exponent(), None);
                learn(&spread, &neighbours(dimensions));
            }
            let learned = 2.0 / spread.exponent().expect("enough samples");
            assert!((learned / dimensions - 1.0).abs() < 1e-3, "{learned}");
            let mut restored = DistanceGrowth::default();
            restored.restore(spread.exponent());
            assert_eq!(restored.reach(10, 100), spread.reach(10, 100));
        }
    }

    #[test]
    fn a_spread_follows_data_that_change() {
        let spread = DistanceGrowth::default();
        for _ in 0..SAMPLES_MAX {
            learn(&spread, &neighbours(50.0));
        }
        for _ in 0..5 * SAMPLES_MAX {
            learn(&spread, &neighbours(10.0));
        }
        let learned = 2.0 / spread.exponent().expect("enough samples");
        assert!((learned / 10.0 - 1.0).abs() < 0.01, "{learned}");
    }

    #[test]
    fn nothing_is_learned_from_too_few_or_from_equals() {
        let spread = DistanceGrowth::default();
        let mut equals = CandidatePool::default();
        equals.reset(64);
        (0..64).for_each(|slot| equals.offer(0.0, slot));
        let mut few = CandidatePool::default();
        few.reset(64);
        (0..31).for_each(|slot| few.offer(1.0, slot));
        for _ in 0..2 * SAMPLES_MIN {
            learn(&spread, &equals);
            learn(&spread, &few);
        }
        assert_eq!(spread.exponent(), None);
        assert_eq!(spread.reach(10, 100), None);
    }

    #[test]
    fn a_reach_is_a_factor_of_the_distance_whatever_the_estimate() {
        let reach = WalkReach {
            wanted: 10,
            factor: 1.5,
            ..WalkReach::UNLIMITED
        };
        assert_eq!(reach.limit(2.0), 3.0);
        assert_eq!(reach.limit(-2.0), 0.0);
        assert_eq!(reach.blurred(0.4).limit(2.0), 3.0);
        assert_eq!(reach.blurred(0.8).limit(2.0), 4.0);
        assert_eq!(reach.limit(f32::INFINITY), f32::INFINITY);
        assert_eq!(WalkReach::unlimited(3).limit(0.0), f32::INFINITY);
        assert_eq!(reach.blurred(0.5).doubt(2.0), 3.25);
    }
}

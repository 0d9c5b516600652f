//! The meaning of estimates: the metric itself for a search, a true distance for linking.
//!
//! # The lifted space
//!
//! The dot product is no distance, and a graph pruned by it falls apart. With one dimension more,
//! of height `h = sqrt(longest - |x|^2)`, all vectors have the same length, and the nearest by
//! the squared distance `|x - y|^2 + (h_x - h_y)^2` has the largest product (Bachrach et al.,
//! "Speeding up the Xbox recommender system using a Euclidean transformation", 2014; Neyshabur and
//! Srebro, "On symmetric and asymmetric LSHs for inner product search", 2015). Vectors are linked
//! and pruned in that space; queries, of height 0, rank as the product does.

use super::Meta;

/// The meaning of estimates.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) enum Space {
    /// The distance of the metric, for a search; small distances may come out below zero.
    #[default]
    Metric,
    /// `-2 a.b`, for a search.
    Product,
    /// A squared distance, not below zero.
    Distance,
    /// A squared distance in the lifted space, not below zero; the height is the query's.
    Lifted { longest: f32, height: f32 },
}

impl Space {
    pub(super) fn lifted(longest: f32, raw_norm: f32) -> Space {
        let height = height(longest, raw_norm);
        Space::Lifted { longest, height }
    }

    /// Turns what the formula or a kernel gives for a code into its estimate.
    #[inline]
    pub(super) fn finish(self, estimate: f32, meta: &Meta) -> f32 {
        let estimate = match self {
            Space::Metric | Space::Product => estimate,
            Space::Distance => floor(estimate),
            Space::Lifted {
                longest,
                height: own,
            } => {
                let climb = height(longest, meta.raw_norm) - own;
                floor(estimate) + climb * climb
            }
        };
        if estimate.is_nan() {
            f32::INFINITY
        } else {
            estimate
        }
    }
}

/// The estimate, or 0 if it is below zero; NaN stays NaN.
#[inline]
fn floor(estimate: f32) -> f32 {
    if estimate < 0.0 { 0.0 } else { estimate }
}

#[inline]
fn height(longest: f32, raw_norm: f32) -> f32 {
    (longest - raw_norm).max(0.0).sqrt()
}

//! The meaning of estimates: the metric itself for a search, a distance or a product for linking.
//!
//! Links are chosen by squared distances, and by products for the dot product: a walk then climbs
//! to the vectors that have the largest products, wherever it starts (ip-NSW: Morozov and Babenko,
//! "Non-metric similarity graphs for maximum inner product search", 2018).

use super::CodeMeta;

/// The meaning of estimates.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) enum EstimateKind {
    /// The distance of the metric, for a search; small distances may come out below zero.
    #[default]
    Metric,
    /// `-2 a.b`, for a search.
    Product,
    /// A squared distance, not below zero.
    Distance,
    /// `-2 a.b`, made of the squared distance, for linking; `own` is the squared length of `a`.
    Inner { own: f32 },
}

impl EstimateKind {
    /// Turns what the formula or a kernel gives for a code into its estimate.
    #[inline]
    pub(super) fn finish(self, estimate: f32, meta: &CodeMeta) -> f32 {
        let estimate = match self {
            EstimateKind::Metric | EstimateKind::Product => estimate,
            EstimateKind::Distance => floor(estimate),
            EstimateKind::Inner { own } => estimate - own - meta.raw_norm,
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

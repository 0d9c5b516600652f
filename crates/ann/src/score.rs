//! Scoring: the distance of a query from vectors the graph keeps.
//!
//! The graph's own distances are good enough to find neighbours by, and only for that. They are
//! summed in `f32` and in an order of their own, know nothing of zero vectors, and may overflow.
//! What an answer says is measured here, one way for walks and scans.

use crate::code::pack;
use crate::distance::{cosine, dot, hamming, squared_l2, squared_norm};
use crate::graph::Graph;
use crate::{Error, Metric};

/// The distance of a zero vector from everything under [`Metric::Cosine`].
pub(crate) const UNDIRECTED: f32 = 1.0;

/// A query, ready to be measured against many vectors.
pub(crate) struct Scorer<'a> {
    measure: Measure<'a>,
    kept: Vec<f32>,
    kept_bits: Vec<u8>,
}

enum Measure<'a> {
    /// The query and its squared length.
    Cosine(&'a [f32], f64),
    Euclidean(&'a [f32]),
    DotProduct(&'a [f32]),
    Hamming(Vec<u8>),
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(metric: Metric, query: &'a [f32]) -> Scorer<'a> {
        let measure = match metric {
            Metric::Cosine => Measure::Cosine(query, squared_norm(query)),
            Metric::Euclidean => Measure::Euclidean(query),
            Metric::DotProduct => Measure::DotProduct(query),
            Metric::Hamming => Measure::Hamming(pack(query)),
        };
        Scorer {
            measure,
            kept: vec![0.0; query.len()],
            kept_bits: vec![0; query.len()],
        }
    }

    /// The distance from the vector the graph keeps under `id`.
    pub(crate) fn distance(&mut self, graph: &Graph, id: u32) -> Result<f32, Error> {
        let distance = match &self.measure {
            Measure::Cosine(_, 0.0) => return Ok(UNDIRECTED),
            Measure::Cosine(query, squared) => {
                cosine(query, *squared, graph.floats(id, &mut self.kept)?)
            }
            Measure::Euclidean(query) => squared_l2(query, graph.floats(id, &mut self.kept)?),
            Measure::DotProduct(query) => 1.0 - dot(query, graph.floats(id, &mut self.kept)?),
            Measure::Hamming(query) => {
                f64::from(hamming(query, graph.bits(id, &mut self.kept_bits)?))
            }
        };
        // Beyond the floats the largest float stands in, as infinity has no place in an answer.
        Ok((distance as f32).clamp(f32::MIN, f32::MAX))
    }
}

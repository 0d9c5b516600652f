//! Judges answers by the true neighbours.

use vector_sets::{RemainingVectors, NeighbourMetric};

use super::truth::Truth;

/// Judges answers to the queries of a set.
pub struct Judge<'a> {
    metric: NeighbourMetric,
    left: &'a RemainingVectors,
    queries: &'a [f32],
    dimensions: usize,
    truth: &'a Truth,
}

impl<'a> Judge<'a> {
    /// Makes the judge of answers about the vectors that are left of a set.
    pub fn new(
        metric: NeighbourMetric,
        left: &'a RemainingVectors,
        queries: &'a [f32],
        dimensions: usize,
        truth: &'a Truth,
    ) -> Judge<'a> {
        Judge {
            metric,
            left,
            queries,
            dimensions,
            truth,
        }
    }

    /// The number of the ids found that are true neighbours of a query, at most `k`. Ids that are
    /// there no more count for nothing, and so does an id that is there twice.
    pub fn found(&self, query: usize, k: usize, ids: &[u32]) -> u8 {
        let dimensions = self.dimensions;
        let limits = self.truth.limits().iter().find(|(of, _)| *of == k);
        let limit = limits.expect("a number of neighbours that is measured").1[query];
        let query = &self.queries[query * dimensions..][..dimensions];
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let is_near = |id: &&u32| {
            let row = self.left.ids.binary_search(id);
            row.is_ok_and(|row| {
                let vector = &self.left.vectors[row * dimensions..][..dimensions];
                self.metric.distance(query, vector) <= limit
            })
        };
        ids.iter().filter(is_near).count().min(k) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_what_is_there_and_near_once() {
        let left = RemainingVectors {
            ids: vec![3, 5, 8],
            vectors: vec![0.0, 1.0, 5.0],
        };
        let truth = Truth::compute(NeighbourMetric::Euclidean, &left.vectors, &[0.1], 1, &[2]);
        let judge = Judge::new(NeighbourMetric::Euclidean, &left, &[0.1], 1, &truth);
        assert_eq!(judge.found(0, 2, &[3, 5]), 2);
        assert_eq!(judge.found(0, 2, &[3, 3]), 1);
        assert_eq!(judge.found(0, 2, &[8, 4]), 0);
    }
}

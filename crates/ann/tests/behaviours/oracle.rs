//! The right answers: every vector is measured by the plain formula, and sorted.

use std::collections::{BTreeMap, BTreeSet};

use ann::{DistanceMetric, IdFilter, Neighbour, NeighbourIndex, SearchOptions};

/// The distance by the formulas of the contract, as they are written there.
pub fn distance(metric: DistanceMetric, a: &[f32], b: &[f32]) -> f64 {
    let pairs = || a.iter().zip(b).map(|(&x, &y)| (f64::from(x), f64::from(y)));
    let dot: f64 = pairs().map(|(x, y)| x * y).sum();
    match metric {
        DistanceMetric::Cosine => {
            let a_norm: f64 = pairs().map(|(x, _)| x * x).sum::<f64>().sqrt();
            let b_norm: f64 = pairs().map(|(_, y)| y * y).sum::<f64>().sqrt();
            // `a` is the query, and a zero vector comes after all others.
            match (a_norm, b_norm) {
                (0.0, 0.0) => 0.0,
                (0.0, _) => 1.0,
                (_, 0.0) => f64::from(2.0f32.next_up()),
                (a_norm, b_norm) => 1.0 - dot / (a_norm * b_norm),
            }
        }
        DistanceMetric::Euclidean => pairs().map(|(x, y)| (x - y) * (x - y)).sum(),
        DistanceMetric::DotProduct => 1.0 - dot,
        DistanceMetric::Hamming => pairs().filter(|(x, y)| (*x > 0.0) != (*y > 0.0)).count() as f64,
    }
}

/// An exact index.
pub struct Oracle {
    pub metric: DistanceMetric,
    pub vectors: BTreeMap<u32, Vec<f32>>,
}

impl Oracle {
    pub fn new(metric: DistanceMetric) -> Oracle {
        let vectors = BTreeMap::new();
        Oracle { metric, vectors }
    }

    /// The index of vectors that are numbered from 0.
    pub fn of(metric: DistanceMetric, vectors: &[Vec<f32>]) -> Oracle {
        let vectors = (0..).zip(vectors.iter().cloned()).collect();
        Oracle { metric, vectors }
    }

    /// The distances of the `k` nearest that a search may answer with, nearest first.
    pub fn distances(&self, query: &[f32], search: &SearchOptions<'_>) -> Vec<f64> {
        let admitted = self.vectors.iter().filter(|(id, _)| admits(search, **id));
        let mut distances: Vec<f64> = admitted
            .map(|(_, vector)| distance(self.metric, query, vector))
            .collect();
        distances.sort_by(f64::total_cmp);
        distances.truncate(search.k);
        distances
    }

    /// Checks what holds for every answer however it was found, and returns the share of it that is
    /// as near as the true answer (an equally near vector is as good).
    pub fn check(&self, index: &NeighbourIndex, query: &[f32], k: usize, tolerance: f64) -> f64 {
        self.check_with(index, query, &SearchOptions::new(k), tolerance)
    }

    /// Checks the answer of a search with a width, a precision or a filter, as [`Oracle::check`]
    /// does.
    pub fn check_with(
        &self,
        index: &NeighbourIndex,
        query: &[f32],
        search: &SearchOptions<'_>,
        tolerance: f64,
    ) -> f64 {
        let found = index.search_with(query, search).expect("a valid query");
        self.judge(&found, query, search, tolerance)
    }

    /// Checks an answer that is there already, as [`Oracle::check`] does.
    pub fn judge(
        &self,
        found: &[Neighbour],
        query: &[f32],
        search: &SearchOptions<'_>,
        tolerance: f64,
    ) -> f64 {
        let wanted = self.distances(query, search);
        assert_eq!(found.len(), wanted.len(), "as many as asked for, or all");
        assert!(found.is_sorted_by(|a, b| (a.distance, a.id) < (b.distance, b.id)));
        for Neighbour { id, distance: told } in found {
            assert!(admits(search, *id), "{id} is outside of the filter");
            let vector = self.vectors.get(id).expect("only ids that are held");
            let real = distance(self.metric, query, vector);
            let error = (f64::from(*told) - real).abs();
            assert!(error <= tolerance * real.abs().max(1.0), "{told} is {real}");
        }
        let ids: BTreeSet<u32> = found.iter().map(|n| n.id).collect();
        assert_eq!(ids.len(), found.len(), "no id is answered twice");
        let Some(&farthest) = wanted.last() else {
            return 1.0;
        };
        let limit = farthest + tolerance * farthest.abs().max(1.0);
        let near = found.iter().filter(|n| f64::from(n.distance) <= limit);
        near.count() as f64 / wanted.len() as f64
    }
}

/// Whether a search may answer with an id.
pub fn admits(search: &SearchOptions<'_>, id: u32) -> bool {
    match search.filter {
        None => true,
        Some(IdFilter::Ids(ids)) => ids.contains(id),
        Some(IdFilter::Predicate(admits)) => admits(id),
    }
}

/// An index of vectors numbered from 0.
pub fn build(options: ann::NeighbourIndexOptions, vectors: &[Vec<f32>]) -> NeighbourIndex {
    let index = NeighbourIndex::new(options).expect("valid options");
    for (id, vector) in (0..).zip(vectors) {
        index.insert(id, vector).expect("a new id");
    }
    index
}

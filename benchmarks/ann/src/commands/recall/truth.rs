//! The distances of the true neighbours.
//!
//! Blocks of queries are multiplied with blocks of vectors in `f32`. The best of each query, a few
//! more than needed, are measured again in `f64`. Where the errors of `f32` leave it open whether
//! one of the others is nearer, all vectors are measured in `f64`.

use vector_sets::NeighbourMetric;

use super::flat::{Flat, QUERIES_PER_BLOCK};

/// The share of the distance by which a vector may be farther than the last neighbour and still
/// count as one: equally far as far as `f32` tells.
const TIE: f64 = 1e-6;

/// The distance of the last of the true neighbours of each query.
pub struct Truth {
    /// Neighbours wanted, each with the distance within which a vector is one, by query.
    limits: Vec<(usize, Vec<f64>)>,
}

impl Truth {
    /// Reads limits that [`Truth::limits`] returned.
    pub fn of_limits(limits: Vec<(usize, Vec<f64>)>) -> Truth {
        Truth { limits }
    }

    /// The limits for each number of neighbours.
    pub fn limits(&self) -> &[(usize, Vec<f64>)] {
        &self.limits
    }

    /// Measures the distance of the `k`th neighbour of every query, for each of `ks`.
    pub fn compute(
        metric: NeighbourMetric,
        vectors: &[f32],
        queries: &[f32],
        dimensions: usize,
        ks: &[usize],
    ) -> Truth {
        let most = ks.iter().copied().max().unwrap_or(1);
        let flat = Flat::new(metric, vectors, queries, dimensions);
        let mut limits: Vec<(usize, Vec<f64>)> = ks.iter().map(|k| (*k, Vec::new())).collect();
        for block in 0..queries.len().div_ceil(QUERIES_PER_BLOCK * dimensions) {
            let first = block * QUERIES_PER_BLOCK;
            for (offset, candidates) in flat.candidates(first, most).into_iter().enumerate() {
                let query = &queries[(first + offset) * dimensions..][..dimensions];
                let row = |row: u32| &vectors[row as usize * dimensions..][..dimensions];
                let measure = |row_number: &u32| metric.distance(query, row(*row_number));
                let mut distances: Vec<f64> = candidates.rows.iter().map(measure).collect();
                distances.sort_by(f64::total_cmp);
                if !flat.proves(first + offset, &candidates, distances[most - 1]) {
                    let count = vectors.len() / dimensions;
                    distances = (0..count as u32).map(|row| measure(&row)).collect();
                    distances.sort_by(f64::total_cmp);
                }
                for (k, limits) in &mut limits {
                    let last = distances[*k - 1];
                    limits.push(last + TIE * last.abs());
                }
            }
        }
        Truth { limits }
    }
}

#[cfg(test)]
mod tests {
    use vector_sets::{RealSamples, find};

    use super::*;

    #[test]
    fn limits_are_those_of_all_distances_in_f64() {
        // Ties, a large mean, narrow clusters and long vectors are hard for f32.
        for name in [
            "duplicates",
            "mean-10-euclidean",
            "mean-10-cosine",
            "nested-clusters",
            "random-lengths-1",
            "heavy-tails",
            "bits",
            "line",
        ] {
            let set = find(name).unwrap();
            let made = set.make(3, 3_000, 70, &RealSamples::default());
            let (metric, dimensions) = (set.metric, made.dimensions);
            let truth = Truth::compute(metric, &made.base, &made.queries, dimensions, &[10, 100]);
            let mut limits = truth.limits()[0].1.iter().zip(&truth.limits()[1].1);
            for query in made.each_query() {
                let measured = made.vectors().map(|vector| metric.distance(query, vector));
                let mut measured: Vec<f64> = measured.collect();
                measured.sort_by(f64::total_cmp);
                let expected =
                    [9, 99].map(|last: usize| measured[last] + TIE * measured[last].abs());
                let limits = limits.next().unwrap();
                assert_eq!([*limits.0, *limits.1], expected, "{name}");
            }
        }
    }
}

//! Computes true neighbours by measuring every pair.
//!
//! A first pass in `f32` keeps somewhat more candidates than are asked for. A second one measures
//! these in `f64` and orders them; of equal distances the lower id comes first.

use std::cmp::Ordering;

use contender::{Metric, Vectors};

use super::parallel::fill_rows;

/// The candidates that the first pass keeps beyond those asked for, as room for its rounding
/// errors.
const MARGIN: usize = 28;
/// Queries that are measured against a vector while it is in a register.
const AT_A_TIME: usize = 4;
/// Partial sums kept side by side.
const LANES: usize = 16;

/// The ids of the `k` nearest vectors of each query, nearest first, in one list.
pub fn neighbours(base: Vectors<'_>, queries: Vectors<'_>, metric: Metric, k: usize) -> Vec<u32> {
    assert!(
        base.count() >= k,
        "{} vectors for {k} neighbours",
        base.count()
    );
    let weights: Vec<Weight> = (0..base.count())
        .map(|id| Weight::of(metric, base.row(id)))
        .collect();
    let mut ids = vec![0; queries.count() * k];
    fill_rows(&mut ids, k, |first, rows| {
        for (block, rows) in rows.chunks_mut(AT_A_TIME * k).enumerate() {
            let first = first + block * AT_A_TIME;
            let last = queries.count() - 1;
            // The last block may be short. Then it measures its last query more than once.
            let block = std::array::from_fn(|i| queries.row((first + i).min(last)));
            let candidates = candidates(base, &weights, &block, k + MARGIN);
            for ((row, query), candidates) in rows.chunks_mut(k).zip(block).zip(candidates) {
                row.copy_from_slice(&nearest(base, metric, query, &candidates)[..k]);
            }
        }
    });
    ids
}

/// The distance of two vectors: `|a - b|^2`, or `1 - cos`.
pub fn distance(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let sum = |term: fn(f64, f64) -> f64| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(&x, &y)| term(x.into(), y.into())).sum()
    };
    match metric {
        Metric::Euclidean => sum(|x, y| (x - y) * (x - y)),
        Metric::Cosine => {
            let lengths = (sum(|x, _| x * x) * sum(|_, y| y * y)).sqrt();
            1.0 - sum(|x, y| x * y) / lengths
        }
    }
}

/// Turns the inner product with a vector into a value that grows with the distance:
/// `add + factor * product`.
struct Weight {
    add: f32,
    factor: f32,
}

impl Weight {
    fn of(metric: Metric, vector: &[f32]) -> Weight {
        let squared = vector
            .iter()
            .map(|&x| f64::from(x) * f64::from(x))
            .sum::<f64>();
        let (add, factor) = match metric {
            Metric::Cosine => (0.0, -1.0 / squared.sqrt()),
            Metric::Euclidean => (squared, -2.0),
        };
        Weight {
            add: add as f32,
            factor: factor as f32,
        }
    }
}

/// The ids of about `count` vectors that are nearest to each query.
fn candidates(
    base: Vectors<'_>,
    weights: &[Weight],
    queries: &[&[f32]; AT_A_TIME],
    count: usize,
) -> [Vec<u32>; AT_A_TIME] {
    let mut best: [Best; AT_A_TIME] = std::array::from_fn(|_| Best::new(count));
    for (id, weight) in weights.iter().enumerate() {
        let products = products(queries, base.row(id));
        for (best, product) in best.iter_mut().zip(products) {
            best.show(id as u32, weight.add + weight.factor * product);
        }
    }
    best.map(Best::into_ids)
}

/// The inner products of one vector with several.
fn products(queries: &[&[f32]; AT_A_TIME], vector: &[f32]) -> [f32; AT_A_TIME] {
    let mut sums = [[0.0f32; LANES]; AT_A_TIME];
    let (body, rest) = vector.as_chunks::<LANES>();
    for (chunk, x) in body.iter().enumerate() {
        for (sum, query) in sums.iter_mut().zip(queries) {
            let query = &query[chunk * LANES..][..LANES];
            for lane in 0..LANES {
                sum[lane] += query[lane] * x[lane];
            }
        }
    }
    std::array::from_fn(|i| {
        let tail = queries[i][body.len() * LANES..].iter().zip(rest);
        sums[i].iter().sum::<f32>() + tail.map(|(q, x)| q * x).sum::<f32>()
    })
}

/// Keeps the ids of the smallest values that it is shown.
struct Best {
    count: usize,
    /// Values of at least this are not among the smallest.
    limit: f32,
    kept: Vec<(f32, u32)>,
}

impl Best {
    fn new(count: usize) -> Best {
        Best {
            count,
            limit: f32::INFINITY,
            kept: Vec::with_capacity(2 * count),
        }
    }

    fn show(&mut self, id: u32, value: f32) {
        if value < self.limit {
            self.kept.push((value, id));
            if self.kept.len() == 2 * self.count {
                self.halve();
            }
        }
    }

    fn halve(&mut self) {
        let by_value = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0);
        if self.kept.len() > self.count {
            let (_, last, _) = self.kept.select_nth_unstable_by(self.count - 1, by_value);
            self.limit = last.0;
            self.kept.truncate(self.count);
        }
    }

    fn into_ids(mut self) -> Vec<u32> {
        self.halve();
        self.kept.into_iter().map(|(_, id)| id).collect()
    }
}

/// The candidates by distance, nearest first.
fn nearest(base: Vectors<'_>, metric: Metric, query: &[f32], candidates: &[u32]) -> Vec<u32> {
    let measured = |&id: &u32| (distance(metric, query, base.row(id as usize)), id);
    let mut measured: Vec<(f64, u32)> = candidates.iter().map(measured).collect();
    measured.sort_unstable_by(|a, b| match a.0.total_cmp(&b.0) {
        Ordering::Equal => a.1.cmp(&b.1),
        different => different,
    });
    measured.into_iter().map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::random::Random;

    #[test]
    fn they_are_those_of_a_plain_sort() {
        const DIMENSIONS: usize = 37;
        let mut base = vec![0.0; 500 * DIMENSIONS];
        let mut queries = vec![0.0; 7 * DIMENSIONS];
        Random::of_row(1, 0).normals(&mut base);
        Random::of_row(1, 1).normals(&mut queries);
        // Two vectors are equally near, so the one with the lower id comes first.
        base.copy_within(0..DIMENSIONS, 99 * DIMENSIONS);
        let (base, queries) = (
            Vectors::new(&base, DIMENSIONS),
            Vectors::new(&queries, DIMENSIONS),
        );
        for metric in [Metric::Cosine, Metric::Euclidean] {
            let found = neighbours(base, queries, metric, 100);
            let all: Vec<u32> = (0..500).collect();
            for (query, found) in found.chunks(100).enumerate() {
                let expected = nearest(base, metric, queries.row(query), &all);
                assert_eq!(found, &expected[..100]);
            }
        }
    }
}

//! Computes true neighbours by comparing every query with every vector.
//!
//! Blocks of queries are multiplied with blocks of vectors in `f32` (`sgemm`), on all cores. The
//! best of these, a few more than requested, are measured again in `f64`, so that the order is
//! right to the last bit of the data.

use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueEnum;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::array::VectorRows;

/// Queries multiplied at once. Their scores stay in the second-level cache.
const QUERIES_PER_BLOCK: usize = 64;
/// Vectors multiplied at once.
const VECTORS_PER_BLOCK: usize = 1024;
/// The number of candidates beyond those requested that are measured in `f64`.
const CANDIDATES_BEYOND: usize = 32;

/// The measure of how near two vectors are.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum SimilarityMetric {
    /// By the angle between the vectors.
    Cosine,
    /// By the length of the straight line between the vectors.
    Euclidean,
    /// By the inner product of the vectors; a larger one is nearer.
    DotProduct,
}

impl SimilarityMetric {
    /// The name of the metric in the options of an index.
    pub fn name(self) -> &'static str {
        match self {
            SimilarityMetric::Cosine => "cosine",
            SimilarityMetric::Euclidean => "euclidean",
            SimilarityMetric::DotProduct => "dot_product",
        }
    }

    /// The distance of two vectors; smaller is nearer. A zero vector is at cosine distance 1 from
    /// all.
    pub fn distance(self, a: &[f32], b: &[f32]) -> f64 {
        let sum = |term: fn(f64, f64) -> f64| -> f64 {
            let pairs = a.iter().zip(b);
            pairs.map(|(&a, &b)| term(a.into(), b.into())).sum()
        };
        match self {
            SimilarityMetric::Euclidean => sum(|a, b| (a - b) * (a - b)),
            SimilarityMetric::DotProduct => -sum(|a, b| a * b),
            SimilarityMetric::Cosine => {
                let lengths = (sum(|a, _| a * a) * sum(|_, b| b * b)).sqrt();
                if lengths > 0.0 {
                    1.0 - sum(|a, b| a * b) / lengths
                } else {
                    1.0
                }
            }
        }
    }
}

/// The positions of the `k` nearest vectors of each query, nearest first, in one list. Equally near
/// ones are in the order of `base`.
///
/// `base` and `queries` must have vectors of one length with finite numbers, and `base` at least
/// `k`. `progress` counts queries.
pub fn nearest(
    base: &VectorRows,
    queries: &VectorRows,
    metric: SimilarityMetric,
    k: usize,
    progress: &ProgressBar,
) -> Vec<u32> {
    assert_eq!(base.dimensions, queries.dimensions);
    assert!(k > 0 && k <= base.len());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let per_block = queries.len().div_ceil(threads).clamp(1, QUERIES_PER_BLOCK);
    let scale = ScoreScale::new(base, metric);
    let mut found = vec![0; queries.len() * k];
    let next = AtomicUsize::new(0);
    let blocks: Vec<_> = found
        .chunks_mut(per_block * k)
        .map(std::sync::Mutex::new)
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    let Some(out) = blocks.get(block) else { break };
                    // Each block is taken once; the lock only hands it over.
                    let mut out = out.lock().expect("no thread panics with it");
                    let count = out.len() / k;
                    let first = block * per_block;
                    search_block(base, queries, metric, &scale, first, k, &mut out);
                    progress.inc(count as u64);
                }
            });
        }
    });
    drop(blocks);
    found
}

/// Turns an inner product `dot` into a score, of which smaller is nearer: `score = add - dot *
/// times`.
struct ScoreScale {
    /// The factor of each vector of the base.
    times: Vec<f32>,
    /// The summand of each vector of the base.
    add: Vec<f32>,
}

impl ScoreScale {
    fn new(base: &VectorRows, metric: SimilarityMetric) -> ScoreScale {
        let squares = base
            .rows()
            .map(|row| row.iter().map(|x| x * x).sum::<f32>());
        match metric {
            SimilarityMetric::Cosine => ScoreScale {
                times: squares
                    .map(|square| {
                        if square > 0.0 {
                            square.sqrt().recip()
                        } else {
                            0.0
                        }
                    })
                    .collect(),
                add: vec![0.0; base.len()],
            },
            // The square of the query itself is left out, as it is the same for all vectors.
            SimilarityMetric::Euclidean => ScoreScale {
                times: vec![2.0; base.len()],
                add: squares.collect(),
            },
            SimilarityMetric::DotProduct => ScoreScale {
                times: vec![1.0; base.len()],
                add: vec![0.0; base.len()],
            },
        }
    }
}

fn search_block(
    base: &VectorRows,
    queries: &VectorRows,
    metric: SimilarityMetric,
    scale: &ScoreScale,
    first: usize,
    k: usize,
    out: &mut [u32],
) {
    let count = out.len() / k;
    let dimensions = base.dimensions;
    let keep = (k + CANDIDATES_BEYOND).min(base.len());
    let mut candidates: Vec<BestCandidates> =
        (0..count).map(|_| BestCandidates::new(keep)).collect();
    let mut products = vec![0.0_f32; count * VECTORS_PER_BLOCK];
    let query_block = &queries.values[first * dimensions..][..count * dimensions];
    for (block, vectors) in base
        .values
        .chunks(VECTORS_PER_BLOCK * dimensions)
        .enumerate()
    {
        let width = vectors.len() / dimensions;
        let products = &mut products[..count * width];
        multiply(query_block, vectors, dimensions, products);
        let start = block * VECTORS_PER_BLOCK;
        for (row, candidates) in products.chunks_exact(width).zip(&mut candidates) {
            for (at, product) in row.iter().enumerate() {
                let position = start + at;
                let score = scale.add[position] - product * scale.times[position];
                candidates.offer(score, position as u32);
            }
        }
    }
    for (at, candidates) in candidates.into_iter().enumerate() {
        let query = queries.row(first + at);
        let mut exact: Vec<(f64, u32)> = candidates
            .take()
            .map(|position| {
                (
                    metric.distance(query, base.row(position as usize)),
                    position,
                )
            })
            .collect();
        exact.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (out, (_, position)) in out[at * k..].iter_mut().zip(exact.iter().take(k)) {
            *out = *position;
        }
    }
}

/// The inner products of every row of `a` with every row of `b`, row by row of `a`.
pub(super) fn multiply(a: &[f32], b: &[f32], dimensions: usize, out: &mut [f32]) {
    let (rows, columns) = (a.len() / dimensions, b.len() / dimensions);
    assert!(a.len() == rows * dimensions && b.len() == columns * dimensions);
    assert_eq!(out.len(), rows * columns);
    // SAFETY: `a` is rows x dimensions and `b` columns x dimensions, both row by row, so the
    // strides of `a` and of `b` transposed stay inside them; `out` is rows x columns, exclusively
    // borrowed. Asserted above.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            dimensions,
            columns,
            1.0,
            a.as_ptr(),
            dimensions as isize,
            1,
            b.as_ptr(),
            1,
            dimensions as isize,
            0.0,
            out.as_mut_ptr(),
            columns as isize,
            1,
        );
    }
}

/// Collects the best of the candidates offered. It holds up to twice as many as it keeps before it
/// drops the worse half.
struct BestCandidates {
    keep: usize,
    found: Vec<(f32, u32)>,
    /// A score above this is not among the best.
    worst: f32,
}

impl BestCandidates {
    fn new(keep: usize) -> BestCandidates {
        BestCandidates {
            keep,
            found: Vec::with_capacity(2 * keep),
            worst: f32::INFINITY,
        }
    }

    fn offer(&mut self, score: f32, position: u32) {
        if score > self.worst {
            return;
        }
        self.found.push((score, position));
        if self.found.len() == 2 * self.keep {
            self.drop_worse();
        }
    }

    fn drop_worse(&mut self) {
        if self.found.len() > self.keep {
            let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
            let (_, last, _) = self.found.select_nth_unstable_by(self.keep - 1, order);
            self.worst = last.0;
            self.found.truncate(self.keep);
        }
    }

    fn take(mut self) -> impl Iterator<Item = u32> {
        self.drop_worse();
        self.found.into_iter().map(|(_, position)| position)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn random(count: usize, dimensions: usize, seed: u64) -> VectorRows {
        let mut numbers = StdRng::seed_from_u64(seed);
        VectorRows {
            dimensions,
            values: (0..count * dimensions)
                .map(|_| numbers.random_range(-1.0..1.0))
                .collect(),
            ids: None,
        }
    }

    /// Sorts all distances, to check `nearest`.
    fn sorted(base: &VectorRows, query: &[f32], metric: SimilarityMetric, k: usize) -> Vec<u32> {
        let mut all: Vec<_> = base
            .rows()
            .enumerate()
            .map(|(at, row)| (metric.distance(query, row), at as u32))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        all.iter().take(k).map(|(_, at)| *at).collect()
    }

    #[test]
    fn blocks_agree_with_sorting_all_distances() {
        // There is more than one block of each, and the last ones are not whole.
        let mut base = random(VECTORS_PER_BLOCK * 2 + 77, 13, 1);
        let queries = random(QUERIES_PER_BLOCK * 3 + 5, 13, 2);
        // Copies show the order of ties; a zero vector is there too.
        base.values.copy_within(0..13 * 50, 13 * 100);
        base.values[13 * 200..13 * 201].fill(0.0);
        for metric in [
            SimilarityMetric::Cosine,
            SimilarityMetric::Euclidean,
            SimilarityMetric::DotProduct,
        ] {
            for k in [1, 10] {
                let found = nearest(&base, &queries, metric, k, &ProgressBar::hidden());
                for (at, found) in found.chunks(k).enumerate() {
                    assert_eq!(
                        found,
                        sorted(&base, queries.row(at), metric, k),
                        "{metric:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn all_vectors_may_be_asked_for() {
        let (base, queries) = (random(7, 3, 3), random(2, 3, 4));
        let found = nearest(
            &base,
            &queries,
            SimilarityMetric::Cosine,
            7,
            &ProgressBar::hidden(),
        );
        assert_eq!(
            found[..7],
            sorted(&base, queries.row(0), SimilarityMetric::Cosine, 7)
        );
    }
}

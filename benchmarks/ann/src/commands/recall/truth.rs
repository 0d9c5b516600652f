//! The true neighbours, by which answers are judged.
//!
//! Blocks of queries are multiplied with blocks of vectors in `f32`. The best of each query, a few
//! more than needed, are measured again in `f64`. Where the errors of `f32` leave it open whether
//! one of the others is nearer, all vectors are measured in `f64`.

use vector_sets::{Left, Metric};

/// Queries multiplied at once. Their products stay in the second-level cache.
const QUERIES_PER_BLOCK: usize = 64;
/// Vectors multiplied at once.
const VECTORS_PER_BLOCK: usize = 1_024;
/// Candidates measured in `f64` for each neighbour wanted.
const CANDIDATES: f64 = 2.5;
/// The share of the distance by which a vector may be farther than the last neighbour and still
/// count as one: equally far as far as `f32` tells.
const TIE: f64 = 1e-6;
/// The error of a sum of `n` products in `f32` is below this times the root of `n`, as a share of
/// the lengths, for all that happens by chance.
const ERROR: f64 = 8.0 * (f32::EPSILON / 2.0) as f64;

/// The distance of the last of the true neighbours of each query.
pub struct Truth {
    /// Neighbours wanted, each with the distance within which a vector is one, by query.
    limits: Vec<(usize, Vec<f64>)>,
}

/// Judges answers to the queries of a set.
pub struct Judge<'a> {
    metric: Metric,
    left: &'a Left,
    queries: &'a [f32],
    dimensions: usize,
    truth: &'a Truth,
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
        metric: Metric,
        vectors: &[f32],
        queries: &[f32],
        dimensions: usize,
        ks: &[usize],
    ) -> Truth {
        let most = ks.iter().copied().max().unwrap_or(1);
        let flat = Flat::new(metric, vectors, queries, dimensions);
        let mut limits: Vec<(usize, Vec<f64>)> = ks.iter().map(|k| (*k, Vec::new())).collect();
        for block in 0..flat.queries.len().div_ceil(QUERIES_PER_BLOCK * dimensions) {
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

/// The best vectors of a query by `f32`.
struct Candidates {
    rows: Vec<u32>,
    /// The score that all others have at least; infinite if there are no others.
    others: f32,
}

/// Vectors and queries as they are multiplied: `score = add - 2 product`, of which smaller is
/// nearer.
struct Flat {
    metric: Metric,
    dimensions: usize,
    vectors: Vec<f32>,
    queries: Vec<f32>,
    /// The squared length of each vector by the Euclidean distance, 0 by others.
    add: Vec<f32>,
    /// The length of the longest vector, and of the longest as it was given.
    longest: (f64, f64),
}

impl Flat {
    fn new(metric: Metric, vectors: &[f32], queries: &[f32], dimensions: usize) -> Flat {
        let centre = match metric {
            Metric::Euclidean => centre(vectors, dimensions),
            _ => vec![0.0; dimensions],
        };
        let prepare = |all: &[f32]| -> Vec<f32> {
            let rows = all.chunks_exact(dimensions);
            rows.flat_map(|row| prepared(metric, row, &centre))
                .collect()
        };
        let prepared = prepare(vectors);
        let squares = |all: &[f32]| -> Vec<f32> {
            let rows = all.chunks_exact(dimensions);
            rows.map(|row| row.iter().map(|x| x * x).sum()).collect()
        };
        let lengths = squares(&prepared);
        let longest =
            |squares: &[f32]| f64::from(squares.iter().fold(0.0f32, |a, b| a.max(*b))).sqrt();
        Flat {
            metric,
            dimensions,
            longest: (longest(&lengths), longest(&squares(vectors))),
            add: match metric {
                Metric::Euclidean | Metric::Hamming => lengths,
                Metric::Cosine | Metric::DotProduct => vec![0.0; lengths.len()],
            },
            queries: prepare(queries),
            vectors: prepared,
        }
    }

    /// The best candidates of the queries of a block.
    fn candidates(&self, first: usize, k: usize) -> Vec<Candidates> {
        let dimensions = self.dimensions;
        let keep = ((k as f64 * CANDIDATES) as usize).min(self.add.len());
        let queries = &self.queries[first * dimensions..];
        let queries = &queries[..queries.len().min(QUERIES_PER_BLOCK * dimensions)];
        let count = queries.len() / dimensions;
        let mut best: Vec<Best> = (0..count).map(|_| Best::new(keep)).collect();
        let mut products = vec![0.0f32; count * VECTORS_PER_BLOCK];
        let blocks = self.vectors.chunks(VECTORS_PER_BLOCK * dimensions);
        for (block, vectors) in blocks.enumerate() {
            let width = vectors.len() / dimensions;
            let products = &mut products[..count * width];
            multiply(queries, vectors, dimensions, products);
            let start = block * VECTORS_PER_BLOCK;
            for (row, best) in products.chunks_exact(width).zip(&mut best) {
                for (offset, product) in row.iter().enumerate() {
                    let score = self.add[start + offset] - 2.0 * product;
                    best.offer(score, (start + offset) as u32);
                }
            }
        }
        best.into_iter().map(Best::take).collect()
    }

    /// Whether no vector but the candidates can be nearer than `distance`.
    fn proves(&self, query: usize, candidates: &Candidates, distance: f64) -> bool {
        let query = &self.queries[query * self.dimensions..][..self.dimensions];
        let length = query
            .iter()
            .map(|x| f64::from(*x).powi(2))
            .sum::<f64>()
            .sqrt();
        // A vector that is nearer is no longer than this.
        let summed = ERROR * (self.dimensions as f64).sqrt();
        let (score, error) = match self.metric {
            Metric::Cosine => (2.0 * (distance - 1.0), 2.0 * summed),
            Metric::DotProduct => (2.0 * distance, 2.0 * summed * length * self.longest.0),
            Metric::Euclidean | Metric::Hamming => {
                let longest = (length + distance.sqrt()).min(self.longest.0);
                let products = longest * (longest + 2.0 * length);
                let shift = ERROR * self.longest.1 * (longest + length);
                (distance - length * length, summed * products + shift)
            }
        };
        f64::from(candidates.others) > score + error
    }
}

/// A vector as it is multiplied.
fn prepared(metric: Metric, row: &[f32], centre: &[f32]) -> Vec<f32> {
    let shifted = row.iter().zip(centre);
    let length = match metric {
        Metric::Cosine => row
            .iter()
            .map(|x| f64::from(*x).powi(2))
            .sum::<f64>()
            .sqrt(),
        _ => 1.0,
    };
    shifted
        .map(|(x, centre)| match metric {
            Metric::Hamming => f32::from(u8::from(*x > 0.0)),
            Metric::Cosine => (f64::from(*x) / length) as f32,
            Metric::Euclidean | Metric::DotProduct => x - centre,
        })
        .collect()
}

fn centre(vectors: &[f32], dimensions: usize) -> Vec<f32> {
    let mut sums = vec![0.0f64; dimensions];
    for row in vectors.chunks_exact(dimensions) {
        let elements = sums.iter_mut().zip(row);
        elements.for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let count = (vectors.len() / dimensions) as f64;
    sums.iter().map(|sum| (sum / count) as f32).collect()
}

/// The inner products of every row of `a` with every row of `b`, row by row of `a`.
fn multiply(a: &[f32], b: &[f32], dimensions: usize, out: &mut [f32]) {
    let (rows, columns) = (a.len() / dimensions, b.len() / dimensions);
    assert!(a.len() == rows * dimensions && b.len() == columns * dimensions);
    assert_eq!(out.len(), rows * columns);
    let (across, down) = (dimensions as isize, columns as isize);
    // SAFETY: `a` is rows x dimensions and `b` columns x dimensions, both row by row, so the
    // strides of `a` and of `b` transposed stay inside them; `out` is rows x columns, exclusively
    // borrowed. Asserted above.
    unsafe {
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        matrixmultiply::sgemm(
            rows, dimensions, columns, 1.0, a, across, 1, b, 1, across, 0.0, out, down, 1,
        );
    }
}

/// Collects the best of the scores offered. It holds up to twice as many as it keeps before it
/// drops the worse half.
struct Best {
    keep: usize,
    found: Vec<(f32, u32)>,
    /// The least score that was dropped, which is above all that are kept.
    others: f32,
}

impl Best {
    fn new(keep: usize) -> Best {
        Best {
            keep,
            found: Vec::with_capacity(2 * keep),
            others: f32::INFINITY,
        }
    }

    fn offer(&mut self, score: f32, row: u32) {
        if score >= self.others {
            return;
        }
        self.found.push((score, row));
        if self.found.len() == 2 * self.keep {
            self.drop_worse();
        }
    }

    fn drop_worse(&mut self) {
        if self.found.len() > self.keep {
            let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0);
            let (_, first_dropped, _) = self.found.select_nth_unstable_by(self.keep, order);
            self.others = self.others.min(first_dropped.0);
            self.found.truncate(self.keep);
        }
    }

    fn take(mut self) -> Candidates {
        self.drop_worse();
        Candidates {
            rows: self.found.iter().map(|(_, row)| *row).collect(),
            others: self.others,
        }
    }
}

impl<'a> Judge<'a> {
    /// Makes the judge of answers about the vectors that are left of a set.
    pub fn new(
        metric: Metric,
        left: &'a Left,
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
        let limit = self.truth.limits.iter().find(|(of, _)| *of == k);
        let limit = limit.expect("a number of neighbours that is measured").1[query];
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
    use vector_sets::{Real, find};

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
            let made = set.make(3, 3_000, 70, &Real::default());
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

    #[test]
    fn an_answer_counts_what_is_there_and_near_once() {
        let left = Left {
            ids: vec![3, 5, 8],
            vectors: vec![0.0, 1.0, 5.0],
        };
        let truth = Truth::compute(Metric::Euclidean, &left.vectors, &[0.1], 1, &[2]);
        let judge = Judge::new(Metric::Euclidean, &left, &[0.1], 1, &truth);
        assert_eq!(judge.found(0, 2, &[3, 5]), 2);
        assert_eq!(judge.found(0, 2, &[3, 3]), 1);
        assert_eq!(judge.found(0, 2, &[8, 4]), 0);
    }
}

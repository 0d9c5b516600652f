//! Vectors and queries multiplied in blocks in `f32`, and how far that can be trusted.

use vector_sets::NeighbourMetric;

/// Queries multiplied at once. Their products stay in the second-level cache.
pub const QUERIES_PER_BLOCK: usize = 64;
/// Vectors multiplied at once.
const VECTORS_PER_BLOCK: usize = 1_024;
/// Candidates measured in `f64` for each neighbour wanted.
const CANDIDATES: f64 = 2.5;
/// The error of a sum of `n` products in `f32` is below this times the root of `n`, as a share of
/// the lengths, for all that happens by chance.
const ERROR: f64 = 8.0 * (f32::EPSILON / 2.0) as f64;

/// The best vectors of a query by `f32`.
pub struct Candidates {
    /// Their rows, in any order.
    pub rows: Vec<u32>,
    /// The score that all others have at least; infinite if there are no others.
    others: f32,
}

/// Vectors and queries as they are multiplied: `score = add - 2 product`, of which smaller is
/// nearer.
pub struct Flat {
    metric: NeighbourMetric,
    dimensions: usize,
    vectors: Vec<f32>,
    queries: Vec<f32>,
    /// The squared length of each vector by the Euclidean distance, 0 by others.
    add: Vec<f32>,
    /// The length of the longest vector, and of the longest as it was given.
    longest: (f64, f64),
}

impl Flat {
    /// Prepares vectors and queries.
    pub fn new(metric: NeighbourMetric, vectors: &[f32], queries: &[f32], dimensions: usize) -> Flat {
        let centre = match metric {
            NeighbourMetric::Euclidean => centre(vectors, dimensions),
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
                NeighbourMetric::Euclidean | NeighbourMetric::Hamming => lengths,
                NeighbourMetric::Cosine | NeighbourMetric::DotProduct => vec![0.0; lengths.len()],
            },
            queries: prepare(queries),
            vectors: prepared,
        }
    }

    /// The best candidates of the queries of a block.
    pub fn candidates(&self, first: usize, k: usize) -> Vec<Candidates> {
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
    pub fn proves(&self, query: usize, candidates: &Candidates, distance: f64) -> bool {
        let query = &self.queries[query * self.dimensions..][..self.dimensions];
        let length = query
            .iter()
            .map(|x| f64::from(*x).powi(2))
            .sum::<f64>()
            .sqrt();
        // A vector that is nearer is no longer than this.
        let summed = ERROR * (self.dimensions as f64).sqrt();
        let (score, error) = match self.metric {
            NeighbourMetric::Cosine => (2.0 * (distance - 1.0), 2.0 * summed),
            NeighbourMetric::DotProduct => (2.0 * distance, 2.0 * summed * length * self.longest.0),
            NeighbourMetric::Euclidean | NeighbourMetric::Hamming => {
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
fn prepared(metric: NeighbourMetric, row: &[f32], centre: &[f32]) -> Vec<f32> {
    let shifted = row.iter().zip(centre);
    let length = match metric {
        NeighbourMetric::Cosine => row
            .iter()
            .map(|x| f64::from(*x).powi(2))
            .sum::<f64>()
            .sqrt(),
        _ => 1.0,
    };
    shifted
        .map(|(x, centre)| match metric {
            NeighbourMetric::Hamming => f32::from(u8::from(*x > 0.0)),
            NeighbourMetric::Cosine => (f64::from(*x) / length) as f32,
            NeighbourMetric::Euclidean | NeighbourMetric::DotProduct => x - centre,
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

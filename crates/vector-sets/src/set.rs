//! A kind of vectors, and the vectors that are made of it.

use crate::changes::{ChurnPattern, VectorChange};
use crate::draw::{RealSamples, RecipeInput, RecipeOutput};

/// The measure of how near two vectors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NeighbourMetric {
    /// The angle: `1 - cos`.
    Cosine,
    /// The squared length of the straight line between them.
    Euclidean,
    /// The inner product; a larger one is nearer.
    DotProduct,
    /// The number of elements of which only one is above 0.
    Hamming,
}

impl NeighbourMetric {
    /// The distance of two vectors; smaller is nearer. That of the inner product is its negative.
    pub fn distance(self, a: &[f32], b: &[f32]) -> f64 {
        match self {
            NeighbourMetric::Euclidean => sum(a, b, |x, y| (x - y) * (x - y)),
            NeighbourMetric::DotProduct => -sum(a, b, |x, y| x * y),
            NeighbourMetric::Hamming => {
                sum(a, b, |x, y| f64::from(u8::from((x > 0.0) != (y > 0.0))))
            }
            NeighbourMetric::Cosine => {
                let squares = |vector| sum(vector, vector, |x, y| x * y);
                match (squares(a) * squares(b)).sqrt() {
                    0.0 => 1.0,
                    lengths => 1.0 - sum(a, b, |x, y| x * y) / lengths,
                }
            }
        }
    }
}

/// Numbers that are added up side by side.
const LANES: usize = 8;

/// Adds up a term of each pair of elements, always in the same order.
fn sum(a: &[f32], b: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    let term = |x: &f32, y: &f32| term(f64::from(*x), f64::from(*y));
    let mut sums = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a.remainder().iter().zip(b.remainder());
    let rest: f64 = rest.map(|(x, y)| term(x, y)).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += term(&a[lane], &b[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// A kind of vectors, of which any number can be made.
#[derive(Clone)]
pub struct VectorSet {
    /// The name in arguments and results.
    pub name: &'static str,
    /// A description of one line.
    pub about: &'static str,
    /// The distance by which neighbours are the nearest.
    pub metric: NeighbourMetric,
    /// Elements of a vector.
    pub dimensions: usize,
    /// The number of vectors that are written if no other number is requested.
    pub rows: usize,
    /// The changes that follow once all are written.
    pub changes: ChurnPattern,
    pub(crate) recipe: fn(&RecipeInput<'_>) -> RecipeOutput,
}

/// Vectors to write, changes of them, and queries that are not among them.
pub struct GeneratedSet {
    /// Elements of a vector.
    pub dimensions: usize,
    /// The vectors in the order in which they are written, one after the other. The id of each is
    /// its row.
    pub base: Vec<f32>,
    /// The changes that follow, in order.
    pub changes: Vec<VectorChange>,
    /// The queries, one after the other.
    pub queries: Vec<f32>,
}

/// Vectors that are there after all changes.
pub struct RemainingVectors {
    /// The id of each, ascending.
    pub ids: Vec<u32>,
    /// The vectors, one after the other.
    pub vectors: Vec<f32>,
}

impl VectorSet {
    /// Makes `rows` vectors and `queries` queries of this kind; the same for the same seed. Sets of
    /// groups make whole groups only, and so up to one group more.
    pub fn make(
        &self,
        seed: u64,
        rows: usize,
        queries: usize,
        real: &RealSamples<'_>,
    ) -> GeneratedSet {
        let draw = RecipeInput {
            seed,
            rows: rows + self.changes.replaced(rows),
            queries,
            real,
        };
        let RecipeOutput {
            dimensions,
            mut base,
            queries,
        } = (self.recipe)(&draw);
        assert_eq!(dimensions, self.dimensions, "{}", self.name);
        let spare = match self.changes.replaced(rows) {
            0 => Vec::new(),
            _ => base.split_off(rows * dimensions),
        };
        let written = base.len() / dimensions;
        let changes = self.changes.draw(seed, written, spare, dimensions);
        GeneratedSet {
            dimensions,
            base,
            changes,
            queries,
        }
    }
}

impl GeneratedSet {
    /// The number of vectors that are written at first.
    pub fn rows(&self) -> usize {
        self.base.len() / self.dimensions
    }

    /// The vectors in the order in which they are written.
    pub fn vectors(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.base.chunks_exact(self.dimensions)
    }

    /// The queries one by one.
    pub fn each_query(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.queries.chunks_exact(self.dimensions)
    }

    /// The vectors that are there after all changes.
    pub fn left(&self) -> RemainingVectors {
        let mut now: Vec<Option<&[f32]>> = self.vectors().map(Some).collect();
        for change in &self.changes {
            match change {
                VectorChange::Replace(id, vector) => now[*id as usize] = Some(vector),
                VectorChange::Remove(id) => now[*id as usize] = None,
            }
        }
        let kept = || (0..).zip(&now).filter_map(|(id, now)| Some((id, (*now)?)));
        RemainingVectors {
            ids: kept().map(|(id, _)| id).collect(),
            vectors: kept().flat_map(|(_, vector)| vector).copied().collect(),
        }
    }
}

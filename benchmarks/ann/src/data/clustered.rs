//! Makes up vectors in overlapping clusters of a stated intrinsic dimension.
//!
//! Each cluster has a centre and spreads along a few random directions of its own. A little noise
//! fills the other dimensions. Random vectors without such a structure would have no meaningful
//! neighbours, and an index of them would tell nothing about real ones.

use contender::Metric;

use super::parallel::fill_rows;
use super::random::Random;
use super::{Made, one_kind};

/// The parameters of a set.
pub struct Shape {
    vectors: usize,
    dimensions: usize,
    metric: Metric,
    /// The number of directions that a cluster spreads along.
    intrinsic: usize,
    clusters: usize,
    /// The distance of the centres, as a multiple of the width of a cluster.
    apart: f64,
    /// The length of the noise, as a multiple of the width of a cluster.
    noise: f64,
}

/// A hundred thousand vectors as wide as those of many text encoders.
pub const WIDE: Shape = Shape {
    vectors: 100_000,
    dimensions: 768,
    metric: Metric::Cosine,
    intrinsic: 32,
    clusters: 500,
    apart: 1.0,
    noise: 0.3,
};

/// A million narrow vectors.
pub const NARROW: Shape = Shape {
    vectors: 1_000_000,
    ..NARROW_SAMPLE
};

/// A tenth of [`NARROW`].
pub const NARROW_SAMPLE: Shape = Shape {
    vectors: 100_000,
    dimensions: 96,
    metric: Metric::Euclidean,
    intrinsic: 16,
    clusters: 1_000,
    apart: 0.8,
    noise: 0.3,
};

/// The shape of a sample of any number of vectors from one distribution. It has few clusters, so
/// that even ten thousand vectors fill them. With only some vectors in each cluster, neighbours
/// would lie in other clusters, and a larger set would be easier to search.
pub const fn growing(dimensions: usize, vectors: usize) -> Shape {
    Shape {
        vectors,
        dimensions,
        intrinsic: dimensions / 3,
        clusters: 20,
        ..NARROW_SAMPLE
    }
}

const QUERIES: usize = 1_000;

const CENTRE_STREAM: u64 = 9_601;
const DIRECTION_STREAM: u64 = 9_602;
const BASE_STREAM: u64 = 9_603;
const QUERY_STREAM: u64 = 9_604;

/// Makes a set of a shape, with 1,000 queries of the same distribution.
pub fn make(shape: &Shape) -> anyhow::Result<Made> {
    let dimensions = shape.dimensions;
    let scatter = |stream, scale: f64, rows| {
        let mut all = vec![0.0; rows * dimensions];
        fill_rows(&mut all, dimensions, |first, rows| {
            for (offset, row) in rows.chunks_exact_mut(dimensions).enumerate() {
                Random::of_row(stream, first + offset).normals(row);
                row.iter_mut().for_each(|x| *x *= scale as f32);
            }
        });
        all
    };
    // The scale makes the spread of a cluster 1 on average.
    let element = 1.0 / (dimensions as f64).sqrt();
    let centres = scatter(CENTRE_STREAM, shape.apart * element, shape.clusters);
    let along = element / (shape.intrinsic as f64).sqrt();
    let directions = scatter(DIRECTION_STREAM, along, shape.clusters * shape.intrinsic);

    let sample = |stream, rows| {
        let mut all = vec![0.0; rows * dimensions];
        fill_rows(&mut all, dimensions, |first, rows| {
            for (offset, row) in rows.chunks_exact_mut(dimensions).enumerate() {
                let mut random = Random::of_row(stream, first + offset);
                let cluster = random.below(shape.clusters);
                random.normals(row);
                let centre = centres[cluster * dimensions..].iter();
                for (x, c) in row.iter_mut().zip(centre) {
                    *x = c + *x * (shape.noise * element) as f32;
                }
                let directions = directions[cluster * shape.intrinsic * dimensions..]
                    .chunks_exact(dimensions)
                    .take(shape.intrinsic);
                for direction in directions {
                    let share = random.normal() as f32;
                    row.iter_mut()
                        .zip(direction)
                        .for_each(|(x, d)| *x += share * d);
                }
            }
        });
        all
    };
    Ok(Made {
        dimensions,
        metric: shape.metric,
        base: sample(BASE_STREAM, shape.vectors),
        queries: sample(QUERY_STREAM, QUERIES),
        kinds: one_kind(QUERIES),
        remark: format!(
            "made up: {} overlapping clusters of {} dimensions each, noise {}",
            shape.clusters, shape.intrinsic, shape.noise
        ),
    })
}

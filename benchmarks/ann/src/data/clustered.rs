//! Made-up vectors in overlapping clusters of a stated intrinsic dimension.
//!
//! Each cluster spreads along a few random directions of its own around a centre of its own, and
//! a little noise fills the other dimensions. Random vectors without such a structure would have
//! no neighbours worth the name, and an index of them would tell nothing about real ones.

use contender::Metric;

use super::parallel::fill_rows;
use super::random::Random;
use super::{Made, one_kind};

/// What a set looks like.
pub struct Shape {
    vectors: usize,
    dimensions: usize,
    metric: Metric,
    /// Directions a cluster spreads along.
    intrinsic: usize,
    clusters: usize,
    /// How far apart the centres lie, to how wide a cluster is.
    apart: f64,
    /// How long the noise is, to how wide a cluster is.
    noise: f64,
}

/// A hundred thousand as wide as many text encoders make them.
pub const WIDE: Shape = Shape {
    vectors: 100_000,
    dimensions: 768,
    metric: Metric::Cosine,
    intrinsic: 32,
    clusters: 500,
    apart: 1.0,
    noise: 0.3,
};

/// A million narrow ones.
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

/// Samples of one distribution in any number. The clusters are few, so that even ten thousand vectors fill them: were
/// there only some vectors in each, neighbours would lie in other clusters, and a larger set would be an easier one.
pub const fn growing(vectors: usize) -> Shape {
    Shape {
        vectors,
        intrinsic: 32,
        clusters: 20,
        ..NARROW_SAMPLE
    }
}

const QUERIES: usize = 1_000;

const CENTRE_STREAM: u64 = 9_601;
const DIRECTION_STREAM: u64 = 9_602;
const BASE_STREAM: u64 = 9_603;
const QUERY_STREAM: u64 = 9_604;

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
    // Scaled so that a cluster's spread has length 1 on average.
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

//! A map in two dimensions of vectors in many, on which neighbours stay near.
//!
//! The two directions in which vectors vary most (principal components) are the usual map, and show
//! how vectors are spread as a whole. Hardly any vector has its nearest around it there: vectors of
//! text vary in hundreds of directions. So this map is t-SNE (van der Maaten, Hinton: Visualizing
//! Data using t-SNE, 2008), which begins with the principal components and then moves points:
//!
//! 1. The nearest vectors of each are found by measuring all pairs (`nearest`). Any sample that a
//!    screen can show is small enough for that.
//! 2. Each point gets weights for its nearest, so that as many count as `PERPLEXITY` says,
//!    wherever the point is (`affinity`).
//! 3. Points attract the nearest by these weights, and repel all others. Those far away repel as
//!    one (van der Maaten: Accelerating t-SNE using Tree-Based Algorithms, 2014; `quad_tree`).
//!    Steps down the gradient bring both to a balance (`descent`).
//!
//! A map says how well it does: the share of the ten nearest vectors whose points are
//! among the ten nearest points, next to that share of the principal components (`preserved`).
//!
//! It is our own, as work in the background has to give its turn back every few milliseconds, to
//! end when it is no longer wanted, and to leave other cores to others; no live crate does. An
//! experiment with 10,000 film plots compared it with sampled repulsion (McInnes, Healy: UMAP,
//! 2018), which preserved two thirds as many neighbours.

#![warn(clippy::unwrap_used)]

mod affinity;
mod descent;
mod drawing;
mod nearest;
mod pace;
mod preserved;
mod principal;
mod products;
mod quad_tree;
mod sample;

use affinity::NeighbourWeights;
use descent::Descent;
use nearest::{NearestVectors, PAIR_STEPS};
use preserved::preserved_share;
use principal::{AXIS_STEPS, principal_axes};

pub use drawing::{RandomDraws, drawn_places};
pub use pace::{LayoutPace, LayoutStopped};
pub use sample::{SampleMetric, VectorSample};

/// A position on a map.
pub(crate) type Position = [f32; 2];

/// One sentence that says how a map is made.
pub const METHOD: &str = "t-SNE with Barnes-Hut repulsion, perplexity 15 over the 45 nearest vectors, begun at the two \
                          principal components";

/// The number of nearest vectors that are compared with the nearest points.
pub const COMPARED_NEIGHBOURS: usize = 10;

/// The number of steps of a layout, for whoever shows how far one is.
pub const LAYOUT_STEPS: u64 = PAIR_STEPS + AXIS_STEPS + descent::STEPS as u64;

/// The number of nearest vectors that attract a point: three times the perplexity.
const ATTRACTING: usize = 45;

/// The number of nearest vectors that count for a point, as a smooth measure.
const PERPLEXITY: f32 = 15.0;

/// About the bytes of all that a point has, but for its vector: its nearest, the weights that they
/// have for each other, and its place in a tree.
const POINT_BYTES: u64 = (ATTRACTING * 3 * 8 + 160) as u64;

/// Decimals of a position.
const DECIMALS: f32 = 1e4;

/// A map of a sample of vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct MapLayout {
    /// The horizontal position of each vector, in the order of the sample: from -1 to 1, with four
    /// decimals.
    pub x: Vec<f32>,
    /// The vertical position of each vector, in the same unit.
    pub y: Vec<f32>,
    /// The mean share of the nearest vectors of a vector whose points are among the nearest points:
    /// of [`COMPARED_NEIGHBOURS`], for up to 1,000 drawn vectors. `None` for fewer than two.
    pub neighbours_kept: Option<f64>,
    /// That share on a map of the two principal components.
    pub neighbours_kept_by_pca: Option<f64>,
}

/// About the most bytes that a layout takes, with the sample.
pub fn layout_bytes(points: usize, dimensions: usize) -> u64 {
    points as u64 * (4 * dimensions as u64 + POINT_BYTES)
}

/// Makes the map of a sample. A sample and a seed have one map. It takes five to eight seconds of
/// one core for 10,000 vectors of 384 dimensions, and half of that grows with the square of their
/// number.
///
/// # Errors
/// If `pace` says that the layout is not wanted any more.
pub fn lay_out(
    sample: &VectorSample,
    seed: u64,
    pace: &mut LayoutPace<'_>,
) -> Result<MapLayout, LayoutStopped> {
    let mut draws = RandomDraws::new(seed);
    let nearest = NearestVectors::find(sample, ATTRACTING, pace)?;
    let axes = principal_axes(sample, &mut draws, pace)?;
    let weights = NeighbourWeights::balanced(&nearest, PERPLEXITY, pace)?;
    let mut descent = Descent::begin(&axes, &mut draws);
    descent.run(&weights, pace)?;
    let positions = scaled(descent.positions());
    let judged = drawn_places(sample.len(), preserved::JUDGED_MAX, seed);
    let neighbours_kept = preserved_share(sample, &nearest, &positions, &judged, pace)?;
    let neighbours_kept_by_pca = preserved_share(sample, &nearest, &axes, &judged, pace)?;
    Ok(MapLayout {
        x: positions.iter().map(|[x, _]| *x).collect(),
        y: positions.iter().map(|[_, y]| *y).collect(),
        neighbours_kept,
        neighbours_kept_by_pca,
    })
}

/// Brings positions around the middle of all into [-1, 1], both axes by one factor, and rounds
/// them.
fn scaled(positions: &[Position]) -> Vec<Position> {
    let bounds = positions.iter().fold(
        [[f32::INFINITY, f32::NEG_INFINITY]; 2],
        |bounds, position| {
            [0, 1].map(|axis: usize| {
                let [low, high] = bounds[axis];
                [low.min(position[axis]), high.max(position[axis])]
            })
        },
    );
    let middle = bounds.map(|[low, high]| f32::midpoint(low, high));
    let reach = bounds.map(|[low, high]| (high - low) / 2.0);
    let reach = reach[0].max(reach[1]).max(f32::MIN_POSITIVE);
    let place = |position: &Position| {
        [0, 1].map(|axis: usize| {
            let scaled = ((position[axis] - middle[axis]) / reach).clamp(-1.0, 1.0);
            // Adding zero makes -0 a 0.
            (scaled * DECIMALS).round() / DECIMALS + 0.0
        })
    };
    positions.iter().map(place).collect()
}

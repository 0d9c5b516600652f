//! Clusters of one width and size, of many, and of clusters in clusters.

use super::{BASE, COMMON, QUERIES};
use crate::arithmetic::{add, ten_to};
use crate::draw::{RecipeInput, RecipeOutput};
use crate::random::SplitMixGenerator;

/// Elements of a vector.
pub const DIMENSIONS: usize = 96;

/// The standard deviation of an element of a centre.
const CENTRES: f64 = 3.0;
/// The standard deviation of an element within a cluster.
const SPREAD: f64 = 0.3;

/// Clusters whose sizes or widths differ.
const UNEQUAL: usize = 300;

/// Widths of clusters in clusters, the outermost first.
const NESTED_WIDTHS: [f64; 3] = [1.0, 0.1, 0.01];
/// Clusters in each of the outermost.
const NESTED_CLUSTERS: usize = 25;
/// Vectors in each of the innermost.
const NESTED_VECTORS: usize = 60;

/// The order in which clusters are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ClusterOrder {
    /// At random.
    Random,
    /// One after the other.
    ByCluster,
}

/// A cluster.
struct GaussianCluster {
    centre: Vec<f32>,
    spread: f64,
}

impl GaussianCluster {
    fn one(&self, random: &mut SplitMixGenerator) -> Vec<f32> {
        let mut vector = self.centre.clone();
        add(&mut vector, self.spread, &random.normals(DIMENSIONS));
        vector
    }
}

/// Clusters of `size` vectors each.
pub fn even(draw: &RecipeInput<'_>, size: usize, order: ClusterOrder) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let clusters: Vec<GaussianCluster> = (0..draw.rows.div_ceil(size))
        .map(|_| GaussianCluster {
            centre: centre(&mut random, CENTRES),
            spread: SPREAD,
        })
        .collect();
    of_size(draw, &clusters, size, order)
}

/// Clusters whose sizes follow Zipf's law.
pub fn zipf(draw: &RecipeInput<'_>) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let clusters: Vec<GaussianCluster> = (0..UNEQUAL)
        .map(|_| GaussianCluster {
            centre: centre(&mut random, CENTRES),
            spread: SPREAD,
        })
        .collect();
    let mut total = 0.0;
    let ends: Vec<f64> = (1..=UNEQUAL)
        .map(|rank| {
            total += 1.0 / rank as f64;
            total
        })
        .collect();
    draw.each(DIMENSIONS, |random| {
        clusters[random.weighted(&ends)].one(random)
    })
}

/// Clusters of widths from a hundredth of the distance of their centres up to the distance itself.
pub fn every_width(draw: &RecipeInput<'_>) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let clusters: Vec<GaussianCluster> = (0..UNEQUAL)
        .map(|number| GaussianCluster {
            centre: centre(&mut random, CENTRES),
            spread: CENTRES * ten_to(-2.0 * number as f64 / (UNEQUAL - 1) as f64),
        })
        .collect();
    draw.each(DIMENSIONS, |random| {
        clusters[random.below(UNEQUAL)].one(random)
    })
}

/// Clusters in clusters in clusters.
pub fn nested(draw: &RecipeInput<'_>) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let outer = draw.rows.div_ceil(NESTED_CLUSTERS * NESTED_VECTORS);
    let mut clusters = Vec::new();
    for _ in 0..outer {
        let outer = centre(&mut random, NESTED_WIDTHS[0]);
        for _ in 0..NESTED_CLUSTERS {
            let mut inner = outer.clone();
            add(&mut inner, NESTED_WIDTHS[1], &random.normals(DIMENSIONS));
            clusters.push(GaussianCluster {
                centre: inner,
                spread: NESTED_WIDTHS[2],
            });
        }
    }
    of_size(draw, &clusters, NESTED_VECTORS, ClusterOrder::Random)
}

fn centre(random: &mut SplitMixGenerator, spread: f64) -> Vec<f32> {
    let mut centre = vec![0.0; DIMENSIONS];
    add(&mut centre, spread, &random.normals(DIMENSIONS));
    centre
}

/// Vectors of each cluster, and queries of random ones.
fn of_size(
    draw: &RecipeInput<'_>,
    clusters: &[GaussianCluster],
    size: usize,
    order: ClusterOrder,
) -> RecipeOutput {
    let mut random = draw.random(BASE);
    let mut places: Vec<usize> = (0..clusters.len() * size).collect();
    if order == ClusterOrder::Random {
        random.shuffle(&mut places);
    }
    let base = places
        .iter()
        .flat_map(|place| clusters[place / size].one(&mut random))
        .collect();
    let mut random = draw.random(QUERIES);
    let query = |_| {
        let cluster = random.below(clusters.len());
        clusters[cluster].one(&mut random)
    };
    RecipeOutput {
        dimensions: DIMENSIONS,
        base,
        queries: (0..draw.queries).flat_map(query).collect(),
    }
}

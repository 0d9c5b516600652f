//! Factors of a recommendation: a user likes what has a large inner product.

use super::{BASE, QUERIES};
use crate::arithmetic::{exp, ln, scale};
use crate::draw::{RecipeInput, RecipeOutput};
use crate::random::SplitMixGenerator;

/// Elements of a factor.
pub const DIMENSIONS: usize = 128;

/// The length of the item of a rank is `rank` to this power: popular items are longer.
const POPULARITY: f64 = -0.25;

/// Items, and users as queries. All users like what is popular a little.
pub fn factors(draw: &RecipeInput<'_>) -> RecipeOutput {
    let mut random = draw.random(BASE);
    let mut ranks: Vec<usize> = (1..=draw.rows).collect();
    random.shuffle(&mut ranks);
    let item = |rank: usize| {
        let mut item = taste(&mut random);
        scale(&mut item, exp(POPULARITY * ln(rank as f64)));
        item
    };
    let base = ranks.into_iter().flat_map(item).collect();
    let mut random = draw.random(QUERIES);
    RecipeOutput {
        dimensions: DIMENSIONS,
        base,
        queries: (0..draw.queries).flat_map(|_| taste(&mut random)).collect(),
    }
}

/// A vector of which the first dimensions say most, and the very first is above 0.
fn taste(random: &mut SplitMixGenerator) -> Vec<f32> {
    let mut vector = random.normals(DIMENSIONS);
    for (x, rank) in vector.iter_mut().zip(1..) {
        *x = (f64::from(*x) / f64::from(rank).sqrt()) as f32;
    }
    vector[0] = vector[0].abs();
    vector
}

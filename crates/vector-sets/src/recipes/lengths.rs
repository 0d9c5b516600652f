//! Vectors whose lengths differ, for the dot product.

use super::texts::texts;
use crate::arithmetic::{length, scale};
use crate::draw::{RecipeInput, RecipeOutput};
use crate::random::SplitMixGenerator;

/// The stream of the lengths.
const LENGTHS: u64 = 21;

/// Elements of a random vector.
pub const DIMENSIONS: usize = 96;

/// The order in which vectors of different lengths are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LengthOrder {
    /// At random.
    Random,
    /// The longest first.
    LongFirst,
    /// The longest last.
    LongLast,
}

/// Texts whose lengths are lognormal.
pub fn of_texts(draw: &RecipeInput<'_>, sigma: f64) -> RecipeOutput {
    lengthen(draw, texts(draw), sigma)
}

/// Random directions whose lengths are lognormal.
pub fn of_random(draw: &RecipeInput<'_>, sigma: f64, order: LengthOrder) -> RecipeOutput {
    let directions = draw.each(DIMENSIONS, |random| random.direction(DIMENSIONS));
    let mut drawn = lengthen(draw, directions, sigma);
    if order != LengthOrder::Random {
        let mut rows: Vec<&[f32]> = drawn.base.chunks_exact(DIMENSIONS).collect();
        rows.sort_by(|a, b| length(a).total_cmp(&length(b)));
        if order == LengthOrder::LongFirst {
            rows.reverse();
        }
        drawn.base = rows.concat();
    }
    drawn
}

/// Multiplies the vectors, and not the queries, whose lengths mean nothing.
fn lengthen(draw: &RecipeInput<'_>, mut drawn: RecipeOutput, sigma: f64) -> RecipeOutput {
    let mut random = SplitMixGenerator::new(draw.seed, LENGTHS);
    for row in drawn.base.chunks_exact_mut(drawn.dimensions) {
        scale(row, random.lognormal(sigma));
    }
    drawn
}

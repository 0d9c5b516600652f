//! Embeddings of texts: real ones where the caller has them, and a mixture that resembles them.

use super::{BASE, COMMON, QUERIES};
use crate::arithmetic::{add, normalise};
use crate::draw::{RecipeInput, RecipeOutput};

/// Elements of an embedding.
pub const DIMENSIONS: usize = 384;

/// Themes of made texts.
const THEMES: usize = 40;
/// Topics of each theme.
const TOPICS: usize = 25;

/// Texts and queries of the same kind.
pub fn texts(draw: &RecipeInput<'_>) -> RecipeOutput {
    match draw.real.texts {
        Some(real) => real.choose(draw, DIMENSIONS),
        None => made(draw),
    }
}

/// Texts that others are made from: `count` in random order.
pub(super) fn originals(draw: &RecipeInput<'_>, count: usize) -> Vec<Vec<f32>> {
    let draw = RecipeInput {
        rows: count,
        queries: 0,
        ..*draw
    };
    let drawn = texts(&draw).base;
    drawn
        .chunks_exact(DIMENSIONS)
        .map(<[f32]>::to_vec)
        .collect()
}

/// A mixture: themes with topics in them, and what a text itself says, most of it along few
/// directions.
fn made(draw: &RecipeInput<'_>) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let mean = random.direction(DIMENSIONS);
    let mut centres = Vec::new();
    for _ in 0..THEMES {
        let mut theme = mean.clone();
        add(&mut theme, 1.2, &random.direction(DIMENSIONS));
        for _ in 0..TOPICS {
            let mut topic = theme.clone();
            add(&mut topic, 1.2, &random.direction(DIMENSIONS));
            centres.push(topic);
        }
    }
    let widths: Vec<f64> = (0..DIMENSIONS)
        .map(|place| 0.16 / (1.0 + place as f64 / 12.0).sqrt())
        .collect();
    let sample = |stream, count: usize| -> Vec<f32> {
        let mut random = draw.random(stream);
        let one = |_| {
            let mut text = centres[random.below(centres.len())].clone();
            for (x, width) in text.iter_mut().zip(&widths) {
                *x += (width * random.normal()) as f32;
            }
            normalise(&mut text);
            text
        };
        (0..count).flat_map(one).collect()
    };
    RecipeOutput {
        dimensions: DIMENSIONS,
        base: sample(BASE, draw.rows),
        queries: sample(QUERIES, draw.queries),
    }
}

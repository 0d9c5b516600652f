//! Vectors of more dimensions than texts have: texts lifted and blurred.

use super::texts::{self, texts};
use super::{BASE, COMMON, QUERIES};
use crate::arithmetic::{add, length, normalise, product, scale};
use crate::draw::{RecipeInput, RecipeOutput};
use crate::random::SplitMixGenerator;

/// Elements of a lifted text.
pub const DIMENSIONS: usize = 1_536;

/// The length of the noise, as a share of a vector's. `benchmarks/ann` lifts texts with as much,
/// which makes them as hard as OpenAI's vectors.
const NOISE: f64 = 0.85;

/// Texts in as many dimensions as OpenAI's vectors have. Angles are preserved but for the noise.
pub fn lifted_texts(draw: &RecipeInput<'_>) -> RecipeOutput {
    let map = orthonormal(&mut draw.random(COMMON));
    let drawn = texts(draw);
    let lift = |texts: &[f32], stream| -> Vec<f32> {
        let mut random = draw.random(stream + 100);
        let rows = texts.chunks_exact(texts::DIMENSIONS);
        rows.flat_map(|text| lifted(&map, text, &mut random))
            .collect()
    };
    RecipeOutput {
        dimensions: DIMENSIONS,
        base: lift(&drawn.base, BASE),
        queries: lift(&drawn.queries, QUERIES),
    }
}

fn lifted(map: &[Vec<f32>], text: &[f32], random: &mut SplitMixGenerator) -> Vec<f32> {
    let mut vector = vec![0.0f32; DIMENSIONS];
    for (direction, &share) in map.iter().zip(text) {
        let elements = vector.iter_mut().zip(direction);
        elements.for_each(|(x, d)| *x += share * d);
    }
    let noise = random.direction(DIMENSIONS);
    let factor = NOISE * length(&vector);
    add(&mut vector, factor, &noise);
    normalise(&mut vector);
    vector
}

/// Directions at right angles to each other, one for each dimension of a text.
fn orthonormal(random: &mut SplitMixGenerator) -> Vec<Vec<f32>> {
    let mut rows: Vec<Vec<f32>> = Vec::new();
    for _ in 0..texts::DIMENSIONS {
        let mut row = random.direction(DIMENSIONS);
        for earlier in &rows {
            let shared = product(&row, earlier);
            add(&mut row, -shared, earlier);
        }
        let factor = length(&row).recip();
        scale(&mut row, factor);
        rows.push(row);
    }
    rows
}

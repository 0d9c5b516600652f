//! Vectors of which few elements matter: sparse ones, bits, and those near a plane.

use super::COMMON;
use crate::arithmetic::{add, normalise};
use crate::draw::{RecipeInput, RecipeOutput};
use crate::random::SplitMixGenerator;

/// The share of elements of a sparse vector that are not 0.
const FILLED: f64 = 0.05;

/// Patterns that rows of bits are made from.
const PATTERNS: usize = 500;
/// The share of bits that differ from those of the pattern.
const FLIPPED: f64 = 0.15;

/// The noise off a plane.
const NOISE: f64 = 0.05;

/// Kinds of histograms.
const DESCRIPTORS: usize = 200;

/// Vectors of which all but one in twenty elements are 0.
pub fn sparse(draw: &RecipeInput<'_>, dimensions: usize) -> RecipeOutput {
    draw.each(dimensions, |random| {
        let mut vector = vec![0.0; dimensions];
        // One at least, so that there is a direction.
        vector[random.below(dimensions)] = 1.0;
        for x in &mut vector {
            if random.uniform() < FILLED {
                *x = random.normal().abs() as f32;
            }
        }
        vector
    })
}

/// Zeros and ones near one of some patterns.
pub fn bits(draw: &RecipeInput<'_>, dimensions: usize) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let patterns: Vec<Vec<bool>> = (0..PATTERNS)
        .map(|_| (0..dimensions).map(|_| bit(&mut random)).collect())
        .collect();
    draw.each(dimensions, |random| {
        let pattern = &patterns[random.below(PATTERNS)];
        let bits = pattern.iter();
        bits.map(|bit| f32::from(u8::from(*bit != (random.uniform() < FLIPPED))))
            .collect()
    })
}

/// Zeros and ones at random.
pub fn random_bits(draw: &RecipeInput<'_>, dimensions: usize) -> RecipeOutput {
    draw.each(dimensions, |random| {
        (0..dimensions)
            .map(|_| f32::from(u8::from(bit(random))))
            .collect()
    })
}

fn bit(random: &mut SplitMixGenerator) -> bool {
    random.word() >> 63 == 1
}

/// Vectors along `rank` directions with a little noise in all others.
pub fn low_rank(draw: &RecipeInput<'_>, dimensions: usize, rank: usize) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let directions: Vec<Vec<f32>> = (0..rank).map(|_| random.direction(dimensions)).collect();
    draw.each(dimensions, |random| {
        let mut vector = vec![0.0; dimensions];
        for direction in &directions {
            add(&mut vector, random.normal(), direction);
        }
        let noise = NOISE / (dimensions as f64).sqrt();
        add(&mut vector, noise, &random.normals(dimensions));
        vector
    })
}

/// Counts as those of gradients in an image: whole numbers from 0 to 255, many of them 0.
pub fn histograms(draw: &RecipeInput<'_>, dimensions: usize) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let kinds: Vec<Vec<f32>> = (0..DESCRIPTORS)
        .map(|_| random.normals(dimensions))
        .collect();
    draw.each(dimensions, |random| {
        let mut vector = random.normals(dimensions);
        add(&mut vector, 1.0, &kinds[random.below(DESCRIPTORS)]);
        vector.iter_mut().for_each(|x| *x = x.max(0.0));
        normalise(&mut vector);
        vector
            .iter_mut()
            .for_each(|x| *x = (512.0 * *x).min(255.0).round());
        vector
    })
}

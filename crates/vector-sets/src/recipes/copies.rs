//! Vectors that are nearly the same: copies, photographs of one face, texts from one template.

use super::texts::{self, originals};
use super::{BASE, COMMON, QUERIES};
use crate::arithmetic::{add, normalise, product, scale};
use crate::draw::{RecipeInput, RecipeOutput};
use crate::random::SplitMixGenerator;

/// Elements of the vector of a face.
pub const FACE_DIMENSIONS: usize = 512;
/// Photographs of one person.
const PHOTOGRAPHS: usize = 60;
/// The cosine between two photographs of one person.
const SAME_PERSON: f64 = 0.8;

/// Elements of a vector that is there several times.
pub const DUPLICATE_DIMENSIONS: usize = 128;
/// The number of times that it is there.
const DUPLICATES: usize = 10;

/// The length of what differs between texts from one template, next to what they share.
const OWN_PART: f64 = 0.2;

/// Makes `each` copies of every original, in random order. The cosine of each copy with its
/// original is `cosine`.
pub fn of_texts(draw: &RecipeInput<'_>, each: usize, cosine: f64) -> RecipeOutput {
    let originals = originals(draw, draw.rows.div_ceil(each));
    groups(draw, each, &originals, |original, random| {
        copy(original, cosine, random)
    })
}

/// Photographs of people, in random order.
pub fn faces(draw: &RecipeInput<'_>) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let people = draw.rows.div_ceil(PHOTOGRAPHS);
    let people: Vec<Vec<f32>> = (0..people)
        .map(|_| random.direction(FACE_DIMENSIONS))
        .collect();
    groups(draw, PHOTOGRAPHS, &people, |person, random| {
        copy(person, SAME_PERSON.sqrt(), random)
    })
}

/// Random vectors, each of them several times.
pub fn duplicates(draw: &RecipeInput<'_>) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let originals = draw.rows.div_ceil(DUPLICATES);
    let originals: Vec<Vec<f32>> = (0..originals)
        .map(|_| random.normals(DUPLICATE_DIMENSIONS))
        .collect();
    groups(draw, DUPLICATES, &originals, |original, _| {
        original.to_vec()
    })
}

/// Texts that share most of their words.
pub fn template(draw: &RecipeInput<'_>) -> RecipeOutput {
    let shared = draw.random(COMMON).direction(texts::DIMENSIONS);
    let mut drawn = texts::texts(draw);
    for part in [&mut drawn.base, &mut drawn.queries] {
        for row in part.chunks_exact_mut(texts::DIMENSIONS) {
            scale(row, OWN_PART);
            add(row, 1.0, &shared);
            normalise(row);
        }
    }
    drawn
}

/// Makes `each` vectors of every original, in random order; each query of a random one.
fn groups(
    draw: &RecipeInput<'_>,
    each: usize,
    originals: &[Vec<f32>],
    one: impl Fn(&[f32], &mut SplitMixGenerator) -> Vec<f32>,
) -> RecipeOutput {
    let mut random = draw.random(BASE);
    let order = random.permutation(originals.len() * each);
    let base = order
        .iter()
        .flat_map(|place| one(&originals[place / each], &mut random))
        .collect();
    let mut random = draw.random(QUERIES);
    let query = |_| {
        let original = random.below(originals.len());
        one(&originals[original], &mut random)
    };
    RecipeOutput {
        dimensions: originals[0].len(),
        base,
        queries: (0..draw.queries).flat_map(query).collect(),
    }
}

/// A vector of length 1 at a cosine from another of length 1.
fn copy(original: &[f32], cosine: f64, random: &mut SplitMixGenerator) -> Vec<f32> {
    let mut other = random.normals(original.len());
    let shared = product(&other, original);
    add(&mut other, -shared, original);
    normalise(&mut other);
    let mut copy = original.to_vec();
    scale(&mut copy, cosine);
    add(&mut copy, (1.0 - cosine * cosine).sqrt(), &other);
    copy
}

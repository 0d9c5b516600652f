//! Independent numbers in every dimension.

use super::COMMON;
use crate::arithmetic::{add, ten_to};
use crate::draw::{RecipeInput, RecipeOutput};

/// The distance that the mean moves while vectors are written. Two random vectors of one time are
/// about 14 apart.
const DRIFT: f64 = 30.0;

/// The logarithms of the smallest and the largest scale of a dimension.
const SCALES: (f64, f64) = (-3.0, 3.0);

/// Normal numbers about a mean that is the same in every dimension.
pub fn normal(draw: &RecipeInput<'_>, dimensions: usize, mean: f32) -> RecipeOutput {
    draw.each(dimensions, |random| {
        let mut vector = random.normals(dimensions);
        vector.iter_mut().for_each(|x| *x += mean);
        vector
    })
}

/// Numbers whose variance is infinite.
pub fn heavy_tails(draw: &RecipeInput<'_>, dimensions: usize) -> RecipeOutput {
    draw.each(dimensions, |random| {
        (0..dimensions).map(|_| random.student_2() as f32).collect()
    })
}

/// Numbers uniform between 0 and 1.
pub fn uniform(draw: &RecipeInput<'_>, dimensions: usize) -> RecipeOutput {
    draw.each(dimensions, |random| {
        (0..dimensions).map(|_| random.uniform() as f32).collect()
    })
}

/// Normal numbers whose scale differs by dimension, from a thousandth to a thousand.
pub fn scales(draw: &RecipeInput<'_>, dimensions: usize) -> RecipeOutput {
    let step = (SCALES.1 - SCALES.0) / (dimensions - 1) as f64;
    let mut scales: Vec<f64> = (0..dimensions)
        .map(|dimension| ten_to(SCALES.0 + step * dimension as f64))
        .collect();
    draw.random(COMMON).shuffle(&mut scales);
    draw.each(dimensions, |random| {
        let scales = scales.iter();
        scales
            .map(|scale| (scale * random.normal()) as f32)
            .collect()
    })
}

/// Normal numbers whose mean moves from the first vector to the last. Queries are of any time.
pub fn drift(draw: &RecipeInput<'_>, dimensions: usize) -> RecipeOutput {
    let direction = draw.random(COMMON).direction(dimensions);
    let mut all = draw.random(super::BASE);
    let count = draw.with_queries();
    let rows: Vec<f32> = (0..count)
        .flat_map(|row| {
            let mut vector = all.normals(dimensions);
            add(&mut vector, DRIFT * row as f64 / count as f64, &direction);
            vector
        })
        .collect();
    draw.hold_out(dimensions, &rows)
}

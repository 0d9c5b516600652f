//! Images of digits: real ones where the caller has them, and strokes that resemble them.

use super::COMMON;
use crate::draw::{RecipeInput, RecipeOutput};
use crate::random::SplitMixGenerator;

/// Pixels on a side.
const SIDE: usize = 28;
/// Elements of an image: its pixels, each from 0 to 255.
pub const DIMENSIONS: usize = SIDE * SIDE;

/// Ways of writing; the real ones are ten digits by many hands.
const SHAPES: usize = 40;
/// Corners of a stroke.
const CORNERS: usize = 5;
/// Points of a stroke between two corners.
const POINTS: usize = 12;

/// Images and queries of the same kind.
pub fn digits(draw: &RecipeInput<'_>) -> RecipeOutput {
    if let Some(real) = draw.real.digits {
        return real.choose(draw, DIMENSIONS);
    }
    let mut random = draw.random(COMMON);
    let corner = |random: &mut SplitMixGenerator| {
        [5.0 + 18.0 * random.uniform(), 5.0 + 18.0 * random.uniform()]
    };
    let shapes: Vec<[[f64; 2]; CORNERS]> = (0..SHAPES)
        .map(|_| std::array::from_fn(|_| corner(&mut random)))
        .collect();
    draw.each(DIMENSIONS, |random| {
        let mut corners = shapes[random.below(SHAPES)];
        for place in corners.iter_mut().flatten() {
            *place += 1.2 * random.normal();
        }
        stroke(&corners)
    })
}

/// Draws a stroke from corner to corner, about two pixels wide.
fn stroke(corners: &[[f64; 2]]) -> Vec<f32> {
    let mut image = vec![0.0f32; DIMENSIONS];
    for ends in corners.windows(2) {
        for step in 0..POINTS {
            let along = step as f64 / POINTS as f64;
            let at = [0, 1].map(|axis| ends[0][axis] + along * (ends[1][axis] - ends[0][axis]));
            dab(&mut image, at);
        }
    }
    image
}

/// Darkens the pixels about a point.
fn dab(image: &mut [f32], [row, column]: [f64; 2]) {
    let near =
        |at: f64| (at.floor() - 1.0).max(0.0) as usize..=(at.floor() + 2.0).max(0.0) as usize;
    for y in near(row).filter(|y| *y < SIDE) {
        for x in near(column).filter(|x| *x < SIDE) {
            let square =
                (y as f64 - row) * (y as f64 - row) + (x as f64 - column) * (x as f64 - column);
            let ink = (255.0 * (1.0 - square / 4.0).max(0.0)).round() as f32;
            let pixel = &mut image[y * SIDE + x];
            *pixel = pixel.max(ink);
        }
    }
}

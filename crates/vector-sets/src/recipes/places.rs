//! Places on a map, most of them in cities.

use super::COMMON;
use crate::arithmetic::{add, normalise};
use crate::draw::{RecipeInput, RecipeOutput};
use crate::random::SplitMixGenerator;

/// Cities, whose sizes follow Zipf's law.
const CITIES: usize = 500;
/// The share of places that are in no city.
const OUTSIDE: f64 = 0.1;

/// The width of a city in degrees.
const DEGREES: f64 = 0.1;
/// The width of a city on a sphere of radius 1.
const RADIANS: f64 = 0.002;

/// Latitudes and longitudes in degrees.
pub fn flat(draw: &RecipeInput<'_>) -> RecipeOutput {
    let place = |random: &mut SplitMixGenerator| {
        let (latitude, longitude) = (random.uniform(), random.uniform());
        vec![
            (150.0 * latitude - 75.0) as f32,
            (360.0 * longitude - 180.0) as f32,
        ]
    };
    of(draw, 2, place, |city, random| {
        add(city, DEGREES, &random.normals(2));
    })
}

/// Points on a sphere of radius 1.
pub fn on_sphere(draw: &RecipeInput<'_>) -> RecipeOutput {
    let place = |random: &mut SplitMixGenerator| random.direction(3);
    of(draw, 3, place, |city, random| {
        add(city, RADIANS, &random.normals(3));
        normalise(city);
    })
}

fn of(
    draw: &RecipeInput<'_>,
    dimensions: usize,
    place: impl Fn(&mut SplitMixGenerator) -> Vec<f32>,
    move_within: impl Fn(&mut Vec<f32>, &mut SplitMixGenerator),
) -> RecipeOutput {
    let mut random = draw.random(COMMON);
    let cities: Vec<Vec<f32>> = (0..CITIES).map(|_| place(&mut random)).collect();
    let mut total = 0.0;
    let ends: Vec<f64> = (1..=CITIES)
        .map(|rank| {
            total += 1.0 / rank as f64;
            total
        })
        .collect();
    draw.each(dimensions, |random| {
        if random.uniform() < OUTSIDE {
            return place(random);
        }
        let mut at = cities[random.weighted(&ends)].clone();
        move_within(&mut at, random);
        at
    })
}

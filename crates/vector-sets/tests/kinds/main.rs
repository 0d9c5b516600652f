//! Every kind has the size it is asked for and is the same each time, and the property it is named
//! for.

mod properties;
mod sizes;

use vector_sets::{GeneratedSet, RealSamples, find};

/// Makes a set without real vectors.
fn made(name: &str, rows: usize, queries: usize) -> GeneratedSet {
    let set = find(name).unwrap_or_else(|| panic!("{name}"));
    set.make(1, rows, queries, &RealSamples::default())
}

/// The inner product of two vectors.
fn product(a: &[f32], b: &[f32]) -> f64 {
    let pairs = a.iter().zip(b);
    pairs.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// The cosine of two vectors.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    product(a, b) / (product(a, a) * product(b, b)).sqrt()
}

/// The squared distance of two vectors.
fn square(a: &[f32], b: &[f32]) -> f64 {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(x, y)| f64::from(x - y) * f64::from(x - y))
        .sum()
}

/// The largest number of what is measured between a vector and all others but itself.
fn best(vectors: &[&[f32]], row: usize, measure: fn(&[f32], &[f32]) -> f64) -> f64 {
    let others = vectors
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != row);
    let measured = others.map(|(_, other)| measure(vectors[row], other));
    measured.fold(f64::NEG_INFINITY, f64::max)
}

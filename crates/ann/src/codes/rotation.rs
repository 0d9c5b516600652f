//! A random rotation that takes `d log d` steps: it spreads every vector evenly over all
//! dimensions, so that one step size for all of them suits a code of few bits.
//!
//! A round flips random signs and applies the fast Walsh-Hadamard transform, once to the first
//! and once to the last window of the vector, as long as the largest power of two that fits; so
//! vectors need no padding, as in RaBitQ's library. Where the two windows overlap little, they would
//! exchange little, and so a round ends with a step of Kac's walk: each dimension of the lower
//! half is turned by 45 degrees against its fellow in the upper half. Two rounds leave of the
//! unit vector of any dimension about an equal share in every other (Ailon and Chazelle, "The fast
//! Johnson-Lindenstrauss transform", 2009, say why random signs and the transform do that).
//!
//! Only additions and multiplications in a fixed order: the same bits on every processor.

use std::f32::consts::FRAC_1_SQRT_2;

/// Two leave the energy of any unit vector even within a few percent, whatever the dimensions.
const ROUNDS: usize = 2;

/// An orthonormal map drawn by a seed.
pub(super) struct Rotation {
    dimensions: usize,
    rounds: [Round; ROUNDS],
}

/// One round's random signs, a factor for each dimension of a window. They carry the transform's
/// normalisation along: plus or minus `1 / sqrt(window)`.
struct Round {
    first: Vec<f32>,
    /// Empty if the first window is the whole vector.
    last: Vec<f32>,
}

impl Rotation {
    /// The rotation of this many dimensions, at least 1, that belongs to a seed.
    pub(super) fn new(dimensions: usize, seed: u64) -> Rotation {
        assert!(dimensions > 0, "a vector has a dimension");
        let window = 1 << dimensions.ilog2();
        let mut bits = SplitMix64(seed);
        let rounds = std::array::from_fn(|_| Round {
            first: signs(window, &mut bits),
            last: signs(if window < dimensions { window } else { 0 }, &mut bits),
        });
        Rotation { dimensions, rounds }
    }

    /// Rotates a vector in place.
    pub(super) fn apply(&self, vector: &mut [f32]) {
        assert_eq!(vector.len(), self.dimensions);
        for round in &self.rounds {
            transform(&mut vector[..round.first.len()], &round.first);
            if !round.last.is_empty() {
                let start = vector.len() - round.last.len();
                transform(&mut vector[start..], &round.last);
                turn_halves(vector);
            }
        }
    }
}

/// Random signs times `1 / sqrt(window)`.
fn signs(window: usize, bits: &mut SplitMix64) -> Vec<f32> {
    let size = 1.0 / (window as f32).sqrt();
    let sign = |_| if bits.next() >> 63 == 0 { size } else { -size };
    (0..window).map(sign).collect()
}

/// Signs, then the Walsh-Hadamard transform; both lengths are the same power of two.
fn transform(window: &mut [f32], signs: &[f32]) {
    for (value, sign) in window.iter_mut().zip(signs) {
        *value *= sign;
    }
    let mut half = 1;
    while half < window.len() {
        for pair in window.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            butterflies(low, high);
        }
        half *= 2;
    }
}

/// `(a, b)` becomes `(a + b, a - b)` in every place.
fn butterflies(low: &mut [f32], high: &mut [f32]) {
    for (a, b) in low.iter_mut().zip(high) {
        (*a, *b) = (*a + *b, *a - *b);
    }
}

/// Turns the halves against each other; of an odd number of dimensions the middle one stays.
fn turn_halves(vector: &mut [f32]) {
    let (low, high) = vector.split_at_mut(vector.len().div_ceil(2));
    for (a, b) in low.iter_mut().zip(high) {
        (*a, *b) = ((*a + *b) * FRAC_1_SQRT_2, (*a - *b) * FRAC_1_SQRT_2);
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. Snapshots rely
/// on the numbers: they keep the seed alone.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_hot(dimensions: usize, at: usize) -> Vec<f32> {
        let mut vector = vec![0.0; dimensions];
        vector[at] = 1.0;
        vector
    }

    fn dot(a: &[f32], b: &[f32]) -> f64 {
        let products = a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y));
        products.sum()
    }

    #[test]
    fn the_numbers_are_those_of_the_paper() {
        let mut bits = SplitMix64(1_234_567);
        let first: [u64; 2] = std::array::from_fn(|_| bits.next());
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn unit_vectors_stay_orthonormal() {
        for dimensions in [1, 2, 3, 31, 96, 100, 127, 128] {
            let rotation = Rotation::new(dimensions, 7);
            let mut rotated = Vec::new();
            for at in 0..dimensions {
                let mut vector = one_hot(dimensions, at);
                rotation.apply(&mut vector);
                rotated.push(vector);
            }
            for (i, a) in rotated.iter().enumerate() {
                for (j, b) in rotated.iter().enumerate() {
                    let expected = if i == j { 1.0 } else { 0.0 };
                    let found = dot(a, b);
                    assert!(
                        (found - expected).abs() < 1e-5,
                        "{dimensions}: {i}.{j} = {found}"
                    );
                }
            }
        }
    }

    /// Averaged over seeds, every dimension gets about its share of any unit vector.
    #[test]
    fn one_dimension_spreads_evenly_over_all() {
        const SEEDS: u64 = 400;
        for dimensions in [31, 96, 127, 129, 384] {
            let rotations: Vec<_> = (0..SEEDS).map(|s| Rotation::new(dimensions, s)).collect();
            for at in [0, 1, dimensions / 3, dimensions / 2, dimensions - 1] {
                let mut energy = vec![0.0f64; dimensions];
                for rotation in &rotations {
                    let mut vector = one_hot(dimensions, at);
                    rotation.apply(&mut vector);
                    for (sum, x) in energy.iter_mut().zip(&vector) {
                        *sum += f64::from(x * x) / SEEDS as f64;
                    }
                }
                let share = 1.0 / dimensions as f64;
                let most = energy.iter().fold(0.0f64, |a, &b| a.max(b)) / share;
                let least = energy.iter().fold(f64::MAX, |a, &b| a.min(b)) / share;
                assert!(
                    most < 1.8 && least > 0.5,
                    "{dimensions}, {at}: {least} to {most}"
                );
            }
        }
    }

    #[test]
    fn seeds_differ_and_a_seed_repeats() {
        let rotated = |seed| {
            let mut vector = one_hot(96, 5);
            Rotation::new(96, seed).apply(&mut vector);
            vector
        };
        assert_eq!(rotated(1), rotated(1));
        assert_ne!(rotated(1), rotated(2));
    }

    proptest! {
        #[test]
        fn products_are_kept(
            (a, b) in (1usize..600).prop_flat_map(|n| {
                let vector = || proptest::collection::vec(-10.0f32..10.0, n);
                (vector(), vector())
            }),
            seed: u64,
        ) {
            let rotation = Rotation::new(a.len(), seed);
            let (mut x, mut y) = (a.clone(), b.clone());
            rotation.apply(&mut x);
            rotation.apply(&mut y);
            let lengths = (dot(&a, &a) * dot(&b, &b)).sqrt();
            prop_assert!((dot(&a, &b) - dot(&x, &y)).abs() <= 1e-5 * lengths);
        }
    }
}

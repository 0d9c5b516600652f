//! A random rotation that takes `d log d` steps: it spreads every vector evenly over all
//! dimensions, so that one step size for all of them suits a code of few bits.
//!
//! A round flips random signs and applies the fast Walsh-Hadamard transform, once to the first and
//! once to the last window of the vector. A window is as long as the largest power of two that
//! fits, so vectors need no padding, as in RaBitQ's library. Two windows that overlap little
//! exchange little, so between the two rounds there is a step of Kac's walk: each dimension of the
//! lower half is turned against its fellow in the upper half, by 45 degrees one way or the other.
//! Ailon and Chazelle, "The fast Johnson-Lindenstrauss transform", 2009, say why signs and the
//! transform spread any vector; the order of the steps was chosen by measuring how evenly they do.
//!
//! There are only additions and multiplications in a fixed order, so every processor gives the same
//! bits.

use std::f32::consts::FRAC_1_SQRT_2;

/// An orthonormal map drawn by a seed.
pub(super) struct Rotation {
    dimensions: usize,
    rounds: [RoundSigns; 2],
    /// Plus or minus `1 / sqrt(2)` for each dimension of the upper half. Empty if one window is
    /// the whole vector.
    turns: Vec<f32>,
}

/// The random signs of one round: a factor for each dimension of a window. They carry the
/// transform's normalisation along: plus or minus `1 / sqrt(window)`.
struct RoundSigns {
    first: Vec<f32>,
    /// The signs of the last window. Empty if the first window is the whole vector.
    last: Vec<f32>,
}

impl Rotation {
    /// The rotation of this many dimensions, at least 1, that belongs to a seed.
    pub(super) fn new(dimensions: usize, seed: u64) -> Rotation {
        assert!(dimensions > 0, "a vector has a dimension");
        let window = 1 << dimensions.ilog2();
        let (last, upper) = if window < dimensions {
            (window, dimensions / 2)
        } else {
            (0, 0)
        };
        let mut bits = SplitMix64(seed);
        let mut signs = |count, size: f32| {
            let sign = |_| if bits.next() >> 63 == 0 { size } else { -size };
            (0..count).map(sign).collect()
        };
        let size = 1.0 / (window as f32).sqrt();
        Rotation {
            dimensions,
            rounds: std::array::from_fn(|_| RoundSigns {
                first: signs(window, size),
                last: signs(last, size),
            }),
            turns: signs(upper, FRAC_1_SQRT_2),
        }
    }

    /// Rotates a vector in place.
    pub(super) fn apply(&self, vector: &mut [f32]) {
        assert_eq!(vector.len(), self.dimensions);
        let [before, after] = &self.rounds;
        before.apply(vector);
        turn_halves(vector, &self.turns);
        after.apply(vector);
    }
}

impl RoundSigns {
    fn apply(&self, vector: &mut [f32]) {
        transform(&mut vector[..self.first.len()], &self.first);
        let start = vector.len() - self.last.len();
        transform(&mut vector[start..], &self.last);
    }
}

/// Applies signs, and then the Walsh-Hadamard transform, but for the order of its results. Both
/// lengths are the same power of two.
fn transform(window: &mut [f32], signs: &[f32]) {
    for (value, sign) in window.iter_mut().zip(signs) {
        *value *= sign;
    }
    let (squares, rest) = window.as_chunks_mut::<SQUARE>();
    for square in squares {
        transform_square(square);
    }
    let mut stride = if rest.is_empty() { SQUARE } else { 1 };
    while 2 * stride < window.len() {
        for part in window.chunks_exact_mut(4 * stride) {
            mix_quarters(part);
        }
        stride *= 4;
    }
    if stride < window.len() {
        let (low, high) = window.split_at_mut(stride);
        for (a, b) in low.iter_mut().zip(high) {
            (*a, *b) = (*a + *b, *a - *b);
        }
    }
}

/// Number of values in four rows of a vector register each.
const SQUARE: usize = 16;

/// The transform of 16 values, as a square of which first the rows are mixed and then, turned over,
/// the columns. So whole registers are mixed at a time, where neighbouring values would have to be
/// shuffled. The square stays turned over, as any order will do.
fn transform_square(square: &mut [f32; SQUARE]) {
    let (rows, _) = square.as_chunks_mut::<4>();
    let [a, b, c, d] = mix([rows[0], rows[1], rows[2], rows[3]]);
    let columns = std::array::from_fn(|i| [a[i], b[i], c[i], d[i]]);
    rows.copy_from_slice(&mix(columns));
}

/// The transform of four values, in four places at a time.
fn mix([a, b, c, d]: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    let mut mixed = [[0.0; 4]; 4];
    for i in 0..4 {
        let (ab, a_b) = (a[i] + b[i], a[i] - b[i]);
        let (cd, c_d) = (c[i] + d[i], c[i] - d[i]);
        mixed[0][i] = ab + cd;
        mixed[1][i] = a_b + c_d;
        mixed[2][i] = ab - cd;
        mixed[3][i] = a_b - c_d;
    }
    mixed
}

/// Two steps of the transform at once: mixes each value with its fellows in the other quarters.
fn mix_quarters(part: &mut [f32]) {
    let (low, high) = part.split_at_mut(part.len() / 2);
    let (a, b) = low.split_at_mut(low.len() / 2);
    let (c, d) = high.split_at_mut(high.len() / 2);
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        let (ab, a_b) = (*a + *b, *a - *b);
        let (cd, c_d) = (*c + *d, *c - *d);
        (*a, *b) = (ab + cd, a_b + c_d);
        (*c, *d) = (ab - cd, a_b - c_d);
    }
}

/// Turns each dimension of the upper half against its fellow below. Of an odd number of dimensions
/// the lower half has one more.
fn turn_halves(vector: &mut [f32], turns: &[f32]) {
    let (low, high) = vector.split_at_mut(vector.len() - turns.len());
    for ((a, b), turn) in low.iter_mut().zip(high).zip(turns) {
        let (x, y) = (*a * FRAC_1_SQRT_2, *b * turn);
        (*a, *b) = (x + y, x - y);
    }
}

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
/// Snapshots rely on its numbers, as they store only the seed.
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
    use proptest::prelude::*;

    use super::*;

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
                    most < 1.45 && least > 0.68,
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

//! Makes random numbers that are the same on every machine and in every version, and can be drawn
//! for any row by itself.

use std::f64::consts::TAU;

/// The generator SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// 2014).
pub struct Random {
    state: u64,
    /// The second number of a pair of normal numbers.
    spare: Option<f64>,
}

impl Random {
    /// Makes the generator of one row of one stream.
    pub fn of_row(stream: u64, row: usize) -> Random {
        let mut seed = Random {
            state: stream,
            spare: None,
        };
        let state = seed.next() ^ (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Random { state, spare: None }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number uniform in (0, 1].
    pub fn uniform(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        ((self.next() >> 11) + 1) as f64 * STEP
    }

    /// A number uniform below `end`, nearly exactly.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// A number of the standard normal distribution (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// Fills `into` with standard normal numbers.
    pub fn normals(&mut self, into: &mut [f32]) {
        for x in into {
            *x = self.normal() as f32;
        }
    }

    /// Puts `items` in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (2..=items.len()).rev() {
            items.swap(end - 1, self.below(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        const COUNT: usize = 100_000;
        let mut random = Random::of_row(1, 2);
        let numbers: Vec<f64> = (0..COUNT).map(|_| random.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / COUNT as f64;
        let variance = numbers.iter().map(|x| x * x).sum::<f64>() / COUNT as f64;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn rows_are_repeatable_and_differ() {
        let first = |row| Random::of_row(7, row).normal();
        assert_eq!(first(3), first(3));
        assert_ne!(first(3), first(4));
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<usize> = (0..50).collect();
        Random::of_row(1, 1).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}

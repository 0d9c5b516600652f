//! Random numbers with the same bits on every machine.

use crate::arithmetic::{exp, ln};

/// The generator SplitMix64 (Steele, Lea and Flood, 2014). It uses nothing but operations that IEEE
/// 754 fixes to the last bit.
pub struct SplitMixGenerator {
    state: u64,
    /// The second number of a pair of normal numbers.
    spare: Option<f64>,
}

impl SplitMixGenerator {
    /// Makes the generator of one stream of a seed. Streams of one seed have nothing in common.
    pub fn new(seed: u64, stream: u64) -> SplitMixGenerator {
        let mut mixed = SplitMixGenerator {
            state: seed,
            spare: None,
        };
        let state = mixed.word() ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93);
        SplitMixGenerator { state, spare: None }
    }

    /// Any number of 64 bits.
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number uniform in (0, 1].
    pub fn uniform(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        ((self.word() >> 11) + 1) as f64 * STEP
    }

    /// A number uniform below `end`, nearly exactly.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.word()) * end as u128) >> 64) as usize
    }

    /// A number of the standard normal distribution (Marsaglia's polar method, 1964).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * ln(square) / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }

    /// A number whose logarithm is normal with mean 0 and standard deviation `sigma`.
    pub fn lognormal(&mut self, sigma: f64) -> f64 {
        exp(sigma * self.normal())
    }

    /// A number of Student's distribution with two degrees of freedom: its variance is infinite.
    pub fn student_2(&mut self) -> f64 {
        let normal = self.normal();
        // Never 0, so that the quotient is finite.
        let exponential = -ln(self.uniform());
        normal / exponential.max(1e-12).sqrt()
    }

    /// A vector of independent normal numbers.
    pub fn normals(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.normal() as f32).collect()
    }

    /// A vector of length 1 in a random direction.
    pub fn direction(&mut self, dimensions: usize) -> Vec<f32> {
        let mut vector = self.normals(dimensions);
        crate::arithmetic::normalise(&mut vector);
        vector
    }

    /// Puts `items` in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (2..=items.len()).rev() {
            items.swap(end - 1, self.below(end));
        }
    }

    /// A random order of `0..count`.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        self.shuffle(&mut order);
        order
    }

    /// One of the places of `ends`, by weight. `ends` are the sums of the weights up to each place.
    pub fn weighted(&mut self, ends: &[f64]) -> usize {
        let total = ends.last().copied().unwrap_or(0.0);
        let at = self.uniform() * total;
        ends.partition_point(|end| *end < at).min(ends.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        const COUNT: usize = 100_000;
        let mut random = SplitMixGenerator::new(1, 2);
        let numbers: Vec<f64> = (0..COUNT).map(|_| random.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / COUNT as f64;
        let variance = numbers.iter().map(|x| x * x).sum::<f64>() / COUNT as f64;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn numbers_are_those_of_every_machine() {
        let mut random = SplitMixGenerator::new(1, 2);
        let bits: Vec<u64> = (0..3).map(|_| random.normal().to_bits()).collect();
        assert_eq!(bits, KNOWN);
    }

    /// The first normal numbers of seed 1, stream 2.
    const KNOWN: [u64; 3] = [
        0x3fe5_bac8_313c_a9bb,
        0x4000_0566_d329_47f0,
        0xbfe5_3424_945a_df58,
    ];

    #[test]
    fn places_come_by_weight() {
        let mut random = SplitMixGenerator::new(3, 0);
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[random.weighted(&[1.0, 1.0, 4.0])] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((2_300..2_700).contains(&counts[0]), "{counts:?}");
    }
}

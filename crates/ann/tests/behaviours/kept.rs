//! Vectors as an index keeps them, by the words of [`VectorQuantization`].

use ann::{DistanceMetric, VectorQuantization};

/// The vector that distances in answers are measured to.
pub fn kept(metric: DistanceMetric, quantization: VectorQuantization, vector: &[f32]) -> Vec<f32> {
    use VectorQuantization::*;
    match (metric, quantization) {
        (DistanceMetric::Hamming, _) | (_, F32 | B1) => vector.to_vec(),
        (DistanceMetric::Cosine, I8) => {
            let largest = vector.iter().fold(0f32, |largest, x| largest.max(x.abs()));
            match largest {
                0.0 => vector.to_vec(),
                _ => vector
                    .iter()
                    .map(|x| (x / largest * 127.0).round())
                    .collect(),
            }
        }
        (DistanceMetric::Cosine, F16 | Bf16) => {
            let squares = vector.iter().map(|&x| f64::from(x).powi(2));
            let length = squares.sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            let direction = vector.iter().map(|&x| (f64::from(x) / length) as f32);
            direction.map(|x| narrow(quantization, x)).collect()
        }
        (DistanceMetric::Euclidean | DistanceMetric::DotProduct, _) => {
            vector.iter().map(|&x| narrow(quantization, x)).collect()
        }
    }
}

/// The nearest number of two bytes; of the one whose last bit is 0, if two are as near.
fn narrow(quantization: VectorQuantization, x: f32) -> f32 {
    /// The smallest half float that has all its bits.
    const NORMAL: f32 = 6.103_515_6e-5;
    /// The distance of smaller ones.
    const STEP: f32 = 5.960_464_5e-8;
    let rounded = |x: f32, bits: u32| {
        let (word, half) = (x.to_bits(), (1 << (bits - 1)) - 1);
        f32::from_bits((word + half + (word >> bits & 1)) >> bits << bits)
    };
    match quantization {
        VectorQuantization::F16 if x.abs() < NORMAL => (x / STEP).round_ties_even() * STEP,
        VectorQuantization::F16 => rounded(x.clamp(-65_504.0, 65_504.0), 13),
        _ => rounded(x, 16),
    }
}

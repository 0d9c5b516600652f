//! Functions that the standard library takes from the platform, whose last bits differ between
//! machines, and operations on vectors in a fixed order.

use std::f64::consts::{LN_2, SQRT_2};

/// The upper bits of the logarithm of 2, which whole multiples keep exactly.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
/// The rest of it.
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// The natural logarithm of a positive normal number.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1_023;
    let mut mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)).
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for odd in (1..=23).rev().step_by(2) {
        sum = sum * square + 1.0 / f64::from(odd);
    }
    exponent as f64 * LN_2 + 2.0 * s * sum
}

/// The exponential of a number between -700 and 700.
pub fn exp(x: f64) -> f64 {
    let times = (x / LN_2).round();
    let rest = x - times * LN_2_HIGH - times * LN_2_LOW;
    let mut sum = 1.0;
    for n in (1..=15).rev() {
        sum = 1.0 + sum * rest / f64::from(n);
    }
    sum * f64::from_bits(((times as i64 + 1_023) as u64) << 52)
}

/// 10 to the power of `x`.
pub fn ten_to(x: f64) -> f64 {
    exp(x * std::f64::consts::LN_10)
}

/// The inner product of two vectors.
pub fn product(a: &[f32], b: &[f32]) -> f64 {
    let pairs = a.iter().zip(b);
    pairs.map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
}

/// The length of a vector.
pub fn length(vector: &[f32]) -> f64 {
    product(vector, vector).sqrt()
}

/// Multiplies a vector by a number.
pub fn scale(vector: &mut [f32], factor: f64) {
    for x in vector {
        *x = (f64::from(*x) * factor) as f32;
    }
}

/// Scales a vector to length 1. A zero vector stays as it is.
pub fn normalise(vector: &mut [f32]) {
    let length = length(vector);
    if length > 0.0 {
        scale(vector, length.recip());
    }
}

/// Adds `factor` times `other` to a vector.
pub fn add(vector: &mut [f32], factor: f64, other: &[f32]) {
    for (x, y) in vector.iter_mut().zip(other) {
        *x = (f64::from(*x) + factor * f64::from(*y)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_exponentials_are_right() {
        for x in [1e-300, 1e-5, 0.3, 0.999, 1.0, 1.5, 2.0, 12_345.678, 1e300] {
            assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs(), "ln {x}");
        }
        for x in [-600.0, -3.3, -1e-9, 0.0, 0.5, 1.0, 10.0, 345.6, 600.0] {
            assert!((exp(x) - x.exp()).abs() <= 1e-14 * x.exp(), "exp {x}");
        }
        assert!((ten_to(-3.0) - 1e-3).abs() < 1e-17);
    }

    #[test]
    fn a_vector_gets_length_1() {
        let mut vector = [3.0, 4.0];
        normalise(&mut vector);
        assert_eq!(vector, [0.6, 0.8]);
        let mut zero = [0.0, 0.0];
        normalise(&mut zero);
        assert_eq!(zero, [0.0, 0.0]);
    }
}

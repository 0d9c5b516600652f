//! Sixteen-bit floats as bits: IEEE 754 binary16 (`f16`) and bfloat16.
//!
//! Encoding rounds to the nearest, halves to even; what is too large becomes infinity; NaN stays
//! NaN. Decoding is exact.

/// Bits of the mantissa that `f32` has beyond `f16`.
const F16_DROPPED_BITS: u32 = 13;
/// The exponent of `f16` at its place in an `f32`, all ones: infinities and NaN.
const F16_TOP_EXPONENT: u32 = 0x1f << 23;
/// All ones in the exponent of an `f32`.
const F32_TOP_EXPONENT: u32 = 0xff << 23;
/// 2^(127 - 15), the factor by which the biases of the exponents differ.
const F16_REBIAS: f32 = f32::from_bits((127 + 127 - 15) << 23);
/// The smallest normal `f16`.
const F16_MIN_NORMAL: f32 = f32::from_bits((127 - 14) << 23);
/// The smallest magnitude that rounds to infinity: halfway from the largest `f16` to 2^16.
const F16_OVERFLOW: f32 = 65_520.0;
const F16_INFINITY: u16 = 0x7c00;
const F16_QUIET_NAN: u16 = 0x7e00;
const SIGN_16: u16 = 0x8000;
/// The bit that makes a bfloat16 NaN quiet, which also keeps it from becoming an infinity.
const BF16_QUIET: u16 = 0x40;

/// The value of a half float.
#[inline]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & !SIGN_16) << F16_DROPPED_BITS;
    // The multiplication corrects the bias, and normalises numbers that are denormal as an f16.
    let mut value = (f32::from_bits(magnitude) * F16_REBIAS).to_bits();
    if magnitude >= F16_TOP_EXPONENT {
        value |= F32_TOP_EXPONENT;
    }
    f32::from_bits(value | u32::from(bits & SIGN_16) << 16)
}

/// The half float nearest to a value.
#[inline]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    let sign = (value.to_bits() >> 16) as u16 & SIGN_16;
    let magnitude = value.abs();
    let bits = if magnitude.is_nan() {
        F16_QUIET_NAN
    } else if magnitude >= F16_OVERFLOW {
        F16_INFINITY
    } else if magnitude < F16_MIN_NORMAL {
        // The last bit of 0.5 is worth 2^-24, the smallest f16, so the addition rounds there.
        ((magnitude + 0.5).to_bits() - 0.5f32.to_bits()) as u16
    } else {
        let bits = magnitude.to_bits() - ((127 - 15) << 23);
        round_off(bits, F16_DROPPED_BITS) as u16
    };
    sign | bits
}

/// The value of a bfloat16.
#[inline]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The bfloat16 nearest to a value.
#[inline]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    if value.is_nan() {
        return (value.to_bits() >> 16) as u16 | BF16_QUIET;
    }
    round_off(value.to_bits(), 16) as u16
}

/// Drops the lowest bits, rounding to the nearest, halves to even. A carry out of the mantissa
/// raises the exponent, as it should.
fn round_off(bits: u32, dropped: u32) -> u32 {
    let just_below_half = (1 << (dropped - 1)) - 1;
    let odd = bits >> dropped & 1;
    (bits + just_below_half + odd) >> dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All finite, positive values of a format in ascending order, and the infinity after them.
    fn ladder(infinity: u16, decode: fn(u16) -> f32) -> Vec<f32> {
        (0..=infinity).map(decode).collect()
    }

    /// The neighbours of a value: the float before it, itself and the float after it.
    fn around(value: f32) -> [f32; 3] {
        [value.next_down(), value, value.next_up()]
    }

    #[test]
    fn every_half_float_has_its_value_and_comes_back() {
        for bits in 0..=u16::MAX {
            let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
            let sign = if bits & SIGN_16 == 0 { 1.0 } else { -1.0 };
            let expected = match (exponent, mantissa) {
                (0x1f, 0.0) => sign * f64::INFINITY,
                (0x1f, _) => f64::NAN,
                (0, _) => sign * mantissa * 2f64.powi(-24),
                _ => sign * (1024.0 + mantissa) * 2f64.powi(exponent - 25),
            };
            let value = f16_to_f32(bits);
            if expected.is_nan() {
                assert!(value.is_nan(), "{bits:#x}");
                assert!(f16_to_f32(f32_to_f16(value)).is_nan(), "{bits:#x}");
            } else {
                assert_eq!(f64::from(value), expected, "{bits:#x}");
                assert_eq!(f32_to_f16(value), bits, "{bits:#x}");
            }
        }
    }

    #[test]
    fn every_bfloat16_is_the_upper_half_of_a_float_and_comes_back() {
        for bits in 0..=u16::MAX {
            let value = bf16_to_f32(bits);
            assert_eq!(value.to_bits(), u32::from(bits) << 16);
            if value.is_nan() {
                assert!(bf16_to_f32(f32_to_bf16(value)).is_nan(), "{bits:#x}");
            } else {
                assert_eq!(f32_to_bf16(value), bits, "{bits:#x}");
            }
        }
        // A NaN whose mantissa is wholly in the dropped half.
        assert!(bf16_to_f32(f32_to_bf16(f32::from_bits(0x7f80_0001))).is_nan());
    }

    /// Between two neighbours of the format, everything below the midpoint goes down, everything
    /// above goes up, and the midpoint goes to the even one.
    fn rounds_to_nearest_even(infinity: u16, decode: fn(u16) -> f32, encode: fn(f32) -> u16) {
        let values = ladder(infinity, decode);
        for (low, pair) in values
            .windows(2)
            .enumerate()
            .take(usize::from(infinity) - 1)
        {
            let low = low as u16;
            // Exact: the formats have at least two bits less than a float, denormals aside.
            let middle = ((f64::from(pair[0]) + f64::from(pair[1])) / 2.0) as f32;
            let even = low + (low & 1);
            let [below, at, above] = around(middle).map(encode);
            assert_eq!((below, at, above), (low, even, low + 1), "{middle:e}");
            let mirrored = around(-middle).map(encode).map(|bits| bits & !SIGN_16);
            assert_eq!(mirrored, [low + 1, even, low], "{middle:e}");
        }
    }

    #[test]
    fn encoding_rounds_to_the_nearest_and_halves_to_even() {
        rounds_to_nearest_even(F16_INFINITY, f16_to_f32, f32_to_f16);
        rounds_to_nearest_even(0x7f80, bf16_to_f32, f32_to_bf16);
    }

    #[test]
    fn too_large_floats_become_infinity_and_too_small_ones_zero() {
        assert_eq!(
            around(F16_OVERFLOW).map(f32_to_f16),
            [0x7bff, 0x7c00, 0x7c00]
        );
        assert_eq!(f32_to_f16(f32::MIN), 0xfc00);
        assert_eq!(f32_to_f16(f32::NEG_INFINITY), 0xfc00);
        assert_eq!(f32_to_bf16(f32::MAX), 0x7f80);
        assert_eq!(f32_to_f16(-1e-30), 0x8000);
        assert_eq!(f32_to_bf16(f32::from_bits(1)), 0);
    }
}

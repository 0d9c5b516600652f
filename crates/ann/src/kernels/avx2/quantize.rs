//! Quantisation of floats to levels.

use std::arch::x86_64::*;

use super::{load_floats, sum_f32};
use crate::kernels::lanes::{I8_TOP, LANES, NIBBLE_BYTES, NIBBLES, U4_MIDDLE, U4_TOP, padded};

/// Elements of a register of floats.
const WIDTH: usize = 8;
/// Elements that are written at a time, two registers.
const STEP: usize = 2 * WIDTH;

/// The constants that turn values into levels.
#[derive(Clone, Copy)]
struct F32x8Levels {
    factor: __m256,
    middle: __m256,
    bottom: __m256,
    top: __m256,
}

impl F32x8Levels {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn new(factor: f32, middle: f32, bottom: f32, top: f32) -> F32x8Levels {
        F32x8Levels {
            factor: _mm256_set1_ps(factor),
            middle: _mm256_set1_ps(middle),
            bottom: _mm256_set1_ps(bottom),
            top: _mm256_set1_ps(top),
        }
    }

    /// The levels, as integers.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn of(self, values: __m256) -> __m256i {
        // Not fused, like the scalar kernel. `max` takes its second operand in place of NaN.
        let place = _mm256_add_ps(_mm256_mul_ps(values, self.factor), self.middle);
        let place = _mm256_min_ps(_mm256_max_ps(place, self.bottom), self.top);
        _mm256_cvtps_epi32(place)
    }

    /// The levels. Adds `value * (level - middle)` to `sums`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn with_sums(self, values: &[f32; STEP], sums: &mut [__m256]) -> [__m256i; 2] {
        let values = load_step(values);
        let levels = values.map(|values| self.of(values));
        for ((sum, values), levels) in sums.iter_mut().zip(values).zip(levels) {
            let centred = _mm256_sub_ps(_mm256_cvtepi32_ps(levels), self.middle);
            *sum = _mm256_add_ps(*sum, _mm256_mul_ps(values, centred));
        }
        levels
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_step(values: &[f32; STEP]) -> [__m256; 2] {
    let ([low, high], _) = values.as_chunks::<WIDTH>() else {
        unreachable!("a step has two registers")
    };
    [load_floats(low), load_floats(high)]
}

/// Two registers of elements as 16 bits each, in order.
#[target_feature(enable = "avx2")]
#[inline]
fn narrow([low, high]: [__m256i; 2]) -> (__m128i, __m128i) {
    // Packing works within 128 bits, so the middle quarters have to change places.
    let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
    (
        _mm256_castsi256_si128(words),
        _mm256_extracti128_si256::<1>(words),
    )
}

#[target_feature(enable = "avx2")]
#[inline]
fn store<T>(bytes: __m128i, out: &mut [T; STEP]) {
    const { assert!(size_of::<T>() == 1) };
    // SAFETY: the array has the 16 bytes of the register.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) };
}

#[target_feature(enable = "avx2")]
pub(super) fn max_abs(values: &[f32]) -> f32 {
    let sign = _mm256_set1_ps(-0.0);
    let mut max = _mm256_setzero_ps();
    let (values, rest) = values.as_chunks::<WIDTH>();
    for values in values.iter().chain([&padded(rest)]) {
        // The second operand is taken if the first is NaN.
        max = _mm256_max_ps(_mm256_andnot_ps(sign, load_floats(values)), max);
    }
    let half = _mm_max_ps(_mm256_castps256_ps128(max), _mm256_extractf128_ps::<1>(max));
    let quarter = _mm_max_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_max_ss(quarter, _mm_movehdup_ps(quarter)))
}

#[target_feature(enable = "avx2")]
pub(super) fn quantize_i8(values: &[f32], factor: f32, out: &mut [i8]) -> i32 {
    assert_eq!(values.len(), out.len(), "one byte for each value");
    let levels = F32x8Levels::new(factor, 0.0, -I8_TOP, I8_TOP);
    let quantize = |values: &[f32; STEP], out: &mut [i8; STEP]| {
        let (low, high) = narrow(load_step(values).map(|values| levels.of(values)));
        store(_mm_packs_epi16(low, high), out);
    };
    let ((values, values_rest), (steps, out_rest)) = (values.as_chunks(), out.as_chunks_mut());
    for (values, out) in values.iter().zip(steps) {
        quantize(values, out);
    }
    if !values_rest.is_empty() {
        let mut bytes = [0; STEP];
        quantize(&padded(values_rest), &mut bytes);
        out_rest.copy_from_slice(&bytes[..out_rest.len()]);
    }
    out.iter().map(|&byte| i32::from(byte)).sum()
}

#[target_feature(enable = "avx2")]
pub(super) fn quantize_u4(values: &[f32], factor: f32, out: &mut [u8]) -> f32 {
    assert_eq!(values.len(), 2 * out.len(), "one nibble for each value");
    let (values, []) = values.as_chunks::<NIBBLES>() else {
        panic!("whole blocks of nibbles")
    };
    let levels = F32x8Levels::new(factor, U4_MIDDLE, 0.0, U4_TOP);
    let mut sums = [_mm256_setzero_ps(); LANES / WIDTH];
    let (low_sums, high_sums) = sums.split_at_mut(LANES / WIDTH / 2);
    for (values, out) in values.iter().zip(out.chunks_mut(NIBBLE_BYTES)) {
        let (values, _) = values.as_chunks::<STEP>();
        let (low, high) = values.split_at(values.len() / 2);
        let (out, _) = out.as_chunks_mut::<STEP>();
        for ((low, high), out) in low.iter().zip(high).zip(out) {
            let [low_0, low_1] = levels.with_sums(low, low_sums);
            let [high_0, high_1] = levels.with_sums(high, high_sums);
            let bytes_0 = _mm256_or_si256(low_0, _mm256_slli_epi32::<4>(high_0));
            let bytes_1 = _mm256_or_si256(low_1, _mm256_slli_epi32::<4>(high_1));
            let (low, high) = narrow([bytes_0, bytes_1]);
            store(_mm_packus_epi16(low, high), out);
        }
    }
    sum_registers(sums)
}

/// Adds all lanes in the order of the scalar kernel.
#[target_feature(enable = "avx2")]
#[inline]
fn sum_registers([a, b, c, d]: [__m256; LANES / WIDTH]) -> f32 {
    sum_f32(_mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d)))
}

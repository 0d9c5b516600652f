//! Quantisation of floats to levels.

use std::arch::x86_64::*;

use super::load_floats;
use crate::kernels::lanes::{I8_TOP, NIBBLE_BYTES, NIBBLES, U4_MIDDLE, U4_TOP};

/// Elements of a register of floats.
const WIDTH: usize = 16;

/// The first `count` elements of a register.
fn first(count: usize) -> __mmask16 {
    (u16::MAX).checked_shr((WIDTH - count) as u32).unwrap_or(0)
}

/// Up to [`WIDTH`] floats, and zeros after them.
#[target_feature(enable = "avx512f")]
#[inline]
fn load_some(floats: &[f32]) -> __m512 {
    // SAFETY: the mask allows no more than the slice has.
    unsafe { _mm512_maskz_loadu_ps(first(floats.len().min(WIDTH)), floats.as_ptr()) }
}

/// Up to [`WIDTH`] bytes, the low end of each element.
#[target_feature(enable = "avx512f")]
#[inline]
fn store_some<T>(elements: __m512i, out: &mut [T]) {
    const { assert!(size_of::<T>() == 1) };
    let mask = first(out.len().min(WIDTH));
    // SAFETY: the mask allows no more than the slice has.
    unsafe { _mm512_mask_cvtepi32_storeu_epi8(out.as_mut_ptr().cast(), mask, elements) }
}

/// The constants that turn values into levels.
#[derive(Clone, Copy)]
struct F32x16Levels {
    factor: __m512,
    middle: __m512,
    bottom: __m512,
    top: __m512,
}

impl F32x16Levels {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn new(factor: f32, middle: f32, bottom: f32, top: f32) -> F32x16Levels {
        F32x16Levels {
            factor: _mm512_set1_ps(factor),
            middle: _mm512_set1_ps(middle),
            bottom: _mm512_set1_ps(bottom),
            top: _mm512_set1_ps(top),
        }
    }

    /// The levels, as integers.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn of(self, values: __m512) -> __m512i {
        // Not fused, like the scalar kernel. `max` takes its second operand in place of NaN.
        let place = _mm512_add_ps(_mm512_mul_ps(values, self.factor), self.middle);
        let place = _mm512_min_ps(_mm512_max_ps(place, self.bottom), self.top);
        _mm512_cvtps_epi32(place)
    }

    /// Adds `value * (level - middle)` to `sum`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn add_product(self, sum: __m512, values: __m512, levels: __m512i) -> __m512 {
        let centred = _mm512_sub_ps(_mm512_cvtepi32_ps(levels), self.middle);
        _mm512_add_ps(sum, _mm512_mul_ps(values, centred))
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn max_abs(values: &[f32]) -> f32 {
    let mut max = _mm512_setzero_ps();
    for values in values.chunks(WIDTH) {
        // The second operand is taken if the first is NaN.
        max = _mm512_max_ps(_mm512_abs_ps(load_some(values)), max);
    }
    _mm512_reduce_max_ps(max)
}

#[target_feature(enable = "avx512f")]
pub(super) fn quantize_i8(values: &[f32], factor: f32, out: &mut [i8]) -> i32 {
    assert_eq!(values.len(), out.len(), "one byte for each value");
    let levels = F32x16Levels::new(factor, 0.0, -I8_TOP, I8_TOP);
    let mut sum = _mm512_setzero_si512();
    for (values, out) in values.chunks(WIDTH).zip(out.chunks_mut(WIDTH)) {
        let bytes = _mm512_maskz_mov_epi32(first(values.len()), levels.of(load_some(values)));
        sum = _mm512_add_epi32(sum, bytes);
        store_some(bytes, out);
    }
    _mm512_reduce_add_epi32(sum)
}

#[target_feature(enable = "avx512f")]
pub(super) fn quantize_u4(values: &[f32], factor: f32, out: &mut [u8]) -> f32 {
    assert_eq!(values.len(), 2 * out.len(), "one nibble for each value");
    let (values, []) = values.as_chunks::<NIBBLES>() else {
        panic!("whole blocks of nibbles")
    };
    let levels = F32x16Levels::new(factor, U4_MIDDLE, 0.0, U4_TOP);
    let mut low_sum = _mm512_setzero_ps();
    let mut high_sum = _mm512_setzero_ps();
    for (values, out) in values.iter().zip(out.chunks_mut(NIBBLE_BYTES)) {
        let (values, _) = values.as_chunks::<WIDTH>();
        let (low, high) = values.split_at(values.len() / 2);
        for ((low, high), out) in low.iter().zip(high).zip(out.chunks_mut(WIDTH)) {
            let (low, high) = (load_floats(low), load_floats(high));
            let (low_level, high_level) = (levels.of(low), levels.of(high));
            low_sum = levels.add_product(low_sum, low, low_level);
            high_sum = levels.add_product(high_sum, high, high_level);
            store_some(
                _mm512_or_si512(low_level, _mm512_slli_epi32::<4>(high_level)),
                out,
            );
        }
    }
    _mm512_reduce_add_ps(_mm512_add_ps(low_sum, high_sum))
}

//! Full vectors.

use std::arch::x86_64::*;

use super::{load_bytes, load_floats};
use crate::kernels::lanes::{LANES, padded};

/// Elements of a register of floats.
const WIDTH: usize = 16;
/// Independent sums, to hide the latency of an addition.
const SUMS: usize = 4;

#[target_feature(enable = "avx512f")]
pub(super) fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_floats(y),
        |sum, x, y| _mm512_fmadd_ps(x, y, sum),
    )
}

#[target_feature(enable = "avx512f")]
pub(super) fn squared_l2_f32(a: &[f32], b: &[f32]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_floats(y),
        |sum, x, y| add_squared_difference(sum, x, y),
    )
}

#[target_feature(enable = "avx512f")]
pub(super) fn dot_f16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_f16(y),
        |sum, x, y| _mm512_fmadd_ps(x, y, sum),
    )
}

#[target_feature(enable = "avx512f")]
pub(super) fn squared_l2_f16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_f16(y),
        |sum, x, y| add_squared_difference(sum, x, y),
    )
}

#[target_feature(enable = "avx512f")]
pub(super) fn dot_bf16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_bf16(y),
        |sum, x, y| _mm512_fmadd_ps(x, y, sum),
    )
}

#[target_feature(enable = "avx512f")]
pub(super) fn squared_l2_bf16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_bf16(y),
        |sum, x, y| add_squared_difference(sum, x, y),
    )
}

#[target_feature(enable = "avx512f")]
pub(super) fn dot_i8(a: &[f32], b: &[i8]) -> f32 {
    sum_f32(a, b, |y| load_i8(y), |sum, x, y| _mm512_fmadd_ps(x, y, sum))
}

#[target_feature(enable = "avx512f")]
pub(super) fn dot_f64(a: &[f32], b: &[f32]) -> f64 {
    // Fused to the same bits: the product of two floats is exact in f64.
    sum_f64(a, b, |sum, x, y| _mm512_fmadd_pd(x, y, sum))
}

#[target_feature(enable = "avx512f")]
pub(super) fn squared_l2_f64(a: &[f32], b: &[f32]) -> f64 {
    sum_f64(a, b, |sum, x, y| {
        let difference = _mm512_sub_pd(x, y);
        _mm512_add_pd(sum, _mm512_mul_pd(difference, difference))
    })
}

#[target_feature(enable = "avx512f,avx512vpopcntdq")]
pub(super) fn hamming(a: &[u8], b: &[u8]) -> u32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    let mut sum = _mm512_setzero_si512();
    let mut add = |a: &[u8; 64], b: &[u8; 64]| {
        let differing = _mm512_xor_si512(load_bytes(a), load_bytes(b));
        sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(differing));
    };
    for (a, b) in a.iter().zip(b) {
        add(a, b);
    }
    if !a_rest.is_empty() {
        add(&padded(a_rest), &padded(b_rest));
    }
    _mm512_reduce_add_epi64(sum) as u32
}

#[target_feature(enable = "avx512f")]
#[inline]
fn add_squared_difference(sum: __m512, x: __m512, y: __m512) -> __m512 {
    let difference = _mm512_sub_ps(x, y);
    _mm512_fmadd_ps(difference, difference, sum)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_f16(halves: &[u16; WIDTH]) -> __m512 {
    // SAFETY: the array has the 32 bytes of a half register.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_bf16(halves: &[u16; WIDTH]) -> __m512 {
    // SAFETY: the array has the 32 bytes of a half register.
    let halves = unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) };
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_i8(bytes: &[i8; WIDTH]) -> __m512 {
    // SAFETY: the array has the 16 bytes of a quarter register.
    let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))
}

/// Sums what `step` makes of each pair of elements.
#[target_feature(enable = "avx512f")]
#[inline]
fn sum_f32<T: Copy + Default>(
    a: &[f32],
    b: &[T],
    load: impl Fn(&[T; WIDTH]) -> __m512,
    step: impl Fn(__m512, __m512, __m512) -> __m512,
) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    let ((a, a_last), (b, b_last)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    let mut sums = [_mm512_setzero_ps(); SUMS];
    for (a, b) in a.iter().zip(b) {
        for i in 0..SUMS {
            sums[i] = step(sums[i], load_floats(&a[i]), load(&b[i]));
        }
    }
    for ((sum, a), b) in sums.iter_mut().zip(a_last).zip(b_last) {
        *sum = step(*sum, load_floats(a), load(b));
    }
    if !a_rest.is_empty() {
        let (a, b) = (padded(a_rest), padded(b_rest));
        sums[SUMS - 1] = step(sums[SUMS - 1], load_floats(&a), load(&b));
    }
    let [s, t, u, v] = sums;
    _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s, t), _mm512_add_ps(u, v)))
}

/// Sums what `step` makes of each pair of elements in `f64`, in the lanes and the order of the
/// scalar kernel.
#[target_feature(enable = "avx512f")]
#[inline]
fn sum_f64(a: &[f32], b: &[f32], step: impl Fn(__m512d, __m512d, __m512d) -> __m512d) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [_mm512_setzero_pd(); LANES / 8];
    let mut add = |a: &[f32; LANES], b: &[f32; LANES]| {
        let (a, b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum = step(*sum, load_f64(a), load_f64(b));
        }
    };
    for (a, b) in a.iter().zip(b) {
        add(a, b);
    }
    if !a_rest.is_empty() {
        add(&padded(a_rest), &padded(b_rest));
    }
    let [s, t, u, v] = sums;
    _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(s, u), _mm512_add_pd(t, v)))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_f64(floats: &[f32; 8]) -> __m512d {
    // SAFETY: the array has the 32 bytes of a half register.
    _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(floats.as_ptr()) })
}

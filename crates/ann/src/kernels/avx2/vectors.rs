//! Full vectors.

use std::arch::x86_64::*;

use super::codes::count_ones;
use super::{load_bytes, load_floats};
use crate::kernels::lanes::{LANES, padded};

/// Elements of a register of floats.
const WIDTH: usize = 8;
/// Independent sums, to hide the latency of an addition.
const SUMS: usize = 4;

#[target_feature(enable = "avx2,fma")]
pub(super) fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_floats(y),
        |sum, x, y| _mm256_fmadd_ps(x, y, sum),
    )
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn squared_l2_f32(a: &[f32], b: &[f32]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_floats(y),
        |sum, x, y| add_squared_difference(sum, x, y),
    )
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dot_f16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_f16(y),
        |sum, x, y| _mm256_fmadd_ps(x, y, sum),
    )
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn squared_l2_f16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_f16(y),
        |sum, x, y| add_squared_difference(sum, x, y),
    )
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn dot_bf16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_bf16(y),
        |sum, x, y| _mm256_fmadd_ps(x, y, sum),
    )
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn squared_l2_bf16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_bf16(y),
        |sum, x, y| add_squared_difference(sum, x, y),
    )
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn dot_i8(a: &[f32], b: &[i8]) -> f32 {
    sum_f32(a, b, |y| load_i8(y), |sum, x, y| _mm256_fmadd_ps(x, y, sum))
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn dot_f64(a: &[f32], b: &[f32]) -> f64 {
    // Fused to the same bits: the product of two floats is exact in f64.
    sum_f64(a, b, |sum, x, y| _mm256_fmadd_pd(x, y, sum))
}

#[target_feature(enable = "avx2")]
pub(super) fn squared_l2_f64(a: &[f32], b: &[f32]) -> f64 {
    sum_f64(a, b, |sum, x, y| {
        let difference = _mm256_sub_pd(x, y);
        _mm256_add_pd(sum, _mm256_mul_pd(difference, difference))
    })
}

#[target_feature(enable = "avx2")]
pub(super) fn hamming(a: &[u8], b: &[u8]) -> u32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    let mut sum = _mm256_setzero_si256();
    let mut add = |a: &[u8; 32], b: &[u8; 32]| {
        let differing = _mm256_xor_si256(load_bytes(a), load_bytes(b));
        sum = _mm256_add_epi64(sum, count_ones(differing));
    };
    for (a, b) in a.iter().zip(b) {
        add(a, b);
    }
    if !a_rest.is_empty() {
        add(&padded(a_rest), &padded(b_rest));
    }
    let half = _mm_add_epi64(
        _mm256_castsi256_si128(sum),
        _mm256_extracti128_si256::<1>(sum),
    );
    (_mm_extract_epi64::<0>(half) + _mm_extract_epi64::<1>(half)) as u32
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn add_squared_difference(sum: __m256, x: __m256, y: __m256) -> __m256 {
    let difference = _mm256_sub_ps(x, y);
    _mm256_fmadd_ps(difference, difference, sum)
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_halves(halves: &[u16; WIDTH]) -> __m128i {
    // SAFETY: the array has the 16 bytes of a half register.
    unsafe { _mm_loadu_si128(halves.as_ptr().cast()) }
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
fn load_f16(halves: &[u16; WIDTH]) -> __m256 {
    _mm256_cvtph_ps(load_halves(halves))
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_bf16(halves: &[u16; WIDTH]) -> __m256 {
    let words = _mm256_cvtepu16_epi32(load_halves(halves));
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words))
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_i8(bytes: &[i8; WIDTH]) -> __m256 {
    // SAFETY: the array has the 8 bytes that are read.
    let bytes = unsafe { _mm_loadl_epi64(bytes.as_ptr().cast()) };
    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
}

/// Sums what `step` makes of each pair of elements.
#[target_feature(enable = "avx2")]
#[inline]
fn sum_f32<T: Copy + Default>(
    a: &[f32],
    b: &[T],
    load: impl Fn(&[T; WIDTH]) -> __m256,
    step: impl Fn(__m256, __m256, __m256) -> __m256,
) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    let ((a, a_last), (b, b_last)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    let mut sums = [_mm256_setzero_ps(); SUMS];
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
    super::sum_f32(_mm256_add_ps(_mm256_add_ps(s, t), _mm256_add_ps(u, v)))
}

/// Sums what `step` makes of each pair of elements in `f64`, in the lanes and the order of the
/// scalar kernel.
#[target_feature(enable = "avx2")]
#[inline]
fn sum_f64(a: &[f32], b: &[f32], step: impl Fn(__m256d, __m256d, __m256d) -> __m256d) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [_mm256_setzero_pd(); LANES / 4];
    let mut add = |a: &[f32; LANES], b: &[f32; LANES]| {
        let (a, b) = (a.as_chunks::<4>().0, b.as_chunks::<4>().0);
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
    let [a, b, c, d, e, f, g, h] = sums;
    let [a, b, c, d] = [(a, e), (b, f), (c, g), (d, h)].map(|(x, y)| _mm256_add_pd(x, y));
    let sum = _mm256_add_pd(_mm256_add_pd(a, c), _mm256_add_pd(b, d));
    let half = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd::<1>(sum));
    _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_f64(floats: &[f32; 4]) -> __m256d {
    // SAFETY: the array has the 16 bytes of a half register.
    _mm256_cvtps_pd(unsafe { _mm_loadu_ps(floats.as_ptr()) })
}

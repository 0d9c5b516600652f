//! The kernels for AVX2 with FMA and F16C (Intel since Haswell, AMD since Excavator).

mod codes;
mod quantize;
mod vectors;

use std::arch::x86_64::*;

use super::Kernels;
use super::hop::BATCH;

/// The table, if this processor has the instructions.
pub(super) fn detect() -> Option<&'static Kernels> {
    let able = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    able.then_some(&KERNELS)
}

static KERNELS: Kernels = Kernels {
    name: "avx2",
    dots_u4: codes::dots_u4,
    dots_u8: codes::dots_u8,
    squared_l2s_f32: codes::squared_l2s_f32,
    dots_f32: codes::dots_f32,
    differing_bits: codes::differing_bits,
    dot_f32: enter!(vectors::dot_f32, a, b),
    squared_l2_f32: enter!(vectors::squared_l2_f32, a, b),
    dot_f64: enter!(vectors::dot_f64, a, b),
    squared_l2_f64: enter!(vectors::squared_l2_f64, a, b),
    dot_f16: enter!(vectors::dot_f16, a, b),
    squared_l2_f16: enter!(vectors::squared_l2_f16, a, b),
    dot_bf16: enter!(vectors::dot_bf16, a, b),
    squared_l2_bf16: enter!(vectors::squared_l2_bf16, a, b),
    dot_i8: enter!(vectors::dot_i8, a, b),
    hamming: enter!(vectors::hamming, a, b),
    max_abs: enter!(quantize::max_abs, values),
    quantize_i8: enter!(quantize::quantize_i8, values, factor, out),
    quantize_u4: enter!(quantize::quantize_u4, values, factor, out),
};

/// The bytes of half a line.
#[target_feature(enable = "avx")]
#[inline]
fn load_bytes<T>(bytes: &[T; 32]) -> __m256i {
    const { assert!(size_of::<T>() == 1) };
    // SAFETY: the array has the 32 bytes of a register.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx")]
#[inline]
fn load_floats(floats: &[f32; 8]) -> __m256 {
    // SAFETY: the array has the 32 bytes of a register.
    unsafe { _mm256_loadu_ps(floats.as_ptr()) }
}

/// The sums of four registers, which are transposed while they are added.
#[target_feature(enable = "avx2")]
#[inline]
fn sums_i32([a, b, c, d]: [__m256i; BATCH]) -> [i32; BATCH] {
    let ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    // Now each half of the register has one partial sum for each of the four.
    let abcd = _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
    let half = _mm_add_epi32(
        _mm256_castsi256_si128(abcd),
        _mm256_extracti128_si256::<1>(abcd),
    );
    let mut sums = [0; BATCH];
    // SAFETY: the array has the 16 bytes of the register.
    unsafe { _mm_storeu_si128(sums.as_mut_ptr().cast(), half) };
    sums
}

/// As [`sums_i32`], for floats.
#[target_feature(enable = "avx")]
#[inline]
fn sums_f32([a, b, c, d]: [__m256; BATCH]) -> [f32; BATCH] {
    let abcd = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    let half = _mm_add_ps(
        _mm256_castps256_ps128(abcd),
        _mm256_extractf128_ps::<1>(abcd),
    );
    let mut sums = [0.0; BATCH];
    // SAFETY: the array has the 16 bytes of the register.
    unsafe { _mm_storeu_ps(sums.as_mut_ptr(), half) };
    sums
}

/// The sum of a register, the upper half added to the lower one until one element is left.
#[target_feature(enable = "avx")]
#[inline]
fn sum_f32(sums: __m256) -> f32 {
    let half = _mm_add_ps(
        _mm256_castps256_ps128(sums),
        _mm256_extractf128_ps::<1>(sums),
    );
    let quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)))
}

//! The kernels for AVX-512 with VNNI and VPOPCNTDQ (Intel since Ice Lake, AMD since Zen 4).

mod codes;
mod quantize;
mod vectors;

use std::arch::x86_64::*;

use super::Kernels;
use super::hop::BATCH;

/// The table, if this processor has the instructions.
pub(super) fn detect() -> Option<&'static Kernels> {
    let able = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vpopcntdq");
    able.then_some(&KERNELS)
}

static KERNELS: Kernels = Kernels {
    name: "avx512",
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

/// The bytes of a line.
#[target_feature(enable = "avx512f")]
#[inline]
fn load_bytes<T>(bytes: &[T; 64]) -> __m512i {
    const { assert!(size_of::<T>() == 1) };
    // SAFETY: the array has the 64 bytes of a register.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_floats(floats: &[f32; 16]) -> __m512 {
    // SAFETY: the array has the 64 bytes of a register.
    unsafe { _mm512_loadu_ps(floats.as_ptr()) }
}

/// The sums of four registers. They are transposed while they are added: 13 instructions, where
/// four sums one by one take 28.
#[target_feature(enable = "avx512f")]
#[inline]
fn sums_i32([a, b, c, d]: [__m512i; BATCH]) -> [i32; BATCH] {
    let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    // Now each quarter of the register has one partial sum for each of the four.
    let abcd = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    let half = _mm256_add_epi32(
        _mm512_castsi512_si256(abcd),
        _mm512_extracti64x4_epi64::<1>(abcd),
    );
    let quarter = _mm_add_epi32(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256::<1>(half),
    );
    let mut sums = [0; BATCH];
    // SAFETY: the array has the 16 bytes of the register.
    unsafe { _mm_storeu_si128(sums.as_mut_ptr().cast(), quarter) };
    sums
}

/// As [`sums_i32`], for floats.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn sums_f32([a, b, c, d]: [__m512; BATCH]) -> [f32; BATCH] {
    let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    let abcd = _mm512_add_ps(
        _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
        _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)),
    );
    let half = _mm256_add_ps(
        _mm512_castps512_ps256(abcd),
        _mm512_extractf32x8_ps::<1>(abcd),
    );
    let quarter = _mm_add_ps(
        _mm256_castps256_ps128(half),
        _mm256_extractf128_ps::<1>(half),
    );
    let mut sums = [0.0; BATCH];
    // SAFETY: the array has the 16 bytes of the register.
    unsafe { _mm_storeu_ps(sums.as_mut_ptr(), quarter) };
    sums
}

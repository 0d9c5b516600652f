//! Walk codes, four at a time.

use std::arch::x86_64::*;

use super::{load_bytes, load_floats, sums_f32, sums_i32};
use crate::kernels::hop::{BATCH, batches, put};

/// Half a line of a code.
///
/// # Safety
///
/// The code has more than `index` half lines and is aligned to one.
#[target_feature(enable = "avx")]
#[inline]
unsafe fn half_line(code: *const u8, index: usize) -> __m256i {
    // SAFETY: the caller's word.
    unsafe { _mm256_load_si256(code.add(32 * index).cast()) }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn dots_u4(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
    let (query, []) = query.as_chunks::<128>() else {
        panic!("whole blocks of nibbles")
    };
    let low_nibbles = _mm256_set1_epi8(0xf);
    let ones = _mm256_set1_epi16(1);
    for (batch, out) in batches(codes, 64 * query.len(), out) {
        let mut sums = [_mm256_setzero_si256(); BATCH];
        for (block, query) in query.iter().enumerate() {
            let ([low_0, low_1, high_0, high_1], _) = query.as_chunks::<32>() else {
                unreachable!("a block has four half lines of the query")
            };
            let halves = [(low_0, high_0), (low_1, high_1)];
            let halves = halves.map(|(low, high)| (load_bytes(low), load_bytes(high)));
            for i in 0..BATCH {
                // A product of a nibble and a query byte is at most 15 * 128. The sum of the eight
                // that meet in a block stays within 16 bits.
                let mut block_sum = _mm256_setzero_si256();
                for (half, (low_query, high_query)) in halves.into_iter().enumerate() {
                    // SAFETY: the caller's word: a code has two half lines a block of the query.
                    let code = unsafe { half_line(batch[i], 2 * block + half) };
                    let low = _mm256_and_si256(low_nibbles, code);
                    let high = _mm256_and_si256(low_nibbles, _mm256_srli_epi16::<4>(code));
                    let low = _mm256_maddubs_epi16(low, low_query);
                    let high = _mm256_maddubs_epi16(high, high_query);
                    block_sum = _mm256_add_epi16(block_sum, _mm256_add_epi16(low, high));
                }
                sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(block_sum, ones));
            }
        }
        put(out, sums_i32(sums));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn dots_u8(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
    let (query, []) = query.as_chunks::<64>() else {
        panic!("whole lines of bytes")
    };
    let (query, _) = query.as_flattened().as_chunks::<16>();
    for (batch, out) in batches(codes, 16 * query.len(), out) {
        let mut sums = [_mm256_setzero_si256(); BATCH];
        for (index, query) in query.iter().enumerate() {
            // Bytes are widened first: two products of bytes may exceed 16 bits.
            // SAFETY: the array has the 16 bytes that are read.
            let query = unsafe { _mm_loadu_si128(query.as_ptr().cast()) };
            let query = _mm256_cvtepi8_epi16(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many bytes as the query.
                let code = unsafe { _mm_load_si128(batch[i].add(16 * index).cast()) };
                let products = _mm256_madd_epi16(_mm256_cvtepu8_epi16(code), query);
                sums[i] = _mm256_add_epi32(sums[i], products);
            }
        }
        put(out, sums_i32(sums));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn squared_l2s_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    assert!(query.len().is_multiple_of(16), "whole lines of floats");
    let (query, _) = query.as_chunks::<8>();
    for (batch, out) in batches(codes, 32 * query.len(), out) {
        let mut sums = [_mm256_setzero_ps(); BATCH];
        for (index, query) in query.iter().enumerate() {
            let query = load_floats(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many half lines as the query.
                let code = _mm256_castsi256_ps(unsafe { half_line(batch[i], index) });
                let difference = _mm256_sub_ps(query, code);
                sums[i] = _mm256_fmadd_ps(difference, difference, sums[i]);
            }
        }
        put(out, sums_f32(sums));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn dots_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    assert!(query.len().is_multiple_of(16), "whole lines of floats");
    let (query, _) = query.as_chunks::<8>();
    for (batch, out) in batches(codes, 32 * query.len(), out) {
        let mut sums = [_mm256_setzero_ps(); BATCH];
        for (index, query) in query.iter().enumerate() {
            let query = load_floats(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many half lines as the query.
                let code = _mm256_castsi256_ps(unsafe { half_line(batch[i], index) });
                sums[i] = _mm256_fmadd_ps(query, code, sums[i]);
            }
        }
        put(out, sums_f32(sums));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn differing_bits(query: &[u8], codes: &[*const u8], out: &mut [u32]) {
    assert!(query.len().is_multiple_of(64), "whole lines of bits");
    let (query, _) = query.as_chunks::<32>();
    for (batch, out) in batches(codes, 32 * query.len(), out) {
        let mut sums = [_mm256_setzero_si256(); BATCH];
        for (index, query) in query.iter().enumerate() {
            let query = load_bytes(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many half lines as the query.
                let differing = _mm256_xor_si256(query, unsafe { half_line(batch[i], index) });
                sums[i] = _mm256_add_epi64(sums[i], count_ones(differing));
            }
        }
        // The counts are in 64 bits, the upper halves of which are zero.
        put(out, sums_i32(sums).map(i32::cast_unsigned));
    }
}

/// The number of set bits in each 64-bit element, by a table of the nibbles (Muła, Kurz and Lemire,
/// "Faster Population Counts Using AVX2 Instructions", arXiv 1611.07612).
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn count_ones(bits: __m256i) -> __m256i {
    let counts = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let low_nibbles = _mm256_set1_epi8(0xf);
    let low = _mm256_and_si256(low_nibbles, bits);
    let high = _mm256_and_si256(low_nibbles, _mm256_srli_epi16::<4>(bits));
    let bytes = _mm256_add_epi8(
        _mm256_shuffle_epi8(counts, low),
        _mm256_shuffle_epi8(counts, high),
    );
    _mm256_sad_epu8(bytes, _mm256_setzero_si256())
}

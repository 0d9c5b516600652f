//! Walk codes, four at a time.

use std::arch::x86_64::*;

use super::{load_bytes, load_floats, sums_f32, sums_i32};
use crate::kernels::hop::{BATCH, batches, put};

/// A line of a code.
///
/// # Safety
///
/// The code has more than `index` lines and is aligned to one.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn line(code: *const u8, index: usize) -> __m512i {
    // SAFETY: the caller's word.
    unsafe { _mm512_load_si512(code.add(64 * index).cast()) }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) unsafe fn dots_u4(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
    let (query, []) = query.as_chunks::<128>() else {
        panic!("whole blocks of nibbles")
    };
    let low_nibbles = _mm512_set1_epi8(0xf);
    for (batch, out) in batches(codes, 64 * query.len(), out) {
        let mut low_sums = [_mm512_setzero_si512(); BATCH];
        // High nibbles are multiplied in place, so these sums are 16 times too large.
        let mut high_sums = [_mm512_setzero_si512(); BATCH];
        for (block, query) in query.iter().enumerate() {
            let ([low_query, high_query], _) = query.as_chunks::<64>() else {
                unreachable!("a block has two lines of the query")
            };
            let (low_query, high_query) = (load_bytes(low_query), load_bytes(high_query));
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has a line for each block of the query.
                let code = unsafe { line(batch[i], block) };
                let low = _mm512_and_si512(low_nibbles, code);
                let high = _mm512_andnot_si512(low_nibbles, code);
                low_sums[i] = _mm512_dpbusd_epi32(low_sums[i], low, low_query);
                high_sums[i] = _mm512_dpbusd_epi32(high_sums[i], high, high_query);
            }
        }
        let sums = std::array::from_fn(|i| {
            _mm512_add_epi32(low_sums[i], _mm512_srai_epi32::<4>(high_sums[i]))
        });
        put(out, sums_i32(sums));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) unsafe fn dots_u8(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
    let (query, []) = query.as_chunks::<64>() else {
        panic!("whole lines of bytes")
    };
    for (batch, out) in batches(codes, 64 * query.len(), out) {
        let mut sums = [_mm512_setzero_si512(); BATCH];
        for (index, query) in query.iter().enumerate() {
            let query = load_bytes(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many lines as the query.
                let code = unsafe { line(batch[i], index) };
                sums[i] = _mm512_dpbusd_epi32(sums[i], code, query);
            }
        }
        put(out, sums_i32(sums));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn squared_l2s_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    let (query, []) = query.as_chunks::<16>() else {
        panic!("whole lines of floats")
    };
    for (batch, out) in batches(codes, 64 * query.len(), out) {
        let mut sums = [_mm512_setzero_ps(); BATCH];
        for (index, query) in query.iter().enumerate() {
            let query = load_floats(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many lines as the query.
                let code = _mm512_castsi512_ps(unsafe { line(batch[i], index) });
                let difference = _mm512_sub_ps(query, code);
                sums[i] = _mm512_fmadd_ps(difference, difference, sums[i]);
            }
        }
        put(out, sums_f32(sums));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn dots_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    let (query, []) = query.as_chunks::<16>() else {
        panic!("whole lines of floats")
    };
    for (batch, out) in batches(codes, 64 * query.len(), out) {
        let mut sums = [_mm512_setzero_ps(); BATCH];
        for (index, query) in query.iter().enumerate() {
            let query = load_floats(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many lines as the query.
                let code = _mm512_castsi512_ps(unsafe { line(batch[i], index) });
                sums[i] = _mm512_fmadd_ps(query, code, sums[i]);
            }
        }
        put(out, sums_f32(sums));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
pub(super) unsafe fn differing_bits(query: &[u8], codes: &[*const u8], out: &mut [u32]) {
    let (query, []) = query.as_chunks::<64>() else {
        panic!("whole lines of bits")
    };
    for (batch, out) in batches(codes, 64 * query.len(), out) {
        let mut sums = [_mm512_setzero_si512(); BATCH];
        for (index, query) in query.iter().enumerate() {
            let query = load_bytes(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many lines as the query.
                let differing = _mm512_xor_si512(query, unsafe { line(batch[i], index) });
                sums[i] = _mm512_add_epi32(sums[i], _mm512_popcnt_epi32(differing));
            }
        }
        put(out, sums_i32(sums).map(i32::cast_unsigned));
    }
}

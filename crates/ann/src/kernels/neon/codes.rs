//! Walk codes, four at a time.

use std::arch::aarch64::*;
use std::arch::asm;

use super::{load_bytes, load_floats, load_signed, sums_f32, sums_i32};
use crate::kernels::hop::{BATCH, batches, put};

/// Registers of a line.
const LINE: usize = 4;

/// The bytes of a code from its register `index` on.
///
/// # Safety
///
/// The code has more than `index` registers.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn register(code: *const u8, index: usize) -> uint8x16_t {
    // SAFETY: the caller's word.
    unsafe { vld1q_u8(code.add(16 * index)) }
}

/// The floats of a code from its register `index` on.
///
/// # Safety
///
/// The code has more than `index` registers.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn float_register(code: *const u8, index: usize) -> float32x4_t {
    // SAFETY: the caller's word.
    vreinterpretq_f32_u8(unsafe { register(code, index) })
}

/// Adds the products of four bytes each to the four sums.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn add_dots(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // Written by hand, as Rust has this intrinsic in no stable version yet.
    // SAFETY: the instruction reads and writes only these registers, and the function is entered
    // only where the processor has it.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b",
            sums = inout(vreg) sums,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "neon,dotprod")]
pub(super) unsafe fn dots_u4(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
    let (query, []) = query.as_chunks::<128>() else {
        panic!("whole blocks of nibbles")
    };
    let low_nibbles = vdupq_n_u8(0xf);
    for (batch, out) in batches(codes, 64 * query.len(), out) {
        let mut sums = [vdupq_n_s32(0); BATCH];
        for (block, query) in query.iter().enumerate() {
            let (query, _) = query.as_chunks::<16>();
            let (low_query, high_query) = query.split_at(LINE);
            for (index, (low_query, high_query)) in low_query.iter().zip(high_query).enumerate() {
                let (low_query, high_query) = (load_signed(low_query), load_signed(high_query));
                for i in 0..BATCH {
                    // SAFETY: the caller's word: a code has a line for each block of the query.
                    let code = unsafe { register(batch[i], LINE * block + index) };
                    let low = vreinterpretq_s8_u8(vandq_u8(code, low_nibbles));
                    let high = vreinterpretq_s8_u8(vshrq_n_u8::<4>(code));
                    sums[i] = add_dots(sums[i], low, low_query);
                    sums[i] = add_dots(sums[i], high, high_query);
                }
            }
        }
        put(out, sums_i32(sums));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "neon,dotprod")]
pub(super) unsafe fn dots_u8(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
    assert!(query.len().is_multiple_of(64), "whole lines of bytes");
    // The instruction wants both sides signed: byte = (byte - 128) + 128.
    let offset = 128 * query.iter().map(|&element| i32::from(element)).sum::<i32>();
    let flip = vdupq_n_u8(0x80);
    let (query, _) = query.as_chunks::<16>();
    for (batch, out) in batches(codes, 16 * query.len(), out) {
        let mut sums = [vdupq_n_s32(0); BATCH];
        for (index, query) in query.iter().enumerate() {
            let query = load_signed(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many registers as the query.
                let code = unsafe { register(batch[i], index) };
                let lowered = vreinterpretq_s8_u8(veorq_u8(code, flip));
                sums[i] = add_dots(sums[i], lowered, query);
            }
        }
        put(out, sums_i32(sums).map(|sum| sum + offset));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "neon")]
pub(super) unsafe fn squared_l2s_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    assert!(query.len().is_multiple_of(16), "whole lines of floats");
    let (query, _) = query.as_chunks::<4>();
    for (batch, out) in batches(codes, 16 * query.len(), out) {
        // A sum for each register of a line, for the sake of precision and of latency.
        let mut sums = [[vdupq_n_f32(0.0); LINE]; BATCH];
        for (line, query) in query.chunks_exact(LINE).enumerate() {
            for (index, query) in query.iter().enumerate() {
                let query = load_floats(query);
                for i in 0..BATCH {
                    // SAFETY: the caller's word: a code has as many registers as the query.
                    let code = unsafe { float_register(batch[i], LINE * line + index) };
                    let difference = vsubq_f32(query, code);
                    sums[i][index] = vfmaq_f32(sums[i][index], difference, difference);
                }
            }
        }
        put(out, sums_f32(sums.map(|sums| add_registers(sums))));
    }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "neon")]
pub(super) unsafe fn dots_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    assert!(query.len().is_multiple_of(16), "whole lines of floats");
    let (query, _) = query.as_chunks::<4>();
    for (batch, out) in batches(codes, 16 * query.len(), out) {
        let mut sums = [[vdupq_n_f32(0.0); LINE]; BATCH];
        for (line, query) in query.chunks_exact(LINE).enumerate() {
            for (index, query) in query.iter().enumerate() {
                let query = load_floats(query);
                for i in 0..BATCH {
                    // SAFETY: the caller's word: a code has as many registers as the query.
                    let code = unsafe { float_register(batch[i], LINE * line + index) };
                    sums[i][index] = vfmaq_f32(sums[i][index], query, code);
                }
            }
        }
        put(out, sums_f32(sums.map(|sums| add_registers(sums))));
    }
}

#[target_feature(enable = "neon")]
#[inline]
fn add_registers([a, b, c, d]: [float32x4_t; LINE]) -> float32x4_t {
    vaddq_f32(vaddq_f32(a, b), vaddq_f32(c, d))
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
#[target_feature(enable = "neon")]
pub(super) unsafe fn differing_bits(query: &[u8], codes: &[*const u8], out: &mut [u32]) {
    assert!(query.len().is_multiple_of(64), "whole lines of bits");
    let (query, _) = query.as_chunks::<16>();
    for (batch, out) in batches(codes, 16 * query.len(), out) {
        let mut sums = [vdupq_n_u32(0); BATCH];
        for (index, query) in query.iter().enumerate() {
            let query = load_bytes(query);
            for i in 0..BATCH {
                // SAFETY: the caller's word: a code has as many registers as the query.
                let differing = veorq_u8(query, unsafe { register(batch[i], index) });
                sums[i] = vpadalq_u16(sums[i], vpaddlq_u8(vcntq_u8(differing)));
            }
        }
        let sums = sums.map(|sums| vreinterpretq_s32_u32(sums));
        put(out, sums_i32(sums).map(i32::cast_unsigned));
    }
}

//! The kernels for AArch64 with the dot product instructions (all since ARMv8.4, many of 8.2).

mod codes;
mod quantize;
mod vectors;

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::Kernels;
use super::hop::BATCH;

/// The table, if this processor has the instructions.
pub(super) fn detect() -> Option<&'static Kernels> {
    let able = is_aarch64_feature_detected!("neon") && is_aarch64_feature_detected!("dotprod");
    able.then_some(&KERNELS)
}

static KERNELS: Kernels = Kernels {
    name: "neon",
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

#[target_feature(enable = "neon")]
#[inline]
fn load_floats(floats: &[f32; 4]) -> float32x4_t {
    // SAFETY: the array has the 16 bytes of a register.
    unsafe { vld1q_f32(floats.as_ptr()) }
}

#[target_feature(enable = "neon")]
#[inline]
fn load_signed(bytes: &[i8; 16]) -> int8x16_t {
    // SAFETY: the array has the 16 bytes of a register.
    unsafe { vld1q_s8(bytes.as_ptr()) }
}

#[target_feature(enable = "neon")]
#[inline]
fn load_bytes(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the array has the 16 bytes of a register.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// The sums of four registers.
#[target_feature(enable = "neon")]
#[inline]
fn sums_i32([a, b, c, d]: [int32x4_t; BATCH]) -> [i32; BATCH] {
    let mut sums = [0; BATCH];
    let abcd = vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
    // SAFETY: the array has the 16 bytes of the register.
    unsafe { vst1q_s32(sums.as_mut_ptr(), abcd) };
    sums
}

/// As [`sums_i32`], for floats.
#[target_feature(enable = "neon")]
#[inline]
fn sums_f32([a, b, c, d]: [float32x4_t; BATCH]) -> [f32; BATCH] {
    let mut sums = [0.0; BATCH];
    let abcd = vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
    // SAFETY: the array has the 16 bytes of the register.
    unsafe { vst1q_f32(sums.as_mut_ptr(), abcd) };
    sums
}

/// The sum of a register, the upper half added to the lower one until one element is left.
#[target_feature(enable = "neon")]
#[inline]
fn sum_f32(sums: float32x4_t) -> f32 {
    let half = vadd_f32(vget_low_f32(sums), vget_high_f32(sums));
    vget_lane_f32::<0>(half) + vget_lane_f32::<1>(half)
}

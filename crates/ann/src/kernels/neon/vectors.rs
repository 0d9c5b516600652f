//! Full vectors.

use std::arch::aarch64::*;

use super::{load_bytes, load_floats};
use crate::kernels::lanes::{LANES, padded};

/// Elements of a register of floats.
const WIDTH: usize = 4;
/// Independent sums, to hide the latency of an addition.
const SUMS: usize = 4;

#[target_feature(enable = "neon")]
pub(super) fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    sum_f32(a, b, |y| load_floats(y), |sum, x, y| vfmaq_f32(sum, x, y))
}

#[target_feature(enable = "neon")]
pub(super) fn squared_l2_f32(a: &[f32], b: &[f32]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_floats(y),
        |sum, x, y| add_squared_difference(sum, x, y),
    )
}

#[target_feature(enable = "neon")]
pub(super) fn dot_f16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(a, b, |y| load_f16(y), |sum, x, y| vfmaq_f32(sum, x, y))
}

#[target_feature(enable = "neon")]
pub(super) fn squared_l2_f16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_f16(y),
        |sum, x, y| add_squared_difference(sum, x, y),
    )
}

#[target_feature(enable = "neon")]
pub(super) fn dot_bf16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(a, b, |y| load_bf16(y), |sum, x, y| vfmaq_f32(sum, x, y))
}

#[target_feature(enable = "neon")]
pub(super) fn squared_l2_bf16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(
        a,
        b,
        |y| load_bf16(y),
        |sum, x, y| add_squared_difference(sum, x, y),
    )
}

#[target_feature(enable = "neon")]
pub(super) fn dot_i8(a: &[f32], b: &[i8]) -> f32 {
    sum_f32(a, b, |y| load_i8(y), |sum, x, y| vfmaq_f32(sum, x, y))
}

#[target_feature(enable = "neon")]
pub(super) fn dot_f64(a: &[f32], b: &[f32]) -> f64 {
    // Fused to the same bits: the product of two floats is exact in f64.
    sum_f64(a, b, |sum, x, y| vfmaq_f64(sum, x, y))
}

#[target_feature(enable = "neon")]
pub(super) fn squared_l2_f64(a: &[f32], b: &[f32]) -> f64 {
    sum_f64(a, b, |sum, x, y| {
        let difference = vsubq_f64(x, y);
        vaddq_f64(sum, vmulq_f64(difference, difference))
    })
}

#[target_feature(enable = "neon")]
pub(super) fn hamming(a: &[u8], b: &[u8]) -> u32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    let mut sums = vdupq_n_u32(0);
    let mut add = |a: &[u8; 16], b: &[u8; 16]| {
        let differing = veorq_u8(load_bytes(a), load_bytes(b));
        sums = vpadalq_u16(sums, vpaddlq_u8(vcntq_u8(differing)));
    };
    for (a, b) in a.iter().zip(b) {
        add(a, b);
    }
    if !a_rest.is_empty() {
        add(&padded(a_rest), &padded(b_rest));
    }
    vaddvq_u32(sums)
}

#[target_feature(enable = "neon")]
#[inline]
fn add_squared_difference(sum: float32x4_t, x: float32x4_t, y: float32x4_t) -> float32x4_t {
    let difference = vsubq_f32(x, y);
    vfmaq_f32(sum, difference, difference)
}

#[target_feature(enable = "neon")]
#[inline]
fn load_halves(halves: &[u16; WIDTH]) -> uint16x4_t {
    // SAFETY: the array has the 8 bytes of half a register.
    unsafe { vld1_u16(halves.as_ptr()) }
}

#[target_feature(enable = "neon")]
#[inline]
fn load_f16(halves: &[u16; WIDTH]) -> float32x4_t {
    vcvt_f32_f16(vreinterpret_f16_u16(load_halves(halves)))
}

#[target_feature(enable = "neon")]
#[inline]
fn load_bf16(halves: &[u16; WIDTH]) -> float32x4_t {
    vreinterpretq_f32_u32(vshll_n_u16::<16>(load_halves(halves)))
}

#[target_feature(enable = "neon")]
#[inline]
fn load_i8(&[a, b, c, d]: &[i8; WIDTH]) -> float32x4_t {
    load_floats(&[f32::from(a), f32::from(b), f32::from(c), f32::from(d)])
}

/// Sums what `step` makes of each pair of elements.
#[target_feature(enable = "neon")]
#[inline]
fn sum_f32<T: Copy + Default>(
    a: &[f32],
    b: &[T],
    load: impl Fn(&[T; WIDTH]) -> float32x4_t,
    step: impl Fn(float32x4_t, float32x4_t, float32x4_t) -> float32x4_t,
) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    let ((a, a_last), (b, b_last)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    let mut sums = [vdupq_n_f32(0.0); SUMS];
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
    super::sum_f32(vaddq_f32(vaddq_f32(s, t), vaddq_f32(u, v)))
}

/// Sums what `step` makes of each pair of elements in `f64`, in the lanes and the order of the
/// scalar kernel.
#[target_feature(enable = "neon")]
#[inline]
fn sum_f64(
    a: &[f32],
    b: &[f32],
    step: impl Fn(float64x2_t, float64x2_t, float64x2_t) -> float64x2_t,
) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [vdupq_n_f64(0.0); LANES / 2];
    let mut add = |a: &[f32; LANES], b: &[f32; LANES]| {
        let (a, b) = (a.as_chunks::<2>().0, b.as_chunks::<2>().0);
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
    let mut half = sums.len() / 2;
    while half > 0 {
        for i in 0..half {
            sums[i] = vaddq_f64(sums[i], sums[i + half]);
        }
        half /= 2;
    }
    vaddvq_f64(sums[0])
}

#[target_feature(enable = "neon")]
#[inline]
fn load_f64(floats: &[f32; 2]) -> float64x2_t {
    // SAFETY: the array has the 8 bytes of half a register.
    vcvt_f64_f32(unsafe { vld1_f32(floats.as_ptr()) })
}

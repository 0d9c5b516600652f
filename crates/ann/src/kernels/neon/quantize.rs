//! Quantisation of floats to levels.

use std::arch::aarch64::*;

use super::{load_floats, sum_f32};
use crate::kernels::lanes::{I8_TOP, LANES, NIBBLE_BYTES, NIBBLES, U4_MIDDLE, U4_TOP, padded};

/// Elements of a register of floats.
const WIDTH: usize = 4;
/// Elements that are written at a time, two registers.
const STEP: usize = 2 * WIDTH;

/// The constants that turn values into levels.
#[derive(Clone, Copy)]
struct Levels {
    factor: float32x4_t,
    middle: float32x4_t,
    bottom: float32x4_t,
    top: float32x4_t,
}

impl Levels {
    #[target_feature(enable = "neon")]
    #[inline]
    fn new(factor: f32, middle: f32, bottom: f32, top: f32) -> Levels {
        Levels {
            factor: vdupq_n_f32(factor),
            middle: vdupq_n_f32(middle),
            bottom: vdupq_n_f32(bottom),
            top: vdupq_n_f32(top),
        }
    }

    /// The levels, as integers.
    #[target_feature(enable = "neon")]
    #[inline]
    fn of(self, values: float32x4_t) -> int32x4_t {
        // Not fused, like the scalar kernel. This maximum is the bottom in place of NaN.
        let place = vaddq_f32(vmulq_f32(values, self.factor), self.middle);
        let place = vminq_f32(vmaxnmq_f32(place, self.bottom), self.top);
        vcvtnq_s32_f32(place)
    }

    /// The levels. Adds `value * (level - middle)` to `sums`.
    #[target_feature(enable = "neon")]
    #[inline]
    fn with_sums(self, values: &[f32; STEP], sums: &mut [float32x4_t]) -> [int32x4_t; 2] {
        let values = load_step(values);
        let levels = values.map(|values| self.of(values));
        for ((sum, values), levels) in sums.iter_mut().zip(values).zip(levels) {
            let centred = vsubq_f32(vcvtq_f32_s32(levels), self.middle);
            *sum = vaddq_f32(*sum, vmulq_f32(values, centred));
        }
        levels
    }
}

#[target_feature(enable = "neon")]
#[inline]
fn load_step(values: &[f32; STEP]) -> [float32x4_t; 2] {
    let ([low, high], _) = values.as_chunks::<WIDTH>() else {
        unreachable!("a step has two registers")
    };
    [load_floats(low), load_floats(high)]
}

/// Writes the low bytes of the elements of two registers.
#[target_feature(enable = "neon")]
#[inline]
fn store<T>([low, high]: [int32x4_t; 2], out: &mut [T; STEP]) {
    const { assert!(size_of::<T>() == 1) };
    let bytes = vmovn_s16(vcombine_s16(vmovn_s32(low), vmovn_s32(high)));
    // SAFETY: the array has the 8 bytes of half a register.
    unsafe { vst1_s8(out.as_mut_ptr().cast(), bytes) };
}

#[target_feature(enable = "neon")]
pub(super) fn max_abs(values: &[f32]) -> f32 {
    let mut max = vdupq_n_f32(0.0);
    let (values, rest) = values.as_chunks::<WIDTH>();
    for values in values.iter().chain([&padded(rest)]) {
        // This maximum passes over NaN.
        max = vmaxnmq_f32(vabsq_f32(load_floats(values)), max);
    }
    vmaxnmvq_f32(max)
}

#[target_feature(enable = "neon")]
pub(super) fn quantize_i8(values: &[f32], factor: f32, out: &mut [i8]) -> i32 {
    assert_eq!(values.len(), out.len(), "one byte for each value");
    let levels = Levels::new(factor, 0.0, -I8_TOP, I8_TOP);
    let quantize = |values: &[f32; STEP], out: &mut [i8; STEP]| {
        store(load_step(values).map(|values| levels.of(values)), out);
    };
    let ((values, values_rest), (steps, out_rest)) = (values.as_chunks(), out.as_chunks_mut());
    for (values, out) in values.iter().zip(steps) {
        quantize(values, out);
    }
    if !values_rest.is_empty() {
        let mut bytes = [0; STEP];
        quantize(&padded(values_rest), &mut bytes);
        out_rest.copy_from_slice(&bytes[..out_rest.len()]);
    }
    out.iter().map(|&byte| i32::from(byte)).sum()
}

#[target_feature(enable = "neon")]
pub(super) fn quantize_u4(values: &[f32], factor: f32, out: &mut [u8]) -> f32 {
    assert_eq!(values.len(), 2 * out.len(), "one nibble for each value");
    let (values, []) = values.as_chunks::<NIBBLES>() else {
        panic!("whole blocks of nibbles")
    };
    let levels = Levels::new(factor, U4_MIDDLE, 0.0, U4_TOP);
    let mut sums = [vdupq_n_f32(0.0); LANES / WIDTH];
    let (low_sums, high_sums) = sums.split_at_mut(LANES / WIDTH / 2);
    // A lane has the sum of the dimensions that are equal to it modulo half of the lanes.
    const ROUND: usize = LANES / 2 / STEP;
    for (values, out) in values.iter().zip(out.chunks_mut(NIBBLE_BYTES)) {
        let (values, _) = values.as_chunks::<STEP>();
        let (low, high) = values.split_at(values.len() / 2);
        let (out, _) = out.as_chunks_mut();
        let steps = low.iter().zip(high).zip(out);
        for (step, ((low, high), out)) in steps.enumerate() {
            let lanes = 2 * (step % ROUND);
            let [low_0, low_1] = levels.with_sums(low, &mut low_sums[lanes..lanes + 2]);
            let [high_0, high_1] = levels.with_sums(high, &mut high_sums[lanes..lanes + 2]);
            let bytes_0 = vorrq_s32(low_0, vshlq_n_s32::<4>(high_0));
            let bytes_1 = vorrq_s32(low_1, vshlq_n_s32::<4>(high_1));
            store([bytes_0, bytes_1], out);
        }
    }
    sum_registers(sums)
}

/// Adds all lanes in the order of the scalar kernel.
#[target_feature(enable = "neon")]
#[inline]
fn sum_registers([a, b, c, d, e, f, g, h]: [float32x4_t; LANES / WIDTH]) -> f32 {
    let [a, b, c, d] = [(a, e), (b, f), (c, g), (d, h)].map(|(x, y)| vaddq_f32(x, y));
    sum_f32(vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d)))
}

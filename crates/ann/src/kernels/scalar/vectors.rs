//! Full vectors.

use crate::kernels::half;
use crate::kernels::lanes::{LANES, padded, sum_lanes};

/// Lanes of a sum in `f32`.
const F32_LANES: usize = 16;

pub(super) fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    sum_f32(a, b, f32::clone, product)
}

pub(super) fn squared_l2_f32(a: &[f32], b: &[f32]) -> f32 {
    sum_f32(a, b, f32::clone, squared_difference)
}

pub(super) fn dot_f16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(a, b, |&y| half::f16_to_f32(y), product)
}

pub(super) fn squared_l2_f16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(a, b, |&y| half::f16_to_f32(y), squared_difference)
}

pub(super) fn dot_bf16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(a, b, |&y| half::bf16_to_f32(y), product)
}

pub(super) fn squared_l2_bf16(a: &[f32], b: &[u16]) -> f32 {
    sum_f32(a, b, |&y| half::bf16_to_f32(y), squared_difference)
}

pub(super) fn dot_i8(a: &[f32], b: &[i8]) -> f32 {
    sum_f32(a, b, |&y| f32::from(y), product)
}

pub(super) fn dot_f64(a: &[f32], b: &[f32]) -> f64 {
    sum_f64(a, b, |x, y| x * y)
}

pub(super) fn squared_l2_f64(a: &[f32], b: &[f32]) -> f64 {
    sum_f64(a, b, |x, y| (x - y) * (x - y))
}

pub(super) fn hamming(a: &[u8], b: &[u8]) -> u32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    let words = a.iter().zip(b);
    let words = words.map(|(a, b)| (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)).count_ones());
    let bytes = a_rest.iter().zip(b_rest);
    let bytes = bytes.map(|(a, b)| (a ^ b).count_ones());
    words.sum::<u32>() + bytes.sum::<u32>()
}

fn product(x: f32, y: f32) -> f32 {
    x * y
}

fn squared_difference(x: f32, y: f32) -> f32 {
    (x - y) * (x - y)
}

/// Sums a term for each pair of elements in `f32`.
fn sum_f32<T: Copy + Default>(
    a: &[f32],
    b: &[T],
    widen: impl Fn(&T) -> f32,
    term: impl Fn(f32, f32) -> f32,
) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<F32_LANES>(), b.as_chunks::<F32_LANES>());
    let mut lanes = [0.0; F32_LANES];
    let mut add = |a: &[f32; F32_LANES], b: &[T; F32_LANES]| {
        for ((lane, &x), y) in lanes.iter_mut().zip(a).zip(b) {
            *lane += term(x, widen(y));
        }
    };
    for (a, b) in a.iter().zip(b) {
        add(a, b);
    }
    if !a_rest.is_empty() {
        add(&padded(a_rest), &padded(b_rest));
    }
    sum_lanes(lanes)
}

/// Sums a term for each pair of elements in `f64`, in an order that every set keeps.
fn sum_f64(a: &[f32], b: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let mut lanes = [0.0; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(a).zip(b) {
            *lane += term(f64::from(x), f64::from(y));
        }
    }
    sum_lanes(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scalar::KERNELS;

    #[test]
    fn small_examples() {
        let (a, b) = ([1.0, 2.0, -3.0], [4.0, -5.0, 6.0]);
        let k = &KERNELS;
        assert_eq!((k.dot_f32)(&a, &b), -24.0);
        assert_eq!((k.dot_f64)(&a, &b), -24.0);
        assert_eq!((k.squared_l2_f32)(&a, &b), 139.0);
        assert_eq!((k.squared_l2_f64)(&a, &b), 139.0);
        assert_eq!((k.dot_f16)(&a, &b.map(half::f32_to_f16)), -24.0);
        assert_eq!((k.squared_l2_f16)(&a, &b.map(half::f32_to_f16)), 139.0);
        assert_eq!((k.dot_bf16)(&a, &b.map(half::f32_to_bf16)), -24.0);
        assert_eq!((k.squared_l2_bf16)(&a, &b.map(half::f32_to_bf16)), 139.0);
        assert_eq!((k.dot_i8)(&a, &[4, -5, 6]), -24.0);
        assert_eq!((k.hamming)(&[0b1010, 0xff, 0], &[0b0110, 0xff, 0x80]), 3);
        assert_eq!((k.max_abs)(&a), 3.0);
        assert_eq!((k.max_abs)(&[]), 0.0);
    }
}

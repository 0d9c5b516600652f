//! The kernels without SIMD: what each of them computes, in plain Rust.
//!
//! They are the oracle of the other sets, and what a processor runs that has none of those. Sums of
//! floats run in lanes, which is both more exact and what compilers turn into vector code.

use super::hop::{BATCH, batches, put};
use super::lanes::{
    BITS, I8_TOP, LANES, NIBBLE_BYTES, NIBBLES, U4_MIDDLE, U4_TOP, U8_MIDDLE, U8_TOP, padded,
    sum_lanes,
};
use super::{Kernels, half};

pub(super) static KERNELS: Kernels = Kernels {
    name: "scalar",
    dots_u4,
    dots_u8,
    sums_u1,
    squared_l2s_f32,
    dots_f32,
    differing_bits,
    dot_f32: |a, b| sum_f32(a, b, f32::clone, product),
    squared_l2_f32: |a, b| sum_f32(a, b, f32::clone, squared_difference),
    dot_f64: |a, b| sum_f64(a, b, |x, y| x * y),
    squared_l2_f64: |a, b| sum_f64(a, b, |x, y| (x - y) * (x - y)),
    dot_f16: |a, b| sum_f32(a, b, |&y| half::f16_to_f32(y), product),
    squared_l2_f16: |a, b| sum_f32(a, b, |&y| half::f16_to_f32(y), squared_difference),
    dot_bf16: |a, b| sum_f32(a, b, |&y| half::bf16_to_f32(y), product),
    squared_l2_bf16: |a, b| sum_f32(a, b, |&y| half::bf16_to_f32(y), squared_difference),
    dot_i8: |a, b| sum_f32(a, b, |&y| f32::from(y), product),
    hamming,
    max_abs: |values| values.iter().fold(0.0, |max, value| value.abs().max(max)),
    quantize_i8,
    quantize_u4,
    quantize_u8,
};

/// Lanes of a sum in `f32`.
const F32_LANES: usize = 16;

/// Runs a comparison with each code of a hop.
///
/// # Safety
///
/// Each code points to `length` readable elements.
unsafe fn for_each_code<C, T: Copy>(
    length: usize,
    codes: &[*const u8],
    out: &mut [T],
    compare: impl Fn(&[C]) -> T,
) {
    for (batch, out) in batches(codes, length * size_of::<C>(), out) {
        let results: [T; BATCH] = batch.map(|code| {
            // SAFETY: the caller's word; codes are aligned to 64, more than any element needs.
            compare(unsafe { std::slice::from_raw_parts(code.cast::<C>(), length) })
        });
        put(out, results);
    }
}

/// # Safety
///
/// See [`super::HopKernel`].
unsafe fn dots_u4(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
    let (query, []) = query.as_chunks::<NIBBLES>() else {
        panic!("whole blocks of nibbles")
    };
    let dot = |code: &[[u8; NIBBLE_BYTES]]| {
        let blocks = query.iter().zip(code);
        blocks.map(|(query, code)| block_dot_u4(query, code)).sum()
    };
    // SAFETY: the caller's word.
    unsafe { for_each_code(query.len(), codes, out, dot) }
}

fn block_dot_u4(query: &[i8; NIBBLES], code: &[u8; NIBBLE_BYTES]) -> i32 {
    let (low, high) = query.split_at(NIBBLE_BYTES);
    let mut sum = 0;
    for ((&byte, &low), &high) in code.iter().zip(low).zip(high) {
        sum += i32::from(byte & 0xf) * i32::from(low) + i32::from(byte >> 4) * i32::from(high);
    }
    sum
}

/// # Safety
///
/// See [`super::HopKernel`].
unsafe fn dots_u8(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
    assert!(query.len().is_multiple_of(64), "whole lines of bytes");
    let dot = |code: &[u8]| {
        let pairs = query.iter().zip(code);
        pairs.map(|(&q, &c)| i32::from(q) * i32::from(c)).sum()
    };
    // SAFETY: the caller's word.
    unsafe { for_each_code(query.len(), codes, out, dot) }
}

/// # Safety
///
/// See [`super::HopKernel`].
unsafe fn sums_u1(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
    assert!(query.len().is_multiple_of(BITS), "whole lines of bits");
    let (query, _) = query.as_chunks::<8>();
    let sum = |code: &[u8]| {
        let bytes = query.iter().zip(code);
        bytes.map(|(query, &byte)| sum_of_set(query, byte)).sum()
    };
    // SAFETY: the caller's word.
    unsafe { for_each_code(query.len(), codes, out, sum) }
}

fn sum_of_set(query: &[i8; 8], byte: u8) -> i32 {
    let elements = query.iter().enumerate();
    elements
        .map(|(bit, &element)| i32::from(byte >> bit & 1) * i32::from(element))
        .sum()
}

/// # Safety
///
/// See [`super::HopKernel`].
unsafe fn squared_l2s_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    assert!(query.len().is_multiple_of(16), "whole lines of floats");
    let compare = |code: &[f32]| sum_f32(query, code, f32::clone, squared_difference);
    // SAFETY: the caller's word.
    unsafe { for_each_code(query.len(), codes, out, compare) }
}

/// # Safety
///
/// See [`super::HopKernel`].
unsafe fn dots_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    assert!(query.len().is_multiple_of(16), "whole lines of floats");
    let compare = |code: &[f32]| sum_f32(query, code, f32::clone, product);
    // SAFETY: the caller's word.
    unsafe { for_each_code(query.len(), codes, out, compare) }
}

/// # Safety
///
/// See [`super::HopKernel`].
unsafe fn differing_bits(query: &[u8], codes: &[*const u8], out: &mut [u32]) {
    assert!(query.len().is_multiple_of(64), "whole lines of bits");
    // SAFETY: the caller's word.
    unsafe { for_each_code(query.len(), codes, out, |code| hamming(query, code)) }
}

fn hamming(a: &[u8], b: &[u8]) -> u32 {
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

/// The level of a value; the lowest if it is NaN.
fn level(value: f32, factor: f32, middle: f32, bottom: f32, top: f32) -> f32 {
    let place = value * factor + middle;
    place.max(bottom).min(top).round_ties_even()
}

fn quantize_i8(values: &[f32], factor: f32, out: &mut [i8]) -> i32 {
    assert_eq!(values.len(), out.len(), "one byte for each value");
    let mut sum = 0;
    for (&value, out) in values.iter().zip(out) {
        *out = level(value, factor, 0.0, -I8_TOP, I8_TOP) as i8;
        sum += i32::from(*out);
    }
    sum
}

fn quantize_u4(values: &[f32], factor: f32, out: &mut [u8]) -> f32 {
    assert_eq!(values.len(), 2 * out.len(), "one nibble for each value");
    let (values, []) = values.as_chunks::<NIBBLES>() else {
        panic!("whole blocks of nibbles")
    };
    let mut lanes = [0.0; LANES];
    // Low nibbles are summed in the lower half of the lanes, high ones in the upper.
    let (low_lanes, high_lanes) = lanes.split_at_mut(LANES / 2);
    let nibble = |value: f32, lane: &mut f32| {
        let nibble = level(value, factor, U4_MIDDLE, 0.0, U4_TOP);
        *lane += value * (nibble - U4_MIDDLE);
        nibble as u8
    };
    for (values, out) in values.iter().zip(out.chunks_mut(NIBBLE_BYTES)) {
        let (low, high) = values.split_at(NIBBLE_BYTES);
        for (j, out) in out.iter_mut().enumerate() {
            let lane = j % (LANES / 2);
            *out =
                nibble(low[j], &mut low_lanes[lane]) | nibble(high[j], &mut high_lanes[lane]) << 4;
        }
    }
    sum_lanes(lanes)
}

fn quantize_u8(values: &[f32], factor: f32, out: &mut [u8]) -> f32 {
    assert_eq!(values.len(), out.len(), "one byte for each value");
    let mut lanes = [0.0; LANES];
    for (values, out) in values.chunks(LANES).zip(out.chunks_mut(LANES)) {
        for ((lane, &value), out) in lanes.iter_mut().zip(values).zip(out) {
            let level = level(value, factor, U8_MIDDLE, 0.0, U8_TOP);
            *lane += value * (level - U8_MIDDLE);
            *out = level as u8;
        }
    }
    sum_lanes(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::Codes;

    #[test]
    fn nibbles_lie_where_the_layout_says() {
        for (dimension, byte, shift) in [
            (0, 0, 0),
            (63, 63, 0),
            (64, 0, 4),
            (127, 63, 4),
            (191, 127, 0),
        ] {
            let mut query = [0; 256];
            query[dimension] = -3;
            let mut code = [0; 128];
            code[byte] = 5 << shift;
            let codes = Codes::new(&[&code]);
            let mut out = [0];
            // SAFETY: `Codes` holds 128 bytes a code, aligned.
            unsafe { dots_u4(&query, &codes.pointers(), &mut out) };
            assert_eq!(out, [-15], "dimension {dimension}");

            let mut values = [0.0; 256];
            values[dimension] = 100.0;
            let mut written = [0; 128];
            quantize_u4(&values, 1.0, &mut written);
            assert_eq!(written[byte] >> shift & 0xf, 15, "dimension {dimension}");
            // Zero lies between 7 and 8, and goes to the even one.
            assert_eq!(written.iter().filter(|&&byte| byte == 0x88).count(), 127);
        }
    }

    #[test]
    fn bits_lie_from_the_low_end() {
        for (element, byte, bit) in [(0, 0, 0), (7, 0, 7), (8, 1, 0), (511, 63, 7), (515, 64, 3)] {
            let mut query = [1; 1024];
            query[element] = -3;
            let mut code = [0; 128];
            code[byte] = 1 << bit;
            let codes = Codes::new(&[&code]);
            let mut out = [0];
            // SAFETY: `Codes` holds 128 bytes a code, aligned.
            unsafe { sums_u1(&query, &codes.pointers(), &mut out) };
            assert_eq!(out, [-3], "element {element}");
        }
    }

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

    #[test]
    fn levels_round_to_even_and_are_cut() {
        let mut bytes = [0; 8];
        let values = [0.5, 1.5, -2.5, 1e30, -1e30, 127.4, -127.4, f32::NAN];
        let sum = quantize_i8(&values, 1.0, &mut bytes);
        assert_eq!(bytes, [0, 2, -2, 127, -127, 127, -127, -127]);
        assert_eq!(sum, -127);

        let mut bytes = [0; 5];
        let sum = quantize_u8(&[1.0, -1.0, 0.0, 1e3, -1e3], 2.0, &mut bytes);
        // 129.5 and 125.5 and 127.5 go to the even neighbour.
        assert_eq!(bytes, [130, 126, 128, 255, 0]);
        assert_eq!(sum, 2.5 + 1.5 + 127.5e3 + 127.5e3);
    }
}

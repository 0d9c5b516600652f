//! Walk codes.

use super::vectors::{dot_f32, hamming, squared_l2_f32};
use crate::kernels::hop::{BATCH, batches, put};
use crate::kernels::lanes::{NIBBLE_BYTES, NIBBLES};

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
/// See [`crate::kernels::HopKernel`].
pub(super) unsafe fn dots_u4(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
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
/// See [`crate::kernels::HopKernel`].
pub(super) unsafe fn dots_u8(query: &[i8], codes: &[*const u8], out: &mut [i32]) {
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
/// See [`crate::kernels::HopKernel`].
pub(super) unsafe fn squared_l2s_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    assert!(query.len().is_multiple_of(16), "whole lines of floats");
    // SAFETY: the caller's word.
    unsafe { for_each_code(query.len(), codes, out, |code| squared_l2_f32(query, code)) }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
pub(super) unsafe fn dots_f32(query: &[f32], codes: &[*const u8], out: &mut [f32]) {
    assert!(query.len().is_multiple_of(16), "whole lines of floats");
    // SAFETY: the caller's word.
    unsafe { for_each_code(query.len(), codes, out, |code| dot_f32(query, code)) }
}

/// # Safety
///
/// See [`crate::kernels::HopKernel`].
pub(super) unsafe fn differing_bits(query: &[u8], codes: &[*const u8], out: &mut [u32]) {
    assert!(query.len().is_multiple_of(64), "whole lines of bits");
    // SAFETY: the caller's word.
    unsafe { for_each_code(query.len(), codes, out, |code| hamming(query, code)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scalar::KERNELS;
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
            (KERNELS.quantize_u4)(&values, 1.0, &mut written);
            assert_eq!(written[byte] >> shift & 0xf, 15, "dimension {dimension}");
            // Zero is between 7 and 8, and goes to the even one.
            assert_eq!(written.iter().filter(|&&byte| byte == 0x88).count(), 127);
        }
    }
}

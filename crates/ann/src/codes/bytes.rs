//! Eight bits a dimension: like nibbles, with 256 levels, for data that needs finer estimates.
//!
//! Byte `c` means `c - 128` steps, so that a code becomes a query of signed bytes without rounding.

use crate::kernels::kernels;

/// The byte that means zero.
pub(super) const CENTRE: f32 = 128.0;
/// Codes are whole cache lines.
pub(super) const BLOCK: usize = 64;
/// Elements further out than this many deviations are cut: the range of the best uniform quantiser
/// of 256 levels for a Gaussian. Most vectors have no element as far out, and use a smaller range.
const RANGE: f32 = 3.94;
/// Number of levels on either side of zero.
pub(super) const LEVELS: f32 = 127.0;
/// Number of elements quantised at a time, on the stack.
const BATCH: usize = 512;

/// Bytes of a code.
pub(super) fn code_bytes(dimensions: usize) -> usize {
    dimensions.next_multiple_of(BLOCK)
}

/// Writes the code of `residual`, of squared length `norm` and padded with zeros to the length of
/// the code. Returns the scale: `scale * (c - CENTRE)` estimates an element.
pub(super) fn encode(residual: &[f32], dimensions: usize, norm: f32, code: &mut [u8]) -> f32 {
    let kernels = kernels();
    let deviation = (norm / dimensions as f32).sqrt();
    let factor = LEVELS / (kernels.max_abs)(residual).min(RANGE * deviation);
    // The residual has no direction, or its length is too small or too large for an `f32`.
    if !(norm.is_normal() && factor.is_normal()) {
        code.fill(CENTRE as u8);
        return 0.0;
    }
    let mut levels = [0i8; BATCH];
    let mut product = 0.0;
    for (values, bytes) in residual.chunks(BATCH).zip(code.chunks_mut(BATCH)) {
        let levels = &mut levels[..values.len()];
        (kernels.quantize_i8)(values, factor, levels);
        product += (kernels.dot_i8)(values, levels);
        for (byte, level) in bytes.iter_mut().zip(levels) {
            *byte = level.cast_unsigned() ^ 0x80;
        }
    }
    norm / product
}

/// Writes `c - CENTRE` for every dimension, and zeros after them. Returns their sum.
pub(super) fn unpack(code: &[u8], dimensions: usize, levels: &mut [i8]) -> i32 {
    for (level, byte) in levels.iter_mut().zip(code) {
        *level = (byte ^ 0x80).cast_signed();
    }
    levels[dimensions..].fill(0);
    levels.iter().map(|&level| i32::from(level)).sum()
}

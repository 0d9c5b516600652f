//! Four bits a dimension: a uniform quantiser of 16 levels, its scale corrected so that estimated
//! products are unbiased (RaBitQ, arXiv 2405.12497, and its extension to more bits, 2409.09913).
//!
//! After the rotation the elements of a vector of length `|r|` are nearly Gaussian with deviation
//! `|r| / sqrt(d)`. Level `c` means `(c - 7.5) * step`, and the vector of levels points about where
//! `r` does. Scaled to have the product `|r|^2` with `r`, it differs from `r` only across it, in a
//! direction that the rotation makes random: so products with it are right on average. Choosing the
//! best of several steps for each vector was tried, and found no more neighbours.

use crate::kernels::kernels;

/// The value of level 0 is minus this many steps.
pub(super) const CENTRE: f32 = 7.5;
/// Number of dimensions that share 64 bytes: byte `j` has dimension `j` in its low half and
/// dimension `64 + j` in its high half.
pub(super) const BLOCK: usize = 128;
/// The step of the best uniform quantiser of 16 levels, in deviations of a Gaussian (Max,
/// "Quantizing for minimum distortion", 1960).
pub(super) const STEP: f32 = 0.3352;
/// The byte in the code of a vector without a direction: two levels next to zero.
const NOTHING: u8 = 0x88;

/// Bytes of a code.
pub(super) fn code_bytes(dimensions: usize) -> usize {
    dimensions.div_ceil(BLOCK) * (BLOCK / 2)
}

/// Writes the code of `residual`, of squared length `norm` and padded with zeros to whole blocks.
/// Returns the scale: `scale * (c - CENTRE)` estimates an element.
pub(super) fn encode(residual: &[f32], dimensions: usize, norm: f32, code: &mut [u8]) -> f32 {
    let factor = (dimensions as f32 / norm).sqrt() / STEP;
    // The residual has no direction, or its length is too small or too large for an `f32`.
    if !factor.is_normal() {
        code.fill(NOTHING);
        return 0.0;
    }
    let product = (kernels().quantize_u4)(residual, factor, code);
    norm / product
}

/// Writes the levels of a code, 0 to 15, those of the padding included.
pub(super) fn levels(code: &[u8], levels: &mut [u8]) {
    let blocks = levels.chunks_exact_mut(BLOCK);
    for (levels, bytes) in blocks.zip(code.chunks_exact(BLOCK / 2)) {
        let (low, high) = levels.split_at_mut(BLOCK / 2);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
            (*low, *high) = (byte & 15, byte >> 4);
        }
    }
}

/// Writes `2 * (c - CENTRE)`, an odd number of at most 15, for every dimension, and zeros after
/// them. Returns their sum.
pub(super) fn unpack(code: &[u8], dimensions: usize, levels: &mut [i8]) -> i32 {
    let odd = |nibble: u8| 2 * nibble as i8 - 15;
    for (levels, bytes) in levels
        .chunks_exact_mut(BLOCK)
        .zip(code.chunks_exact(BLOCK / 2))
    {
        let (low, high) = levels.split_at_mut(BLOCK / 2);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
            (*low, *high) = (odd(byte & 15), odd(byte >> 4));
        }
    }
    levels[dimensions..].fill(0);
    levels.iter().map(|&level| i32::from(level)).sum()
}

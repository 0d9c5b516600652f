//! One bit a dimension, set when the element is strictly positive, from the low end of each byte.
//! The Hamming distance is defined on such bits, so estimates are the distances themselves.

/// Bytes of a cache line.
const BLOCK: usize = 64;

/// Bytes of a code.
pub(super) fn code_bytes(dimensions: usize) -> usize {
    dimensions.div_ceil(8).next_multiple_of(BLOCK)
}

/// Writes the bits of a vector and zeros after them.
pub(super) fn encode(vector: &[f32], code: &mut [u8]) {
    let (bytes, rest) = code.split_at_mut(vector.len().div_ceil(8));
    for (byte, eight) in bytes.iter_mut().zip(vector.chunks(8)) {
        let bits = eight.iter().enumerate();
        *byte = bits.fold(0, |byte, (i, &x)| byte | u8::from(x > 0.0) << i);
    }
    rest.fill(0);
}

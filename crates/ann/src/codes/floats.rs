//! Codes that are the vectors themselves, for few dimensions: where the rest of a node outweighs
//! its code, fewer bits save nothing. They are in the machine's byte order, as the kernels read
//! them.

/// Number of floats in a cache line; codes are whole lines.
const BLOCK: usize = 16;
const FLOAT_BYTES: usize = size_of::<f32>();

/// Bytes of a code.
pub(super) fn code_bytes(dimensions: usize) -> usize {
    dimensions.next_multiple_of(BLOCK) * FLOAT_BYTES
}

/// Writes the vector and zeros after it.
pub(super) fn encode(vector: &[f32], code: &mut [u8]) {
    let (values, rest) = code.split_at_mut(vector.len() * FLOAT_BYTES);
    let (values, _) = values.as_chunks_mut::<FLOAT_BYTES>();
    for (bytes, value) in values.iter_mut().zip(vector) {
        *bytes = value.to_ne_bytes();
    }
    rest.fill(0);
}

/// The vector with its padding.
pub(super) fn decode(code: &[u8]) -> impl Iterator<Item = f32> {
    let (values, _) = code.as_chunks::<FLOAT_BYTES>();
    values.iter().map(|&bytes| f32::from_ne_bytes(bytes))
}

//! Vectors as an index observes them.

use index::SimilarityFunction;
use xxhash_rust::xxh3::Xxh3;

use super::UnindexableValue;

/// The number of elements of a vector that are hashed at a time.
const HASHED_AT_A_TIME: usize = 256;

/// Decodes a vector as the database serialised it.
pub(super) fn decode(
    metric: SimilarityFunction,
    expected_bytes: usize,
    bytes: &[u8],
) -> Result<Vec<f32>, UnindexableValue> {
    if bytes.len() != expected_bytes {
        return Err(UnindexableValue::Length {
            expected_bytes,
            actual_bytes: bytes.len(),
        });
    }
    let (elements, _) = bytes.as_chunks();
    let vector: Vec<f32> = elements
        .iter()
        .map(|element| f32::from_be_bytes(*element))
        .collect();
    if let Some(position) = first_not_finite(&vector) {
        return Err(UnindexableValue::NotFinite { position });
    }
    let checked = metric.check_length(vector.iter().copied());
    checked
        .map_err(|_| UnindexableValue::TooLong)
        .map(|()| vector)
}

/// The position of the first element that is NaN or infinite; `None` if all are finite.
pub(crate) fn first_not_finite(vector: &[f32]) -> Option<usize> {
    // Mostly there is none. A loop without an early exit checks a register of elements at a time.
    let finite = vector.iter().map(|element| element.is_finite());
    match finite.fold(true, |all, this| all & this) {
        true => None,
        false => vector.iter().position(|element| !element.is_finite()),
    }
}

/// Adds a vector to a hash.
pub(super) fn add_to_hash(vector: &[f32], state: &mut Xxh3) {
    // Elements are hashed in blocks, as one by one takes many times as long.
    let mut bytes = [0_u8; 4 * HASHED_AT_A_TIME];
    for elements in vector.chunks(HASHED_AT_A_TIME) {
        let words = bytes.as_chunks_mut::<4>().0.iter_mut();
        words
            .zip(elements)
            .for_each(|(word, element)| *word = element.to_le_bytes());
        state.update(&bytes[..4 * elements.len()]);
    }
}

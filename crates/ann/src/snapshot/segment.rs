//! The files of full vectors.

use std::ops::Range;
use std::path::Path;

use super::checksum::Checksum;
use super::layout::HEADER_BYTES;
use super::{SlotShape, SnapshotError};

const MAGIC: &[u8; 8] = b"ANNVECTS";

/// The version of these files, which is older than that of `graph`: generations share them.
const VERSION: u32 = 1;

/// A file of full vectors in a generation that was written or opened, with what the next generation
/// needs to use it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VectorSegment {
    pub(super) number: u32,
    pub(super) slots: Range<u32>,
    /// Bytes of a vector.
    pub(super) vector_bytes: u32,
    pub(super) checksums: Vec<Checksum>,
}

impl VectorSegment {
    /// The length of the segment's file.
    pub(super) fn bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.slots.len() as u64 * u64::from(self.vector_bytes)
    }

    /// Whether a generation of this shape has the same segment under this number.
    pub(super) fn fits(&self, shape: &SlotShape) -> bool {
        self.vector_bytes == shape.vector_bytes
            && self.number < shape.segments()
            && self.slots == shape.segment(self.number)
    }
}

/// The name of a segment's file, which is the same in every generation.
pub(super) fn file_name(number: u32) -> String {
    format!("vectors-{number:05}")
}

/// The first bytes of a segment's file, as drawn in `docs/snapshot-format.md`.
pub(super) fn header(shape: &SlotShape, number: u32) -> [u8; HEADER_BYTES] {
    let slots = shape.segment(number);
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    let fields = [VERSION, shape.vector_bytes, slots.start, slots.len() as u32];
    for (place, field) in bytes[8..].chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

/// Compares the header of the file `path` with the one that it should have.
pub(super) fn check_header(
    found: &[u8; HEADER_BYTES],
    expected: &[u8; HEADER_BYTES],
    path: &Path,
) -> Result<(), SnapshotError> {
    if found[..8] != expected[..8] {
        return Err(SnapshotError::NotASnapshot {
            path: path.to_owned(),
        });
    }
    if found != expected {
        let what = "its header is not that of these vectors";
        return Err(SnapshotError::damaged(path, 0, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_five_digits_or_more() {
        assert_eq!(file_name(0), "vectors-00000");
        assert_eq!(file_name(123_456), "vectors-123456");
    }
}

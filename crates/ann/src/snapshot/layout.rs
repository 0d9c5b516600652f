//! The offsets and lengths of a generation, from its counts.

use std::ops::{Range, RangeInclusive};

use super::checksum::{Checksum, pieces};

/// Bytes of the header of either kind of file, which is the offset of what follows it.
pub(super) const HEADER_BYTES: usize = 4096;
/// The version of the format that is written.
pub(super) const VERSION: u32 = 2;
/// The oldest version that is read.
pub(super) const VERSION_MIN: u32 = 1;

/// Blocks begin at multiples of this, as kernels want them.
pub(super) const BLOCK_ALIGNMENT: u32 = 64;
const BLOCK_BYTES: RangeInclusive<u32> = BLOCK_ALIGNMENT..=1 << 20;
const VECTOR_BYTES_MAX: u32 = 1 << 20;
/// The most bytes of a segment, which is rewritten if one of its vectors changes.
const SEGMENT_BYTES: u32 = 64 << 20;

/// The sizes that everything else follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotShape {
    /// Number of blocks, and of vectors.
    pub(crate) slots: u32,
    /// Bytes of a block: a multiple of 64, up to 2^20.
    pub(crate) block_bytes: u32,
    /// Bytes of a full vector, up to 2^20; 0 if there are none.
    pub(crate) vector_bytes: u32,
}

impl SlotShape {
    /// Checks that the sizes are in their ranges; the error names what is wrong.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let block_is_sound = BLOCK_BYTES.contains(&self.block_bytes)
            && self.block_bytes.is_multiple_of(BLOCK_ALIGNMENT);
        if !block_is_sound {
            return Err("the size of a block is out of range");
        }
        if self.vector_bytes > VECTOR_BYTES_MAX {
            return Err("the size of a vector is out of range");
        }
        Ok(())
    }

    /// Bytes of all blocks.
    pub(super) fn blocks_bytes(&self) -> u64 {
        u64::from(self.slots) * u64::from(self.block_bytes)
    }

    /// Bytes of all blocks and full vectors.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks_bytes() + u64::from(self.slots) * u64::from(self.vector_bytes)
    }

    /// Number of vectors in a full segment: a power of two, at least 64. There must be vectors.
    pub(super) fn segment_slots(&self) -> u32 {
        SlotShape::segment_slots_of(self.vector_bytes)
    }

    /// Number of vectors in a full segment, if a vector has so many bytes, at least 1.
    pub(crate) fn segment_slots_of(vector_bytes: u32) -> u32 {
        1 << (SEGMENT_BYTES / vector_bytes).ilog2()
    }

    /// Number of segments of full vectors.
    pub(super) fn segments(&self) -> u32 {
        match self.vector_bytes {
            0 => 0,
            _ => self.slots.div_ceil(self.segment_slots()),
        }
    }

    /// The slots of a segment.
    pub(super) fn segment(&self, number: u32) -> Range<u32> {
        let start = number * self.segment_slots();
        start..start.saturating_add(self.segment_slots()).min(self.slots)
    }

    /// The length of a segment's file.
    pub(super) fn segment_bytes(&self, number: u32) -> u64 {
        let vectors = self.segment(number).len() as u64;
        HEADER_BYTES as u64 + vectors * u64::from(self.vector_bytes)
    }
}

/// The number of entries in each table after the blocks of `graph`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableCounts {
    pub(super) mean_elements: u32,
    pub(super) centre_elements: u64,
    pub(super) upper_words: u64,
    pub(super) ids: u64,
    pub(super) zero_ids: u64,
}

/// The parts of `graph`, as ranges of bytes, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GraphFileLayout {
    pub(super) blocks: Range<u64>,
    pub(super) mean: Range<u64>,
    pub(super) centres: Range<u64>,
    pub(super) upper: Range<u64>,
    pub(super) ids: Range<u64>,
    pub(super) zero_ids: Range<u64>,
    pub(super) checksums: Range<u64>,
}

impl GraphFileLayout {
    /// The layout of `graph`; None if its length is no number of 64 bits, as counts from a file may
    /// be anything. `shape` was checked.
    pub(super) fn new(shape: &SlotShape, counts: &TableCounts) -> Option<GraphFileLayout> {
        let behind = |range: &Range<u64>, entries: u64, bytes: u64| {
            let len = entries.checked_mul(bytes)?;
            Some(range.end..range.end.checked_add(len)?)
        };
        let header = 0..HEADER_BYTES as u64;
        let blocks = behind(&header, shape.blocks_bytes(), 1)?;
        let mean = behind(&blocks, counts.mean_elements.into(), 4)?;
        let centres = behind(&mean, counts.centre_elements, 4)?;
        let upper = behind(&centres, counts.upper_words, 4)?;
        let ids = behind(&upper, counts.ids, 8)?;
        let zero_ids = behind(&ids, counts.zero_ids, 4)?;
        let mut checksum_count = pieces(zero_ids.end - blocks.start);
        // All segments but the last have one length.
        if let Some(last) = shape.segments().checked_sub(1) {
            checksum_count += u64::from(last) * pieces(shape.segment_bytes(0));
            checksum_count += pieces(shape.segment_bytes(last));
        }
        let checksums = behind(&zero_ids, checksum_count, Checksum::BYTES as u64)?;
        Some(GraphFileLayout {
            blocks,
            mean,
            centres,
            upper,
            ids,
            zero_ids,
            checksums,
        })
    }

    /// The part of `graph` that has checksums: blocks and tables.
    pub(super) fn body(&self) -> Range<u64> {
        self.blocks.start..self.checksums.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bounded() {
        let check = |block_bytes, vector_bytes| {
            let shape = SlotShape {
                slots: 1,
                block_bytes,
                vector_bytes,
            };
            shape.check().is_ok()
        };
        assert!(check(64, 0) && check(1 << 20, 1 << 20) && check(448, 7));
        assert!(!check(0, 0) && !check(100, 0) && !check((1 << 20) + 64, 0));
        assert!(!check(64, (1 << 20) + 1));
    }

    #[test]
    fn segments_cover_all_slots_once() {
        for (slots, vector_bytes) in [
            (0, 4),
            (1, 64_000),
            (1024, 64_000),
            (1025, 64_000),
            (50_000, 1536),
            (u32::MAX, 64_000),
            (u32::MAX, 1),
        ] {
            let shape = SlotShape {
                slots,
                block_bytes: 64,
                vector_bytes,
            };
            let segments = shape.segments();
            let mut next = 0;
            for number in (0..segments).take(3) {
                assert_eq!(shape.segment(number).start, next);
                next = shape.segment(number).end;
                assert!(shape.segment_bytes(number) <= 4096 + (64 << 20));
            }
            match segments.checked_sub(1) {
                Some(last) => assert_eq!(shape.segment(last).end, slots),
                None => assert_eq!(slots, 0),
            }
        }
    }

    #[test]
    fn parts_lie_as_drawn() {
        let shape = SlotShape {
            slots: 3,
            block_bytes: 128,
            vector_bytes: 12,
        };
        let counts = TableCounts {
            mean_elements: 3,
            centre_elements: 2,
            upper_words: 1,
            ids: 2,
            zero_ids: 1,
        };
        let layout = GraphFileLayout::new(&shape, &counts).unwrap();
        assert_eq!(layout.blocks, 4096..4480);
        assert_eq!(layout.mean, 4480..4492);
        assert_eq!(layout.centres, 4492..4500);
        assert_eq!(layout.upper, 4500..4504);
        assert_eq!(layout.ids, 4504..4520);
        assert_eq!(layout.zero_ids, 4520..4524);
        // One piece of the graph, one of a segment.
        assert_eq!(layout.checksums, 4524..4556);
        assert_eq!(layout.body(), 4096..4524);
    }

    #[test]
    fn counts_that_overflow_have_no_layout() {
        let shape = SlotShape {
            slots: u32::MAX,
            block_bytes: 1 << 20,
            vector_bytes: 4,
        };
        for (ids, zero_ids) in [(u64::MAX, 0), (0, u64::MAX), (u64::MAX / 8, u64::MAX / 4)] {
            let counts = TableCounts {
                mean_elements: u32::MAX,
                centre_elements: 0,
                upper_words: 0,
                ids,
                zero_ids,
            };
            assert_eq!(GraphFileLayout::new(&shape, &counts), None);
        }
    }
}

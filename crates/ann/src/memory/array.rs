//! Records of one size in chunks that never move.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::growth::ChunkAllocator;
use super::table::{ChunkState, ChunkTable};
use super::{FileFaults, GrowError, Mapping, RecordPlacement, disk};

/// Chunks aim at this size in memory: that of a huge page of x86-64.
const MEMORY_CHUNK_BYTES: usize = 2 << 20;
/// Chunks aim at this size in a file, so that allocating on the disk is rare.
const FILE_CHUNK_BYTES: usize = 4 << 20;
/// The fewest records of a chunk, as a power of two. It bounds the chunk table of the largest
/// index.
const RECORD_BITS_MIN: u32 = 6;
/// The most records of a chunk, as a power of two. It keeps the chunks of small records (ids)
/// small.
const RECORD_BITS_MAX: u32 = 16;

/// Up to 2^32 records of one size. They begin as zeros, and are at addresses that never change,
/// except through [`make_writable`](RecordArray::make_writable).
///
/// The array hands out pointers and knows nothing of what is read and written through them, nor of
/// races there: that is up to the owner, who writes records with atomics, or while no one else can
/// reach them. All pointers die with the array.
pub(crate) struct RecordArray {
    table: ChunkTable,
    faults: Arc<FileFaults>,
    /// Bytes of a record.
    stride: usize,
    /// A chunk has `2^record_bits` records.
    record_bits: u32,
    /// Bytes of a chunk, a multiple of the page size.
    chunk_bytes: usize,
    chunks: Mutex<OwnedChunks>,
}

/// The memory of the chunks, which the array owns. The table has the addresses.
struct OwnedChunks {
    growth: ChunkAllocator,
    /// The memory of each chunk, by its number.
    backing: BTreeMap<u32, ChunkBacking>,
}

/// The memory of one chunk.
enum ChunkBacking {
    Own,
    Adopted(MappedPiece),
}

/// A stretch of a mapping that is shared with others: a chunk of a snapshot.
#[derive(Clone)]
pub(crate) struct MappedPiece {
    pub(crate) mapping: Arc<Mapping>,
    /// The offset in the mapping at which the chunk begins, in bytes.
    pub(crate) offset: usize,
}

/// The memory that a chunk had before it was made writable. It is dropped when no reader can hold a
/// pointer into it any more.
#[must_use = "readers may still look at this memory: drop it when its epoch has passed"]
pub(crate) struct RetiredChunk {
    _piece: MappedPiece,
}

/// The memory of an array, by whole chunks that were handed out, touched or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// Bytes of anonymous memory. Its pages that were never touched take no room.
    pub(crate) anonymous: usize,
    /// Bytes of mapped files, whose pages the system reclaims as it likes.
    pub(crate) mapped: usize,
}

impl RecordArray {
    /// Makes an array without records. `stride` is the size of a record in bytes, at least 1.
    pub(crate) fn new(stride: usize, place: RecordPlacement) -> RecordArray {
        RecordArray::with_allocate(stride, place, disk::allocate)
    }

    fn with_allocate(
        stride: usize,
        place: RecordPlacement,
        allocate: disk::Allocate,
    ) -> RecordArray {
        assert!(stride > 0);
        let aim = match place {
            RecordPlacement::Memory => MEMORY_CHUNK_BYTES,
            RecordPlacement::File(_) => FILE_CHUNK_BYTES,
        };
        let record_bits = (aim / stride)
            .checked_ilog2()
            .unwrap_or(0)
            .clamp(RECORD_BITS_MIN, RECORD_BITS_MAX);
        let chunk_bytes = (stride << record_bits).next_multiple_of(page_bytes());
        let growth = ChunkAllocator::new(place, chunk_bytes, allocate);
        RecordArray {
            table: ChunkTable::new(u32::BITS - record_bits),
            faults: Arc::clone(growth.faults()),
            stride,
            record_bits,
            chunk_bytes,
            chunks: Mutex::new(OwnedChunks {
                growth,
                backing: BTreeMap::new(),
            }),
        }
    }

    /// The faults of the array's mapped files. Files of adopted pieces are mapped with them.
    pub(crate) fn faults(&self) -> &Arc<FileFaults> {
        &self.faults
    }

    /// Bytes of a record.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Number of records in a chunk: a power of two, 64 to 65,536. Chunks begin at its multiples.
    pub(crate) fn records_per_chunk(&self) -> usize {
        1 << self.record_bits
    }

    /// Makes sure that the chunk of a record exists. Any thread may call this for any record. A
    /// read-only chunk stays so.
    pub(crate) fn ensure(&self, index: u32) -> Result<(), GrowError> {
        let number = self.chunk_of(index);
        if self.table.state(number) != ChunkState::Absent {
            return Ok(());
        }
        let mut chunks = self.chunks.lock();
        if self.table.state(number) == ChunkState::Absent {
            self.reserve(number)?;
            let start = chunks.growth.cut()?;
            chunks.backing.insert(number, ChunkBacking::Own);
            self.table.set(number, start, ChunkState::Writable);
        }
        Ok(())
    }

    /// The address of a record, if its chunk exists.
    pub(crate) fn get(&self, index: u32) -> Option<*mut u8> {
        let chunk = self.table.get(self.chunk_of(index))?;
        // SAFETY: a chunk has room for all records that fall into it.
        Some(unsafe { chunk.as_ptr().add(self.offset_of(index)) })
    }

    /// The address of a record.
    ///
    /// # Safety
    /// The chunk exists, and the caller knows: [`ensure`](RecordArray::ensure) has returned `Ok`
    /// for a record of it, or it was [adopted](RecordArray::adopt), before this in the order of
    /// events.
    #[inline(always)]
    pub(crate) unsafe fn get_unchecked(&self, index: u32) -> *mut u8 {
        // SAFETY: the chunk exists by the caller's promise, and has room for all of its records.
        unsafe {
            let chunk = self.table.get_unchecked(self.chunk_of(index));
            chunk.add(self.offset_of(index))
        }
    }

    /// Copies bytes into the records. `start` is counted in bytes from the start of record 0.
    ///
    /// # Panics
    /// If there is no room for them, or it is read-only.
    pub(crate) fn fill(&mut self, start: u64, mut bytes: &[u8]) {
        let chunk_bytes = (self.stride << self.record_bits) as u64;
        let mut start = start;
        while !bytes.is_empty() {
            let (number, offset) = ((start / chunk_bytes) as u32, start % chunk_bytes);
            assert_eq!(
                self.table.state(number),
                ChunkState::Writable,
                "chunk {number}"
            );
            let chunk = self.table.get(number).expect("the chunk is there");
            let room = (chunk_bytes - offset) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            // SAFETY: what is copied is within the chunk, which may be written; `&mut self`, so no
            // one else writes there.
            unsafe {
                let target = chunk.as_ptr().add(offset as usize);
                target.copy_from_nonoverlapping(now.as_ptr(), now.len());
            }
            bytes = later;
            start += now.len() as u64;
        }
    }

    /// Puts a chunk of a snapshot in the place of the chunk that begins with record `first`, which
    /// does not exist yet. Its records may be read, not written.
    ///
    /// # Panics
    /// If `first` is not the first record of a chunk, the chunk exists, or the piece is shorter
    /// than a chunk. The caller checks this before.
    pub(crate) fn adopt(&self, first: u32, piece: MappedPiece) -> Result<(), GrowError> {
        assert_eq!(self.offset_of(first), 0, "record {first} begins no chunk");
        let records_bytes = self.stride << self.record_bits;
        assert!(
            piece.mapping.len().saturating_sub(piece.offset) >= records_bytes,
            "the piece is shorter than a chunk"
        );
        let number = self.chunk_of(first);
        let mut chunks = self.chunks.lock();
        assert_eq!(
            self.table.state(number),
            ChunkState::Absent,
            "the chunk exists"
        );
        self.reserve(number)?;
        let start = piece.mapping.at(piece.offset);
        chunks.backing.insert(number, ChunkBacking::Adopted(piece));
        self.table.set(number, start, ChunkState::ReadOnly);
        Ok(())
    }

    /// Whether the records of a chunk may be written. The chunk must exist.
    #[cfg(test)]
    pub(crate) fn is_writable(&self, index: u32) -> bool {
        self.table.state(self.chunk_of(index)) == ChunkState::Writable
    }

    /// Makes the records of a read-only chunk writable, by copying them to a chunk of the array's
    /// own. Addresses returned before still lead to the old memory, which is returned. `None` if
    /// the chunk was writable already. Growth waits for the copying.
    pub(crate) fn make_writable(&self, index: u32) -> Result<Option<RetiredChunk>, GrowError> {
        let number = self.chunk_of(index);
        if self.table.state(number) != ChunkState::ReadOnly {
            return Ok(None);
        }
        let mut chunks = self.chunks.lock();
        if self.table.state(number) != ChunkState::ReadOnly {
            return Ok(None);
        }
        let copy = chunks.growth.cut()?;
        let old = chunks.backing.insert(number, ChunkBacking::Own);
        let Some(ChunkBacking::Adopted(piece)) = old else {
            unreachable!("only adopted chunks are read-only");
        };
        let records_bytes = self.stride << self.record_bits;
        // SAFETY: no one writes to the old memory, as it is read-only, and no one knows the new
        // memory yet; both have the length of a chunk's records.
        unsafe { copy.copy_from_nonoverlapping(piece.mapping.at(piece.offset), records_bytes) };
        self.table.set(number, copy, ChunkState::Writable);
        Ok(Some(RetiredChunk { _piece: piece }))
    }

    /// The memory that the array takes, its table of chunks included.
    pub(crate) fn footprint(&self) -> Footprint {
        let mut footprint = Footprint {
            anonymous: self.table.bytes(),
            mapped: 0,
        };
        let chunks = self.chunks.lock();
        for backing in chunks.backing.values() {
            match (backing, chunks.growth.place()) {
                (ChunkBacking::Own, RecordPlacement::Memory) => {
                    footprint.anonymous += self.chunk_bytes;
                }
                (ChunkBacking::Own, RecordPlacement::File(_)) | (ChunkBacking::Adopted(_), _) => {
                    footprint.mapped += self.chunk_bytes;
                }
            }
        }
        footprint
    }

    #[inline(always)]
    fn chunk_of(&self, index: u32) -> u32 {
        index >> self.record_bits
    }

    /// The bytes between the start of a record's chunk and the record.
    #[inline(always)]
    fn offset_of(&self, index: u32) -> usize {
        let place = index & ((1 << self.record_bits) - 1);
        place as usize * self.stride
    }

    fn reserve(&self, number: u32) -> Result<(), GrowError> {
        let reserved = self.table.reserve(number);
        reserved.map_err(|source| GrowError::Memory {
            bytes: self.table.bytes(),
            source,
        })
    }
}

fn page_bytes() -> usize {
    match cfg!(miri) {
        true => 4096,
        false => rustix::param::page_size(),
    }
}

#[cfg(test)]
mod tests;

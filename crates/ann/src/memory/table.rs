//! A table of chunks: the address of a chunk by its number, without a lock.
//!
//! It has two levels: a root of fixed size within the table, and leaves made when first needed, so
//! that an index of a few vectors and one with a few ids near the largest `u32` both pay for
//! little.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// Number of high bits of a chunk's number, which are its leaf's place in the root. The root has 8
/// KiB, and leaves have from 1 KiB (chunks of 65,536 records) to 1 MiB (64 records, touched only
/// where used).
const ROOT_BITS: u32 = 10;
const ROOT_LEN: usize = 1 << ROOT_BITS;

/// The access that the records of a chunk allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ChunkState {
    /// There is no chunk.
    Absent = 0,
    /// Records may be read and written.
    Writable = 1,
    /// Records may only be read.
    ReadOnly = 2,
}

/// The entry of one chunk. All zeros are an absent one.
struct ChunkEntry {
    start: AtomicPtr<u8>,
    state: AtomicU8,
}

/// The addresses and states of up to `2^chunk_bits` chunks.
pub(super) struct ChunkTable {
    /// The first entry of each leaf, or null.
    root: [AtomicPtr<ChunkEntry>; ROOT_LEN],
    /// Number of low bits of a chunk's number, which are its place in its leaf.
    leaf_bits: u32,
}

impl ChunkTable {
    /// An empty table for chunk numbers of `chunk_bits` bits, 16 to 26.
    pub(super) fn new(chunk_bits: u32) -> ChunkTable {
        assert!((16..=26).contains(&chunk_bits));
        ChunkTable {
            root: [const { AtomicPtr::new(null_mut()) }; ROOT_LEN],
            leaf_bits: chunk_bits - ROOT_BITS,
        }
    }

    /// The address of a chunk's first record, if there is such a chunk.
    pub(super) fn get(&self, chunk: u32) -> Option<NonNull<u8>> {
        NonNull::new(self.entry(chunk)?.start.load(Ordering::Acquire))
    }

    /// The address of the first record of a chunk that exists.
    ///
    /// # Safety
    /// The chunk was [set](ChunkTable::set), and the caller knows of it.
    #[inline(always)]
    pub(super) unsafe fn get_unchecked(&self, chunk: u32) -> *mut u8 {
        let (leaf, place) = self.split(chunk);
        // SAFETY: `chunk` is in range as it was set, so `leaf` is; the leaf was made before the
        // entry was, and it has an entry for every `place`. Both loads acquire, as another thread
        // may have set the entry again since.
        unsafe {
            let leaf = self.root.get_unchecked(leaf).load(Ordering::Acquire);
            (*leaf.add(place)).start.load(Ordering::Acquire)
        }
    }

    /// The access that the records of a chunk allow.
    pub(super) fn state(&self, chunk: u32) -> ChunkState {
        let Some(entry) = self.entry(chunk) else {
            return ChunkState::Absent;
        };
        match entry.state.load(Ordering::Acquire) {
            0 => ChunkState::Absent,
            1 => ChunkState::Writable,
            _ => ChunkState::ReadOnly,
        }
    }

    /// Makes sure that the entry of a chunk exists, which `set` needs.
    pub(super) fn reserve(&self, chunk: u32) -> io::Result<()> {
        let (leaf, _) = self.split(chunk);
        let leaf = &self.root[leaf];
        if !leaf.load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        let layout = self.leaf_layout();
        // SAFETY: a leaf has at least one entry, so the layout is not empty.
        let made = unsafe { alloc_zeroed(layout) }.cast::<ChunkEntry>();
        if made.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let exchanged =
            leaf.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        if exchanged.is_err() {
            // SAFETY: another thread was faster; no one has seen this one.
            unsafe { dealloc(made.cast(), layout) };
        }
        Ok(())
    }

    /// Publishes a chunk: the address of its first record, and the access to its records.
    ///
    /// # Panics
    /// If the entry was not [reserved](ChunkTable::reserve).
    pub(super) fn set(&self, chunk: u32, start: NonNull<u8>, state: ChunkState) {
        let entry = self.entry(chunk).expect("reserved");
        // The address is set first: a thread that sees a state may use the address.
        entry.start.store(start.as_ptr(), Ordering::Release);
        entry.state.store(state as u8, Ordering::Release);
    }

    /// Number of bytes of the table itself.
    pub(super) fn bytes(&self) -> usize {
        let is_made = |leaf: &&AtomicPtr<ChunkEntry>| !leaf.load(Ordering::Relaxed).is_null();
        let leaves = self.root.iter().filter(is_made).count();
        size_of::<ChunkTable>() + leaves * self.leaf_layout().size()
    }

    /// The place of the leaf in the root, and the place of the chunk in the leaf.
    #[inline(always)]
    fn split(&self, chunk: u32) -> (usize, usize) {
        let place_mask = (1 << self.leaf_bits) - 1;
        (
            (chunk >> self.leaf_bits) as usize,
            (chunk & place_mask) as usize,
        )
    }

    fn entry(&self, chunk: u32) -> Option<&ChunkEntry> {
        let (leaf, place) = self.split(chunk);
        let leaf = NonNull::new(self.root[leaf].load(Ordering::Acquire))?;
        // SAFETY: a leaf has an entry for every place, initialised (zeros are a valid entry), and
        // lives as long as the table.
        Some(unsafe { leaf.add(place).as_ref() })
    }

    fn leaf_layout(&self) -> Layout {
        Layout::array::<ChunkEntry>(1 << self.leaf_bits).expect("a leaf is at most 1 MiB")
    }
}

impl Drop for ChunkTable {
    fn drop(&mut self) {
        let layout = self.leaf_layout();
        for leaf in &mut self.root {
            let leaf = *leaf.get_mut();
            if !leaf.is_null() {
                // SAFETY: made by `reserve` with this layout; entries need no drop.
                unsafe { dealloc(leaf.cast(), layout) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_chunk_have_entries_of_their_own() {
        for bits in [16, 20, 26] {
            let table = ChunkTable::new(bits);
            let chunks = [0, 1, (1 << bits) - 2, (1 << bits) - 1];
            let mut records = [[0u8; 1]; 4];
            for (&chunk, record) in chunks.iter().zip(&mut records) {
                assert_eq!(table.get(chunk), None);
                assert_eq!(table.state(chunk), ChunkState::Absent);
                table.reserve(chunk).unwrap();
                table.set(chunk, NonNull::from(record).cast(), ChunkState::Writable);
            }
            for (&chunk, record) in chunks.iter().zip(&mut records) {
                let start: NonNull<u8> = NonNull::from(record).cast();
                assert_eq!(table.get(chunk), Some(start));
                assert_eq!(table.state(chunk), ChunkState::Writable);
                // SAFETY: the chunk was set above.
                assert_eq!(unsafe { table.get_unchecked(chunk) }, start.as_ptr());
            }
            // Two leaves: those of the first and of the last chunk.
            let leaf_bytes = size_of::<ChunkEntry>() << (bits - ROOT_BITS);
            assert_eq!(table.bytes(), size_of::<ChunkTable>() + 2 * leaf_bytes);
        }
    }

    #[test]
    fn a_chunk_that_was_copied_has_another_address_and_state() {
        let table = ChunkTable::new(16);
        let mut records = [0u8; 2];
        table.reserve(7).unwrap();
        for (record, state) in records
            .iter_mut()
            .zip([ChunkState::ReadOnly, ChunkState::Writable])
        {
            let start = NonNull::from(record);
            table.set(7, start, state);
            assert_eq!((table.get(7), table.state(7)), (Some(start), state));
        }
        assert_eq!(table.get(8), None, "in the same leaf, but not set");
    }
}

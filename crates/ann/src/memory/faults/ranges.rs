//! The ranges of addresses at which files are mapped, which the handler of a signal reads.
//!
//! A handler can't wait for a lock that the thread it has interrupted may hold. So it reads each
//! entry between two looks at the entry's version. Entries are never freed, and the lock is only
//! for those who write.

use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

use super::{MappedFile, handler};

/// Number of entries that are made at a time.
const BLOCK_LEN: usize = 64;

/// The newest block; none is ever freed.
static BLOCKS: AtomicPtr<EntryBlock> = AtomicPtr::new(null_mut());

/// Entries without a range.
static FREE: Mutex<Vec<&'static RangeEntry>> = Mutex::new(Vec::new());

struct EntryBlock {
    entries: [RangeEntry; BLOCK_LEN],
    /// The block made before.
    next: *const EntryBlock,
}

// SAFETY: `next` leads to a block that is never freed nor written to but by its atomics.
unsafe impl Sync for EntryBlock {}

/// The entry of one range. All zeros are no range.
#[derive(Default)]
struct RangeEntry {
    /// The version, which is odd while the rest changes.
    version: AtomicU64,
    start: AtomicUsize,
    bytes: AtomicUsize,
    writable: AtomicBool,
    /// The flag of the file's array, [`super::FileFaults::first`].
    first: AtomicPtr<AtomicUsize>,
    /// The number of the file in its array, which the flag becomes.
    number: AtomicUsize,
}

/// A range, as far as the handler needs to know it.
#[derive(Clone, Copy)]
pub(super) struct FaultRange {
    pub start: usize,
    pub bytes: usize,
    pub writable: bool,
    first: *const AtomicUsize,
    number: usize,
}

/// A range that the handler knows, until this is dropped. It is dropped before the range is
/// unmapped.
pub(in crate::memory) struct RegisteredRange {
    entry: &'static RangeEntry,
    /// The file, which keeps the flag alive that the entry leads to.
    _file: MappedFile,
}

impl RegisteredRange {
    /// Makes a range known, and installs the handler. No one may have read there yet.
    pub(in crate::memory) fn new(
        start: NonNull<u8>,
        bytes: usize,
        writable: bool,
        file: &MappedFile,
    ) -> RegisteredRange {
        handler::install();
        let entry = RangeEntry::take();
        entry.write(FaultRange {
            start: start.as_ptr().addr(),
            bytes,
            writable,
            first: &raw const file.faults.first,
            number: file.number,
        });
        RegisteredRange {
            entry,
            _file: file.clone(),
        }
    }
}

impl Drop for RegisteredRange {
    fn drop(&mut self) {
        self.entry.write(FaultRange::NOTHING);
        FREE.lock().push(self.entry);
    }
}

impl FaultRange {
    const NOTHING: FaultRange = FaultRange {
        start: 0,
        bytes: 0,
        writable: false,
        first: std::ptr::null(),
        number: 0,
    };

    /// Notes that the file can't be read.
    ///
    /// # Safety
    /// A thread is reading or writing in the range, so the range stays entered.
    pub(super) unsafe fn note(&self) {
        // SAFETY: `RegisteredRange` keeps the flag; the caller's promise is that it lives.
        let first = unsafe { &*self.first };
        // The file that was noted first stays.
        let _ = first.compare_exchange(0, self.number, Ordering::SeqCst, Ordering::SeqCst);
    }
}

impl RangeEntry {
    /// Takes an entry, which only the caller may write.
    fn take() -> &'static RangeEntry {
        let mut free = FREE.lock();
        if let Some(entry) = free.pop() {
            return entry;
        }
        // Leaked, as a handler may be on its way through the blocks at any time.
        let block: &'static EntryBlock = Box::leak(Box::new(EntryBlock {
            entries: std::array::from_fn(|_| RangeEntry::default()),
            next: BLOCKS.load(Ordering::Acquire),
        }));
        BLOCKS.store(std::ptr::from_ref(block).cast_mut(), Ordering::Release);
        let (last, others) = block.entries.split_last().expect("a block has entries");
        free.extend(others);
        last
    }

    /// Changes the range of an entry. Only one thread may have the entry to write.
    fn write(&self, range: FaultRange) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.bytes.store(range.bytes, Ordering::Relaxed);
        self.writable.store(range.writable, Ordering::Relaxed);
        self.first.store(range.first.cast_mut(), Ordering::Relaxed);
        self.number.store(range.number, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    /// Reads an entry. None while it changes, which it does not while anybody reads in its range.
    fn read(&self) -> Option<FaultRange> {
        let version = self.version.load(Ordering::Acquire);
        let found = FaultRange {
            start: self.start.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            writable: self.writable.load(Ordering::Relaxed),
            first: self.first.load(Ordering::Relaxed),
            number: self.number.load(Ordering::Relaxed),
        };
        fence(Ordering::Acquire);
        let unchanged = self.version.load(Ordering::Relaxed) == version;
        (version.is_multiple_of(2) && unchanged).then_some(found)
    }
}

/// Finds the range that holds an address. It waits for nothing and allocates nothing, so a handler
/// may call it.
pub(super) fn find(address: usize) -> Option<FaultRange> {
    let mut next: *const EntryBlock = BLOCKS.load(Ordering::Acquire);
    // SAFETY: a pointer in the list is null or leads to a block that is never freed.
    while let Some(block) = unsafe { next.as_ref() } {
        let holds = |found: &FaultRange| address.wrapping_sub(found.start) < found.bytes;
        let found = block
            .entries
            .iter()
            .filter_map(RangeEntry::read)
            .find(holds);
        if found.is_some() {
            return found;
        }
        next = block.next;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::FileFaults;
    use super::*;

    #[test]
    fn ranges_are_found_while_they_are_there() {
        let faults = Arc::<FileFaults>::default();
        let file = faults.file("a file".to_owned());
        // More than a block. No other test maps anything at these addresses.
        let start =
            |number: usize| NonNull::without_provenance((number * 16 + 1).try_into().unwrap());
        let enter = |number| RegisteredRange::new(start(number), 8, false, &file);
        let mut entered: Vec<RegisteredRange> = (0..3 * BLOCK_LEN).map(enter).collect();
        for number in 0..entered.len() {
            let first = number * 16 + 1;
            for address in [first, first + 7] {
                assert_eq!(find(address).unwrap().start, first);
            }
            assert!(find(first + 8).is_none());
        }
        // Its place is taken by the next one. Other tests take some too.
        let before = blocks();
        for _ in 0..100 * BLOCK_LEN {
            drop(entered.swap_remove(7));
            assert!(find(7 * 16 + 1).is_none());
            entered.push(enter(7));
            entered.swap(7, 3 * BLOCK_LEN - 1);
            assert_eq!(find(7 * 16 + 1).unwrap().bytes, 8);
        }
        assert!(blocks() < before + 50, "{} after {before}", blocks());
        assert_eq!(faults.unreadable(), None);
    }

    fn blocks() -> usize {
        let mut count = 0;
        let mut next: *const EntryBlock = BLOCKS.load(Ordering::Acquire);
        // SAFETY: as in `find`.
        while let Some(block) = unsafe { next.as_ref() } {
            (count, next) = (count + 1, block.next);
        }
        count
    }
}

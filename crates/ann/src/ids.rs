//! The table from ids to slots.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::graph::SLOTS_MAX;
use crate::memory::{GrowError, RecordArray, RecordPlacement};

/// The entry of an id in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdEntry {
    /// The index does not hold the id.
    Vacant,
    /// A change is about to insert the id, or to take it out.
    Reserved,
    /// The index holds the id with a vector that has no direction, and so no slot.
    Undirected,
    /// The index holds the id in this slot.
    Slot(u32),
}

impl IdEntry {
    const RESERVED: u32 = u32::MAX;
    const UNDIRECTED: u32 = u32::MAX - 1;

    fn word(self) -> u32 {
        match self {
            IdEntry::Vacant => 0,
            IdEntry::Reserved => IdEntry::RESERVED,
            IdEntry::Undirected => IdEntry::UNDIRECTED,
            IdEntry::Slot(slot) => slot + 1,
        }
    }

    fn of(word: u32) -> IdEntry {
        match word {
            0 => IdEntry::Vacant,
            IdEntry::RESERVED => IdEntry::Reserved,
            IdEntry::UNDIRECTED => IdEntry::Undirected,
            slot => IdEntry::Slot(slot - 1),
        }
    }

    /// Whether searches may find the id.
    pub(crate) fn is_held(self) -> bool {
        matches!(self, IdEntry::Undirected | IdEntry::Slot(_))
    }
}

/// No slot has the word of another kind of entry.
const _: () = assert!(SLOTS_MAX < IdEntry::UNDIRECTED);

/// Entries by id, in an array that exists where ids do.
pub(crate) struct IdTable {
    words: RecordArray,
    /// One above the largest id that was ever entered.
    end: AtomicU64,
}

impl IdTable {
    pub(crate) fn new() -> IdTable {
        IdTable {
            words: RecordArray::new(size_of::<u32>(), RecordPlacement::Memory),
            end: AtomicU64::new(0),
        }
    }

    /// Makes room for an id.
    pub(crate) fn ensure(&self, id: u32) -> Result<(), GrowError> {
        self.words.ensure(id)?;
        self.end.fetch_max(u64::from(id) + 1, Ordering::AcqRel);
        Ok(())
    }

    fn word(&self, id: u32) -> Option<&AtomicU32> {
        let word = self.words.get(id)?;
        // SAFETY: a record of the array is four bytes, aligned, zeroed, there for good, and only
        // ever used as an atomic.
        Some(unsafe { &*word.cast::<AtomicU32>() })
    }

    pub(crate) fn get(&self, id: u32) -> IdEntry {
        let word = self.word(id).map(|word| word.load(Ordering::Acquire));
        IdEntry::of(word.unwrap_or(0))
    }

    /// Changes the entry of an id if it is `expected`; else fails with the entry found.
    pub(crate) fn change(&self, id: u32, expected: IdEntry, entry: IdEntry) -> Result<(), IdEntry> {
        let Some(word) = self.word(id) else {
            return Err(IdEntry::Vacant);
        };
        let (before, after) = (expected.word(), entry.word());
        word.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(IdEntry::of)
    }

    /// One above the largest id that was entered so far.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// The ids that are held, ascending, each with the entry that it has when the iterator comes to
    /// it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, IdEntry)> + '_ {
        let per_chunk = self.words.records_per_chunk() as u64;
        let end = self.end();
        let chunks = (0..end.div_ceil(per_chunk)).map(move |chunk| chunk * per_chunk);
        let existing = chunks.filter(|first| self.words.get(*first as u32).is_some());
        let ids = existing.flat_map(move |first| first..end.min(first + per_chunk));
        ids.filter_map(|id| {
            let id = id as u32;
            let entry = self.get(id);
            entry.is_held().then_some((id, entry))
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let used = self.end() as usize * size_of::<u32>();
        self.words.footprint().anonymous.min(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_change_only_from_what_is_expected() {
        let ids = IdTable::new();
        assert_eq!(ids.get(70_000), IdEntry::Vacant);
        ids.ensure(70_000).expect("room");
        let entries = [
            IdEntry::Vacant,
            IdEntry::Reserved,
            IdEntry::Undirected,
            IdEntry::Slot(0),
            IdEntry::Slot(SLOTS_MAX - 1),
        ];
        for pair in entries.windows(2) {
            assert_eq!(ids.get(70_000), pair[0]);
            assert_eq!(ids.change(70_000, pair[0], pair[1]), Ok(()));
            assert_eq!(ids.change(70_000, pair[0], pair[1]), Err(pair[1]));
        }
    }

    #[test]
    fn held_ids_are_met_in_order_however_sparse() {
        let ids = IdTable::new();
        let held = [0, 1, 65_536, 3_000_000, u32::MAX];
        for (slot, id) in (0..).zip(held) {
            ids.ensure(id).expect("room");
            let entered = ids.change(id, IdEntry::Vacant, IdEntry::Slot(slot));
            assert_eq!(entered, Ok(()));
        }
        ids.ensure(5).expect("room");
        ids.change(5, IdEntry::Vacant, IdEntry::Reserved)
            .expect("vacant");
        assert!(ids.iter().map(|(id, _)| id).eq(held));
    }
}

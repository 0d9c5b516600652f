//! The contents of spaces in memory: all entries of their files, at any time.
//!
//! So the spaces are the same after the next start. What is dead goes from both in one batch.

use std::borrow::Cow;
use std::ops::Bound;

use bytes::Bytes;

use super::resident::{self, ResidentMap};
use super::{DiskEngine, EntryBatch, EntryLocation, EntryValue, EntryVerdict, SpaceId, SyncTarget};
use crate::StorageError;

/// Entries that a look looks at between two requests.
const SCANNED_ENTRIES_MAX: usize = 1024;
/// Bytes of entries after which a step of a look ends.
const SCANNED_BYTES_MAX: usize = 1 << 20;

/// A change of an entry of a space, which may be in memory.
pub(crate) struct ResidentChange<'k> {
    pub space: SpaceId,
    pub key: Cow<'k, [u8]>,
    /// The length of the value that a change before this one leaves, or `None` if it leaves none;
    /// absent if there is no such change.
    pub before: Option<Option<usize>>,
    /// The length of the new value; `None` if the entry is removed.
    pub value: Option<usize>,
}

/// A look at the entries of spaces for what is dead, a few at a time.
pub(crate) struct DeadEntryScan {
    /// The spaces that are not done. The last one is next.
    spaces: Vec<SpaceId>,
    /// The place in the next one.
    from: Bound<Vec<u8>>,
}

/// The part of a step that is left.
struct ScanStepBudget {
    entries: usize,
    bytes: usize,
}

impl DiskEngine {
    /// Reads spaces into memory, where all later reads find them. If they don't fit, they and their
    /// files lose what no read looks for any more.
    pub(crate) fn hold(&self, spaces: &[SpaceId], now_micros: i64) -> Result<(), StorageError> {
        if self.try_hold(spaces)? {
            return Ok(());
        }
        let mut look = DeadEntryScan::over(spaces.to_vec());
        while !self.continue_dead_entry_scan(&mut look, now_micros)? {}
        match self.try_hold(spaces)? {
            true => Ok(()),
            false => Err(StorageError::Invalid(format!(
                "the tables with in_memory = true take more than {} MiB: start the server with a \
                 larger --in-memory-storage-size-mb",
                self.resident.budget_bytes() >> 20
            ))),
        }
    }

    /// Says whether the spaces fit.
    fn try_hold(&self, spaces: &[SpaceId]) -> Result<bool, StorageError> {
        // What was admitted fits again, as an entry never took less than this.
        let mut room = self.resident.start_bytes();
        let mut maps = Vec::with_capacity(spaces.len());
        let snapshot = self.snapshot()?;
        for space in spaces {
            let mut map = self.resident.builder();
            for entry in self.scan_at(&snapshot, *space, (Bound::Unbounded, Bound::Unbounded))? {
                let (key, value) = entry?;
                let bytes = resident::entry_bytes(key.len(), value.len());
                let Some(left) = room.checked_sub(bytes) else {
                    return Ok(false);
                };
                room = left;
                // The bytes may be part of a block, which a copy does not hold.
                map.push(Bytes::copy_from_slice(&key), Bytes::copy_from_slice(&value));
            }
            maps.push((*space, map.build()));
        }
        for (space, map) in maps {
            self.resident.add(space, map);
        }
        Ok(true)
    }

    /// The bytes by which changes may grow the spaces in memory. Only the thread that writes may
    /// call this.
    pub(crate) fn resident_growth<'k>(
        &self,
        changes: impl Iterator<Item = ResidentChange<'k>>,
    ) -> i64 {
        let state = self.resident.newest();
        let growths = changes.filter_map(|change| {
            let held = |map: &ResidentMap| map.get(&change.key).map(Bytes::len);
            let map = state.space(change.space)?;
            let before = change.before.unwrap_or_else(|| held(map));
            Some(resident::growth(change.key.len(), before, change.value))
        });
        growths.sum()
    }

    /// Checks that the spaces in memory may grow by so many bytes. Deletions (`is_deletion`) have
    /// an eighth more, as they make room.
    pub(crate) fn check_resident_room(
        &self,
        growth: i64,
        is_deletion: bool,
    ) -> Result<(), StorageError> {
        match u64::try_from(growth) {
            Ok(wanted) if wanted > self.resident.room_bytes(is_deletion) => {
                Err(StorageError::Invalid(format!(
                    "the tables with in_memory = true have no room left: they take up to {} MiB; \
                     delete rows or truncate a table, or start the server with a larger \
                     --in-memory-storage-size-mb",
                    self.resident.budget_bytes() >> 20
                )))
            }
            _ => Ok(()),
        }
    }

    /// Bytes that the spaces in memory take.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident.used_bytes()
    }

    /// Begins a look at all spaces in memory, for what no read looks for any more.
    pub(crate) fn begin_dead_entry_scan(&self) -> DeadEntryScan {
        DeadEntryScan::over(self.resident.newest().ids().collect())
    }

    /// Goes on with a look: drops what is dead among the next few entries, from memory and from the
    /// files. Returns whether that was the last step. Only the thread that writes may call this.
    /// After an error the look has to start again.
    pub(crate) fn continue_dead_entry_scan(
        &self,
        look: &mut DeadEntryScan,
        now_micros: i64,
    ) -> Result<bool, StorageError> {
        let (mut drops, mut left) = (EntryBatch::new(), ScanStepBudget::default());
        while let Some(space) = look.spaces.last() {
            match self.dead_from(*space, look.from.clone(), &mut drops, &mut left)? {
                Some(last) => {
                    look.from = Bound::Excluded(last);
                    break;
                }
                None => {
                    look.spaces.pop();
                    look.from = Bound::Unbounded;
                }
            }
        }
        if !drops.is_empty() {
            // Whatever is acknowledged later is after it in the journal, and so is not on the disk
            // without it.
            self.commit(drops, SyncTarget::Kernel, now_micros)?;
        }
        Ok(look.spaces.is_empty())
    }

    /// Gathers the changes that drop what is dead among the next entries of a space. Returns the
    /// key of the last one that was looked at if there may be more.
    fn dead_from(
        &self,
        space: SpaceId,
        from: Bound<Vec<u8>>,
        drops: &mut EntryBatch,
        left: &mut ScanStepBudget,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        // There is none if the table was dropped or emptied meanwhile.
        let Some(mut examine) = (self.examiners)(space, EntryLocation::Memory) else {
            return Ok(None);
        };
        let snapshot = self.snapshot()?;
        for entry in self.scan_at(&snapshot, space, (from, Bound::Unbounded))? {
            let (key, value) = entry?;
            match examine(&key, &EntryValue::Held(&value)) {
                EntryVerdict::Keep => {}
                EntryVerdict::Remove => drops.push((space, key.clone(), None)),
                EntryVerdict::Replace(new) => drops.push((space, key.clone(), Some(new))),
            }
            left.entries = left.entries.saturating_sub(1);
            left.bytes = left.bytes.saturating_sub(key.len() + value.len());
            if left.entries == 0 || left.bytes == 0 {
                return Ok(Some(key.to_vec()));
            }
        }
        Ok(None)
    }
}

impl DeadEntryScan {
    pub(super) fn over(spaces: Vec<SpaceId>) -> DeadEntryScan {
        DeadEntryScan {
            spaces,
            from: Bound::Unbounded,
        }
    }
}

impl Default for ScanStepBudget {
    fn default() -> ScanStepBudget {
        ScanStepBudget {
            entries: SCANNED_ENTRIES_MAX,
            bytes: SCANNED_BYTES_MAX,
        }
    }
}

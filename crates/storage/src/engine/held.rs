//! The contents of spaces in memory: all entries of their files, at any time.
//!
//! So the spaces are the same after the next start. What is dead goes from both in one batch.

use std::borrow::Cow;
use std::ops::Bound;

use bytes::Bytes;

use super::resident::{self, ResidentMap};
use super::{Batch, Disk, Examiner, Fate, Rewriting, SpaceId, Stored, Sync};
use crate::StorageError;

/// The most entries of a batch that drops what is dead.
const DROPPED_MAX: usize = 4096;
/// Bytes of new values after which such a batch takes no more.
const DROPPED_BYTES_MAX: usize = 1 << 20;

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

impl Disk {
    /// Reads spaces into memory, where all later reads find them. If they don't fit, they and their
    /// files lose what no read looks for any more.
    pub(crate) fn hold(&self, spaces: &[SpaceId], now_micros: i64) -> Result<(), StorageError> {
        if self.try_hold(spaces)? {
            return Ok(());
        }
        for space in spaces {
            self.drop_dead(*space, now_micros)?;
        }
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
                // What is read may be part of a block, which is not kept.
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
    /// ask.
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

    /// Drops what no read looks for any more from the spaces in memory and from their files. Only
    /// the thread that writes may call this.
    pub(crate) fn forget(&self, now_micros: i64) -> Result<(), StorageError> {
        let state = self.resident.newest();
        let spaces: Vec<SpaceId> = state.ids().collect();
        drop(state);
        let mut spaces = spaces.into_iter();
        spaces.try_for_each(|space| self.drop_dead(space, now_micros))
    }

    fn drop_dead(&self, space: SpaceId, now_micros: i64) -> Result<(), StorageError> {
        let Some(mut examine) = (self.examiners)(space, Rewriting::Memory) else {
            return Ok(());
        };
        let mut from = Bound::Unbounded;
        loop {
            let (drops, next) = self.dead_from(space, from, &mut examine)?;
            if !drops.is_empty() {
                // Whatever is acknowledged later is behind it in the journal, and so is not on the
                // disk without it.
                self.commit(drops, Sync::Kernel, now_micros)?;
            }
            match next {
                Some(last) => from = Bound::Excluded(last),
                None => return Ok(()),
            }
        }
    }

    /// The next changes that drop what is dead, and the key of the last of them if there may be
    /// more.
    fn dead_from(
        &self,
        space: SpaceId,
        from: Bound<Vec<u8>>,
        examine: &mut Examiner,
    ) -> Result<(Batch, Option<Vec<u8>>), StorageError> {
        let snapshot = self.snapshot()?;
        let (mut drops, mut bytes) = (Batch::new(), 0);
        for entry in self.scan_at(&snapshot, space, (from, Bound::Unbounded))? {
            let (key, value) = entry?;
            let new = match examine(&key, &Stored::Held(&value)) {
                Fate::Keep => continue,
                Fate::Remove => None,
                Fate::Replace(new) => Some(new),
            };
            bytes += new.as_ref().map_or(0, Bytes::len);
            drops.push((space, key.clone(), new));
            if drops.len() == DROPPED_MAX || bytes > DROPPED_BYTES_MAX {
                return Ok((drops, Some(key.to_vec())));
            }
        }
        Ok((drops, None))
    }
}

//! A hash table of ids that can grow while others read the keys.
//!
//! A full hash table is rebuilt, and every key is hashed for that, which takes a good part of a
//! second with a million keys. Searches read keys by their ids, and wait for the task that changes
//! them. So the table of ids has a lock of its own, which searches never take. It grows under that
//! lock before the keys are changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;

/// The ids, by a hash of their keys.
#[derive(Debug, Default)]
pub(super) struct IdsByHash(Mutex<HashTable<u32>>);

impl IdsByHash {
    /// The number of ids.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The bytes of memory held.
    pub(super) fn allocation_size(&self) -> usize {
        self.lock().allocation_size()
    }

    /// Finds the id with this hash for which `is_it` is true.
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(&u32) -> bool) -> Option<u32> {
        self.lock().find(hash, is_it).copied()
    }

    /// Makes room for so many more ids, so that their insertion doesn't rebuild the table.
    pub(super) fn make_room(&self, ids: usize, hash: impl Fn(&u32) -> u64) {
        self.lock().reserve(ids, hash);
    }

    /// The table, for changes.
    pub(super) fn table(&mut self) -> &mut HashTable<u32> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashTable<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

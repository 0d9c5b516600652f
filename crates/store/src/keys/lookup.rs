//! A hash table of ids that can be given room while others read the keys.
//!
//! A hash table that is full is made anew, and every key is hashed for that: among a million keys it takes a good part of a
//! second. Searches read keys by their ids and wait for whoever changes them. So the table of ids has a lock of its own,
//! which they never take, and is given room under that one before the keys are changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;

/// Ids by the hash of something that is known of each.
#[derive(Debug, Default)]
pub struct Lookup(Mutex<HashTable<u32>>);

impl Lookup {
    /// How many ids there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Bytes of memory held.
    pub fn allocation_size(&self) -> usize {
        self.lock().allocation_size()
    }

    /// The id with this hash that is the one looked for.
    pub fn find(&self, hash: u64, is_it: impl FnMut(&u32) -> bool) -> Option<u32> {
        self.lock().find(hash, is_it).copied()
    }

    /// Makes room, so that as many more ids are put in without making the table anew.
    pub fn make_room(&self, ids: usize, hash: impl Fn(&u32) -> u64) {
        self.lock().reserve(ids, hash);
    }

    /// The table, for changes.
    pub fn table(&mut self) -> &mut HashTable<u32> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashTable<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

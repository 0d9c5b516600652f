//! Entries that were written before the place where a pass begins.
//!
//! They are looked up one by one. To move the place back would have the next pass go by all entries
//! that were removed after it, which the engine keeps for a while.

use std::collections::BTreeSet;

/// The most entries that are remembered.
const ENTRIES_MAX: usize = 1024;
/// Bytes of keys above which none are remembered.
const BYTES_MAX: usize = 1 << 20;

/// The keys of the entries.
#[derive(Default)]
pub(super) struct RewrittenEntries {
    keys: BTreeSet<Vec<u8>>,
    bytes: usize,
}

impl RewrittenEntries {
    pub(super) fn add(&mut self, key: Vec<u8>) {
        let bytes = key.len();
        if self.keys.insert(key) {
            self.bytes += bytes;
        }
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        if self.keys.remove(key) {
            self.bytes -= key.len();
        }
    }

    /// Lets all go if they are too many, and returns the least of them.
    pub(super) fn overflow(&mut self) -> Option<Vec<u8>> {
        let are_many = self.keys.len() > ENTRIES_MAX || self.bytes > BYTES_MAX;
        if !are_many {
            return None;
        }
        std::mem::take(self).keys.pop_first()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The first so many keys.
    pub(super) fn first(&self, count: usize) -> Vec<Vec<u8>> {
        self.keys.iter().take(count).cloned().collect()
    }
}

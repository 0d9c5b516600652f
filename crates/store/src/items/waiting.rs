//! Rows that wait to be read: the index had no room for them, or a snapshot lacks them.

use std::collections::BTreeSet;

use crate::keys::PrimaryKey;

/// The keys of rows that wait, in the order of their bytes. Room for one row is room for any, but a
/// simulation has to do the same each time.
#[derive(Debug, Default)]
pub(super) struct DeferredRows {
    rows: BTreeSet<PrimaryKey>,
    key_bytes: usize,
}

impl DeferredRows {
    /// Adds a row.
    pub(super) fn insert(&mut self, key: PrimaryKey) {
        let bytes = key.as_bytes().len();
        if self.rows.insert(key) {
            self.key_bytes += bytes;
        }
    }

    /// Removes a row, and returns whether it was there.
    pub(super) fn remove(&mut self, key: &PrimaryKey) -> bool {
        let removed = !self.rows.is_empty() && self.rows.remove(key);
        if removed {
            self.key_bytes -= key.as_bytes().len();
        }
        removed
    }

    /// The keys of all rows that wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PrimaryKey> {
        self.rows.iter()
    }

    /// The number of rows that wait.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The keys of up to `limit` rows.
    pub(super) fn some(&self, limit: usize) -> impl Iterator<Item = PrimaryKey> {
        self.rows.iter().take(limit).cloned()
    }

    /// The bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.key_bytes + self.rows.len() * size_of::<PrimaryKey>()
    }
}

//! Rows that wait to be read: the index had no room for them, or a snapshot lacks them.

use std::collections::BTreeSet;

use crate::keys::PrimaryKey;

/// The keys of rows that wait, in the order of their bytes. Room for one row is room for any, but a
/// simulation has to do the same each time.
#[derive(Debug, Default)]
pub struct Waiting {
    rows: BTreeSet<PrimaryKey>,
    key_bytes: usize,
}

impl Waiting {
    /// Adds a row.
    pub fn insert(&mut self, key: PrimaryKey) {
        let bytes = key.as_bytes().len();
        if self.rows.insert(key) {
            self.key_bytes += bytes;
        }
    }

    /// Removes a row, and returns whether it was there.
    pub fn remove(&mut self, key: &PrimaryKey) -> bool {
        let removed = !self.rows.is_empty() && self.rows.remove(key);
        if removed {
            self.key_bytes -= key.as_bytes().len();
        }
        removed
    }

    /// The keys of all rows that wait.
    pub fn iter(&self) -> impl Iterator<Item = &PrimaryKey> {
        self.rows.iter()
    }

    /// The number of rows that wait.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The keys of up to `limit` rows.
    pub fn some(&self, limit: usize) -> impl Iterator<Item = PrimaryKey> {
        self.rows.iter().take(limit).cloned()
    }

    /// The bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.key_bytes + self.rows.len() * size_of::<PrimaryKey>()
    }
}

//! Rows that the index had no room for.

use std::collections::HashSet;

use crate::keys::PrimaryKey;

/// Keys of rows that wait for room, in no order: room for one is room for any.
#[derive(Debug, Default)]
pub struct Waiting {
    rows: HashSet<PrimaryKey>,
    key_bytes: usize,
}

impl Waiting {
    pub fn insert(&mut self, key: PrimaryKey) {
        let bytes = key.as_bytes().len();
        if self.rows.insert(key) {
            self.key_bytes += bytes;
        }
    }

    pub fn remove(&mut self, key: &PrimaryKey) {
        if !self.rows.is_empty() && self.rows.remove(key) {
            self.key_bytes -= key.as_bytes().len();
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Some of them, as many as `limit` allows.
    pub fn some(&self, limit: usize) -> impl Iterator<Item = PrimaryKey> {
        self.rows.iter().take(limit).cloned()
    }

    pub fn memory_bytes(&self) -> usize {
        self.key_bytes + self.rows.capacity() * size_of::<PrimaryKey>()
    }
}

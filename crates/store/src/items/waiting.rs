//! Rows that wait to be read: the index had no room for them, or a snapshot knew no better.

use std::collections::HashSet;

use crate::keys::PrimaryKey;

/// Keys of rows that wait, in no order: room for one is room for any.
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

    /// Whether it was among them.
    pub fn remove(&mut self, key: &PrimaryKey) -> bool {
        let removed = !self.rows.is_empty() && self.rows.remove(key);
        if removed {
            self.key_bytes -= key.as_bytes().len();
        }
        removed
    }

    pub fn iter(&self) -> impl Iterator<Item = &PrimaryKey> {
        self.rows.iter()
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

//! When rows expire.
//!
//! A TTL that runs out writes nothing to the log, so the moment is kept here and the row is read
//! again when it has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Ids in the order in which they expire. A row that is written anew stays in here under its old
/// moment too; whoever takes it out compares.
#[derive(Debug, Default)]
pub struct Expiries {
    heap: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Expiries {
    pub fn push(&mut self, id: u32, expires_s: u32) {
        self.heap.push(Reverse((expires_s, id)));
    }

    pub fn next_s(&self) -> Option<u32> {
        self.heap.peek().map(|Reverse((expires_s, _))| *expires_s)
    }

    /// An id that expires at or before `now_s`, with its moment.
    pub fn pop(&mut self, now_s: u32) -> Option<(u32, u32)> {
        if self.next_s()? > now_s {
            return None;
        }
        self.heap
            .pop()
            .map(|Reverse((expires_s, id))| (id, expires_s))
    }

    pub fn memory_bytes(&self) -> usize {
        self.heap.capacity() * size_of::<Reverse<(u32, u32)>>()
    }
}

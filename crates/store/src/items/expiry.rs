//! When rows expire.
//!
//! A TTL that runs out writes nothing to the log, so the moment is kept here and the row is read
//! again when it has come. A row that is written anew leaves its old moment here, which may be years away, so when
//! too few of the moments still count they are collected anew.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Collecting the moments anew pays when more than so many no longer count.
const STALE_FROM: usize = 1024;

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

    /// Whether too few still count, of `rows` rows with one moment each at most.
    pub fn are_stale(&self, rows: usize) -> bool {
        self.heap.len() > 2 * rows + STALE_FROM
    }

    /// Holds these alone.
    pub fn replace(&mut self, ids: impl Iterator<Item = (u32, u32)>) {
        let moments = ids.map(|(id, expires_s)| Reverse((expires_s, id)));
        self.heap = moments.collect();
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

//! The times at which rows expire.
//!
//! A TTL that runs out writes nothing to the log. So this module keeps the time, and the row is
//! read again when it has come. A row that is written again leaves its old time here, which may be
//! years away. So the times are collected again when too few of them are still valid.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of invalid times from which on collecting them again pays.
const STALE_FROM: usize = 1024;

/// Ids in the order in which they expire. A row that is written again stays here under its old time
/// too, so a caller that takes it out compares the times.
#[derive(Debug, Default)]
pub(super) struct ExpiringIds {
    heap: BinaryHeap<Reverse<(u32, u32)>>,
}

impl ExpiringIds {
    /// Adds the time at which an id expires, in seconds since the epoch.
    pub(super) fn push(&mut self, id: u32, expires_s: u32) {
        self.heap.push(Reverse((expires_s, id)));
    }

    /// Whether too few of the times are still valid. `rows` is the number of rows, with one valid
    /// time each at most.
    pub(super) fn are_stale(&self, rows: usize) -> bool {
        self.heap.len() > 2 * rows + STALE_FROM
    }

    /// Replaces all times with these.
    pub(super) fn replace(&mut self, ids: impl Iterator<Item = (u32, u32)>) {
        let moments = ids.map(|(id, expires_s)| Reverse((expires_s, id)));
        self.heap = moments.collect();
    }

    /// The earliest time, in seconds since the epoch.
    pub(super) fn next_s(&self) -> Option<u32> {
        self.heap.peek().map(|Reverse((expires_s, _))| *expires_s)
    }

    /// Takes out an id that expires at or before `now_s`, with its time.
    pub(super) fn pop(&mut self, now_s: u32) -> Option<(u32, u32)> {
        if self.next_s()? > now_s {
            return None;
        }
        self.heap
            .pop()
            .map(|Reverse((expires_s, id))| (id, expires_s))
    }

    /// The bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.heap.capacity() * size_of::<Reverse<(u32, u32)>>()
    }
}

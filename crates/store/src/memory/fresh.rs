//! The room for changes that indexes have not taken in yet, of all indexes together.
//!
//! A change of a row that an index holds passes at the memory limit, too. Until the structure has
//! taken it in, its value takes memory of its own. So the room follows from the limit: for an index
//! that is written to fast, and for many of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ProcessMemory;

/// The room of one index is one part of the limit in so many.
const PART_OF_EACH: u64 = 64;

/// The room of all indexes is one part of the limit in so many.
const PART_OF_ALL: u64 = 16;

/// The most room of all indexes. It keeps the threads of any machine busy.
const ALL_BYTES_MAX: u64 = 256 << 20;

/// The room that each index has in any case, so that it goes on whatever the others do. It is what
/// a thread takes in at a time.
const EACH_BYTES_MIN: u64 = 64 << 10;

/// The room of all indexes under this limit.
pub(super) fn room_of_all(limit_bytes: u64) -> u64 {
    ALL_BYTES_MAX.min(limit_bytes / PART_OF_ALL)
}

/// The bytes of the changes that one index has not taken in yet. They count among those of all
/// indexes until this is dropped.
#[derive(Debug)]
pub(crate) struct FreshCharge {
    memory: Arc<ProcessMemory>,
    bytes: usize,
}

impl FreshCharge {
    /// Begins without bytes.
    pub(crate) fn new(memory: Arc<ProcessMemory>) -> FreshCharge {
        FreshCharge { memory, bytes: 0 }
    }

    /// The bytes of this index.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds bytes, whether or not there is room.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        let all = &self.memory.fresh_bytes;
        all.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Takes bytes away that were added before.
    pub(crate) fn subtract(&mut self, bytes: usize) {
        self.bytes -= bytes;
        let all = &self.memory.fresh_bytes;
        all.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Whether the room is taken, that of this index or that of all. `bytes_max` is the most that
    /// the index may have under a large limit.
    pub(crate) fn is_full(&self, bytes_max: usize) -> bool {
        self.has_taken(1, bytes_max)
    }

    /// Whether half of the room is taken.
    pub(crate) fn is_half_full(&self, bytes_max: usize) -> bool {
        self.has_taken(2, bytes_max)
    }

    /// Whether one part of the room in so many is taken.
    fn has_taken(&self, part: u64, bytes_max: usize) -> bool {
        let (own, most) = (self.bytes as u64, bytes_max as u64);
        let Some(limit_bytes) = self.memory.known_limit_bytes() else {
            return own >= most / part;
        };
        let of_each = most.min((limit_bytes / PART_OF_EACH).max(EACH_BYTES_MIN));
        let all = self.memory.fresh_bytes.load(Ordering::Relaxed);
        own >= of_each / part || own >= EACH_BYTES_MIN && all >= room_of_all(limit_bytes) / part
    }
}

impl Drop for FreshCharge {
    fn drop(&mut self) {
        self.subtract(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 16 << 20;

    #[test]
    fn the_room_of_an_index_follows_from_the_limit() {
        let memory = Arc::<ProcessMemory>::default();
        let mut charge = FreshCharge::new(memory.clone());
        charge.add(MOST - 1);
        assert!(!charge.is_full(MOST), "no limit is known");
        assert!(charge.is_half_full(MOST));
        memory.note(0, 64 << 20);
        assert!(charge.is_full(MOST));
        charge.subtract(charge.bytes() - (1 << 20) + 1);
        assert!(!charge.is_full(MOST), "{}", charge.bytes());
        charge.add(1);
        assert!(charge.is_full(MOST), "a part in 64 is taken");
        memory.note(0, 16 << 30);
        assert!(!charge.is_half_full(MOST));
        memory.note(0, 1);
        charge.subtract(charge.bytes());
        assert!(!charge.is_full(MOST), "an index without changes takes some");
    }

    #[test]
    fn many_indexes_have_the_room_of_four() {
        let memory = Arc::<ProcessMemory>::default();
        memory.note(0, 64 << 20);
        let charge = |bytes| {
            let mut charge = FreshCharge::new(memory.clone());
            charge.add(bytes);
            charge
        };
        let mut many: Vec<FreshCharge> = (0..8).map(|_| charge(256 << 10)).collect();
        assert!(many.iter().all(|charge| !charge.is_full(MOST)));
        assert!(many.iter().all(|charge| charge.is_half_full(MOST)));
        many.extend((0..8).map(|_| charge(256 << 10)));
        assert!(many.iter().all(|charge| charge.is_full(MOST)));
        let small = charge(1 << 10);
        assert!(!small.is_full(MOST), "each goes on");
        many.truncate(8);
        assert!(many.iter().all(|charge| !charge.is_full(MOST)));
        drop((many, small));
        assert_eq!(memory.fresh_bytes.load(Ordering::Relaxed), 0);
    }
}

//! ANNULUS 5: the bytes that the memtables of all keyspaces take.

use crate::keyspace::InternalKeyspaceId;
use lsm_tree::{Memtable, MemtableId};
use std::sync::{
    atomic::{AtomicI64, Ordering},
    Arc, Mutex, PoisonError, Weak,
};

/// Bytes that an entry takes beside its key and its value, and beside what [`Memtable::size`] counts:
/// the node's tower, the counters of shared bytes, and the allocator's rounding.
const ENTRY_BYTES: u64 = 96;

/// The bytes of a memtable.
pub fn bytes_of(memtable: &Memtable) -> u64 {
    memtable.size() + ENTRY_BYTES * memtable.len() as u64
}

/// The bytes of one entry, of which the memtable counts `item_size`.
pub fn bytes_of_entry(item_size: u64) -> u64 {
    item_size + ENTRY_BYTES
}

/// The memtables of all keyspaces.
#[derive(Clone, Default)]
pub struct WriteBuffers(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The bytes of all active memtables. A rotation may be counted before the entries are, so it may be
    /// below zero for a moment.
    active: AtomicI64,
    /// The sealed memtables, until no version of their tree holds them any more.
    sealed: Mutex<Vec<Sealed>>,
}

struct Sealed {
    keyspace: InternalKeyspaceId,
    memtable_id: MemtableId,
    memtable: Weak<Memtable>,
    bytes: u64,
    /// Whether it has been written to files. Then only readers, and former versions, hold it.
    is_flushed: bool,
}

impl WriteBuffers {
    /// Counts entries that were added to active memtables.
    pub fn add(&self, bytes: u64) {
        self.0.active.fetch_add(bytes as i64, Ordering::AcqRel);
    }

    /// Counts the end of an active memtable that was not sealed.
    pub fn remove(&self, bytes: u64) {
        self.0.active.fetch_sub(bytes as i64, Ordering::AcqRel);
    }

    /// Counts a memtable that was active and is sealed now.
    pub fn seal(&self, keyspace: InternalKeyspaceId, memtable: &Arc<Memtable>) {
        let bytes = bytes_of(memtable);
        self.remove(bytes);
        self.list(keyspace, memtable, bytes);
    }

    /// Counts a sealed memtable whose entries were never counted as active.
    pub fn add_sealed(&self, keyspace: InternalKeyspaceId, memtable: &Arc<Memtable>) {
        self.list(keyspace, memtable, bytes_of(memtable));
    }

    fn list(&self, keyspace: InternalKeyspaceId, memtable: &Arc<Memtable>, bytes: u64) {
        self.sealed().push(Sealed {
            keyspace,
            memtable_id: memtable.id(),
            memtable: Arc::downgrade(memtable),
            bytes,
            is_flushed: false,
        });
    }

    /// The sealed memtables of a keyspace.
    pub fn sealed_of(&self, keyspace: InternalKeyspaceId) -> Vec<MemtableId> {
        let sealed = self.sealed();
        let of = sealed.iter().filter(|of| of.keyspace == keyspace);
        of.map(|of| of.memtable_id).collect()
    }

    /// Notes that sealed memtables have been written to files.
    pub fn flushed(&self, keyspace: InternalKeyspaceId, memtables: &[MemtableId]) {
        for of in self.sealed().iter_mut() {
            if of.keyspace == keyspace && memtables.contains(&of.memtable_id) {
                of.is_flushed = true;
            }
        }
    }

    /// The bytes of all active memtables.
    pub fn active_bytes(&self) -> u64 {
        u64::try_from(self.0.active.load(Ordering::Acquire)).unwrap_or(0)
    }

    /// The bytes of all memtables that have not been written to files.
    pub fn unflushed_bytes(&self) -> u64 {
        let sealed = self.sealed();
        let waiting = sealed.iter().filter(|of| !of.is_flushed);
        self.active_bytes() + waiting.map(|of| of.bytes).sum::<u64>()
    }

    /// The bytes of all memtables, with those that only readers and former versions hold.
    pub fn bytes(&self) -> u64 {
        self.active_bytes() + self.sealed().iter().map(|of| of.bytes).sum::<u64>()
    }

    /// The keyspaces of which memtables are held that have been written to files.
    pub fn holding_flushed(&self) -> Vec<InternalKeyspaceId> {
        let sealed = self.sealed();
        let held = sealed.iter().filter(|of| of.is_flushed);
        let mut keyspaces: Vec<_> = held.map(|of| of.keyspace).collect();
        keyspaces.sort_unstable();
        keyspaces.dedup();
        keyspaces
    }

    /// The sealed memtables that there still are.
    fn sealed(&self) -> std::sync::MutexGuard<'_, Vec<Sealed>> {
        let mut sealed = self.0.sealed.lock().unwrap_or_else(PoisonError::into_inner);
        sealed.retain(|of| of.memtable.strong_count() > 0);
        sealed
    }
}

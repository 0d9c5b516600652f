// Copyright (c) 2024-present, fjall-rs
// This source code is licensed under both the Apache 2.0 and MIT License
// (found in the LICENSE-* files in the repository)

use lsm_tree::SequenceNumberCounter;

use crate::{
    db::Keyspaces,
    flush::manager::FlushManager,
    journal::{manager::JournalManager, Journal},
    snapshot_tracker::SnapshotTracker,
    write_buffer_manager::WriteBufferManager,
    write_buffers::WriteBuffers,
    Keyspace,
};
use std::sync::{Arc, Mutex, RwLock};

pub struct SupervisorInner {
    pub db_config: crate::Config,

    /// Dictionary of all keyspaces
    #[doc(hidden)]
    pub keyspaces: Arc<RwLock<Keyspaces>>,

    pub(crate) write_buffer_size: WriteBufferManager,

    /// ANNULUS 5
    pub(crate) write_buffers: WriteBuffers,

    pub(crate) flush_manager: FlushManager,

    pub seqno: SequenceNumberCounter,

    pub snapshot_tracker: SnapshotTracker,

    pub(crate) journal: Arc<Journal>,

    /// Tracks journal size and garbage collects sealed journals when possible
    pub(crate) journal_manager: Arc<RwLock<JournalManager>>,

    pub(crate) backpressure_lock: Mutex<()>,
}

#[derive(Clone)]
pub struct Supervisor(Arc<SupervisorInner>);

impl std::ops::Deref for Supervisor {
    type Target = SupervisorInner;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Supervisor {
    pub fn new(inner: SupervisorInner) -> Self {
        Self(Arc::new(inner))
    }

    pub fn build_seqno_map(
        &self,
        keyspaces: &Keyspaces,
    ) -> Vec<crate::journal::manager::EvictionWatermark> {
        use crate::AbstractTree;

        let mut seqnos = Vec::with_capacity(keyspaces.len());

        for keyspace in keyspaces.values() {
            if let Some(lsn) = keyspace.tree.get_highest_memtable_seqno() {
                seqnos.push(crate::journal::manager::EvictionWatermark {
                    lsn,
                    keyspace: keyspace.clone(),
                });
            }
        }

        seqnos
    }

    /// ANNULUS 5: Asks for the largest memtables to be written out, so that a quarter of the bound is left in
    /// active ones.
    pub(crate) fn relieve_write_buffers(&self, bound: u64) {
        use crate::AbstractTree;

        let mut active: Vec<(u64, Keyspace)> = self
            .keyspaces
            .read()
            .expect("lock is poisoned")
            .values()
            .filter_map(|keyspace| {
                let memtable = keyspace.tree.active_memtable();
                let bytes = crate::write_buffers::bytes_of(&memtable);
                (bytes > 0 && !memtable.is_flagged_for_rotation()).then(|| (bytes, keyspace.clone()))
            })
            .collect();
        active.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));

        let mut left: u64 = active.iter().map(|(bytes, _)| bytes).sum();
        for (bytes, keyspace) in active {
            if left <= bound / 4 {
                break;
            }
            keyspace.request_rotation();
            left -= bytes;
        }
    }

    /// ANNULUS 5: Lets go of the memtables that have been written to files, unless a snapshot needs them.
    pub(crate) fn release_flushed(&self, keyspaces: &[Keyspace]) {
        use crate::AbstractTree;

        self.snapshot_tracker.gc();
        // Snapshots that are open, or will be, have an instant above the watermark, and look for the newest
        // version below their instant.
        let watermark = self.snapshot_tracker.get_seqno_safe_to_gc() + 1;
        for keyspace in keyspaces {
            let mut versions = keyspace.tree.get_version_history_lock();
            if let Err(e) = versions.maintenance(keyspace.path(), watermark) {
                log::warn!("Version GC failed for keyspace {:?}: {e:?}", keyspace.name);
            }
        }
    }
}

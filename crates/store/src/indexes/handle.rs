//! One index, as requests, the feed and the tasks of its table see it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use store_api::types::{IndexInfo, IndexState, IndexStatus};

use super::content::IndexContent;
use super::filter_waits::ExpiredFilterWaits;
use super::freshness::Freshness;
use super::last_recall::LastRecall;
use super::maintenance::PendingMaintenance;
use super::request::StructureError;
use super::structure_memory::StructureMemory;
use crate::identity::IndexIdentity;
use crate::metrics::IndexMetrics;
use crate::options::IndexesOptions;

/// An index as requests see it.
pub(crate) struct IndexHandle {
    /// The identity of the index.
    pub identity: IndexIdentity,
    /// The structure of the index and the keys of its rows.
    pub content: Arc<IndexContent>,
    /// The metric series of the index.
    pub metrics: IndexMetrics,
    /// The progress of the index along its table's log.
    pub freshness: Freshness,
    /// The searches that meet values which have just expired.
    pub doubts: ExpiredFilterWaits,
    /// The work that changes leave to do in the structure.
    pub tending: PendingMaintenance,
    /// The outcome of the last check of the index's recall.
    pub last_recall: LastRecall,
    state: AtomicU8,
    /// The progress of the scan, in thousandths of a per cent.
    progress: AtomicU64,
    /// The bytes of the state that decides about rows.
    items_bytes: AtomicUsize,
    /// The number of rows that wait for room. It belongs to this index, while the series belong to
    /// its name, which an index that is built next to it has, too.
    without_room: AtomicUsize,
}

impl IndexHandle {
    /// Makes an index that has just been discovered, without rows.
    pub(crate) fn new(
        identity: IndexIdentity,
        indexes: &IndexesOptions,
        metrics: IndexMetrics,
    ) -> Result<IndexHandle, StructureError> {
        let content = IndexContent::new(&identity.options, identity.keys.clone(), indexes)?;
        content.keys_mut().keep_filters(identity.filter_types());
        Ok(IndexHandle::with(identity, content, metrics))
    }

    /// Makes an index with this content.
    pub(crate) fn with(
        identity: IndexIdentity,
        content: IndexContent,
        metrics: IndexMetrics,
    ) -> IndexHandle {
        IndexHandle {
            content: Arc::new(content),
            identity,
            metrics,
            freshness: Freshness::default(),
            doubts: ExpiredFilterWaits::default(),
            tending: PendingMaintenance::default(),
            last_recall: LastRecall::default(),
            state: AtomicU8::new(0),
            progress: AtomicU64::new(0),
            items_bytes: AtomicUsize::new(0),
            without_room: AtomicUsize::new(0),
        }
    }

    /// The state of the index.
    pub(crate) fn state(&self) -> IndexState {
        match self.state.load(Ordering::Acquire) {
            0 => IndexState::Initializing,
            1 => IndexState::Bootstrapping,
            _ => IndexState::Serving,
        }
    }

    /// Sets the state of the index. See [`super::IndexEngine::serving`] for the last step.
    pub(crate) fn set_state(&self, state: IndexState) {
        let code = match state {
            IndexState::Initializing => 0,
            IndexState::Bootstrapping => 1,
            IndexState::Serving => 2,
        };
        self.state.store(code, Ordering::Release);
    }

    /// The part of the ring that the scan has covered, in per cent.
    pub(crate) fn progress(&self) -> f64 {
        self.progress.load(Ordering::Relaxed) as f64 / 1000.0
    }

    /// Sets the part of the ring that the scan has covered, in per cent.
    pub(crate) fn set_progress(&self, per_cent: f64) {
        self.progress
            .store((per_cent * 1000.0) as u64, Ordering::Relaxed);
    }

    /// The number of rows that a build has still to take in, estimated by the part of the ring that
    /// the scan has covered; `None` before it has covered any.
    pub(crate) fn lacks(&self) -> Option<u64> {
        let covered = self.progress() / 100.0;
        let rows = self.content.len() as f64;
        (covered > 0.0).then(|| (rows * (1.0 - covered) / covered).round() as u64)
    }

    /// Sets the bytes that are held in addition to the structure and the keys.
    pub(crate) fn set_items_bytes(&self, bytes: usize) {
        self.items_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The number of rows that wait for room in memory or on the disk. No search finds them.
    pub(crate) fn rows_without_room(&self) -> usize {
        self.without_room.load(Ordering::Acquire)
    }

    /// Whether rows wait for room. A search that looks before it begins, and after the index has
    /// taken up the writes that the search must know, learns of each row that it may lack.
    pub(crate) fn lacks_rows(&self) -> bool {
        self.rows_without_room() > 0
    }

    /// Sets the number of rows that wait for room. Rows that have found room must be found before.
    pub(crate) fn set_without_room(&self, rows: usize) {
        self.without_room.store(rows, Ordering::Release);
    }

    /// Adds rows that are about to wait for room. They must still be found.
    pub(crate) fn add_without_room(&self, rows: usize) {
        self.without_room.fetch_add(rows, Ordering::AcqRel);
    }

    /// The description of the index in the HTTP API. `now` is the time since the epoch by the clock
    /// of the database.
    pub(crate) fn info(&self, now: Duration) -> IndexInfo {
        IndexInfo {
            keyspace: self.identity.name.keyspace.clone(),
            index: self.identity.name.index.clone(),
            options: self.identity.api_options(),
            status: Some(self.full_status(now)),
        }
    }

    /// The status of the index in the HTTP API, with its memory and what changes have left behind,
    /// which takes longer to find out. `now` is the time since the epoch by the clock of the
    /// database.
    pub(crate) fn full_status(&self, now: Duration) -> IndexStatus {
        let debt = self.content.debt();
        IndexStatus {
            memory: Some(self.memory().by_part()),
            dead_entries: debt.dead,
            maintenance_debt: debt.pending,
            ..self.status(now)
        }
    }

    /// The bytes of all components, those around the structure as well.
    fn memory(&self) -> StructureMemory {
        let mut memory = self.content.memory();
        let (keys, filter_values) = {
            let keys = self.content.keys();
            (keys.memory_bytes(), keys.filters().memory_bytes())
        };
        memory.pinned.extend([
            ("fresh", self.content.fresh_bytes()),
            ("keys", keys),
            ("filter_values", filter_values),
            ("rows", self.items_bytes.load(Ordering::Relaxed)),
        ]);
        memory
    }

    /// The status of the index in the HTTP API as far as it is at hand. `now` is the time since the
    /// epoch by the clock of the database.
    pub(crate) fn status(&self, now: Duration) -> IndexStatus {
        IndexStatus {
            status: self.state(),
            count: self.content.len(),
            build_progress: self.progress(),
            rows_without_room: self.rows_without_room(),
            changes_waiting: self.content.fresh_changes(),
            lag_seconds: self.freshness.lag(now).map(|lag| lag.as_secs_f64()),
            recall: self.content.recall(),
            tending: self.tending.is_under_way(),
            version: self.identity.version,
            memory: None,
            dead_entries: 0,
            maintenance_debt: 0,
        }
    }

    /// Brings the gauges up to date. `now` is the time since the epoch by the clock of the
    /// database.
    pub(crate) fn refresh_gauges(&self, now: Duration) {
        self.freshness.refresh_gauges(now);
        let lag = self.freshness.lag(now);
        // A lag that is not known yet is no lag of zero.
        let lag_s = lag.map_or(f64::NAN, |lag| lag.as_secs_f64());
        self.metrics.behind.set(lag_s);
        self.metrics
            .waiting
            .set(self.content.fresh_changes() as i64);
        self.metrics.size.set(self.content.len() as i64);
        self.metrics
            .without_room
            .set(self.rows_without_room() as i64);
        let is_tended = self.tending.is_under_way();
        self.metrics.tending.set(i64::from(is_tended));
        self.content.show_recall(&self.metrics);
        let debt = self.content.debt();
        self.metrics.dead.set(debt.dead as i64);
        self.metrics.debt.set(debt.pending as i64);
        let memory = self.memory();
        let gauges = &self.metrics.memory;
        for (component, bytes) in memory.pinned {
            gauges.set(component, bytes);
        }
        gauges.mapped.set(memory.mapped as i64);
        if let Some((bytes, segments)) = self.content.text_segments() {
            self.metrics.texts.set(bytes, segments);
        }
    }
}

impl fmt::Debug for IndexHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexHandle")
            .field("name", &self.identity.name)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

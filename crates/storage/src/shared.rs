//! The state that the public methods, the committer and the watcher share.

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch::Sender;

use crate::active_reads::OldestRead;
use crate::cdc::CdcGate;
use crate::clock::ServerClock;
use crate::compaction::PurgeRules;
use crate::disk_room;
use crate::engine::Engine;
use crate::layout::ResolvedSchema;
use crate::{Durability, StorageError, WriteAvailability};

pub(crate) struct OpenStorage {
    pub engine: Arc<Engine>,
    pub gate: CdcGate,
    pub horizon: Arc<OldestRead>,
    pub forgetting: Arc<PurgeRules>,
    pub clock: Arc<ServerClock>,
    /// The mark on the disk, at which the time of a later process begins (see `commit::mark`).
    /// Microseconds.
    pub kept_micros: AtomicI64,
    pub durability: Durability,
    pub statistics: StatisticsCounters,
    schema: ArcSwap<ResolvedSchema>,
    /// Notifies its subscribers of each schema that is set.
    pub schema_changes: Sender<()>,
    /// The reason why writes are refused; `None` while they are taken.
    failure: Mutex<Option<EngineFailure>>,
}

struct EngineFailure {
    /// The engine's own error.
    cause: String,
    /// The text for the client and the operator.
    text: String,
}

/// The counters for [`crate::Statistics`], and some of the storage's own.
#[derive(Debug, Default)]
pub(crate) struct StatisticsCounters {
    pub batches: AtomicU64,
    pub writes: AtomicU64,
    pub commit_micros: AtomicU64,
    pub sweeps_waiting: AtomicU64,
    pub rows_expired: AtomicU64,
    pub elements_worked_on: AtomicU64,
    pub batch_bytes_peak: AtomicU64,
    /// Dropped tables that are still read, so that their files stay.
    pub retired_waiting: AtomicU64,
}

impl OpenStorage {
    pub(crate) fn new(
        engine: Arc<Engine>,
        horizon: Arc<OldestRead>,
        forgetting: Arc<PurgeRules>,
        clock: Arc<ServerClock>,
        kept_micros: i64,
        durability: Durability,
        schema: ResolvedSchema,
    ) -> OpenStorage {
        forgetting.set_schema(&schema);
        OpenStorage {
            engine,
            gate: CdcGate::new(clock.now_micros()),
            horizon,
            forgetting,
            clock,
            kept_micros: AtomicI64::new(kept_micros),
            durability,
            statistics: StatisticsCounters::default(),
            schema: ArcSwap::from_pointee(schema),
            schema_changes: Sender::new(()),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn schema(&self) -> Arc<ResolvedSchema> {
        self.schema.load_full()
    }

    pub(crate) fn set_schema(&self, schema: ResolvedSchema) {
        self.forgetting.set_schema(&schema);
        self.schema.store(Arc::new(schema));
        self.schema_changes.send_replace(());
    }

    fn failure(&self) -> MutexGuard<'_, Option<EngineFailure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn health(&self) -> WriteAvailability {
        match &*self.failure() {
            Some(failure) => WriteAvailability::ReadOnly(failure.text.clone()),
            None => WriteAvailability::Writable,
        }
    }

    pub(crate) fn check_writable(&self) -> Result<(), StorageError> {
        match self.health() {
            WriteAvailability::Writable => Ok(()),
            WriteAvailability::ReadOnly(reason) => Err(StorageError::ReadOnly(reason)),
        }
    }

    /// Stops writes if the engine takes no more.
    pub(crate) fn note_write_failure(&self, error: &StorageError) {
        let StorageError::ReadOnly(cause) = error else {
            return;
        };
        let text = disk_room::describe(self.engine.path(), cause);
        let mut failure = self.failure();
        if failure.is_none() {
            tracing::error!(%cause, "{text}");
            *failure = Some(EngineFailure {
                cause: cause.clone(),
                text,
            });
        }
    }

    /// Renews the text about a failure, as a disk that failed may be full by now, or the reverse.
    pub(crate) fn refresh_failure(&self) {
        if let Some(failure) = &mut *self.failure() {
            failure.text = disk_room::describe(self.engine.path(), &failure.cause);
        }
    }

    /// Refuses all writes for a reason, which goes to the operator.
    pub(crate) fn refuse_writes(&self, reason: &str) {
        *self.failure() = Some(EngineFailure {
            cause: reason.to_owned(),
            text: reason.to_owned(),
        });
    }

    /// Notes that writes are taken again.
    pub(crate) fn clear_failure(&self) {
        *self.failure() = None;
    }

    /// The error that a client gets for an error of the engine.
    pub(crate) fn explain(&self, error: &StorageError) -> StorageError {
        match (error, self.health()) {
            (StorageError::ReadOnly(_), WriteAvailability::ReadOnly(reason)) => {
                StorageError::ReadOnly(reason)
            }
            _ => error.clone(),
        }
    }
}

//! The state that the public methods, the committer and the watcher share.

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch::Sender;

use crate::cdc::CdcGate;
use crate::clock::ServerClock;
use crate::disk_room;
use crate::engine::Engine;
use crate::forget::Forgetting;
use crate::horizon::Horizon;
use crate::layout::Schema;
use crate::{Durability, Health, StorageError};

pub(crate) struct Shared {
    pub engine: Arc<Engine>,
    pub gate: CdcGate,
    pub horizon: Arc<Horizon>,
    pub forgetting: Arc<Forgetting>,
    pub clock: Arc<ServerClock>,
    /// The mark on the disk, at which the time of a later process begins (see `commit::mark`).
    /// Microseconds.
    pub kept_micros: AtomicI64,
    pub durability: Durability,
    pub statistics: Counters,
    schema: ArcSwap<Schema>,
    /// Notifies its subscribers of each schema that is set.
    pub schema_changes: Sender<()>,
    /// The reason why writes are refused; `None` while they are taken.
    failure: Mutex<Option<Failure>>,
}

struct Failure {
    /// The engine's own error.
    cause: String,
    /// The text for the client and the operator.
    text: String,
}

/// The counters for [`crate::Statistics`], and some of the storage's own.
#[derive(Debug, Default)]
pub(crate) struct Counters {
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

impl Shared {
    pub(crate) fn new(
        engine: Arc<Engine>,
        horizon: Arc<Horizon>,
        forgetting: Arc<Forgetting>,
        clock: Arc<ServerClock>,
        kept_micros: i64,
        durability: Durability,
        schema: Schema,
    ) -> Shared {
        forgetting.set_schema(&schema);
        Shared {
            engine,
            gate: CdcGate::new(clock.now_micros()),
            horizon,
            forgetting,
            clock,
            kept_micros: AtomicI64::new(kept_micros),
            durability,
            statistics: Counters::default(),
            schema: ArcSwap::from_pointee(schema),
            schema_changes: Sender::new(()),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.schema.load_full()
    }

    pub(crate) fn set_schema(&self, schema: Schema) {
        self.forgetting.set_schema(&schema);
        self.schema.store(Arc::new(schema));
        self.schema_changes.send_replace(());
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn health(&self) -> Health {
        match &*self.failure() {
            Some(failure) => Health::ReadOnly(failure.text.clone()),
            None => Health::Writable,
        }
    }

    pub(crate) fn check_writable(&self) -> Result<(), StorageError> {
        match self.health() {
            Health::Writable => Ok(()),
            Health::ReadOnly(reason) => Err(StorageError::ReadOnly(reason)),
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
            *failure = Some(Failure {
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

    /// Notes that writes are taken again.
    pub(crate) fn clear_failure(&self) {
        *self.failure() = None;
    }

    /// The error that a client gets for an error of the engine.
    pub(crate) fn explain(&self, error: &StorageError) -> StorageError {
        match (error, self.health()) {
            (StorageError::ReadOnly(_), Health::ReadOnly(reason)) => StorageError::ReadOnly(reason),
            _ => error.clone(),
        }
    }
}

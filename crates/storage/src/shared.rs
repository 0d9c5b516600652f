//! What the doors, the committer and the watcher have in common.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::cdc::CdcGate;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::horizon::Horizon;
use crate::schema::Schema;
use crate::{Durability, Health, StorageError};

pub(crate) struct Shared {
    pub engine: Arc<Engine>,
    pub gate: CdcGate,
    pub horizon: Arc<Horizon>,
    pub clock: Arc<dyn Clock>,
    pub durability: Durability,
    pub statistics: Counters,
    schema: ArcSwap<Schema>,
    /// Why writes are refused.
    failure: Mutex<Option<String>>,
}

/// Counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub batches: AtomicU64,
    pub writes: AtomicU64,
    pub commit_micros: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        engine: Arc<Engine>,
        gate: CdcGate,
        horizon: Arc<Horizon>,
        clock: Arc<dyn Clock>,
        durability: Durability,
        schema: Schema,
    ) -> Shared {
        Shared {
            engine,
            gate,
            horizon,
            clock,
            durability,
            statistics: Counters::default(),
            schema: ArcSwap::from_pointee(schema),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.schema.load_full()
    }

    pub(crate) fn set_schema(&self, schema: Schema) {
        self.schema.store(Arc::new(schema));
    }

    pub(crate) fn health(&self) -> Health {
        match &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(reason) => Health::ReadOnly(reason.clone()),
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
        if let StorageError::ReadOnly(cause) = error {
            tracing::error!(%cause, "a write failed: no more writes until the disk takes them again");
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| cause.clone());
        }
    }

    /// An engine's error as the client hears it.
    pub(crate) fn explain(&self, error: &StorageError) -> StorageError {
        match (error, self.health()) {
            (StorageError::ReadOnly(_), Health::ReadOnly(reason)) => StorageError::ReadOnly(reason),
            _ => error.clone(),
        }
    }
}

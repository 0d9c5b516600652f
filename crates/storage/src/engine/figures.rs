//! Figures of the engine, for the operator: its journals, the work in its background, its cache.

use std::sync::atomic::Ordering;

use prometheus::{Histogram, HistogramOpts};

use super::{DiskEngine, WRITE_BUFFER_BYTES_MIN};
use crate::StorageError;

/// Buckets from 0.1 ms to 10 s.
const SYNC_BUCKETS_S: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// Figures of the engine at one moment. Counters begin when the database was opened, which is again
/// after an I/O error. All are 0 while the database can't be opened, and in simulations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineFigures {
    /// Journals on the disk.
    pub journals: u64,
    /// Bytes of the journals.
    pub journal_bytes: u64,
    /// Bytes of keys and values of all batches that were written.
    pub written_bytes: u64,
    /// The bound for the bytes of rows that wait in memory to be written out.
    pub write_buffer_limit_bytes: u64,
    /// Tables of rows in memory that wait to be written out.
    pub waiting_flushes: u64,
    /// Compactions that run.
    pub compactions_running: u64,
    /// Compactions that were completed.
    pub compactions_completed: u64,
    /// The time of all compactions, in microseconds.
    pub compaction_micros: u64,
    /// Bytes of blocks in the cache.
    pub cache_bytes: u64,
    /// The bound for the bytes of the cache.
    pub cache_limit_bytes: u64,
    /// Lookups in the cache that found their block.
    pub cache_hits: u64,
    /// Lookups in the cache that did not find their block.
    pub cache_misses: u64,
}

impl DiskEngine {
    /// The figures of this moment.
    pub(crate) fn figures(&self) -> EngineFigures {
        let figures = self.with(|open| {
            let database = &open.database;
            let (cache_hits, cache_misses) = database.cache_lookups();
            let micros = database.time_compacting().as_micros();
            Ok(EngineFigures {
                journals: database.journal_count() as u64,
                journal_bytes: database.journal_disk_space().unwrap_or(0),
                written_bytes: self.written_bytes.load(Ordering::Relaxed),
                write_buffer_limit_bytes: self
                    .options
                    .write_buffer_bytes
                    .max(WRITE_BUFFER_BYTES_MIN),
                waiting_flushes: database.outstanding_flushes() as u64,
                compactions_running: database.active_compactions() as u64,
                compactions_completed: database.compactions_completed() as u64,
                compaction_micros: u64::try_from(micros).unwrap_or(u64::MAX),
                cache_bytes: database.cache_size(),
                cache_limit_bytes: database.cache_capacity(),
                cache_hits,
                cache_misses,
            })
        });
        figures.unwrap_or_default()
    }

    /// The times of syncs to the disk.
    pub(crate) fn sync_durations(&self) -> &Histogram {
        &self.sync_durations
    }
}

/// An empty histogram of the times of syncs.
pub(super) fn sync_histogram() -> Result<Histogram, StorageError> {
    let options = HistogramOpts::new(
        "annulus_storage_sync_duration_seconds",
        "Time from handing a batch to the journal until it is on the disk",
    );
    let options = options.buckets(SYNC_BUCKETS_S.to_vec());
    Histogram::with_opts(options).map_err(|error| StorageError::Io(error.to_string()))
}

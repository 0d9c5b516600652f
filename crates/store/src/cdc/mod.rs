//! Following the log of a table.
//!
//! The official library reads windows of time from every stream of the log and never goes back.
//! A supervisor starts it, sees it end (an error, a lost session, a table that is gone) and starts
//! it again from where all streams had been read. A row that is read twice does no harm: it is a
//! hint.

mod catch_up;
mod consumer;
mod progress;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scylla_cdc::log_reader::CDCLogReaderBuilder;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::db::{Db, DbHandle};
use crate::identity::{IndexName, TableIdentity};
use crate::keys::KeySchema;
use crate::metrics::{Metrics, ReaderMetrics};
use crate::options::{CdcOptions, ReaderOptions};
use crate::reread::HintMessage;
pub use catch_up::CatchUp;
use consumer::HintConsumers;
use progress::Checkpoints;
pub use progress::Progress;

/// How often a reader says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Read again after a restart, beside what was not yet confirmed.
const RESTART_MARGIN: Duration = Duration::from_secs(10);

/// A reader that is behind reads windows of this part of what it is behind: there is a pause after each,
/// and 24 hours in windows of a minute would take hours.
const WINDOWS_BEHIND: u32 = 24;

/// The shortest and the longest window. A reader that is not behind reads what there is. Those of a new index begin ten minutes back,
/// and must not take ten of their pauses until they make sure of what is written meanwhile.
const WINDOW_MIN: Duration = Duration::from_secs(600);
const WINDOW_MAX: Duration = Duration::from_secs(3600);

/// The back-off after failures in a row ends here.
const RESTART_INTERVAL_MAX: Duration = Duration::from_secs(30);

/// The series of one reader: one set for each index of its table.
#[derive(Default)]
pub struct ReaderSeries {
    /// Up to when all streams have been read, microseconds since the epoch.
    read_up_to_us: AtomicU64,
    series: RwLock<Vec<(IndexName, ReaderMetrics)>>,
}

impl ReaderSeries {
    /// Makes the series of an index.
    pub fn add(&self, metrics: &Metrics, name: &IndexName, reader: &str) {
        let added = metrics.reader(name, reader);
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, other)) = series.first() {
            added.up.set(other.up.get());
            added.last_processed.set(other.last_processed.get());
        }
        series.push((name.clone(), added));
    }

    /// Writes no longer to the series of an index.
    pub fn remove(&self, name: &IndexName) {
        self.series
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(other, _)| other != name);
    }

    /// Says up to when all streams have been read, a time since the epoch.
    pub fn set_read_up_to(&self, time: Duration) {
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.read_up_to_us.store(time_us, Ordering::Relaxed);
        self.each(|metrics| metrics.last_processed.set(time.as_secs_f64()));
    }

    /// Up to when all streams have been read, a time since the epoch.
    pub fn read_up_to(&self) -> Duration {
        Duration::from_micros(self.read_up_to_us.load(Ordering::Relaxed))
    }

    /// Writes to all series.
    pub fn each(&self, write: impl Fn(&ReaderMetrics)) {
        let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
        series.iter().for_each(|(_, metrics)| write(metrics));
    }
}

/// What a table's indexes are told has a gap: a reader fell behind further than the log reaches back, or a task of
/// the table broke off.
#[derive(Debug)]
pub struct Interrupted {
    /// The base table.
    pub table: TableIdentity,
    /// Its primary key.
    pub keys: KeySchema,
    /// Cancelled once the log is no longer followed from before the gap.
    pub following: CancellationToken,
}

/// One reader of a table's log, kept running.
pub struct LogFollower {
    /// The base table.
    pub table: TableIdentity,
    /// Its primary key.
    pub keys: KeySchema,
    /// The session.
    pub db: DbHandle,
    /// How closely it follows.
    pub reader: ReaderOptions,
    /// From when on, and how soon again after an error.
    pub options: CdcOptions,
    /// Where hints go. A full channel holds the reader up.
    pub hints: mpsc::Sender<HintMessage>,
    /// What it shows of itself.
    pub series: Arc<ReaderSeries>,
    /// How far it is.
    pub progress: Arc<Progress>,
    /// Where to say that it has fallen behind too far, which leaves a gap.
    pub interrupted: mpsc::Sender<Interrupted>,
    /// Cancelled when the log is no longer to be followed.
    pub following: CancellationToken,
}

impl LogFollower {
    /// Follows the log; ends when nobody takes hints any more, or when rows of the log may have been missed.
    pub async fn run(self) {
        let mut margin = Duration::ZERO;
        let mut failures = 0;
        while !self.hints.is_closed() {
            let began = tokio::time::Instant::now();
            let db = self.db.current().await;
            self.series.each(|metrics| metrics.up.set(1));
            let (start, checkpoints) = self.progress.restart(margin);
            tokio::select! {
                biased;
                () = self.progress.rewound() => {
                    margin = Duration::ZERO;
                    continue;
                }
                () = self.progress.fell_behind() => return self.give_up().await,
                ended = self.follow(&db, start, checkpoints) => {
                    if let Err(error) = ended {
                        tracing::warn!(
                            table = %self.table,
                            reader = self.reader.name,
                            error = format!("{error:#}"),
                            "the log reader ended and is started again"
                        );
                    }
                }
                () = self.db.replaced(db.generation) => {}
            }
            self.series.each(|metrics| {
                metrics.up.set(0);
                metrics.restarts.inc();
            });
            if began.elapsed() > RESTART_INTERVAL_MAX {
                failures = 0;
            }
            let back_off = self.options.restart_interval * 2u32.pow(failures.min(8));
            failures += 1;
            tokio::time::sleep(back_off.min(RESTART_INTERVAL_MAX)).await;
            margin = RESTART_MARGIN;
        }
    }

    async fn give_up(&self) {
        tracing::error!(
            table = %self.table,
            reader = self.reader.name,
            "the log reader is behind for longer than the log keeps its rows; the indexes are reconciled with the table"
        );
        self.series.each(|metrics| metrics.up.set(0));
        let interrupted = Interrupted {
            table: self.table.clone(),
            keys: self.keys.clone(),
            following: self.following.clone(),
        };
        // When nobody listens any more the service is stopping.
        let _ = self.interrupted.send(interrupted).await;
    }

    async fn follow(
        &self,
        db: &Db,
        start: Duration,
        checkpoints: Checkpoints,
    ) -> anyhow::Result<()> {
        let behind = since_epoch().saturating_sub(start);
        let window = (behind / WINDOWS_BEHIND).clamp(WINDOW_MIN, WINDOW_MAX);
        let (reader, ended) = CDCLogReaderBuilder::new()
            .session(db.session.clone())
            .keyspace(&self.table.keyspace)
            .table_name(&self.table.table)
            .start_timestamp(start)
            .window_size(window)
            .safety_interval(self.reader.safety_interval)
            .sleep_interval(self.reader.sleep_interval)
            .should_save_progress(true)
            .pause_between_saves(PROGRESS_INTERVAL)
            .checkpoint_saver(Arc::new(checkpoints))
            .consumer_factory(Arc::new(HintConsumers::new(
                self.keys.clone(),
                self.hints.clone(),
                self.series.clone(),
            )))
            .build()
            .await?;
        // Dropping the handle, as losing the session does, ends the reader and its tasks.
        let ended = ended.await;
        drop(reader);
        ended
    }
}

/// The time.
pub fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

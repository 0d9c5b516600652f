//! Following the log of a table.
//!
//! A supervisor has the database follow the log ([`SourceDatabase::follow`]). When that ends (an
//! error, a lost session, a dropped table), it starts again from the time up to which all of the
//! log had been read. A row that is read twice does no harm, as it is only a hint.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::database::{LogRun, ReaderProgress, ReaderSeries, SourceDatabase};
use crate::identity::TableIdentity;
use crate::keys::KeySchema;
use crate::message::HintMessage;

/// The time before the confirmed position that is read again after a restart.
const RESTART_MARGIN: Duration = Duration::from_secs(10);

/// The longest pause after failures in a row.
const RESTART_INTERVAL_MAX: Duration = Duration::from_secs(30);

/// A report that the indexes of a table missed a part of the log: a reader lagged by more than the
/// log reaches back, or a task of the table panicked.
#[derive(Debug)]
pub(crate) struct InterruptedTable {
    /// The base table.
    pub table: TableIdentity,
    /// The primary key of the base table.
    pub keys: KeySchema,
    /// Cancelled when the log is no longer followed from before the gap.
    pub following: CancellationToken,
}

/// One reader of a table's log, which is restarted when it ends.
pub(crate) struct LogFollower {
    /// The base table.
    pub table: TableIdentity,
    /// The primary key of the base table.
    pub keys: KeySchema,
    /// The database that has the log.
    pub database: Arc<dyn SourceDatabase>,
    /// The number of this reader among those of the database.
    pub reader: usize,
    /// The name of this reader.
    pub name: String,
    /// The pause before it begins again after an error. It doubles with each failure in a row.
    pub restart_interval: Duration,
    /// The channel for hints. When it is full, the reader waits.
    pub hints: mpsc::Sender<HintMessage>,
    /// The metric series of the reader.
    pub series: Arc<ReaderSeries>,
    /// The progress of the reader.
    pub progress: Arc<ReaderProgress>,
    /// The channel to report that the reader lags too far, which leaves a gap.
    pub interrupted: mpsc::Sender<InterruptedTable>,
    /// Cancelled when the log is no longer to be followed.
    pub following: CancellationToken,
}

impl LogFollower {
    /// Follows the log. Ends when the hints have no receiver any more, or when rows of the log may
    /// have been missed.
    pub(crate) async fn run(self) {
        let mut margin = Duration::ZERO;
        let mut failures = 0;
        while !self.hints.is_closed() {
            let began = tokio::time::Instant::now();
            let run = self.begin(margin);
            let followed = self.series.follow();
            tokio::select! {
                biased;
                () = self.progress.rewound() => {
                    margin = Duration::ZERO;
                    continue;
                }
                () = self.progress.fell_behind() => return self.give_up().await,
                ended = self.database.follow(self.reader, run) => {
                    if let Err(error) = ended {
                        tracing::warn!(
                            table = %self.table,
                            reader = self.name,
                            error = format!("{error:#}"),
                            "the log reader ended and is started again"
                        );
                    }
                }
            }
            drop(followed);
            self.series.each(|metrics| {
                metrics.up.set(0);
                metrics.restarts.inc();
            });
            // After a long run this failure has nothing to do with those before.
            if began.elapsed() > RESTART_INTERVAL_MAX {
                failures = 0;
            }
            // The exponent is bounded, or the power would overflow.
            let back_off = self.restart_interval * 2u32.pow(failures.min(8));
            failures += 1;
            tokio::time::sleep(back_off.min(RESTART_INTERVAL_MAX)).await;
            margin = RESTART_MARGIN;
        }
    }

    fn begin(&self, margin: Duration) -> LogRun {
        let (start, checkpoints) = self.progress.restart(margin);
        LogRun::new(
            self.table.clone(),
            self.keys.clone(),
            start,
            self.hints.clone(),
            self.series.clone(),
            checkpoints,
        )
    }

    async fn give_up(&self) {
        tracing::error!(
            table = %self.table,
            reader = self.name,
            "the log reader is behind for longer than the log keeps its rows; the indexes are reconciled with the table"
        );
        self.series.each(|metrics| metrics.up.set(0));
        let interrupted = InterruptedTable {
            table: self.table.clone(),
            keys: self.keys.clone(),
            following: self.following.clone(),
        };
        // If the receiver was dropped, the service is stopping.
        let _ = self.interrupted.send(interrupted).await;
    }
}

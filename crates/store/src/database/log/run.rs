//! One run of a reader through a log: where it begins, where its hints go, and how it reports its
//! progress.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::progress::RunCheckpoints;
use super::reader_series::ReaderSeries;
use crate::identity::TableIdentity;
use crate::keys::KeySchema;
use crate::message::{ChangeHint, HintMessage, LogPosition};

/// One run of a reader through the log of a table.
pub struct LogRun {
    table: TableIdentity,
    keys: KeySchema,
    from: Duration,
    hints: mpsc::Sender<HintMessage>,
    series: Arc<ReaderSeries>,
    checkpoints: RunCheckpoints,
}

/// The error of a run whose hints have no receiver any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table is no longer followed")]
pub struct HintReceiverClosed;

impl LogRun {
    /// A run from `from` on, a time since the epoch.
    pub fn new(
        table: TableIdentity,
        keys: KeySchema,
        from: Duration,
        hints: mpsc::Sender<HintMessage>,
        series: Arc<ReaderSeries>,
        checkpoints: RunCheckpoints,
    ) -> LogRun {
        LogRun {
            table,
            keys,
            from,
            hints,
            series,
            checkpoints,
        }
    }

    /// The base table.
    pub fn table(&self) -> &TableIdentity {
        &self.table
    }

    /// The primary key of the base table.
    pub fn keys(&self) -> &KeySchema {
        &self.keys
    }

    /// The beginning of the run as a time since the epoch. Rows of the log from this time on have
    /// to be handed over.
    pub fn from(&self) -> Duration {
        self.from
    }

    /// The receiver of the official library's progress.
    pub(crate) fn checkpoints(&self) -> &RunCheckpoints {
        &self.checkpoints
    }

    /// Marks the log as being followed.
    pub fn is_up(&self) {
        self.series.each(|metrics| metrics.up.set(1));
    }

    /// Hands over the key that a row of the log names. Waits for room.
    ///
    /// # Errors
    /// If the table is no longer followed.
    pub async fn hint(&self, hint: ChangeHint) -> Result<(), HintReceiverClosed> {
        self.series.hand_over();
        let sent = self.hints.send(HintMessage::Hint(hint)).await;
        sent.map_err(|_| HintReceiverClosed)
    }

    /// Notes that a row of the log can't be understood.
    pub fn not_understood(&self, error: &str) {
        tracing::error!(table = %self.table, error, "a log row can't be understood");
        self.series.each(|metrics| metrics.handler_errors.inc());
    }

    /// The number of times that the reader's progress was requested. A reader that is notified of
    /// rows takes the number before a read, and the read then answers it.
    pub fn request_count(&self) -> u64 {
        self.checkpoints.request_count()
    }

    /// Waits until the progress has been requested more often than `before`.
    pub async fn wait_for_request(&self, before: u64) {
        self.checkpoints.wait_for_request(before).await;
    }

    /// Reports that all rows of the log with times up to `up_to_us` have been handed over, and that
    /// none can appear there later. `up_to_us` is in microseconds since the epoch. `unread_since`
    /// is a time at which everything that was in the log had been read before. `request_count`
    /// comes from [`LogRun::request_count`]. Every index of the table gets the report after the
    /// hints.
    ///
    /// # Errors
    /// If the table is no longer followed.
    pub async fn read_up_to(
        &self,
        up_to_us: i64,
        unread_since: Duration,
        asked: u64,
    ) -> Result<(), HintReceiverClosed> {
        let up_to = Duration::from_micros(u64::try_from(up_to_us).unwrap_or(0));
        if self.checkpoints.all_read(up_to, unread_since) {
            let position = LogPosition {
                run: self.checkpoints.run(),
                time_us: up_to_us,
            };
            self.send_position(position).await?;
            self.checkpoints.answer(asked);
        }
        Ok(())
    }

    /// Sends every index of the table a position, after the hints.
    ///
    /// # Errors
    /// If the table is no longer followed.
    pub(crate) async fn send_position(
        &self,
        position: LogPosition,
    ) -> Result<(), HintReceiverClosed> {
        let sent = self.hints.send(HintMessage::Position(position)).await;
        sent.map_err(|_| HintReceiverClosed)
    }

    /// The present as a time since the epoch.
    pub fn now(&self) -> Duration {
        self.checkpoints.now()
    }
}

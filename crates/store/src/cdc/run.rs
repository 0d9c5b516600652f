//! What follows a log is given: where to begin, where hints go, and to whom to say how far it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Checkpoints, ReaderSeries};
use crate::identity::TableIdentity;
use crate::keys::KeySchema;
use crate::reread::{Hint, HintMessage};

/// One run of a reader through the log of a table.
pub struct LogRun {
    table: TableIdentity,
    keys: KeySchema,
    from: Duration,
    hints: mpsc::Sender<HintMessage>,
    series: Arc<ReaderSeries>,
    checkpoints: Checkpoints,
}

/// Nobody takes hints any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table is no longer followed")]
pub struct Unheard;

impl LogRun {
    pub(super) fn new(
        table: TableIdentity,
        keys: KeySchema,
        from: Duration,
        hints: mpsc::Sender<HintMessage>,
        series: Arc<ReaderSeries>,
        checkpoints: Checkpoints,
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

    /// Its primary key.
    pub fn keys(&self) -> &KeySchema {
        &self.keys
    }

    /// Rows of the log from this time on are to be handed over, a time since the epoch.
    pub fn from(&self) -> Duration {
        self.from
    }

    /// Whom the official library tells of its progress.
    pub(crate) fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// Says that the log is being followed.
    pub fn is_up(&self) {
        self.series.each(|metrics| metrics.up.set(1));
    }

    /// Hands over what a row of the log names. Waits for room.
    ///
    /// # Errors
    /// When nobody takes it any more.
    pub async fn hint(&self, hint: Hint) -> Result<(), Unheard> {
        self.series.handed_over.fetch_add(1, Ordering::Relaxed);
        let sent = self.hints.send(HintMessage::Hint(hint)).await;
        sent.map_err(|_| Unheard)
    }

    /// Says that a row of the log can't be understood.
    pub fn not_understood(&self, error: &str) {
        tracing::error!(table = %self.table, error, "a log row can't be understood");
        self.series.each(|metrics| metrics.handler_errors.inc());
    }

    /// For who is told of rows and not looks for them: how often it has been asked how far the reader is. To be taken
    /// before a read, which then answers.
    pub fn asked(&self) -> u64 {
        self.checkpoints.asked()
    }

    /// Waits until it is asked more often than `before`.
    pub async fn is_asked(&self, before: u64) {
        self.checkpoints.is_asked(before).await;
    }

    /// Says that all rows of the log with times up to `up_to_us`, microseconds since the epoch, have been handed over, and
    /// that none can come to lie there. `unread_since`: all that was there at that time had been read before; `asked`: see
    /// [`LogRun::asked`]. Every index of the table hears of it behind the hints.
    ///
    /// # Errors
    /// When nobody hears it any more.
    pub async fn read_up_to(
        &self,
        up_to_us: i64,
        unread_since: Duration,
        asked: u64,
    ) -> Result<(), Unheard> {
        let up_to = Duration::from_micros(u64::try_from(up_to_us).unwrap_or(0));
        if self.checkpoints.all_read(up_to, unread_since) {
            let sent = self.hints.send(HintMessage::Position(up_to_us)).await;
            sent.map_err(|_| Unheard)?;
            self.checkpoints.answer(asked);
        }
        Ok(())
    }

    /// The time, since the epoch.
    pub fn now(&self) -> Duration {
        self.checkpoints.now()
    }
}

//! The task that saves one index.

mod generation;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use platform::aside;
use tasks::TaskRegistry;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fault::PersistenceError;
use super::manifest::{Manifest, words};
use super::save_request::SaveRequest;
use super::{LogFacts, Snapshots};
use crate::database::ReaderProgress;
use crate::indexes::IndexHandle;
use crate::long_work;
use crate::message::{HintMessage, IndexMessage};
use crate::present::TimeSource;

/// The longest wait until the hints that were handed over are in the index. If they take longer,
/// the database is slow or away, and the position stays where it was.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// The longest wait for those hints when the service stops.
const SETTLED_AT_STOP_WITHIN: Duration = Duration::from_secs(1);

/// Saving takes no more than one part in this many of the time, however large an index is.
const SHARE_OF_TIME: u32 = 20;

/// An index with this many times the vectors of its last save, and with [`OUTGROWN_BY`] more at
/// least, is saved before its time. After a crash it would be served from a snapshot that is much
/// smaller.
const OUTGROWN_TIMES: usize = 2;
/// See [`OUTGROWN_TIMES`].
const OUTGROWN_BY: usize = 1000;

/// The part of the log's time to live after which the position of an idle table is moved on: one in
/// this many.
const POSITION_SHARE_OF_TTL: u32 = 24;

/// The snapshot on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CurrentGeneration {
    /// The number of the generation.
    pub generation: u64,
    /// The position of the snapshot in the log, since the epoch.
    pub position: Duration,
    /// The [revision](crate::items::IndexedRows::revision) of the rows.
    pub revision: u64,
}

/// Saves one index when it is complete, at intervals, when it has grown much, and when the service
/// stops.
pub(crate) struct IndexSaver {
    /// The present by the clock of the log's times.
    pub present: TimeSource,
    /// The index.
    pub index: Arc<IndexHandle>,
    /// The directory and the interval of saves.
    pub snapshots: Arc<Snapshots>,
    /// The registry that shows each save as a task.
    pub work: TaskRegistry,
    /// The progress of each reader of the table's log.
    pub readers: Vec<Arc<ReaderProgress>>,
    /// The sender of hints, by which markers follow them.
    pub hints: mpsc::Sender<HintMessage>,
    /// The sender of messages to the task that owns the index's rows.
    pub items: mpsc::WeakSender<IndexMessage>,
    /// The sender of requests to that task.
    pub rows: mpsc::Sender<SaveRequest>,
    /// Facts about the table's log.
    pub log: LogFacts,
    /// The snapshot on the disk, if there is one.
    pub saved: Option<CurrentGeneration>,
    /// The number of rounds of [tending](crate::indexes::IndexHandle::tending) before it was saved.
    pub tended: u64,
    /// The position: everything that the log named before it is in the index. Since the epoch.
    pub position: Duration,
    /// The number of rows of the log that had been handed over when the position was last moved on.
    pub heard: u64,
    /// Cancelled when the index goes.
    pub cancel: CancellationToken,
}

impl IndexSaver {
    /// Saves again and again, until the last snapshot has been taken or the index goes.
    pub(crate) async fn run(mut self) {
        let Some(interval) = self.snapshots.interval else {
            return;
        };
        let snapshots = self.snapshots.clone();
        let _counted = snapshots.savers.token();
        let mut asked = snapshots.asked.subscribe();
        let mut next = match self.saved {
            Some(_) => Instant::now() + interval,
            None => Instant::now(),
        };
        let mut rested = Instant::now();
        let mut vectors = self.index.content.len();
        let mut told = None;
        loop {
            let mut is_asked = false;
            let stops = tokio::select! {
                biased;
                () = snapshots.stopping.cancelled() => true,
                _ = asked.changed() => {
                    is_asked = true;
                    false
                }
                () = tokio::time::sleep_until(next) => false,
                () = self.outgrown(vectors, rested) => false,
            };
            let began = Instant::now();
            if !self.is_current().await {
                self.advance(stops).await;
            }
            vectors = self.index.content.len();
            let saved = self.save().await;
            self.report_result(saved, &mut told);
            if is_asked {
                snapshots.answered.send_modify(|saves| *saves += 1);
            }
            if stops {
                return;
            }
            rested = Instant::now() + SHARE_OF_TIME * began.elapsed();
            next = rested.max(Instant::now() + interval);
        }
    }

    /// Waits until the index has outgrown `vectors`, and at least until `rested`.
    async fn outgrown(&self, vectors: usize, rested: Instant) {
        tokio::time::sleep_until(rested).await;
        let outgrown = (OUTGROWN_TIMES * vectors).max(vectors + OUTGROWN_BY);
        self.index.content.grown_to(outgrown).await;
    }

    /// Whether the snapshot on the disk is up to date, as far as is known without a request to the
    /// log's readers. Nothing came from the log since, no row changed, the graph was not tended,
    /// and the position is recent compared with the log's time to live.
    async fn is_current(&self) -> bool {
        let Some(saved) = self.saved else {
            return false;
        };
        let ttl = Duration::from_secs(self.log.ttl_s);
        let age = self.present.now().saturating_sub(saved.position);
        (ttl.is_zero() || age < ttl / POSITION_SHARE_OF_TTL)
            && self.heard == self.log_rows_received()
            && self.tended == self.index.tending.rounds()
            && self
                .request_rows(SaveRequest::Revision)
                .await
                .is_ok_and(|revision| revision == saved.revision)
    }

    fn log_rows_received(&self) -> u64 {
        self.readers.iter().map(|reader| reader.handed_over()).sum()
    }

    /// Shows the result of a save in metrics and log. A failure is logged once, not at every
    /// interval.
    fn report_result(&self, saved: Result<(), PersistenceError>, told: &mut Option<String>) {
        let metrics = &self.index.metrics.snapshots;
        let index = &self.index.identity.name;
        match saved {
            Ok(()) => {
                metrics.failing.set(0);
                if told.take().is_some() {
                    tracing::info!(%index, "the index is saved again");
                }
            }
            Err(PersistenceError::Stopped) => {}
            Err(PersistenceError::Aborted) => {
                tracing::info!(%index, "the save was aborted; the last snapshot stays");
            }
            Err(error) => {
                metrics.failing.set(1);
                metrics.failures.inc();
                if told.is_none() {
                    tracing::error!(
                        %index,
                        %error,
                        "the index can't be saved and goes on without a snapshot; saving is tried again"
                    );
                }
                *told = Some(error.to_string());
            }
        }
    }

    /// Saves the index. Writes only the position if no row has changed, nor the graph otherwise.
    async fn save(&mut self) -> Result<(), PersistenceError> {
        let snapshots = self.snapshots.clone();
        // Acquiring can't fail, as the semaphore is never closed.
        let _turn = snapshots.turn.acquire().await;
        let revision = self.request_rows(SaveRequest::Revision).await?;
        let tended = self.index.tending.rounds();
        match self.saved {
            Some(saved) if saved.revision == revision && tended == self.tended => {
                if self.position > saved.position {
                    self.publish(saved.generation, revision).await?;
                }
                Ok(())
            }
            _ => {
                self.save_all().await?;
                self.tended = tended;
                Ok(())
            }
        }
    }

    /// Moves the position on, if the hints up to it are applied in time.
    async fn advance(&mut self, stops: bool) {
        // Rows that are handed over from here on may be after the position.
        self.heard = self.log_rows_received();
        let (answer, settled) = oneshot::channel();
        let marker = HintMessage::Marker {
            index: self.items.clone(),
            answer,
        };
        let come_through = async {
            // A reader that is woken by new rows has read nothing lately if there were none, so a
            // report is requested.
            join_all(self.readers.iter().map(|reader| reader.request_progress())).await;
            let confirmed = self.readers.iter().map(|reader| reader.confirmed()).min();
            self.hints.send(marker).await.ok()?;
            settled.await.ok()?;
            Some(confirmed)
        };
        let within = match stops {
            true => SETTLED_AT_STOP_WITHIN,
            false => SETTLED_WITHIN,
        };
        let come_through = tokio::time::timeout(within, come_through);
        let come_through = tokio::select! {
            biased;
            come_through = come_through => come_through,
            // The last save follows, and waits for a shorter time.
            () = self.snapshots.stopping.cancelled(), if !stops => Ok(None),
        };
        if let Ok(Some(confirmed)) = come_through {
            self.position = self.position.max(confirmed.unwrap_or_default());
        }
    }

    /// Writes a generation, which is shown as a task. A save of only the position has no task.
    async fn save_all(&mut self) -> Result<(), PersistenceError> {
        let task = self.work.start(long_work::snapshot(&self.index.identity));
        let saved = self.save_generation(&task).await;
        match &saved {
            Ok(()) => task.done(),
            Err(PersistenceError::Aborted) => task.stopped(),
            // The dropped task shows that it was given up.
            Err(PersistenceError::Stopped) => {}
            Err(error) => task.failed(error),
        }
        saved
    }

    /// Makes a generation the current one, with the present position.
    async fn publish(&mut self, generation: u64, revision: u64) -> Result<(), PersistenceError> {
        let position_ms = u64::try_from(self.position.as_millis()).unwrap_or(u64::MAX);
        let manifest = Manifest {
            generation,
            position_ms,
            log_ttl_s: self.log.ttl_s,
            identity: words(&self.index.identity, self.log.id),
        };
        let (snapshots, cancel) = (self.snapshots.clone(), self.cancel.clone());
        let place = snapshots.place(&self.index.identity);
        blocking(move || place.publish(&snapshots, &manifest, &cancel)).await?;
        self.saved = Some(CurrentGeneration {
            generation,
            position: Duration::from_millis(position_ms),
            revision,
        });
        let metrics = &self.index.metrics.snapshots;
        metrics.taken_s.set(i64::from(self.present.now_s()));
        metrics.position_s.set((position_ms / 1000).cast_signed());
        Ok(())
    }

    async fn request_rows<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> SaveRequest,
    ) -> Result<T, PersistenceError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.rows.send(request(answer)).await;
        sent.map_err(|_| PersistenceError::Stopped)?;
        answered.await.map_err(|_| PersistenceError::Stopped)
    }
}

/// Runs short work with files on another thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PersistenceError> + Send + 'static,
) -> Result<T, PersistenceError> {
    match aside(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(PersistenceError::Stopped),
        },
    }
}

#[cfg(test)]
mod tests;

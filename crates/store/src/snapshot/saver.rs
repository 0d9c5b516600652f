//! The task that saves one index.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fault::Fault;
use super::manifest::{Manifest, words};
use super::place::NewGeneration;
use super::rows::RowsWriter;
use super::{LogFacts, Snapshots};
use crate::cdc::Progress;
use crate::engine::IndexHandle;
use crate::monitor_items::SaveRequest;
use crate::reread::HintMessage;

/// How long the hints that were handed over may take until they are in the index. If they take longer the
/// database is slow or away, and the position stays where it was.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// The same when the service stops.
const SETTLED_AT_STOP_WITHIN: Duration = Duration::from_secs(1);

/// Saving takes no more than one part in so many of the time, however large an index is.
const SHARE_OF_TIME: u32 = 20;

/// What stands on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The number of the generation.
    pub generation: u64,
    /// Its position, since the epoch.
    pub position: Duration,
    /// The [revision](crate::items::Items::revision) of the rows.
    pub revision: u64,
}

/// Saves one index when it is complete, at intervals, and when the service stops.
pub struct Saver {
    /// The index.
    pub index: Arc<IndexHandle>,
    /// Where to, and how often.
    pub snapshots: Arc<Snapshots>,
    /// How far the readers of the table's log are.
    pub readers: Vec<Arc<Progress>>,
    /// Where the readers send what they read.
    pub hints: mpsc::Sender<HintMessage>,
    /// The rows of the index.
    pub rows: mpsc::Sender<SaveRequest>,
    /// The table's log.
    pub log: LogFacts,
    /// What stands already.
    pub saved: Option<Saved>,
    /// All that the log told before this is in the index, since the epoch.
    pub position: Duration,
    /// Cancelled when the index goes.
    pub cancel: CancellationToken,
}

impl Saver {
    /// Saves until the last snapshot has been taken, or the index goes.
    pub async fn run(mut self) {
        let Some(interval) = self.snapshots.interval else {
            return;
        };
        let snapshots = self.snapshots.clone();
        let _counted = snapshots.savers.token();
        let mut next = match self.saved {
            Some(_) => Instant::now() + interval,
            None => Instant::now(),
        };
        let mut told = None;
        loop {
            let stops = tokio::select! {
                () = snapshots.stopping.cancelled() => true,
                () = tokio::time::sleep_until(next) => false,
            };
            let began = Instant::now();
            let saved = self.save(stops).await;
            self.tell(saved, &mut told);
            if stops {
                return;
            }
            next = Instant::now() + interval.max(SHARE_OF_TIME * began.elapsed());
        }
    }

    /// Shows how a save went. The log hears of a failure once, not at every interval.
    fn tell(&self, saved: Result<(), Fault>, told: &mut Option<String>) {
        let metrics = &self.index.metrics.snapshots;
        let index = &self.index.identity.name;
        match saved {
            Ok(()) => {
                metrics.failing.set(0);
                if told.take().is_some() {
                    tracing::info!(%index, "the index is saved again");
                }
            }
            Err(Fault::Stopped) => {}
            Err(error) => {
                metrics.failing.set(1);
                metrics.failures.inc();
                if told.is_none() {
                    tracing::error!(
                        %index,
                        %error,
                        "the index can't be saved and goes on without; this is tried again"
                    );
                }
                *told = Some(error.to_string());
            }
        }
    }

    async fn save(&mut self, stops: bool) -> Result<(), Fault> {
        self.advance(stops).await;
        let snapshots = self.snapshots.clone();
        // The semaphore is never closed.
        let _turn = snapshots.turn.acquire().await;
        let revision = self.ask(SaveRequest::Revision).await?;
        match self.saved {
            Some(saved) if saved.revision == revision => {
                if self.position > saved.position {
                    self.publish(saved.generation, revision).await?;
                }
                Ok(())
            }
            _ => self.save_all().await,
        }
    }

    /// Moves the position on, if the hints up to it come through in time.
    async fn advance(&mut self, stops: bool) {
        let confirmed = self.readers.iter().map(|reader| reader.confirmed()).min();
        let (answer, settled) = oneshot::channel();
        let marker = HintMessage::Marker {
            index: self.index.clone(),
            answer,
        };
        let come_through = async {
            self.hints.send(marker).await.ok()?;
            settled.await.ok()
        };
        let within = match stops {
            true => SETTLED_AT_STOP_WITHIN,
            false => SETTLED_WITHIN,
        };
        if let Ok(Some(())) = tokio::time::timeout(within, come_through).await {
            self.position = self.position.max(confirmed.unwrap_or_default());
        }
    }

    /// Writes a generation.
    async fn save_all(&mut self) -> Result<(), Fault> {
        let began = Instant::now();
        let snapshots = self.snapshots.clone();
        let place = snapshots.place(&self.index.identity);
        let new = blocking(move || {
            snapshots.enter()?;
            place.begin()
        });
        let new = new.await?;
        let written = self.write(&new).await;
        let published = match written {
            Ok(revision) => self.publish(new.number, revision).await,
            Err(error) => Err(error),
        };
        if published.is_err() {
            let path = new.path.clone();
            // What can't be deleted now is deleted after the next save.
            let _ = blocking(move || {
                std::fs::remove_dir_all(&path).map_err(Fault::io("delete", &path))
            })
            .await;
        }
        published?;
        tracing::info!(
            index = %self.index.identity.name,
            generation = new.number,
            seconds = began.elapsed().as_secs_f64(),
            "saved"
        );
        Ok(())
    }

    /// Writes vectors and rows while both change; gives back the revision of the rows from before.
    async fn write(&self, new: &NewGeneration) -> Result<u64, Fault> {
        let beginning = self.ask(SaveRequest::Begin).await?;
        let written = self.write_all(new, beginning.hash_seed).await;
        let end = self.ask(SaveRequest::End).await;
        let rows = written?;
        let end = end?;
        blocking(move || rows.finish(&end)).await?;
        Ok(beginning.revision)
    }

    async fn write_all(&self, new: &NewGeneration, hash_seed: u64) -> Result<RowsWriter, Fault> {
        let (vectors, directory) = (self.index.vectors.clone(), new.path.clone());
        detached(&new.path, move || vectors.save(&directory)).await??;
        let (path, number) = (new.path.join("rows"), new.number);
        let mut rows = blocking(move || RowsWriter::create(&path, number, hash_seed)).await?;
        let mut from = Some(0);
        while let Some(next) = from {
            let some = self
                .ask(|answer| SaveRequest::Rows { from: next, answer })
                .await?;
            from = some.next;
            rows = blocking(move || {
                for payload in &some.payloads {
                    rows.put_rows(payload)?;
                }
                Ok(rows)
            })
            .await?;
        }
        Ok(rows)
    }

    /// Makes a generation the one that stands, with the position of now.
    async fn publish(&mut self, generation: u64, revision: u64) -> Result<(), Fault> {
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
        self.saved = Some(Saved {
            generation,
            position: Duration::from_millis(position_ms),
            revision,
        });
        let metrics = &self.index.metrics.snapshots;
        metrics.taken_s.set(i64::from(crate::rows::now_s()));
        metrics.position_s.set((position_ms / 1000).cast_signed());
        Ok(())
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> SaveRequest,
    ) -> Result<T, Fault> {
        let (answer, answered) = oneshot::channel();
        let sent = self.rows.send(request(answer)).await;
        sent.map_err(|_| Fault::Stopped)?;
        answered.await.map_err(|_| Fault::Stopped)
    }
}

/// Short work with files.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Fault::Stopped),
        },
    }
}

/// Long work on a thread of its own, which the end of the process doesn't wait for: what it leaves unfinished
/// counts for nothing.
async fn detached<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let (sender, done) = oneshot::channel();
    let thread = std::thread::Builder::new().name("snapshot".to_owned());
    let spawned = thread.spawn(move || {
        // Whoever asked may have gone.
        let _ = sender.send(work());
    });
    spawned.map_err(Fault::io("start a thread to write", path))?;
    done.await.map_err(|_| Fault::Stopped)
}

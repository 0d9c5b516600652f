//! Writes a generation while the index is searched and changed.

use std::path::Path;

use platform::{Simulation, aside};
use tasks::Task;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{IndexSaver, blocking};
use crate::snapshot::directory::NewGeneration;
use crate::snapshot::fault::PersistenceError;
use crate::snapshot::rows::{RowsWriter, encoded_bytes};
use crate::snapshot::save_request::SaveRequest;

impl IndexSaver {
    /// Writes a generation and makes it the current one. After an abort or a failure the one before
    /// stays.
    pub(super) async fn save_generation(&mut self, task: &Task) -> Result<(), PersistenceError> {
        let began = Instant::now();
        let snapshots = self.snapshots.clone();
        let place = snapshots.place(&self.index.identity);
        let new = blocking(move || {
            snapshots.enter()?;
            place.begin()
        });
        let new = new.await?;
        let written = self.write(&new, task).await;
        let published = match written {
            Ok(revision) => self.publish(new.number, revision).await,
            Err(error) => Err(error),
        };
        let generation = new.number;
        if published.is_err() {
            let place = self.snapshots.place(&self.index.identity);
            let given_up = blocking(move || {
                place.give_up(&new);
                Ok(())
            });
            // The error that is returned is the first one.
            let _ = given_up.await;
        }
        published?;
        tracing::info!(
            index = %self.index.identity.name,
            generation,
            seconds = began.elapsed().as_secs_f64(),
            "saved"
        );
        Ok(())
    }

    /// Writes vectors and rows while both change. Returns the revision of the rows at the
    /// beginning.
    async fn write(&self, new: &NewGeneration, task: &Task) -> Result<u64, PersistenceError> {
        let beginning = self.request_rows(SaveRequest::Begin).await?;
        let written = self.write_all(new, beginning.hash_seed, task).await;
        let end = self.request_rows(SaveRequest::End).await;
        let rows = written?;
        let end = end?;
        blocking(move || rows.finish(&end)).await?;
        // The estimated total is corrected, as rows came and went meanwhile.
        task.set_total(task.status().progress_completed);
        go_on(task)?;
        Ok(beginning.revision)
    }

    async fn write_all(
        &self,
        new: &NewGeneration,
        hash_seed: u64,
        task: &Task,
    ) -> Result<RowsWriter, PersistenceError> {
        let of_rows = encoded_bytes(&self.index.content.keys());
        let (content, directory) = (self.index.content.clone(), new.path.clone());
        let teller = task.progress_reporter();
        let saved = detached(&new.path, move || {
            content.save(&directory, |progress| {
                teller.set_completed(progress.done);
                teller.set_total(progress.total + of_rows);
                teller.is_wanted()
            })
        });
        let saved = saved.await?;
        go_on(task)?;
        saved?;
        let (path, number) = (new.path.join("rows"), new.number);
        let mut rows = blocking(move || RowsWriter::create(&path, number, hash_seed)).await?;
        let mut from = Some(0);
        while let Some(next) = from {
            let some = self
                .request_rows(|answer| SaveRequest::Rows { from: next, answer })
                .await?;
            from = some.next;
            let bytes: usize = some.payloads.iter().map(Vec::len).sum();
            rows = blocking(move || {
                for payload in &some.payloads {
                    rows.put_rows(payload)?;
                }
                for payload in &some.filters {
                    rows.put_filters(payload)?;
                }
                Ok(rows)
            })
            .await?;
            task.add(bytes as u64);
            go_on(task)?;
        }
        Ok(rows)
    }
}

/// Fails if the task is to abort.
fn go_on(task: &Task) -> Result<(), PersistenceError> {
    match task.abort_requested() {
        true => Err(PersistenceError::Aborted),
        false => Ok(()),
    }
}

/// Runs long work on a thread of its own. The end of the process doesn't wait for it, as unfinished
/// work counts for nothing.
async fn detached<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PersistenceError> {
    if Simulation::of_thread().is_some() {
        return aside(work).await.map_err(|_| PersistenceError::Stopped);
    }
    let (sender, done) = oneshot::channel();
    let thread = std::thread::Builder::new().name("snapshot".to_owned());
    let spawned = thread.spawn(move || {
        // The receiver may have been dropped.
        let _ = sender.send(work());
    });
    spawned.map_err(PersistenceError::io("start a thread to write", path))?;
    done.await.map_err(|_| PersistenceError::Stopped)
}

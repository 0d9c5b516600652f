//! Making a backup.

use std::path::Path;

use backup::{BackupLocation, BackupSource, LocationAccess, PointSummary};
use store_api::types::BackupPreview;
use tasks::Task;

use crate::book::LocationResults;
use crate::files::ScratchDirectory;
use crate::order::BackupOrder;
use crate::service::{BackupRunner, FILES, SENT_OBJECTS, WRITERS_WAITED, micros};
use crate::state::{CapturedState, folder};
use crate::{BackupTaskError, digests};

/// A point that is complete, and how many there are with it.
struct CompletePoint {
    summary: PointSummary,
    points: u64,
    /// The reason why older points were not deleted.
    retention_error: Option<BackupTaskError>,
}

impl BackupRunner {
    /// Makes a backup, and notes what came of it.
    pub(crate) async fn back_up(
        &self,
        order: BackupOrder,
        task: &Task,
    ) -> Result<(), BackupTaskError> {
        let began = self.now_micros();
        let location = order.place.location.clone();
        self.book().backup_begins(&location, began);
        tracing::info!(task = %task.id(), location, "backup begins");
        let outcome = self.send_point(order, task).await;
        let now = self.now_micros();
        let has_failed = ends_as_failed(&outcome);
        let note = |results: &mut LocationResults| note_outcome(results, &outcome, began, now);
        // A backup that ends with the process is interrupted, and due after the next start.
        if !self.stop_token().is_cancelled() || outcome.is_ok() {
            self.book().backup_ends(&location, now, has_failed, note);
        }
        let complete = outcome?;
        task.count(SENT_OBJECTS, complete.summary.sent_objects);
        tracing::info!(
            location,
            point = %complete.summary.id,
            bytes = complete.summary.bytes,
            sent_bytes = complete.summary.sent_bytes,
            "backup is complete"
        );
        match complete.retention_error {
            None => Ok(()),
            Some(error) => Err(BackupTaskError::Internal(format!(
                "point {} is complete, but older points could not be deleted: {error}",
                complete.summary.id
            ))),
        }
    }

    async fn send_point(
        &self,
        order: BackupOrder,
        task: &Task,
    ) -> Result<CompletePoint, BackupTaskError> {
        let access = LocationAccess::Write;
        let location = BackupLocation::open(&order.options, access).await?;
        if let Some(schedule) = order.schedule.clone() {
            // Not before: a location that was misspelt gets no schedule.
            let now = self.now_micros();
            self.book()
                .put_schedule(&order.place, order.retention, schedule, now)?;
        }
        let scratch = self.checkpoint_of(task)?;
        let mut captured = self.captured(&scratch, task).await?;
        if order.digests {
            self.add_digests(&scratch, &mut captured, task).await?;
        }
        let pace = self.pace(order.place.max_mib_per_second);
        let state_dir = folder(&self.options().data_dir).join("state");
        let source = self.source(&order, captured, &scratch, &state_dir);
        let reporter = self.reporter(task);
        let sent = self
            .in_background(location.back_up(source, &reporter, &pace))
            .await;
        scratch.remove().await;
        let summary = sent?;
        let (points, retention_error) = match order.retention {
            Some(newest) => match location.retain(newest).await {
                Ok(report) => (report.remaining_points, None),
                Err(error) => (0, Some(error.into())),
            },
            // The point is complete. How many there are is for people alone.
            None => {
                let points = location
                    .list()
                    .await
                    .map_or(0, |points| points.len() as u64);
                (points, None)
            }
        };
        Ok(CompletePoint {
            summary,
            points,
            retention_error,
        })
    }

    /// The plan of a backup: the files that it would send.
    pub(crate) async fn plan(
        &self,
        order: &BackupOrder,
        task: &Task,
    ) -> Result<BackupPreview, BackupTaskError> {
        let access = LocationAccess::Plan;
        let location = BackupLocation::open(&order.options, access).await?;
        let scratch = self.checkpoint_of(task)?;
        let captured = self.captured(&scratch, task).await?;
        let state_dir = folder(&self.options().data_dir).join("state");
        let source = self.source(order, captured, &scratch, &state_dir);
        let plan = location.plan(source, order.retention).await;
        scratch.remove().await;
        let plan = plan?;
        let would_delete = plan.would_delete.iter();
        Ok(BackupPreview {
            files: plan.files,
            bytes: plan.bytes,
            bytes_to_send: plan.send_bytes,
            objects_to_send: plan.send_objects,
            points_to_delete: would_delete.map(ToString::to_string).collect(),
        })
    }

    fn checkpoint_of(&self, task: &Task) -> Result<ScratchDirectory, BackupTaskError> {
        let parent = folder(&self.options().data_dir);
        ScratchDirectory::below(&parent, &BackupRunner::checkpoint_name(task))
    }

    async fn captured(
        &self,
        scratch: &ScratchDirectory,
        task: &Task,
    ) -> Result<CapturedState, BackupTaskError> {
        let captured = self.options().state.capture(scratch.path()).await?;
        task.count(FILES, captured.files);
        task.count(WRITERS_WAITED, micros(captured.writers_waited));
        Ok(captured)
    }

    fn source<'a>(
        &self,
        order: &BackupOrder,
        captured: CapturedState,
        scratch: &'a ScratchDirectory,
        state_dir: &'a Path,
    ) -> BackupSource<'a> {
        let options = self.options();
        BackupSource {
            server: options.state.identity(),
            state_dir,
            root: scratch.path(),
            schema: captured.schema,
            tables: captured.tables,
            kind: options.state.kind(),
            take_over: order.take_over,
            full_check: order.full_check,
            version: options.version.clone(),
            taken_at_micros: captured.taken_at_micros,
        }
    }

    /// Reads all rows of a checkpoint, and writes their numbers and digests into its tables.
    async fn add_digests(
        &self,
        scratch: &ScratchDirectory,
        captured: &mut CapturedState,
        task: &Task,
    ) -> Result<(), BackupTaskError> {
        let name = format!("{}-rows", BackupRunner::checkpoint_name(task));
        let copy = ScratchDirectory::below(&folder(&self.options().data_dir), &name)?;
        let (from, to) = (scratch.path().to_owned(), copy.path().to_owned());
        let copied = tokio::task::spawn_blocking(move || digests::link_to_read(&from, &to));
        copied
            .await
            .map_err(|error| BackupTaskError::Internal(error.to_string()))??;
        let at_s = clock::seconds(captured.taken_at_micros);
        let wanted = self.wanted(task);
        let read = self
            .in_background(digests::of_tables(copy.path(), at_s, &wanted))
            .await;
        copy.remove().await;
        let read = read?;
        for table in &mut captured.tables {
            if let Some(found) = read.get(&table.id) {
                table.rows = Some(found.rows);
                table.digest = Some(digests::as_text(found.digest));
            }
        }
        Ok(())
    }
}

/// Whether a backup counts as failed for its schedule, which then repeats it soon. A point that is
/// complete does not: another one would be made, and would stay, too. Older points are deleted
/// after the next backup at its regular time.
fn ends_as_failed(outcome: &Result<CompletePoint, BackupTaskError>) -> bool {
    outcome.as_ref().is_err_and(|error| !error.is_stopped())
}

/// Notes what came of a backup.
fn note_outcome(
    results: &mut LocationResults,
    outcome: &Result<CompletePoint, BackupTaskError>,
    began: i64,
    now: i64,
) {
    match outcome {
        Ok(complete) => {
            let CompletePoint {
                summary,
                points,
                retention_error,
            } = complete;
            results.last_success_micros = Some(now);
            results.last_point = Some(summary.id.to_string());
            results.last_error = retention_error.as_ref().map(ToString::to_string);
            results.duration_s = now.saturating_sub(began) as f64 / 1e6;
            results.sent_bytes = summary.sent_bytes;
            results.sent_objects = summary.sent_objects;
            results.sent_bytes_total += summary.sent_bytes;
            results.sent_objects_total += summary.sent_objects;
            results.points = *points;
            results.failures += u64::from(retention_error.is_some());
        }
        Err(error) => {
            results.last_error = Some(error.to_string());
            results.failures += u64::from(!error.is_stopped());
        }
    }
}

#[cfg(test)]
mod tests {
    use backup::{PointKind, ServerIdentity};

    use super::*;

    fn complete(retention_error: Option<BackupTaskError>) -> CompletePoint {
        CompletePoint {
            summary: PointSummary {
                id: "20260105T000000Z-00000001".parse().unwrap(),
                kind: PointKind::Database,
                version: String::new(),
                taken_at_micros: 0,
                server: ServerIdentity {
                    id: uuid::Uuid::nil(),
                    name: String::new(),
                },
                bytes: 20,
                files: 1,
                sent_bytes: 10,
                sent_objects: 1,
                tables: Vec::new(),
                problem: None,
            },
            points: 0,
            retention_error,
        }
    }

    #[test]
    fn a_complete_point_is_no_failure_though_older_ones_remain() {
        let denied = BackupTaskError::Internal("no right to delete".to_owned());
        let outcome = Ok(complete(Some(denied)));
        assert!(!ends_as_failed(&outcome));
        let mut results = LocationResults::default();
        note_outcome(&mut results, &outcome, 1, 5);
        assert_eq!(results.last_success_micros, Some(5));
        assert_eq!(results.failures, 1, "the metrics show it");
        let shown = results.last_error.unwrap();
        assert!(shown.contains("no right to delete"), "{shown}");
        assert!(!ends_as_failed(&Ok(complete(None))));
    }

    #[test]
    fn a_backup_without_a_point_is_a_failure_unless_it_was_stopped() {
        assert!(!ends_as_failed(&Err(BackupTaskError::Stopped)));
        let error = BackupTaskError::Internal("no disk".to_owned());
        assert!(ends_as_failed(&Err(error)));
    }
}

//! Drills: a point is restored into a scratch directory, and its tables are compared with what the
//! backup has noted.

use std::sync::Arc;

use backup::{BackupLocation, FileSelection, LocationAccess, PointKind, PointManifest};
use tasks::Task;

use crate::BackupTaskError;
use crate::book::LocationResults;
use crate::digests::{self, IsWanted};
use crate::files::ScratchDirectory;
use crate::order::DrillOrder;
use crate::room::check_room;
use crate::service::{BackupRunner, TABLES};
use crate::transfer::ROWS;

/// The most differences that an error names.
const NAMED_MAX: usize = 10;

impl BackupRunner {
    /// Holds a drill, and notes what came of it.
    pub(crate) async fn drill(
        &self,
        order: DrillOrder,
        task: &Task,
    ) -> Result<(), BackupTaskError> {
        let location = order.place.location.clone();
        self.book().drill_begins(&location, self.now_micros());
        tracing::info!(task = %task.id(), location, "drill begins");
        let outcome = self.rehearse(order, task).await;
        let now = self.now_micros();
        let has_failed = outcome.as_ref().is_err_and(|error| !error.is_stopped());
        let note = |results: &mut LocationResults| match &outcome {
            Ok(()) => {
                results.last_drill_micros = Some(now);
                results.last_drill_success_micros = Some(now);
                results.drill_error = None;
            }
            // One that was stopped says nothing of the backup.
            Err(error) if error.is_stopped() => {}
            Err(error) => {
                results.last_drill_micros = Some(now);
                results.drill_error = Some(error.to_string());
                results.drill_failures += 1;
            }
        };
        if !self.stop_token().is_cancelled() || outcome.is_ok() {
            self.book().drill_ends(&location, now, has_failed, note);
        }
        outcome
    }

    async fn rehearse(&self, order: DrillOrder, task: &Task) -> Result<(), BackupTaskError> {
        let location = BackupLocation::open(&order.options, LocationAccess::Read).await?;
        let point = location.point(order.point.as_ref()).await?;
        let parent = self.options().data_dir.join("drills");
        check_room(&parent, point.bytes())?;
        let scratch = ScratchDirectory::below(&parent, &task.id().to_string())?;
        let pace = self.pace(order.place.max_mib_per_second);
        let reporter = self.reporter(task);
        let (all, target) = (FileSelection::All, scratch.path());
        let fetched = self
            .in_background(location.download(&point, &all, target, &reporter, &pace))
            .await;
        let compared = match fetched {
            Ok(_) => self.compare(&point, &scratch, task).await,
            Err(error) => Err(error),
        };
        scratch.remove().await;
        compared
    }

    /// Compares a restored directory with what its point says. The download has checked every byte.
    async fn compare(
        &self,
        point: &PointManifest,
        scratch: &ScratchDirectory,
        task: &Task,
    ) -> Result<(), BackupTaskError> {
        if point.kind == PointKind::GatewayState {
            return Ok(());
        }
        let at_s = clock::seconds(point.taken_at_micros);
        let wanted = self.wanted(task);
        let found = self
            .in_background(digests::of_tables(scratch.path(), at_s, &wanted))
            .await?;
        let mut differences = Vec::new();
        for table in &point.tables {
            let name = format!("{}.{}", table.keyspace, table.table);
            let Some(restored) = found.get(&table.id) else {
                differences.push(format!("{name} is missing"));
                continue;
            };
            task.count(TABLES, 1);
            task.count(ROWS, restored.rows);
            if let Some(rows) = table.rows.filter(|rows| *rows != restored.rows) {
                differences.push(format!("{name} has {} rows and had {rows}", restored.rows));
            } else if let Some(digest) = &table.digest
                && *digest != digests::as_text(restored.digest)
            {
                differences.push(format!("{name} has other rows than it had"));
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        let count = differences.len();
        differences.truncate(NAMED_MAX);
        Err(BackupTaskError::Differs(format!(
            "point {} does not restore as it was saved, {count} differences: {}; make a backup with --full-check, and look \
             at the disk of the server",
            point.id,
            differences.join("; ")
        )))
    }

    /// Whether the work of a task is to go on, for threads.
    pub(crate) fn wanted(&self, task: &Task) -> IsWanted {
        let (reporter, stop) = (task.progress_reporter(), self.stop_token().clone());
        Arc::new(move || reporter.is_wanted() && !stop.is_cancelled())
    }
}

//! Restores by CQL into any cluster: this server, a gateway, Cassandra, ScyllaDB. The number of
//! nodes and their tokens don't matter, as each row goes to the nodes that the cluster chooses.
//!
//! A point is downloaded once, each piece of it once, and read row by row. What the cells of a row
//! say about their write times and expiries becomes statements ([`cells`]), which a writer sends
//! many at a time ([`writer`]). All of it can be done again without harm: a plain cell is written
//! with its own time, and counters and lists are read before they are written.

mod cells;
mod schema_statements;
mod texts;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backup::{
    BackupLocation, LocationAccess, LocationOptions, PointId, TransferPace, TransferProgress,
};
use clock::{Clock as _, SystemClock};
use futures::stream::{self, Stream, StreamExt as _};
use schema::{Catalog, Table};
use scylla::client::session::Session;
use storage::{CellRow, Storage, StorageError};
use tokio::sync::mpsc;

use crate::choice::{TableChoice, files_of};
use crate::files::ScratchDirectory;
use crate::restore::{check_kind, in_keyspace};
use crate::{BackupTaskError, digests};
use schema_statements::SchemaWriter;
use writer::RowWriter;

/// The rows that are read ahead of the writer.
const ROWS_AHEAD: usize = 1024;

/// The rule for keyspaces, types, tables and indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CqlSchemaRule {
    /// They are made: tables must not exist, keyspaces and types may.
    #[default]
    Make,
    /// They are there, made by somebody who chose their options.
    Skip,
}

/// A restore by CQL.
#[derive(Clone, Debug)]
pub struct CqlRestore {
    /// The location.
    pub options: LocationOptions,
    /// The point; the newest without it.
    pub point: Option<PointId>,
    /// The tables.
    pub choice: TableChoice,
    /// The rule for the schema.
    pub schema: CqlSchemaRule,
    /// The most rows that are written at once.
    pub in_flight: usize,
    /// A directory for the download, which is removed at the end.
    pub scratch: PathBuf,
}

/// The outcome of a restore by CQL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CqlRestoreReport {
    /// The point.
    pub point: String,
    /// Number of tables.
    pub tables: u64,
    /// Number of rows, those of static columns included.
    pub rows: u64,
    /// Objects that were fetched.
    pub fetched_objects: u64,
    /// Statements of the schema that the cluster refused, and why.
    pub refused: Vec<String>,
}

impl CqlRestore {
    /// Writes the rows of the point. `rows` gets the number that are written so far.
    ///
    /// # Errors
    /// If the location can't be read, a table exists, or the cluster takes no rows.
    pub async fn run(
        &self,
        session: &Session,
        progress: &dyn TransferProgress,
        pace: &dyn TransferPace,
        rows: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<CqlRestoreReport, BackupTaskError> {
        let location = BackupLocation::open(&self.options, LocationAccess::Read).await?;
        let point = location.point(self.point.as_ref()).await?;
        check_kind(&point)?;
        let tables = self.choice.of_point(&point)?;
        let parent = self.scratch.parent().unwrap_or(Path::new("."));
        let name = self.scratch.file_name().unwrap_or_default();
        let scratch = ScratchDirectory::below(parent, &name.to_string_lossy())?;
        let files = files_of(&point, &tables);
        let fetched = location
            .download(&point, &files, scratch.path(), progress, pace)
            .await?;
        let source = digests::open(scratch.path()).await?;
        let written = self.write_all(session, &source, rows).await;
        digests::close(source).await?;
        scratch.remove().await;
        let mut report = written?;
        report.point = point.id.to_string();
        report.fetched_objects = fetched.fetched_objects;
        Ok(report)
    }

    async fn write_all(
        &self,
        session: &Session,
        source: &Storage,
        rows: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<CqlRestoreReport, BackupTaskError> {
        let from = source.catalog();
        let keyspaces = from.keyspaces.values();
        let keyspaces = keyspaces.filter(|it| {
            let chosen = self.choice.keyspace.as_ref();
            chosen.is_none_or(|name| it.name == *name)
        });
        let keyspaces: Vec<_> = keyspaces
            .map(|it| in_keyspace(it, self.choice.keyspace_here(&it.name)))
            .collect();
        let mut schema = SchemaWriter::new(session, &self.choice);
        if self.schema == CqlSchemaRule::Make {
            for keyspace in &keyspaces {
                schema.make_tables(keyspace).await?;
            }
        }
        let mut report = CqlRestoreReport::default();
        let written = AtomicU64::new(0);
        for keyspace in &keyspaces {
            for table in self.tables_of(&from, keyspace) {
                // A renamed table has the rows of the one that it was.
                self.write_table(session, source, &table, &written, rows)
                    .await?;
                report.tables += 1;
            }
        }
        if self.schema == CqlSchemaRule::Make {
            for keyspace in &keyspaces {
                schema.make_indexes(keyspace).await;
            }
        }
        report.rows = written.load(Ordering::Relaxed);
        report.refused = schema.into_refused();
        Ok(report)
    }

    /// The chosen tables of a keyspace, under its name here.
    fn tables_of(&self, from: &Catalog, here: &schema::Keyspace) -> Vec<Arc<Table>> {
        let tables = here.tables.values();
        let chosen = tables.filter(|table| {
            let of_point = from.table_by_id(table.id);
            let is_chosen = of_point.is_some_and(|it| self.choice.has(&it.keyspace, &it.name));
            is_chosen && table.log_of.is_none()
        });
        chosen.cloned().collect()
    }

    /// Writes the rows of a table, some at a time.
    async fn write_table(
        &self,
        session: &Session,
        source: &Storage,
        table: &Arc<Table>,
        written: &AtomicU64,
        rows: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<(), BackupTaskError> {
        let writer = &RowWriter::new(session, table.clone());
        let mut sent = rows_of(source, table)
            .map(|row| async move {
                writer.write(&row?, SystemClock.now_micros()).await?;
                rows(written.fetch_add(1, Ordering::Relaxed) + 1);
                Ok::<(), BackupTaskError>(())
            })
            .buffer_unordered(self.in_flight.max(1));
        while let Some(outcome) = sent.next().await {
            outcome?;
        }
        Ok(())
    }
}

/// The rows of a table, read on a thread of their own.
fn rows_of(
    source: &Storage,
    table: &Arc<Table>,
) -> impl Stream<Item = Result<CellRow, StorageError>> + use<> {
    let (rows, mut received) = mpsc::channel(ROWS_AHEAD);
    let (source, id) = (source.clone(), table.id);
    tokio::task::spawn_blocking(move || match source.cells(id) {
        Ok(cells) => {
            for row in cells {
                let has_failed = row.is_err();
                if rows.blocking_send(row).is_err() || has_failed {
                    return;
                }
            }
        }
        Err(error) => {
            // Without a receiver no one wants the error.
            let _ = rows.blocking_send(Err(error));
        }
    });
    stream::poll_fn(move |context| received.poll_recv(context))
}

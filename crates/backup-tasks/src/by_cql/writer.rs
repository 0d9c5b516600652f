//! Writes rows: prepared statements, each tried again while the cluster is busy.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clock::seconds;
use schema::{ColumnId, Table};
use scylla::client::session::Session;
use scylla::deserialize::row::ColumnIterator;
use scylla::response::query_result::QueryResult;
use scylla::statement::prepared::PreparedStatement;
use storage::CellRow;
use tokio::sync::Mutex;
use tools::cql_json::BoundBytes;
use tools::server_error::{WriteFailure, message, of_preparation};
use value::{join_elements, split_elements};

use super::cells::{CellStatement, ListRun, RowStatements, group};
use super::texts;
use crate::BackupTaskError;

/// The tries of a statement, and the pause after the first, which doubles up to the longest.
/// Together they take about two minutes, as a node of the cluster may restart.
const TRIES: u32 = 32;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The way of the rows of one table to a cluster.
pub(super) struct RowWriter<'a> {
    session: &'a Session,
    table: Arc<Table>,
    /// Prepared statements by their texts.
    prepared: Mutex<HashMap<String, Arc<PreparedStatement>>>,
}

/// A key, and whether it is of the static columns.
struct WrittenKey<'r> {
    values: &'r [Bytes],
    is_static: bool,
}

impl<'a> RowWriter<'a> {
    /// A writer of rows into this table, which has its name in the cluster.
    pub(super) fn new(session: &'a Session, table: Arc<Table>) -> RowWriter<'a> {
        RowWriter {
            session,
            table,
            prepared: Mutex::default(),
        }
    }

    /// Writes a row. Its cells that are dead at `now_micros` are left out.
    ///
    /// # Errors
    /// If the cluster takes no rows, or has other values in a list or a counter.
    pub(super) async fn write(
        &self,
        row: &CellRow,
        now_micros: i64,
    ) -> Result<(), BackupTaskError> {
        let now_s = seconds(now_micros);
        let grouped = group(&self.table, row, now_s);
        let RowStatements {
            plain,
            lists,
            counters,
        } = grouped.map_err(|text| self.fault(&text))?;
        let keys = texts::key_columns(&self.table, row.is_static).len();
        let key = WrittenKey {
            values: row.key.get(..keys).unwrap_or(&row.key),
            is_static: row.is_static,
        };
        for statement in plain {
            self.send_cells(&key, statement, now_s).await?;
        }
        for (column, runs) in lists {
            self.fill_list(&key, column, &runs, now_s).await?;
        }
        for (column, total) in counters {
            self.raise_counter(&key, column, total).await?;
        }
        Ok(())
    }

    async fn send_cells(
        &self,
        key: &WrittenKey<'_>,
        statement: CellStatement,
        now_s: i64,
    ) -> Result<(), BackupTaskError> {
        let text = texts::of_cells(&self.table, &statement.form);
        let times = [
            bytes_of(&statement.time.write_micros.to_be_bytes()),
            bytes_of(&statement.time.ttl_s(now_s).to_be_bytes()),
        ];
        let keys = key.values.iter().cloned().map(Some);
        let parts = statement.values.into_iter().map(Some);
        let values: Vec<Option<Bytes>> = match statement.form.is_insert {
            true => keys.chain(parts).chain(times).collect(),
            false => times.into_iter().chain(parts).chain(keys).collect(),
        };
        // It has its own time, so that it can be sent twice.
        self.execute(&text, &values, true).await.map(drop)
    }

    /// Appends what a list lacks. What is there must be how the list begins.
    async fn fill_list(
        &self,
        key: &WrittenKey<'_>,
        column: ColumnId,
        runs: &[ListRun],
        now_s: i64,
    ) -> Result<(), BackupTaskError> {
        let wanted: Vec<&Bytes> = runs.iter().flat_map(|run| &run.elements).collect();
        let text = texts::append(&self.table, column, key.is_static);
        let mut pause = FIRST_PAUSE;
        for _ in 0..TRIES {
            let present = match self.read(key, column).await? {
                Some(bytes) => {
                    split_elements(&bytes).map_err(|error| self.fault(&error.to_string()))?
                }
                None => Vec::new(),
            };
            if !wanted
                .iter()
                .map(|it| &it[..])
                .zip(&present)
                .all(|(it, there)| it == &there[..])
                || present.len() > wanted.len()
            {
                return Err(
                    self.fault("a list has other elements already: restore into an empty table")
                );
            }
            let Some((run, from)) = run_at(runs, present.len()) else {
                return Ok(());
            };
            let elements = run.elements.get(from..).unwrap_or_default();
            let mut values = vec![
                bytes_of(&run.time.write_micros.to_be_bytes()),
                bytes_of(&run.time.ttl_s(now_s).to_be_bytes()),
                Some(join_elements(elements.iter().map(|it| &it[..]))),
            ];
            values.extend(key.values.iter().cloned().map(Some));
            // The list is read again whatever the outcome is.
            match self.execute(&text, &values, false).await {
                Ok(_) => pause = FIRST_PAUSE,
                Err(BackupTaskError::Cluster(text)) => {
                    tracing::debug!(text, "an append is looked at again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.fault("the cluster takes no elements of a list"))
    }

    /// Increases a counter by what it lacks.
    async fn raise_counter(
        &self,
        key: &WrittenKey<'_>,
        column: ColumnId,
        total: i64,
    ) -> Result<(), BackupTaskError> {
        let text = texts::increase(&self.table, column, key.is_static);
        let mut pause = FIRST_PAUSE;
        for _ in 0..TRIES {
            let present = self.read(key, column).await?;
            let present = present.map(|bytes| bytes.as_ref().try_into().map(i64::from_be_bytes));
            let present = present.transpose();
            let present = present.map_err(|_| self.fault("a counter has no valid value"))?;
            if present == Some(total) {
                return Ok(());
            }
            // One that was never changed is null. An increase by 0 makes it 0.
            let lacks = total.wrapping_sub(present.unwrap_or(0));
            let mut values = vec![bytes_of(&lacks.to_be_bytes())];
            values.extend(key.values.iter().cloned().map(Some));
            match self.execute(&text, &values, false).await {
                Ok(_) => return Ok(()),
                // It may have been counted: it is read again.
                Err(BackupTaskError::Cluster(text)) => {
                    tracing::debug!(text, "an increase is looked at again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.fault("the cluster counts nothing"))
    }

    /// The value of a column of a row.
    async fn read(
        &self,
        key: &WrittenKey<'_>,
        column: ColumnId,
    ) -> Result<Option<Bytes>, BackupTaskError> {
        let text = texts::read_column(&self.table, column, key.is_static);
        let values: Vec<Option<Bytes>> = key.values.iter().cloned().map(Some).collect();
        let answer = self.execute(&text, &values, true).await?;
        let failed = |error: &dyn std::fmt::Display| self.fault(&error.to_string());
        let rows = answer.into_rows_result().map_err(|error| failed(&error))?;
        let mut rows = rows
            .rows::<ColumnIterator<'_, '_>>()
            .map_err(|error| failed(&error))?;
        let Some(columns) = rows.next() else {
            return Ok(None);
        };
        let column = columns.map_err(|error| failed(&error))?.next();
        let column = column.transpose().map_err(|error| failed(&error))?;
        let value = column.and_then(|column| column.slice);
        Ok(value.map(|value| Bytes::copy_from_slice(value.as_slice())))
    }

    /// Executes a statement. One that may be sent twice is tried again while the cluster is busy.
    async fn execute(
        &self,
        text: &str,
        values: &[Option<Bytes>],
        is_idempotent: bool,
    ) -> Result<QueryResult, BackupTaskError> {
        let prepared = self.prepare(text, is_idempotent).await?;
        let (mut pause, mut tries) = (FIRST_PAUSE, 1);
        loop {
            let sent = self.session.execute_unpaged(&prepared, BoundBytes(values));
            let error = match sent.await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_over = !is_idempotent || tries >= TRIES;
            match WriteFailure::of(&error) {
                WriteFailure::Passing(_) if !is_over => {
                    tries += 1;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                WriteFailure::Passing(text) => return Err(BackupTaskError::Cluster(text)),
                WriteFailure::Refused(_) | WriteFailure::Final(_) => {
                    return Err(self.fault(&format!("{text}: {}", message(&error))));
                }
            }
        }
    }

    async fn prepare(
        &self,
        text: &str,
        is_idempotent: bool,
    ) -> Result<Arc<PreparedStatement>, BackupTaskError> {
        let mut known = self.prepared.lock().await;
        if let Some(prepared) = known.get(text) {
            return Ok(prepared.clone());
        }
        let prepared = self.session.prepare(text).await;
        let mut prepared =
            prepared.map_err(|error| self.fault(&format!("{text}: {}", of_preparation(&error))))?;
        prepared.set_is_idempotent(is_idempotent);
        let prepared = Arc::new(prepared);
        known.insert(text.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// A failure that another try would not help.
    fn fault(&self, text: &str) -> BackupTaskError {
        let table = texts::table_name(&self.table);
        BackupTaskError::Wrong(format!("{table}: {text}"))
    }
}

/// A value of a marker.
fn bytes_of(bytes: &[u8]) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(bytes))
}

/// The run of a list that has the element at a position, and the element's position in it.
fn run_at(runs: &[ListRun], position: usize) -> Option<(&ListRun, usize)> {
    let mut left = position;
    for run in runs {
        match left.checked_sub(run.elements.len()) {
            None => return Some((run, left)),
            Some(after) => left = after,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::cells::CellGroupTime;
    use super::*;

    #[test]
    fn a_list_goes_on_where_it_ends() {
        let run = |elements: &[&'static str], write_micros| ListRun {
            elements: elements
                .iter()
                .map(|it| Bytes::from_static(it.as_bytes()))
                .collect(),
            time: CellGroupTime {
                write_micros,
                expires_at_s: None,
            },
        };
        let runs = [run(&["a", "b"], 5), run(&["c"], 4)];
        let at =
            |position| run_at(&runs, position).map(|(run, from)| (run.time.write_micros, from));
        assert_eq!(at(0), Some((5, 0)));
        assert_eq!(at(1), Some((5, 1)));
        assert_eq!(at(2), Some((4, 0)));
        assert_eq!(at(3), None);
    }
}

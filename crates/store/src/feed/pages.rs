//! Reads of rows that never fail, but take longer.
//!
//! A read that fails is tried again until it succeeds, since a row that is skipped is a row that
//! the index misses. A caller that no longer needs a read drops its future.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::database::{RowPage, SourceTable, TablePart};
use crate::keys::PrimaryKey;
use crate::rows::{FetchedRow, absent};

const BACK_OFF_MIN: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// After this many failures in a row a read in pages starts again, as the paging state itself may
/// be what the database refuses.
const FAILURES_BEFORE_RESTART: u32 = 4;

/// A read of a part of a table in progress.
pub(crate) struct TablePager {
    rows: Arc<dyn SourceTable>,
    part: TablePart,
    /// The place where the next page begins. The outer `None` means that there are no more pages,
    /// the inner one the beginning of the part.
    next: Option<Option<Bytes>>,
}

impl TablePager {
    /// Begins a read, before its first page.
    pub(crate) fn new(rows: &Arc<dyn SourceTable>, part: TablePart) -> TablePager {
        TablePager {
            rows: rows.clone(),
            part,
            next: Some(None),
        }
    }

    /// Reads the next page; `None` after the last one. After failures rows may come twice.
    pub(crate) async fn next(&mut self) -> Option<Vec<FetchedRow>> {
        let mut from = self.next.take()?;
        let mut failures = ConsecutiveFailures::default();
        loop {
            match self.rows.page(&self.part, from.clone()).await {
                Ok(RowPage { rows, next }) => {
                    self.next = next.map(Some);
                    return Some(rows);
                }
                Err(error) => {
                    failures.wait(&*self.rows, &error).await;
                    if failures.in_a_row.is_multiple_of(FAILURES_BEFORE_RESTART) {
                        from = None;
                    }
                }
            }
        }
    }
}

/// Reads the rows of some keys. A key without a row yields a row without vectors.
pub(crate) async fn rows_of(rows: &dyn SourceTable, keys: &[PrimaryKey]) -> Vec<FetchedRow> {
    let mut failures = ConsecutiveFailures::default();
    let mut found = loop {
        match rows.by_key(keys).await {
            Ok(found) => break found,
            Err(error) => failures.wait(rows, &error).await,
        }
    };
    let there: HashSet<PrimaryKey> = found.iter().map(|row| row.key.clone()).collect();
    let columns = rows.reader().columns.len();
    let gone = keys.iter().filter(|key| !there.contains(key));
    found.extend(gone.map(|key| absent(key.clone(), columns)));
    found
}

struct ConsecutiveFailures {
    in_a_row: u32,
    back_off: Duration,
}

impl Default for ConsecutiveFailures {
    fn default() -> ConsecutiveFailures {
        ConsecutiveFailures {
            in_a_row: 0,
            back_off: BACK_OFF_MIN,
        }
    }
}

impl ConsecutiveFailures {
    /// Notes that a read failed, and waits until it is worth trying again.
    async fn wait(&mut self, rows: &dyn SourceTable, error: &anyhow::Error) {
        self.in_a_row += 1;
        tracing::warn!(
            error = format!("{error:#}"),
            table = %rows.reader().table,
            failures = self.in_a_row,
            "a read failed and is tried again"
        );
        tokio::time::sleep(self.back_off).await;
        self.back_off = (2 * self.back_off).min(BACK_OFF_MAX);
    }
}

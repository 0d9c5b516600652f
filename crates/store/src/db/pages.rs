//! Rows of a statement page by page, whatever happens to the database meanwhile.

use std::time::Duration;

use scylla::errors::ExecutionError;
use scylla::errors::IntoRowsResultError;
use scylla::errors::PrepareError;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::row::SerializeRow;

use super::{DbHandle, Statement};
use crate::rows::{ReadRow, RowError, RowReader};

const BACK_OFF_MIN: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// After so many failures in a row the read begins anew: it may be the paging state that the
/// database no longer likes.
const FAILURES_BEFORE_RESTART: u32 = 4;

/// A read in progress. It never fails, it takes longer: what can't be read now is read later,
/// since a row that is skipped is a row that the index misses. Whoever no longer needs it drops
/// it.
pub struct Pages<'a, V> {
    reader: &'a RowReader,
    statement: &'a Statement,
    values: V,
    db: &'a DbHandle,
    /// Absent after the last page.
    state: Option<PagingState>,
}

#[derive(Debug, thiserror::Error)]
enum PageError {
    #[error("preparing: {0}")]
    Prepare(#[from] PrepareError),
    #[error("executing: {0}")]
    Execution(#[from] ExecutionError),
    #[error("reading the result: {0}")]
    Result(#[from] IntoRowsResultError),
    #[error("reading a row: {0}")]
    Row(#[from] RowError),
}

impl<'a, V: SerializeRow> Pages<'a, V> {
    /// Before the first page.
    pub fn new(
        db: &'a DbHandle,
        reader: &'a RowReader,
        statement: &'a Statement,
        values: V,
    ) -> Pages<'a, V> {
        Pages {
            reader,
            statement,
            values,
            db,
            state: Some(PagingState::start()),
        }
    }

    /// The next page's rows; nothing after the last page. After failures rows may come twice.
    pub async fn next(&mut self) -> Option<Vec<ReadRow>> {
        let mut state = self.state.take()?;
        let mut failures = 0;
        let mut back_off = BACK_OFF_MIN;
        loop {
            match self.page(state.clone()).await {
                Ok((rows, next)) => {
                    self.state = next;
                    return Some(rows);
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(
                        %error,
                        table = %self.reader.table,
                        failures,
                        "a read failed and is tried again"
                    );
                    if failures % FAILURES_BEFORE_RESTART == 0 {
                        state = PagingState::start();
                    }
                    tokio::time::sleep(back_off).await;
                    back_off = (2 * back_off).min(BACK_OFF_MAX);
                }
            }
        }
    }

    /// The rows of all pages.
    pub async fn all(mut self) -> Vec<ReadRow> {
        let mut rows = Vec::new();
        while let Some(page) = self.next().await {
            rows.extend(page);
        }
        rows
    }

    async fn page(
        &self,
        state: PagingState,
    ) -> Result<(Vec<ReadRow>, Option<PagingState>), PageError> {
        let db = self.db.current().await;
        let prepared = self.statement.on(&db).await?;
        let (result, next) = db
            .session
            .execute_single_page(&prepared, &self.values, state)
            .await?;
        let rows = self.reader.decode(&result.into_rows_result()?)?;
        Ok(match next {
            PagingStateResponse::HasMorePages { state } => (rows, Some(state)),
            PagingStateResponse::NoMorePages => (rows, None),
        })
    }
}

//! Carries out a workload on one server, with the official driver.

use std::time::Instant;

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use rand::SeedableRng;
use rand::rngs::StdRng;
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;

use super::NamedServer;
use super::workload::{ExpectedAnswer, FilledTable, Workload};
use crate::servers::access::RequestCredentials;

/// Rows of one page of a scan, as drivers request by default.
const PAGE_ROWS: i32 = 5_000;

/// The fill's requests under way at once.
const FILL_IN_FLIGHT: usize = 16;

/// A server and the name it has in the table.
pub struct ConnectedServer {
    name: String,
    session: Session,
}

impl ConnectedServer {
    /// Connects, and makes the keyspace.
    pub async fn connect(
        target: &NamedServer,
        access: &RequestCredentials,
    ) -> anyhow::Result<ConnectedServer> {
        let session = access
            .session(&target.address)
            .await?
            .build()
            .await
            .with_context(|| format!("{} at {}", target.name, target.address))?;
        let keyspace = "CREATE KEYSPACE IF NOT EXISTS compare WITH replication = \
                        {'class': 'SimpleStrategy', 'replication_factor': 1}";
        session.query_unpaged(keyspace, ()).await?;
        Ok(ConnectedServer {
            name: target.name.clone(),
            session,
        })
    }

    /// Makes and fills the table of a workload if it is not there, and prepares the statement.
    pub async fn prepare(&self, workload: &Workload) -> anyhow::Result<PreparedStatement> {
        let table = &workload.table;
        self.make(table)
            .await
            .with_context(|| format!("{}: table {}", self.name, table.name))?;
        let statement = self.session.prepare(workload.statement.as_str()).await;
        let mut statement = statement.with_context(|| workload.statement.clone())?;
        statement.set_page_size(PAGE_ROWS);
        Ok(statement)
    }

    async fn make(&self, table: &FilledTable) -> anyhow::Result<()> {
        let there = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'compare' AND table_name = ?";
        let there = self.session.query_unpaged(there, (&table.name,)).await?;
        if there.into_rows_result()?.rows_num() > 0 {
            return Ok(());
        }
        for statement in &table.create {
            self.session.query_unpaged(statement.as_str(), ()).await?;
        }
        let Some(fill) = &table.fill else {
            return Ok(());
        };
        let insert = self.session.prepare(fill.statement.as_str()).await?;
        stream::iter(0..fill.times)
            .map(|n| self.session.execute_unpaged(&insert, (fill.values)(n)))
            .buffer_unordered(FILL_IN_FLIGHT)
            .try_for_each(|_| async { Ok(()) })
            .await?;
        Ok(())
    }

    /// Carries out a round, and returns the operations a second (rows a second of a scan).
    ///
    /// # Errors
    ///
    /// Fails if a request fails, or if the answer is not the one that the workload expects.
    pub async fn rate(
        &self,
        workload: &Workload,
        statement: &PreparedStatement,
        round: usize,
        in_flight: usize,
    ) -> anyhow::Result<f64> {
        let mut random = StdRng::seed_from_u64(round as u64);
        let first = u64::from(workload.requests) * round as u64;
        let values: Vec<Vec<CqlValue>> = (first..first + u64::from(workload.requests))
            .map(|number| (workload.values)(&mut random, number))
            .collect();
        let at_once = match workload.answer {
            ExpectedAnswer::Scan(_) => 1,
            ExpectedAnswer::Rows(_) => in_flight,
        };
        let start = Instant::now();
        stream::iter(values)
            .map(|values| self.perform(workload, statement, values))
            .buffer_unordered(at_once)
            .try_for_each(|()| async { Ok(()) })
            .await
            .with_context(|| format!("{} on {}", workload.name, self.name))?;
        Ok(workload.operations() / start.elapsed().as_secs_f64())
    }

    async fn perform(
        &self,
        workload: &Workload,
        statement: &PreparedStatement,
        values: Vec<CqlValue>,
    ) -> anyhow::Result<()> {
        let (rows, expected) = match workload.answer {
            ExpectedAnswer::Scan(expected) => (self.scan(statement, values).await?, expected),
            ExpectedAnswer::Rows(expected) => {
                let answer = self.session.execute_unpaged(statement, values).await?;
                let rows = answer.into_rows_result().map_or(0, |rows| rows.rows_num());
                (rows, expected)
            }
        };
        ensure!(rows == expected, "{rows} rows in place of {expected}");
        Ok(())
    }

    /// Reads all pages, and returns the number of rows.
    async fn scan(
        &self,
        statement: &PreparedStatement,
        values: Vec<CqlValue>,
    ) -> anyhow::Result<usize> {
        let mut rows = 0;
        let mut state = scylla::response::PagingState::start();
        loop {
            let page = self.session.execute_single_page(statement, &values, state);
            let (page, next) = page.await?;
            rows += page.into_rows_result()?.rows_num();
            match next.into_paging_control_flow() {
                std::ops::ControlFlow::Continue(next) => state = next,
                std::ops::ControlFlow::Break(()) => return Ok(rows),
            }
        }
    }
}

//! Changes the schema, writes, reads and searches by CQL, with ScyllaDB's driver.

use std::sync::Arc;
use std::time::Duration;

use annulus_bench::data::VectorRows;
use anyhow::{Context, bail};
use rand::rngs::StdRng;
use rand::{RngCore as _, SeedableRng as _};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::cluster::metadata::ColumnType;
use scylla::errors::{ExecutionError, RequestAttemptError};
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::QueryResult;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use super::{SearchQueries, TableNames};
use crate::load::{AnsweredRequest, RepeatedRequest, RequestFailure};

/// A connected CQL server.
#[derive(Clone)]
pub struct DatabaseSession {
    session: Arc<Session>,
    address: String,
}

impl DatabaseSession {
    /// Connects to `HOST:PORT` by a builder of its sessions. No request is tried again: one that
    /// the driver repeated in silence would count as slow instead of failed.
    pub async fn connect(
        builder: SessionBuilder,
        address: &str,
        consistency: Consistency,
        timeout: Duration,
    ) -> anyhow::Result<DatabaseSession> {
        let profile = ExecutionProfile::builder()
            .consistency(consistency)
            .request_timeout(Some(timeout))
            .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
            .build();
        let session = builder
            .default_execution_profile_handle(profile.into_handle())
            .build()
            .await
            .with_context(|| format!("cannot connect to CQL at {address}"))?;
        Ok(DatabaseSession {
            session: Arc::new(session),
            address: address.to_owned(),
        })
    }

    /// The address that it was connected with.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Runs a statement that changes the schema.
    pub async fn change(&self, statement: String) -> anyhow::Result<()> {
        let result = self.session.query_unpaged(statement.as_str(), ()).await;
        result.with_context(|| statement)?;
        Ok(())
    }

    /// Whether the table has the index.
    pub async fn has_index(&self, names: &TableNames) -> anyhow::Result<bool> {
        let statement = "SELECT index_name FROM system_schema.indexes \
             WHERE keyspace_name = ? AND table_name = ? AND index_name = ?";
        let values = (&names.keyspace, &names.table, &names.index);
        let result = self.session.query_unpaged(statement, values).await;
        let rows = result.context(statement)?.into_rows_result()?;
        Ok(rows.rows_num() > 0)
    }

    /// Whether the keyspace has an index of that name, on this table or on another.
    pub async fn has_index_name(&self, names: &TableNames) -> anyhow::Result<bool> {
        let statement = "SELECT index_name FROM system_schema.indexes WHERE keyspace_name = ?";
        let result = self.session.query_unpaged(statement, (&names.keyspace,));
        let rows = result.await.context(statement)?.into_rows_result()?;
        for row in rows.rows::<(&str,)>()? {
            if row?.0 == names.index {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn prepare(&self, statement: String) -> anyhow::Result<Arc<PreparedStatement>> {
        let prepared = self.session.prepare(statement.as_str()).await;
        Ok(Arc::new(prepared.with_context(|| statement)?))
    }

    /// Prepares statements that write rows.
    pub async fn writes(&self, names: &TableNames) -> anyhow::Result<WriteStatements> {
        let TableNames {
            keyspace,
            table,
            key_column,
            vector_column,
            ..
        } = names;
        Ok(WriteStatements {
            session: Arc::clone(&self.session),
            insert: self
                .prepare(format!(
                    "INSERT INTO {keyspace}.{table} ({key_column}, {vector_column}) VALUES (?, ?)"
                ))
                .await?,
            delete: self
                .prepare(format!(
                    "DELETE FROM {keyspace}.{table} WHERE {key_column} = ?"
                ))
                .await?,
        })
    }

    /// Prepares statements that read rows by their keys.
    pub async fn reads(&self, names: &TableNames) -> anyhow::Result<ReadStatements> {
        let TableNames {
            keyspace,
            table,
            key_column,
            vector_column,
            ..
        } = names;
        let select = format!("SELECT {key_column}, {vector_column} FROM {keyspace}.{table}");
        let keys = format!("SELECT {key_column} FROM {keyspace}.{table}");
        Ok(ReadStatements {
            session: Arc::clone(&self.session),
            one: self
                .prepare(format!("{select} WHERE {key_column} = ?"))
                .await?,
            some: self
                .prepare(format!("{keys} WHERE {key_column} IN ?"))
                .await?,
        })
    }

    /// Prepares a statement that searches for `k` rows.
    pub async fn searches(&self, names: &TableNames, k: usize) -> anyhow::Result<SearchStatement> {
        let TableNames {
            keyspace,
            table,
            key_column,
            vector_column,
            ..
        } = names;
        let search = format!(
            "SELECT {key_column} FROM {keyspace}.{table} ORDER BY {vector_column} ANN OF ? LIMIT {k}"
        );
        Ok(SearchStatement {
            session: Arc::clone(&self.session),
            search: self.prepare(search).await?,
        })
    }

    /// Prepares statements for a table `key blob PRIMARY KEY, "C0" blob`, whose rows have values of
    /// so many bytes.
    pub async fn blobs(
        &self,
        keyspace: &str,
        table: &str,
        bytes: usize,
    ) -> anyhow::Result<BlobTable> {
        let table = format!("{keyspace}.{table}");
        Ok(BlobTable {
            session: Arc::clone(&self.session),
            insert: self
                .prepare(format!("INSERT INTO {table} (key, \"C0\") VALUES (?, ?)"))
                .await?,
            select: self
                .prepare(format!("SELECT \"C0\" FROM {table} WHERE key = ?"))
                .await?,
            bytes,
        })
    }
}

/// Inserts and deletes rows. Cheap to clone.
#[derive(Clone)]
pub struct WriteStatements {
    session: Arc<Session>,
    insert: Arc<PreparedStatement>,
    delete: Arc<PreparedStatement>,
}

impl WriteStatements {
    /// Writes a row.
    pub async fn insert(&self, id: i64, vector: &[f32]) -> Result<(), RequestFailure> {
        let result = self.session.execute_unpaged(&self.insert, (id, vector));
        result.await.map(drop).map_err(|error| failure(&error))
    }

    /// Deletes a row.
    pub async fn delete(&self, id: i64) -> Result<(), RequestFailure> {
        let result = self.session.execute_unpaged(&self.delete, (id,));
        result.await.map(drop).map_err(|error| failure(&error))
    }
}

/// Reads rows by their keys. Cheap to clone.
#[derive(Clone)]
pub struct ReadStatements {
    session: Arc<Session>,
    one: Arc<PreparedStatement>,
    some: Arc<PreparedStatement>,
}

impl ReadStatements {
    /// Reads a row and its vector. Returns whether the row exists.
    pub async fn row(&self, id: i64) -> Result<bool, RequestFailure> {
        let result = self.session.execute_unpaged(&self.one, (id,)).await;
        let rows = result.map_err(|error| failure(&error))?.into_rows_result();
        let rows = rows.map_err(|error| RequestFailure(format!("answer: {error}")))?;
        Ok(rows.rows_num() > 0)
    }

    /// Reads the rows of these ids with one statement. Returns the number of rows found.
    pub async fn rows(&self, rows: &[i64]) -> Result<(AnsweredRequest, usize), RequestFailure> {
        let result = self.session.execute_unpaged(&self.some, (rows,)).await;
        let done = AnsweredRequest::now();
        let result = result.map_err(|error| failure(&error))?;
        Ok((done, ids(result)?.len()))
    }
}

/// Searches for rows. Cheap to clone.
#[derive(Clone)]
pub struct SearchStatement {
    session: Arc<Session>,
    search: Arc<PreparedStatement>,
}

impl SearchStatement {
    /// Searches for the rows that are nearest to a vector. Returns their ids, nearest first.
    pub async fn nearest(
        &self,
        vector: &[f32],
    ) -> Result<(AnsweredRequest, Vec<i64>), RequestFailure> {
        let result = self.session.execute_unpaged(&self.search, (vector,)).await;
        let done = AnsweredRequest::now();
        let result = result.map_err(|error| failure(&error))?;
        Ok((done, ids(result)?))
    }
}

impl SearchStatement {
    /// The dimensions of the vector that a search binds.
    pub fn dimensions(&self) -> anyhow::Result<usize> {
        let specs = self.search.get_variable_col_specs();
        let spec = specs.get_by_index(0).context("a search binds a vector")?;
        match spec.typ() {
            ColumnType::Vector { dimensions, .. } => Ok(usize::from(*dimensions)),
            other => bail!("the column searched is no vector but {other:?}"),
        }
    }
}

/// Rows of a blob each, by numbered keys, whose bytes follow from the key. Cheap to clone.
#[derive(Clone)]
pub struct BlobTable {
    session: Arc<Session>,
    insert: Arc<PreparedStatement>,
    select: Arc<PreparedStatement>,
    bytes: usize,
}

impl BlobTable {
    /// Writes a row.
    pub async fn write(&self, row: u64) -> Result<(), RequestFailure> {
        let values = (row.to_be_bytes().to_vec(), self.value(row));
        let result = self.session.execute_unpaged(&self.insert, values);
        result.await.map(drop).map_err(|error| failure(&error))
    }

    /// Reads a row. Returns whether it is there as it was written.
    pub async fn read(&self, row: u64) -> Result<bool, RequestFailure> {
        let key = (row.to_be_bytes().to_vec(),);
        let result = self.session.execute_unpaged(&self.select, key).await;
        let rows = result.map_err(|error| failure(&error))?.into_rows_result();
        let rows = rows.map_err(|error| RequestFailure(format!("answer: {error}")))?;
        let first = rows.maybe_first_row::<(&[u8],)>();
        let first = first.map_err(|error| RequestFailure(format!("answer: {error}")))?;
        Ok(first.is_some_and(|(value,)| value == self.value(row)))
    }

    /// The value of a row: bytes that no compression makes smaller.
    fn value(&self, row: u64) -> Vec<u8> {
        let mut value = vec![0; self.bytes];
        StdRng::seed_from_u64(row).fill_bytes(&mut value);
        value
    }
}

/// Reads the ids in the only column of a result, which is `bigint` or `int`.
fn ids(result: QueryResult) -> Result<Vec<i64>, RequestFailure> {
    let not_understood = |error: &dyn std::fmt::Display| RequestFailure(format!("answer: {error}"));
    let rows = result
        .into_rows_result()
        .map_err(|error| not_understood(&error))?;
    if let Ok(rows) = rows.rows::<(i64,)>() {
        return rows
            .map(|row| row.map(|(id,)| id).map_err(|error| not_understood(&error)))
            .collect();
    }
    let rows = rows
        .rows::<(i32,)>()
        .map_err(|error| not_understood(&error))?;
    rows.map(|row| {
        row.map(|(id,)| i64::from(id))
            .map_err(|error| not_understood(&error))
    })
    .collect()
}

/// Makes a text that is the same for all requests that fail in the same way.
fn failure(error: &ExecutionError) -> RequestFailure {
    RequestFailure(match error {
        ExecutionError::RequestTimeout(_) => "timeout".to_owned(),
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(kind, message)) => {
            // The message may have parts that differ from request to request, such as progress.
            let message = message.split([':', '(']).next().unwrap_or_default();
            format!("CQL {kind}: {message}")
        }
        other => format!("CQL: {other}"),
    })
}

/// A worker that searches by `ANN OF` over the connections of its database.
pub struct StatementSearcher {
    searches: SearchStatement,
    questions: SearchQueries,
}

impl StatementSearcher {
    /// Makes a worker that sends `questions`; `searches` must request as many rows.
    pub fn new(searches: &SearchStatement, questions: &SearchQueries) -> StatementSearcher {
        StatementSearcher {
            searches: searches.clone(),
            questions: questions.clone(),
        }
    }

    /// Sends the `number`th search.
    pub async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        let query = self.questions.query(number);
        let vector = self.questions.queries.row(query);
        let (done, ids) = self.searches.nearest(vector).await?;
        Ok(self.questions.judged(query, done, ids))
    }
}

/// A worker that inserts the rows of a set from `first` on, one after the other.
pub struct RowInserter {
    /// The statement to write with.
    pub writes: WriteStatements,
    /// The rows to write.
    pub base: Arc<VectorRows>,
    /// The position in `base` of the row of request 0.
    pub first: usize,
}

impl RepeatedRequest for RowInserter {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        let position = self.first + number as usize;
        let (id, vector) = (self.base.id(position), self.base.row(position));
        self.writes.insert(id, vector).await?;
        Ok(AnsweredRequest::now())
    }
}

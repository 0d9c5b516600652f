//! Reads and writes the rows of one table.

use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::TryStreamExt;
use scylla::client::caching_session::CachingSession;
use scylla::client::pager::TypedRowStream;
use scylla::statement::Statement;

use super::{BoundOperand, Column, Condition, Key, Table, Vector};
use crate::Result;

/// So many rows come in one answer of the database.
const PAGE_ROWS: i32 = 100;

/// The rows of a table. `Rows<Book>` takes and returns books only.
pub struct Rows<T> {
    session: Arc<CachingSession>,
    table: String,
    of: PhantomData<fn() -> T>,
}

impl<T: Table> Rows<T> {
    /// The table has the struct's name in lower case.
    #[must_use]
    pub fn new(session: Arc<CachingSession>) -> Self {
        Self::named(session, &T::STRUCT.to_lowercase())
    }

    /// A table that has another name than its struct.
    #[must_use]
    pub fn named(session: Arc<CachingSession>, table: &str) -> Self {
        Self {
            session,
            table: table.to_owned(),
            of: PhantomData,
        }
    }

    /// # Errors
    /// If the database is away or refuses the statement, as in all methods.
    pub async fn create_table(&self) -> Result<()> {
        let definition = T::definition();
        self.define(format!(
            "CREATE TABLE IF NOT EXISTS {} ({definition})",
            self.table
        ))
        .await
    }

    /// An index for [`nearest`](Self::nearest), by cosine. Its filters are columns of the table.
    pub async fn create_vector_index<const N: usize>(
        &self,
        vectors: Column<T, Vector<N>>,
        filters: &[&str],
    ) -> Result<()> {
        let (table, vectors) = (&self.table, vectors.name());
        let columns = [&[vectors], filters].concat().join(", ");
        self.define(format!(
            "CREATE CUSTOM INDEX IF NOT EXISTS {table}_{vectors} ON {table} ({columns}) USING 'vector_index'"
        ))
        .await
    }

    /// Writes a row, in place of one with the same key.
    pub async fn insert(&self, row: &T) -> Result<()> {
        let (columns, marks) = (
            T::COLUMNS.join(", "),
            vec!["?"; T::COLUMNS.len()].join(", "),
        );
        let insert = format!("INSERT INTO {} ({columns}) VALUES ({marks})", self.table);
        self.session.execute_unpaged(insert, row).await?;
        Ok(())
    }

    /// The row with that key, if there is one.
    pub async fn get(&self, key: Key<'_, T>) -> Result<Option<T>> {
        let mut rows = self.select(key.0).await?;
        Ok(rows.try_next().await?)
    }

    /// The rows that satisfy all conditions, as a stream that fetches page after page.
    pub async fn select<'a>(
        &self,
        conditions: impl IntoIterator<Item = Condition<'a, T>>,
    ) -> Result<TypedRowStream<T>> {
        let (filter, operands) = filter(conditions);
        self.stream(&filter, operands).await
    }

    /// Of the rows that satisfy all conditions those whose vectors are nearest, nearest first.
    pub async fn nearest<'a, const N: usize>(
        &self,
        vectors: Column<T, Vector<N>>,
        to: &'a Vector<N>,
        conditions: impl IntoIterator<Item = Condition<'a, T>>,
        limit: i32,
    ) -> Result<Vec<T>> {
        let (filter, mut operands) = filter(conditions);
        operands.push(Box::new(to));
        operands.push(Box::new(limit));
        let order = format!("{filter} ORDER BY {} ANN OF ? LIMIT ?", vectors.name());
        Ok(self.stream(&order, operands).await?.try_collect().await?)
    }

    async fn stream(
        &self,
        clauses: &str,
        operands: Vec<BoundOperand<'_>>,
    ) -> Result<TypedRowStream<T>> {
        let columns = T::COLUMNS.join(", ");
        let select = Statement::new(format!("SELECT {columns} FROM {}{clauses}", self.table));
        let pages = self
            .session
            .execute_iter(select.with_page_size(PAGE_ROWS), operands)
            .await?;
        // The struct is compared with the columns of the answer here, before the first row.
        Ok(pages.rows_stream::<T>()?)
    }

    async fn define(&self, statement: String) -> Result<()> {
        self.session
            .get_session()
            .query_unpaged(statement, ())
            .await?;
        Ok(())
    }
}

/// ` WHERE a = ? AND b >= ?` with its operands.
fn filter<'a, T>(
    conditions: impl IntoIterator<Item = Condition<'a, T>>,
) -> (String, Vec<BoundOperand<'a>>) {
    let mut texts = Vec::new();
    let mut operands = Vec::new();
    for condition in conditions {
        texts.push(condition.text);
        operands.push(condition.operand);
    }
    if texts.is_empty() {
        return (String::new(), operands);
    }
    (format!(" WHERE {}", texts.join(" AND ")), operands)
}

//! Rows of the tables of the storage.

use std::ops::Bound;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use bytes::Bytes;
use schema::{ColumnId, TableId};
use storage::Storage;
use storage::read::{Cell, Partitions, Position, ReadRequest, Row};
use store::database::{Page, Part, PrimaryKey, RawCell, ReadRow, RowReader, Rows, aside};
use turns::{Class, Turn};
use value::token::Token;

use crate::table_of;

/// Number of keys read at a time, on one thread that may wait for the disk.
const KEYS_AT_A_TIME: usize = 100;

/// Reads rows of a table.
pub struct StoredRows {
    inner: Arc<Inner>,
}

struct Inner {
    storage: Storage,
    reader: RowReader,
    page_rows: usize,
}

impl StoredRows {
    pub fn new(storage: Storage, reader: RowReader, page_bytes: usize) -> StoredRows {
        StoredRows {
            inner: Arc::new(Inner {
                page_rows: reader.page_rows(page_bytes),
                storage,
                reader,
            }),
        }
    }

    /// Reads files on a thread where waiting holds nobody up, and in a turn if it needs one.
    async fn blocking<T: Send + 'static>(
        &self,
        turn: Option<Turn>,
        read: impl FnOnce(&Inner) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let inner = self.inner.clone();
        let read = move || {
            let rows = read(&inner);
            drop(turn);
            rows
        };
        aside(read).await?
    }
}

#[async_trait]
impl Rows for StoredRows {
    fn reader(&self) -> &RowReader {
        &self.inner.reader
    }

    async fn page(&self, part: &Part, from: Option<Bytes>) -> anyhow::Result<Page> {
        let turn = match part {
            // A scan or a repair reads, for which nobody waits.
            Part::Range(_) => Some(self.inner.storage.turns().take(Class::Background).await),
            Part::Partition(_) => None,
        };
        let partitions = match part {
            Part::Range(range) => Partitions::Tokens(
                Bound::Included(Token(range.start)),
                Bound::Included(Token(range.end)),
            ),
            Part::Partition(key) => {
                let values = key.values().map(Bytes::copy_from_slice);
                Partitions::One(values.collect())
            }
        };
        self.blocking(turn, move |inner| {
            inner.page(partitions, from.map(Position))
        })
        .await
    }

    async fn by_key(&self, keys: &[PrimaryKey]) -> anyhow::Result<Vec<ReadRow>> {
        let keys = keys.to_vec();
        self.blocking(None, move |inner| inner.by_key(&keys)).await
    }

    fn keys_at_a_time(&self) -> usize {
        KEYS_AT_A_TIME
    }
}

impl Inner {
    fn table(&self) -> anyhow::Result<(TableId, Vec<ColumnId>)> {
        let table = table_of(&self.storage, &self.reader.table).context("the table is gone")?;
        let columns = self.reader.columns.iter().map(|column| {
            let column = table.column(&column.name);
            Ok(column.context("a column is gone")?.id)
        });
        Ok((table.id, columns.collect::<anyhow::Result<_>>()?))
    }

    fn page(&self, partitions: Partitions, from: Option<Position>) -> anyhow::Result<Page> {
        let (table, columns) = self.table()?;
        let stream = self.storage.read(ReadRequest {
            table,
            partitions,
            slices: Vec::new(),
            reversed: false,
            resume_after: from,
            static_only_rows: false,
        })?;
        let mut rows = Vec::new();
        for row in stream {
            let row = row?;
            rows.extend(self.row(&columns, &row));
            if rows.len() == self.page_rows {
                let next = Some(row.position.0);
                return Ok(Page { rows, next });
            }
        }
        Ok(Page { rows, next: None })
    }

    fn by_key(&self, keys: &[PrimaryKey]) -> anyhow::Result<Vec<ReadRow>> {
        let (table, columns) = self.table()?;
        let view = self.storage.view(table)?;
        let mut rows = Vec::with_capacity(keys.len());
        for key in keys {
            let mut values: Vec<Bytes> = key.values().map(Bytes::copy_from_slice).collect();
            let clustering = values.split_off(self.reader.keys.partition.len());
            if let Some(row) = view.row(values, &clustering)? {
                rows.extend(self.row(&columns, &row));
            }
        }
        Ok(rows)
    }

    /// The key and the vectors of a row; None if it has static content alone.
    fn row(&self, columns: &[ColumnId], row: &Row) -> Option<ReadRow> {
        let clustering = row.clustering.as_ref()?;
        let key: Vec<&[u8]> = row
            .partition
            .key
            .iter()
            .chain(clustering)
            .map(|value| &value[..])
            .collect();
        let cells = columns.iter().map(|column| match row.cell(*column)? {
            Cell::Simple(cell) => Some(RawCell {
                value: &cell.value,
                written_us: cell.timestamp,
                expires_s: cell
                    .expiry
                    .map(|expiry| u32::try_from(expiry.at_s).unwrap_or(u32::MAX)),
            }),
            // No vector is stored in elements.
            Cell::Elements(_) => None,
        });
        Some(self.reader.row(&key, cells))
    }
}

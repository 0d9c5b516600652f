//! Rows of the tables of the storage.

use std::ops::Bound;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use bytes::{BufMut, Bytes, BytesMut};
use cpu_scheduler::{Permit, WorkClass};
use platform::aside;
use schema::{ColumnId, TableId};
use storage::Storage;
use storage::read::{
    Cell, CellExpiry, LiveCell, PartitionSelection, ReadRequest, Row, RowPosition,
};
use store::database::{
    FetchedRow, IndexableType, PrimaryKey, RawCell, RowPage, RowReader, SourceTable, TablePart,
};
use value::CqlType;
use value::token::Token;

use crate::table_of;

/// Number of keys read at a time, on one thread that may wait for the disk.
const KEYS_AT_A_TIME: usize = 100;

/// Reads rows of a table.
pub struct StoredRows {
    inner: Arc<TableReadState>,
}

struct TableReadState {
    storage: Storage,
    reader: RowReader,
    page_rows: usize,
    page_bytes: usize,
}

impl StoredRows {
    pub fn new(storage: Storage, reader: RowReader, page_bytes: usize) -> StoredRows {
        StoredRows {
            inner: Arc::new(TableReadState {
                page_rows: reader.page_rows(page_bytes),
                page_bytes,
                storage,
                reader,
            }),
        }
    }

    /// Reads files on a thread where waiting holds up no other work, and in a turn if it needs one.
    async fn blocking<T: Send + 'static>(
        &self,
        turn: Option<Permit>,
        read: impl FnOnce(&TableReadState) -> anyhow::Result<T> + Send + 'static,
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
impl SourceTable for StoredRows {
    fn reader(&self) -> &RowReader {
        &self.inner.reader
    }

    async fn page(&self, part: &TablePart, from: Option<Bytes>) -> anyhow::Result<RowPage> {
        let turn = match part {
            // A scan or a repair reads, for which no client waits.
            TablePart::Range(_) => Some(
                self.inner
                    .storage
                    .cpu_scheduler()
                    .acquire(WorkClass::Background)
                    .await,
            ),
            TablePart::Partition(_) => None,
        };
        let partitions = match part {
            TablePart::Range(range) => PartitionSelection::Tokens(
                Bound::Included(Token(range.start)),
                Bound::Included(Token(range.end)),
            ),
            TablePart::Partition(key) => {
                let values = key.values().map(Bytes::copy_from_slice);
                PartitionSelection::One(values.collect())
            }
        };
        self.blocking(turn, move |inner| {
            inner.page(partitions, from.map(RowPosition))
        })
        .await
    }

    async fn by_key(&self, keys: &[PrimaryKey]) -> anyhow::Result<Vec<FetchedRow>> {
        let keys = keys.to_vec();
        self.blocking(None, move |inner| inner.by_key(&keys)).await
    }

    fn keys_at_a_time(&self) -> usize {
        KEYS_AT_A_TIME
    }
}

impl TableReadState {
    fn table(&self) -> anyhow::Result<(TableId, Vec<ColumnId>)> {
        let table = table_of(&self.storage, &self.reader.table).context("the table is gone")?;
        let columns = self.reader.stored_columns().map(|column| {
            let column = table.column(&column.name);
            Ok(column.context("a column is gone")?.id)
        });
        Ok((table.id, columns.collect::<anyhow::Result<_>>()?))
    }

    fn page(
        &self,
        partitions: PartitionSelection,
        from: Option<RowPosition>,
    ) -> anyhow::Result<RowPage> {
        let (table, columns) = self.table()?;
        let stream = self.storage.read(ReadRequest {
            table,
            partitions,
            slices: Vec::new(),
            reversed: false,
            resume_after: from,
            static_only_rows: false,
        })?;
        let mut rows: Vec<FetchedRow> = Vec::new();
        let mut bytes = 0;
        for row in stream {
            let row = row?;
            if let Some(read) = self.row(&columns, &row) {
                bytes += read.value_bytes();
                rows.push(read);
            }
            // Some texts are much longer than others.
            if rows.len() == self.page_rows || bytes >= self.page_bytes {
                let next = Some(row.position.0);
                return Ok(RowPage { rows, next });
            }
        }
        Ok(RowPage { rows, next: None })
    }

    fn by_key(&self, keys: &[PrimaryKey]) -> anyhow::Result<Vec<FetchedRow>> {
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

    /// The key and the observed columns of a row; None if it has only static content.
    fn row(&self, columns: &[ColumnId], row: &Row) -> Option<FetchedRow> {
        let clustering = row.clustering.as_ref()?;
        let key: Vec<&[u8]> = row
            .partition
            .key
            .iter()
            .chain(clustering)
            .map(|value| &value[..])
            .collect();
        let collections: Vec<Option<Bytes>> = columns
            .iter()
            .zip(self.reader.stored_columns())
            .map(
                |(column, observed)| match (cell(row, *column)?, &observed.form) {
                    (Cell::Elements(elements), IndexableType::Filter(cql_type)) => {
                        whole(cql_type, elements)
                    }
                    _ => None,
                },
            )
            .collect();
        let cells = columns.iter().zip(&collections);
        let cells = cells.map(|(column, collection)| match cell(row, *column)? {
            Cell::Simple(cell) => Some(RawCell {
                value: &cell.value,
                written_us: cell.timestamp,
                expires_s: expires_s(cell),
            }),
            Cell::Elements(elements) => Some(RawCell {
                value: collection.as_ref()?,
                written_us: 0,
                expires_s: elements
                    .iter()
                    .filter_map(|(_, cell)| expires_s(cell))
                    .min(),
            }),
        });
        let is_by_key = self.reader.columns.iter().any(|of| of.in_key.is_some());
        let ends_s = is_by_key.then(|| ends_s(row)).flatten();
        Some(self.reader.row_that_may_end(&key, cells, ends_s))
    }
}

/// The time at which a row ends by itself, as all of its cells and its marker have expired by then;
/// `None` if one of them does not expire.
fn ends_s(row: &Row) -> Option<u32> {
    let of_cells = row.cells.iter().flat_map(|(_, cell)| match cell {
        Cell::Simple(cell) => vec![expires_s(cell)],
        Cell::Elements(elements) => elements.iter().map(|(_, cell)| expires_s(cell)).collect(),
    });
    let of_marker = row.marker.iter().map(|marker| seconds(marker.expiry));
    let expiries: Option<Vec<u32>> = of_cells.chain(of_marker).collect();
    expiries?.into_iter().max()
}

/// The live cell of a regular or static column.
fn cell(row: &Row, column: ColumnId) -> Option<&Cell> {
    row.cell(column).or_else(|| row.static_cell(column))
}

fn expires_s(cell: &LiveCell) -> Option<u32> {
    seconds(cell.expiry)
}

/// The time of an expiry, in seconds since the epoch; `None` for never.
fn seconds(expiry: Option<CellExpiry>) -> Option<u32> {
    Some(u32::try_from(expiry?.at_s).unwrap_or(u32::MAX))
}

/// The elements of a collection, serialised as those of a frozen one; `None` if there are none.
fn whole(cql_type: &CqlType, elements: &[(Bytes, LiveCell)]) -> Option<Bytes> {
    if elements.is_empty() {
        return None;
    }
    let mut out = BytesMut::new();
    let mut put = |bytes: &[u8]| {
        out.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        out.put_slice(bytes);
    };
    for (path, cell) in elements {
        match cql_type {
            CqlType::List { .. } => put(&cell.value),
            CqlType::Set { .. } => put(path),
            _ => {
                put(path);
                put(&cell.value);
            }
        }
    }
    let count = i32::try_from(elements.len()).unwrap_or(i32::MAX);
    Some([&count.to_be_bytes()[..], &out].concat().into())
}

//! Streams of the live cells of a table with the times of their writes, for those who write the
//! rows again elsewhere.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use schema::ColumnId;

use super::context::{PartitionContext, ReadContext, damaged_key};
use crate::StorageError;
use crate::engine::EntryScan;
use crate::key::{HEADER, ROW};
use crate::read::{Cell, LiveCell};
use crate::record::{self, Liveness, RowMarker, RowRecord};

/// A live row, or the live static cells of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellRow {
    /// The serialised values of the partition key columns, followed by those of the clustering
    /// columns unless the row is static.
    pub key: Vec<Bytes>,
    /// Whether these are the static cells of a partition. They come before its rows.
    pub is_static: bool,
    /// The times of the row's marker, which INSERT writes; `None` if the row has none.
    pub marker: Option<CellTime>,
    /// The live cells, in the order of the column ids. A non-frozen collection or user type has a
    /// cell for each element.
    pub cells: Vec<StoredCell>,
}

/// A live cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCell {
    /// The column.
    pub column: ColumnId,
    /// The path of an element: the element of a set, the key of a map, a timeuuid of a list, the
    /// position of a field as a smallint; `None` for a column that is one cell.
    pub path: Option<Bytes>,
    /// The serialised value. That of an element of a set is empty; that of a counter is its total.
    pub value: Bytes,
    /// Its times.
    pub time: CellTime,
}

/// The times of a cell or of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellTime {
    /// The write timestamp. Microseconds since the epoch.
    pub write_micros: i64,
    /// The time of its end; `None` if it lives for ever. Seconds since the epoch.
    pub expires_at_s: Option<i64>,
}

/// A stream of the live rows of a table in token order, with the times of their cells. It sees the
/// table as it was when it was opened, and does blocking file reads when it is advanced. What it
/// gives are parts of blocks of the disk.
pub struct CellStream {
    context: Arc<ReadContext>,
    scan: EntryScan,
    /// Token and partition key of the partition that the stream is in, with its state.
    current: Option<(Bytes, PartitionContext)>,
}

pub(super) fn open(context: Arc<ReadContext>) -> Result<CellStream, StorageError> {
    let range = (Bound::Unbounded, Bound::Unbounded);
    let scan = context
        .engine
        .scan_at(&context.snapshot, context.table.space, range)?;
    Ok(CellStream {
        context,
        scan,
        current: None,
    })
}

impl CellStream {
    fn next_row(&mut self) -> Result<Option<CellRow>, StorageError> {
        while let Some((key, value)) = self.scan.next().transpose()? {
            let parts = self
                .context
                .table
                .keys
                .split(&key)
                .ok_or_else(damaged_key)?;
            let (partition, kind) = (parts.partition.len(), parts.kind);
            if !matches!(kind, HEADER | ROW) {
                continue;
            }
            let record = record::decode(value)?;
            let prefix = key.slice(..partition);
            let is_in = (self.current.as_ref()).is_some_and(|(current, _)| *current == prefix);
            if !is_in {
                let (token, values) = self.context.decode_partition(&prefix)?;
                let head = (kind == HEADER).then_some(&record);
                let entered = self.context.enter(token, values, head);
                self.current = Some((prefix, entered));
            }
            let Some((_, entered)) = &mut self.current else {
                continue;
            };
            let row = match kind {
                HEADER => self.context.static_cells(entered, &record),
                _ => self
                    .context
                    .cells_of_row(entered, partition, &key, record)?,
            };
            if row.is_some() {
                return Ok(row);
            }
        }
        Ok(None)
    }
}

impl Iterator for CellStream {
    type Item = Result<CellRow, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row().transpose()
    }
}

impl ReadContext {
    fn static_cells(&self, entered: &PartitionContext, head: &RowRecord) -> Option<CellRow> {
        let liveness = Liveness {
            deleted_to: i64::MIN,
            now_s: self.now_s,
        };
        let cells = liveness.statics(head, &self.table.live);
        (!cells.is_empty()).then(|| CellRow {
            key: entered.key().to_vec(),
            is_static: true,
            marker: None,
            cells: stored_cells(cells),
        })
    }

    fn cells_of_row(
        &self,
        entered: &mut PartitionContext,
        partition: usize,
        key: &[u8],
        record: RowRecord,
    ) -> Result<Option<CellRow>, StorageError> {
        let liveness = self.liveness(entered, partition, key)?;
        let marker = liveness.row_marker(&record);
        let found = liveness.find(record, &self.table.live);
        let Some(cells) = found.cells else {
            return Ok(None);
        };
        let clustering = match found.clustering {
            Some(values) => values,
            None => (self.table.keys)
                .decode_clustering(&key[partition + 1..])
                .ok_or_else(damaged_key)?,
        };
        Ok(Some(CellRow {
            key: entered.key().iter().cloned().chain(clustering).collect(),
            is_static: false,
            marker: marker.map(CellTime::of_marker),
            cells: stored_cells(cells),
        }))
    }
}

impl CellTime {
    fn of_marker(marker: RowMarker) -> CellTime {
        CellTime {
            write_micros: marker.timestamp,
            expires_at_s: marker.lifetime.map(|expiry| expiry.at_s),
        }
    }
}

fn stored_cells(cells: Vec<(ColumnId, Cell)>) -> Vec<StoredCell> {
    let stored = |column, path, cell: LiveCell| StoredCell {
        column,
        path,
        value: cell.value,
        time: CellTime {
            write_micros: cell.timestamp,
            expires_at_s: cell.expiry.map(|expiry| expiry.at_s),
        },
    };
    let mut all = Vec::with_capacity(cells.len());
    for (column, cell) in cells {
        match cell {
            Cell::Simple(cell) => all.push(stored(column, None, cell)),
            Cell::Elements(elements) => {
                let elements = elements.into_iter();
                all.extend(elements.map(|(path, cell)| stored(column, Some(path), cell)));
            }
        }
    }
    all
}

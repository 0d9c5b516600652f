//! Requests for reads, and the live rows that they return in the order of the disk.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use schema::{ColumnId, TableId};
use uuid::Uuid;
use value::token::Token;

/// A request for the live rows of one table.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The table to read.
    pub table: TableId,
    /// The partitions to read.
    pub partitions: PartitionSelection,
    /// The slices to read of each partition: disjoint and in clustering order. Empty for whole
    /// partitions.
    pub slices: Vec<ClusteringSlice>,
    /// Whether rows come from the last to the first. Only with [`PartitionSelection::One`].
    pub reversed: bool,
    /// The row after which the read begins: the last one of the page before.
    pub resume_after: Option<RowPosition>,
    /// Whether a partition without rows is returned as one row with its static content. Has no
    /// effect unless `slices` is empty.
    pub static_only_rows: bool,
}

/// The partitions of a read.
#[derive(Clone, Debug)]
pub enum PartitionSelection {
    /// One partition, by the serialised values of its partition key columns.
    One(Vec<Bytes>),
    /// All partitions with a token in the range, in token order.
    Tokens(Bound<Token>, Bound<Token>),
}

/// Rows between two bounds in clustering order, which is the order of the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusteringSlice {
    /// The bound before the first row of the slice.
    pub start: ClusteringBound,
    /// The bound after the last row of the slice.
    pub end: ClusteringBound,
}

/// A bound by a prefix of the clustering key. As a start, an inclusive prefix is before the first
/// row with the prefix and an exclusive one after the last. As an end it is the reverse.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusteringBound {
    /// The edge of the partition.
    Unbounded,
    /// A prefix whose rows are in the slice. It holds the serialised values of the first columns of
    /// the clustering key, one or more.
    Inclusive(Vec<Bytes>),
    /// A prefix whose rows are not in the slice. It has the form of an inclusive one.
    Exclusive(Vec<Bytes>),
}

/// A request for the rows that a secondary index has under some values.
#[derive(Clone, Debug)]
pub struct IndexRequest {
    /// The index, by [`schema::SecondaryIndex::version`].
    pub index: Uuid,
    /// The values that are looked for.
    pub values: IndexedValues,
    /// The tokens of the partitions that are looked at.
    pub tokens: (Bound<Token>, Bound<Token>),
    /// The position at which the read begins; `None` for the first. If `values` is one value,
    /// entries before it are not looked at.
    pub from: Option<RowPosition>,
}

/// A range of values of a secondary index, as serialised values of the type that it finds rows by:
/// that of the column, of an element, or of a key or value of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedValues {
    /// The key of a map whose values are looked for. Given in an index on entries, and in no other.
    pub key: Option<Bytes>,
    /// The bound before the first value.
    pub low: Bound<Bytes>,
    /// The bound after the last value.
    pub high: Bound<Bytes>,
}

impl IndexedValues {
    /// One value.
    pub fn one(value: Bytes) -> IndexedValues {
        IndexedValues {
            key: None,
            low: Bound::Included(value.clone()),
            high: Bound::Included(value),
        }
    }
}

/// The position of a row, as opaque and stable bytes. The node puts it into paging states and may
/// give it back after a restart. Bytes that were tampered with give an error, never a panic.
///
/// Positions of a table sort as its rows do: by token, partition and clustering.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowPosition(pub Bytes);

/// The primary key at a position.
#[derive(Clone, Debug, PartialEq)]
pub struct RowKey {
    /// The token of the partition key.
    pub token: Token,
    /// The serialised values of the partition key columns.
    pub partition_key: Vec<Bytes>,
    /// The serialised values of the clustering columns; `None` for a partition as a whole, which an
    /// index on a static column finds. Values that are equal may have other bytes than the row's.
    pub clustering: Option<Vec<Bytes>>,
}

/// The partition that a row belongs to, shared by its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// The token of the partition key.
    pub token: Token,
    /// The serialised values of the partition key columns.
    pub key: Vec<Bytes>,
    /// The live cells of the static columns, in the order of the column ids.
    pub static_cells: Vec<(ColumnId, Cell)>,
}

/// A live row: nothing deleted or expired is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The partition of the row.
    pub partition: Arc<Partition>,
    /// The serialised values of the clustering columns; `None` for a partition that has only static
    /// content. Empty for a table without clustering columns.
    pub clustering: Option<Vec<Bytes>>,
    /// The live cells of the regular columns, in the order of the column ids.
    pub cells: Vec<(ColumnId, Cell)>,
    /// The live marker of the row; `None` if only cells keep it.
    pub marker: Option<LiveMarker>,
    /// The position of the row, for [`ReadRequest::resume_after`].
    pub position: RowPosition,
}

/// The outcome of a step of a read.
#[derive(Clone, Debug, PartialEq)]
pub enum NextRow {
    /// A live row.
    Row(Row),
    /// A record comes next that is longer than the step may decode.
    Large,
    /// There is no row, or no further one.
    Nothing,
}

/// The live value of a column in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// The one cell of a column that is no non-frozen collection.
    Simple(LiveCell),
    /// The live elements of a non-frozen collection as (path, cell), in the order of their paths.
    Elements(Vec<(Bytes, LiveCell)>),
}

/// A cell that is neither deleted nor expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCell {
    /// The serialised value.
    pub value: Bytes,
    /// The write timestamp. Microseconds since the epoch.
    pub timestamp: i64,
    /// The expiry; `None` if the cell lives for ever.
    pub expiry: Option<CellExpiry>,
}

/// The marker that an INSERT wrote: while it lives the row is there, with or without cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveMarker {
    /// The expiry; `None` if the marker lives for ever.
    pub expiry: Option<CellExpiry>,
}

/// The expiry of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellExpiry {
    /// The time to live that the write gave. Seconds.
    pub ttl_s: u32,
    /// The time at which the cell dies. Seconds since the epoch.
    pub at_s: i64,
}

impl Row {
    /// The live cell of a regular column; `None` if it has no live value.
    pub fn cell(&self, column: ColumnId) -> Option<&Cell> {
        find(&self.cells, column)
    }

    /// The live cell of a static column; `None` if it has no live value.
    pub fn static_cell(&self, column: ColumnId) -> Option<&Cell> {
        find(&self.partition.static_cells, column)
    }

    /// Drops the cells of all columns but the wanted ones.
    pub fn retain_cells(&mut self, is_wanted: impl Fn(ColumnId) -> bool) {
        self.cells.retain(|(column, _)| is_wanted(*column));
        let statics = &self.partition.static_cells;
        if !statics.iter().all(|(column, _)| is_wanted(*column)) {
            let statics = statics.iter().filter(|(column, _)| is_wanted(*column));
            self.partition = Arc::new(Partition {
                token: self.partition.token,
                key: self.partition.key.clone(),
                static_cells: statics.cloned().collect(),
            });
        }
    }

    /// Bytes of memory that the row takes about, with those of its partition.
    pub fn memory_bytes(&self) -> usize {
        let of_cells = |cells: &[(ColumnId, Cell)]| -> usize {
            cells.iter().map(|(_, cell)| cell.memory_bytes()).sum()
        };
        let keys = self.partition.key.iter();
        let keys = keys.chain(self.clustering.iter().flatten());
        let keys: usize = keys.map(|value| value.len() + size_of::<Bytes>()).sum();
        size_of::<Row>()
            + size_of::<Partition>()
            + self.position.0.len()
            + keys
            + of_cells(&self.cells)
            + of_cells(&self.partition.static_cells)
    }

    /// Copies the row's bytes. Those that a read returns are parts of blocks of the disk, which may
    /// be much larger and stay in memory for as long as one of their parts is held.
    pub fn detach(&mut self) {
        let keys = |values: &[Bytes]| -> Vec<Bytes> { values.iter().map(copied).collect() };
        let cells = |cells: &[(ColumnId, Cell)]| -> Vec<(ColumnId, Cell)> {
            let cells = cells.iter();
            cells
                .map(|(column, cell)| (*column, cell.copied()))
                .collect()
        };
        self.partition = Arc::new(Partition {
            token: self.partition.token,
            key: keys(&self.partition.key),
            static_cells: cells(&self.partition.static_cells),
        });
        self.clustering = self.clustering.as_deref().map(keys);
        self.cells = cells(&self.cells);
        self.position = self.position.copied();
    }
}

impl RowPosition {
    /// A copy in memory of its own. The position of a row that was read is part of a block of the
    /// disk.
    #[must_use]
    pub fn copied(&self) -> RowPosition {
        RowPosition(copied(&self.0))
    }
}

impl Cell {
    fn memory_bytes(&self) -> usize {
        match self {
            Cell::Simple(cell) => size_of::<(ColumnId, Cell)>() + cell.value.len(),
            Cell::Elements(elements) => {
                let each = size_of::<(Bytes, LiveCell)>();
                let elements = elements.iter();
                let elements = elements.map(|(path, cell)| each + path.len() + cell.value.len());
                size_of::<(ColumnId, Cell)>() + elements.sum::<usize>()
            }
        }
    }

    fn copied(&self) -> Cell {
        match self {
            Cell::Simple(cell) => Cell::Simple(cell.copied()),
            Cell::Elements(elements) => {
                let elements = elements.iter();
                let elements = elements.map(|(path, cell)| (copied(path), cell.copied()));
                Cell::Elements(elements.collect())
            }
        }
    }
}

impl LiveCell {
    fn copied(&self) -> LiveCell {
        LiveCell {
            value: copied(&self.value),
            ..*self
        }
    }
}

fn copied(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn find(cells: &[(ColumnId, Cell)], column: ColumnId) -> Option<&Cell> {
    let at = cells.binary_search_by_key(&column, |(id, _)| *id).ok()?;
    Some(&cells[at].1)
}

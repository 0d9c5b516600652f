//! Requests for reads, and the live rows that they return in the order of the disk.

#![expect(
    missing_docs,
    reason = "what is plain from the names of CQL is not said again"
)]

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use cql::token::Token;

use crate::catalog::{ColumnId, TableId};
pub use crate::reader::{RowStream, View};

#[derive(Clone, Debug)]
pub struct ReadRequest {
    pub table: TableId,
    pub partitions: Partitions,
    /// Disjoint slices of each partition in clustering order; empty for whole partitions.
    pub slices: Vec<ClusteringSlice>,
    /// Whether rows come from the last to the first. Only with [`Partitions::One`].
    pub reversed: bool,
    /// The row behind which the read begins: the last one of the page before.
    pub resume_after: Option<Position>,
    /// Whether a partition without rows is returned as one row with its static content. Has no
    /// effect unless `slices` is empty.
    pub static_only_rows: bool,
}

#[derive(Clone, Debug)]
pub enum Partitions {
    /// Serialised values of the partition key columns.
    One(Vec<Bytes>),
    /// All partitions with a token in the range, in token order.
    Tokens(Bound<Token>, Bound<Token>),
}

/// Rows between two bounds in clustering order, which is the order of the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusteringSlice {
    pub start: ClusteringBound,
    pub end: ClusteringBound,
}

/// A bound by a prefix of the clustering key. As a start, an inclusive prefix stands before the
/// first row with the prefix and an exclusive one behind the last. As an end it is the reverse.
/// `Unbounded` is the edge of the partition.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusteringBound {
    Unbounded,
    /// Serialised values of the first columns of the clustering key, one or more.
    Inclusive(Vec<Bytes>),
    Exclusive(Vec<Bytes>),
}

/// The position of a row, as opaque and stable bytes. The node puts it into paging states and may
/// give it back after a restart. Bytes that were tampered with give an error, never a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position(pub Bytes);

/// The partition that a row belongs to, shared by its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    pub token: Token,
    /// Serialised values of the partition key columns.
    pub key: Vec<Bytes>,
    /// Live cells of the static row, by column id.
    pub static_cells: Vec<(ColumnId, Cell)>,
}

/// A live row: nothing deleted or expired is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub partition: Arc<Partition>,
    /// Serialised values of the clustering columns; `None` for a partition that has only static
    /// content. Empty for a table without clustering columns.
    pub clustering: Option<Vec<Bytes>>,
    /// Live cells, by column id.
    pub cells: Vec<(ColumnId, Cell)>,
    pub position: Position,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Simple(LiveCell),
    /// A non-frozen collection: its live elements as (path, cell), in the order of their paths.
    Elements(Vec<(Bytes, LiveCell)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCell {
    pub value: Bytes,
    /// Microseconds since the epoch.
    pub timestamp: i64,
    pub expiry: Option<Expiry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The time to live that the write gave. Seconds.
    pub ttl_s: u32,
    /// The time at which the cell dies. Seconds since the epoch.
    pub at_s: i64,
}

impl Row {
    pub fn cell(&self, column: ColumnId) -> Option<&Cell> {
        find(&self.cells, column)
    }

    pub fn static_cell(&self, column: ColumnId) -> Option<&Cell> {
        find(&self.partition.static_cells, column)
    }
}

fn find(cells: &[(ColumnId, Cell)], column: ColumnId) -> Option<&Cell> {
    let at = cells.binary_search_by_key(&column, |(id, _)| *id).ok()?;
    Some(&cells[at].1)
}

//! What a read asks for and what it gets: live rows, in the order of the disk.

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
    /// Disjoint, in clustering order; empty for whole partitions.
    pub slices: Vec<ClusteringSlice>,
    /// Rows of each partition from last to first. Only with [`Partitions::One`].
    pub reversed: bool,
    /// Begin behind this row: where the last page ended.
    pub resume_after: Option<Position>,
    /// A row with static content only is returned for partitions without rows in the slices
    /// if this is set and `slices` is empty.
    pub static_only_rows: bool,
}

#[derive(Clone, Debug)]
pub enum Partitions {
    /// Serialised values of the partition key columns.
    One(Vec<Bytes>),
    /// All partitions with a token in the range, in token order.
    Tokens(Bound<Token>, Bound<Token>),
}

/// Rows between two bounds in clustering order, that is in the order of the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusteringSlice {
    pub start: ClusteringBound,
    pub end: ClusteringBound,
}

/// A bound by a prefix of the clustering key. As a start, an inclusive prefix begins before the first row with
/// the prefix and an exclusive one behind the last; as an end the reverse. `Unbounded` is the edge of the partition.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusteringBound {
    Unbounded,
    /// Serialised values of the first columns of the clustering key, one or more.
    Inclusive(Vec<Bytes>),
    Exclusive(Vec<Bytes>),
}

/// Where a row lies, opaque and stable: the node puts it into paging states, and gives it back
/// possibly after a restart. Bytes that were tampered with yield an error, never a panic.
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
    /// As given with the write. Seconds.
    pub ttl_s: u32,
    /// When the cell dies. Seconds since the epoch.
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

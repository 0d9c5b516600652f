//! Writes: changes to partitions, with their timestamps.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use schema::{ColumnId, TableId};

use crate::read::{ClusteringBound, Row};

/// Mutations that commit together or not at all.
#[derive(Clone, Debug)]
pub struct AtomicWrite {
    /// The changes, by partition. A partition may come more than once.
    pub mutations: Vec<PartitionMutation>,
    /// Checked in the same step in which the write is applied, so that no other write comes
    /// between.
    pub condition: Option<WriteCondition>,
}

/// A condition that must hold for a write to be applied: predicates on rows of one partition as
/// they are before the write, all of which must hold.
#[derive(Clone, Debug)]
pub struct WriteCondition {
    /// The table of the rows.
    pub table: TableId,
    /// Serialised values of the partition key columns.
    pub partition_key: Vec<Bytes>,
    /// The rows and their predicates. A row may come more than once.
    pub rows: Vec<RowCondition>,
    /// The columns that the predicates look at and that the outcome shows; `None` for all. The
    /// rows have no cells of other columns.
    pub columns: Option<HashSet<ColumnId>>,
}

/// A predicate of a [`WriteCondition`] on one row.
#[derive(Clone, Debug)]
pub struct RowCondition {
    /// Serialised values of all clustering columns. On a table with clustering columns an empty one
    /// means the static row, which exists if it has a live cell.
    pub clustering: Vec<Bytes>,
    /// The predicate on the row.
    pub predicate: RowPredicate,
}

/// A predicate on a row.
#[derive(Clone, Debug)]
pub enum RowPredicate {
    /// The row exists (`IF EXISTS`).
    Exists,
    /// The row does not exist (`IF NOT EXISTS`).
    NotExists,
    /// The row passes a test of its values (`IF v = 1`).
    Passes(Arc<dyn RowTest>),
}

/// A test of the values of a row.
pub trait RowTest: Debug + Send + Sync {
    /// Whether a row passes; `None` is a row that does not exist.
    fn passes(&self, row: Option<&Row>) -> bool;
}

/// How a write ended that did not fail.
#[derive(Clone, Debug)]
pub enum WriteOutcome {
    /// All mutations are committed.
    Applied,
    /// The condition did not hold, and nothing was written.
    NotApplied {
        /// The rows that the condition was checked against and that exist, in the order of the
        /// disk. If there is none of them, but the partition has static content, one row that has
        /// only that.
        standing: Vec<Row>,
    },
}

/// The changes to one partition.
#[derive(Clone, Debug)]
pub struct PartitionMutation {
    /// The table of the partition.
    pub table: TableId,
    /// Serialised values of the partition key columns.
    pub partition_key: Vec<Bytes>,
    /// The changes, merged one after the other by the rules of [`PartitionChange`].
    pub changes: Vec<PartitionChange>,
}

/// One change to a partition. Timestamps are microseconds since the epoch, and the greater one
/// wins. At equal timestamps a deletion wins over a value, and the greater value over the smaller,
/// as in Cassandra.
///
/// In a table of counters a change of a row, of its statics or of a whole row always wins: its
/// timestamp is raised above those that it must win over. Changes take effect one after the other.
#[derive(Clone, Debug)]
pub enum PartitionChange {
    /// Cells of a row.
    Row {
        /// Serialised values of all clustering columns; empty for a table without.
        clustering: Vec<Bytes>,
        /// The changes to regular columns.
        cells: Vec<CellChange>,
        /// The write timestamp of the cells and of the marker.
        timestamp: i64,
        /// Seconds to live of the cells and of the marker; `None` for ever.
        ttl_s: Option<u32>,
        /// Whether the row itself is marked as alive, so that it lives on when all its cells are
        /// null. INSERT sets the marker, UPDATE doesn't.
        marker: bool,
    },
    /// Cells of the static row.
    Static {
        /// The changes to static columns.
        cells: Vec<CellChange>,
        /// The write timestamp of the cells.
        timestamp: i64,
        /// Seconds to live of the cells; `None` for ever.
        ttl_s: Option<u32>,
    },
    /// Deletes one row.
    DeleteRow {
        /// Serialised values of all clustering columns; empty for a table without.
        clustering: Vec<Bytes>,
        /// The write timestamp of the deletion.
        timestamp: i64,
    },
    /// Deletes every row between the bounds. The start is the bound that comes first on disk, so
    /// `DESC` columns swap the bounds of the statement.
    DeleteRange {
        /// The bound that comes first on disk.
        start: ClusteringBound,
        /// The bound that comes last on disk.
        end: ClusteringBound,
        /// The write timestamp of the deletion.
        timestamp: i64,
    },
    /// Deletes the whole partition, static row included.
    DeletePartition {
        /// The write timestamp of the deletion.
        timestamp: i64,
    },
}

/// A column and its change.
#[derive(Clone, Debug)]
pub struct CellChange {
    /// The column, by its number in the table.
    pub column: ColumnId,
    /// The change of its value.
    pub change: CellOperation,
}

/// A change to one column. A non-frozen collection is stored as one cell for each element, which is
/// addressed by its *path*: the element of a set, the key of a map, a timeuuid of a list.
#[derive(Clone, Debug)]
pub enum CellOperation {
    /// Sets the whole value of a column that is one cell.
    Set(Bytes),
    /// Adds to a counter; less than nothing takes away. The sum wraps round at 64 bits. A counter
    /// that is null counts as 0.
    AddToCounter(i64),
    /// Sets a column to null, or removes all elements of a non-frozen collection.
    Delete,
    /// Gives a non-frozen collection exactly these (path, value) elements.
    ReplaceElements(Vec<(Bytes, Bytes)>),
    /// Adds or overwrites these (path, value) elements.
    PutElements(Vec<(Bytes, Bytes)>),
    /// Removes the elements with these paths.
    DeleteElements(Vec<Bytes>),
    /// Sets the list element at a position, counted from 0 in the list as it is when the write
    /// commits, and as the operations before this one in the same change leave it.
    SetListIndex {
        /// The position.
        index: u32,
        /// The serialised value of the element.
        value: Bytes,
    },
    /// Removes the list element at a position, counted as for `SetListIndex`.
    DeleteListIndex {
        /// The position.
        index: u32,
    },
    /// Removes all list elements that equal one of these values.
    RemoveListValues(Vec<Bytes>),
}

impl AtomicWrite {
    /// Whether the write does more than delete.
    pub(crate) fn adds_cells(&self) -> bool {
        let mut changes = self.mutations.iter().flat_map(|of| &of.changes);
        changes.any(|change| {
            matches!(
                change,
                PartitionChange::Row { .. } | PartitionChange::Static { .. }
            )
        })
    }

    /// Bytes of the keys and values of the write.
    pub(crate) fn size(&self) -> usize {
        self.mutations.iter().map(PartitionMutation::size).sum()
    }
}

impl PartitionMutation {
    /// Bytes of the keys and values.
    pub fn size(&self) -> usize {
        total(&self.partition_key)
            + self
                .changes
                .iter()
                .map(PartitionChange::size)
                .sum::<usize>()
    }
}

impl PartitionChange {
    /// The timestamp of the change.
    pub(crate) fn timestamp(&self) -> i64 {
        match self {
            PartitionChange::Row { timestamp, .. }
            | PartitionChange::Static { timestamp, .. }
            | PartitionChange::DeleteRow { timestamp, .. }
            | PartitionChange::DeleteRange { timestamp, .. }
            | PartitionChange::DeletePartition { timestamp } => *timestamp,
        }
    }

    fn size(&self) -> usize {
        let bound = |bound: &ClusteringBound| match bound {
            ClusteringBound::Unbounded => 0,
            ClusteringBound::Inclusive(values) | ClusteringBound::Exclusive(values) => {
                total(values)
            }
        };
        match self {
            PartitionChange::Row {
                clustering, cells, ..
            } => total(clustering) + cells.iter().map(CellChange::size).sum::<usize>(),
            PartitionChange::Static { cells, .. } => cells.iter().map(CellChange::size).sum(),
            PartitionChange::DeleteRow { clustering, .. } => total(clustering),
            PartitionChange::DeleteRange { start, end, .. } => bound(start) + bound(end),
            PartitionChange::DeletePartition { .. } => 0,
        }
    }
}

impl CellChange {
    fn size(&self) -> usize {
        let pairs = |pairs: &[(Bytes, Bytes)]| {
            pairs
                .iter()
                .map(|(path, value)| path.len() + value.len())
                .sum()
        };
        match &self.change {
            CellOperation::Set(value) | CellOperation::SetListIndex { value, .. } => value.len(),
            CellOperation::ReplaceElements(elements) | CellOperation::PutElements(elements) => {
                pairs(elements)
            }
            CellOperation::DeleteElements(values) | CellOperation::RemoveListValues(values) => {
                total(values)
            }
            CellOperation::AddToCounter(_) => size_of::<i64>(),
            CellOperation::Delete | CellOperation::DeleteListIndex { .. } => 0,
        }
    }
}

fn total(values: &[Bytes]) -> usize {
    values.iter().map(Bytes::len).sum()
}

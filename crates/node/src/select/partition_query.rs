//! The question of a query: what it reads of each of its partitions.

use schema::TableId;
use storage::read::{ClusteringSlice, PartitionSelection, ReadRequest, RowPosition};

/// The part of a read that is the same for all partitions of a query.
#[derive(Clone, Debug)]
pub(super) struct PartitionQuery {
    /// The table that is read.
    pub table: TableId,
    /// The slices to read of each partition; empty for all rows.
    pub slices: Vec<ClusteringSlice>,
    /// Whether the rows of a partition come from the last to the first.
    pub reversed: bool,
    /// Whether a partition without rows is returned as one row with its static content.
    pub static_only_rows: bool,
    /// Whether the slices are whole clustering keys. Then a partition has no more rows than there
    /// are slices, or one row in a table without clustering columns.
    pub is_of_whole_keys: bool,
}

impl PartitionQuery {
    /// The request for the rows of some partitions, after a row.
    pub(super) fn ask(
        &self,
        partitions: PartitionSelection,
        resume_after: Option<RowPosition>,
    ) -> ReadRequest {
        ReadRequest {
            table: self.table,
            partitions,
            slices: self.slices.clone(),
            reversed: self.reversed,
            resume_after,
            static_only_rows: self.static_only_rows,
        }
    }

    /// The most rows that can be read of a partition.
    pub(super) fn rows_max(&self) -> usize {
        if self.is_of_whole_keys {
            self.slices.len().max(1)
        } else {
            usize::MAX
        }
    }
}

//! What a write will do, decided as far as it can be before the values are known.

use std::sync::Arc;

use storage::catalog::{Table, TableId};

use super::operation::Operation;
use super::target::Target;
use super::using::UsingPlan;
use crate::query::ColumnSpec;

/// A write resolved against the catalog.
#[derive(Debug)]
pub struct Plan {
    pub(super) work: Work,
    pub(super) variables: Vec<ColumnSpec>,
    pub(super) partition_key_variables: Vec<u16>,
}

/// The work of a [`Plan`].
#[derive(Debug)]
pub(super) enum Work {
    Write(Box<WritePlan>),
    Batch(Box<BatchPlan>),
    Truncate(Arc<Table>),
}

/// One INSERT, UPDATE or DELETE.
#[derive(Debug)]
pub(super) struct WritePlan {
    pub table: Arc<Table>,
    pub kind: WriteKind,
    pub using: UsingPlan,
    /// The partitions and rows that are written.
    pub target: Target,
    /// What is done to columns of each row.
    pub row_operations: Vec<Operation>,
    /// What is done to static columns of each partition.
    pub static_operations: Vec<Operation>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
}

/// What a write does to the rows of its target, beside its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    Insert {
        /// Only static columns are given: there is no row to mark as alive.
        static_only: bool,
    },
    Update,
    /// DELETE of columns.
    DeleteCells,
    /// DELETE of rows, ranges and partitions.
    DeleteRows,
}

impl WriteKind {
    /// As messages name it.
    pub fn name(self) -> &'static str {
        match self {
            WriteKind::Insert { .. } => "INSERT",
            WriteKind::Update => "UPDATE",
            WriteKind::DeleteCells | WriteKind::DeleteRows => "DELETE",
        }
    }
}

/// `BEGIN BATCH ... APPLY BATCH`.
#[derive(Debug)]
pub(super) struct BatchPlan {
    /// What the batch says for all its statements; never a TTL.
    pub using: UsingPlan,
    pub writes: Vec<WritePlan>,
}

impl Plan {
    /// One spec a bind marker, in their order.
    pub fn variables(&self) -> &[ColumnSpec] {
        &self.variables
    }

    /// The table that each statement writes to.
    pub fn tables(&self) -> Vec<TableId> {
        match &self.work {
            Work::Write(write) => vec![write.table.id],
            Work::Batch(batch) => batch.writes.iter().map(|write| write.table.id).collect(),
            Work::Truncate(table) => vec![table.id],
        }
    }

    /// The positions among the markers that make up the partition key, in its order; empty if
    /// they don't make it up alone.
    pub fn partition_key_variables(&self) -> &[u16] {
        &self.partition_key_variables
    }
}

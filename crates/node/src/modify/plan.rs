//! The plan of a write: all that is decided before the values are known.

use std::sync::Arc;

use cql::ast::TextBatchKind;
use query::bind::StatementTimeout;
use schema::{Table, TableId};

use super::condition::PreparedCondition;
use super::json::JsonInsert;
use super::operation::ColumnOperation;
use super::target::WriteTarget;
use super::using::UsingPlan;
use crate::statement::ColumnSpec;

/// A write resolved against the catalog.
#[derive(Debug)]
pub struct ModifyPlan {
    /// The kind of statement, with its plan.
    pub(super) work: DmlPlan,
    /// The spec of each bind marker, in the order of the markers.
    pub(super) variables: Vec<ColumnSpec>,
    /// The indexes of the bind markers that give the partition key, in the order of the key. Empty
    /// if a key column has another value than a single marker.
    pub(super) partition_key_variables: Vec<u16>,
}

/// The work of a [`ModifyPlan`].
#[derive(Debug)]
pub(super) enum DmlPlan {
    /// An INSERT, UPDATE or DELETE.
    Write(Box<MutationPlan>),
    /// `BEGIN BATCH ... APPLY BATCH`.
    Batch(Box<BatchPlan>),
    /// A TRUNCATE.
    Truncate(TruncatePlan),
}

/// The plan of a TRUNCATE.
#[derive(Debug)]
pub(super) struct TruncatePlan {
    /// The table whose rows are removed.
    pub table: Arc<Table>,
    /// The USING clause.
    pub timeout: Option<StatementTimeout>,
}

/// The plan of one INSERT, UPDATE or DELETE.
#[derive(Debug)]
pub(super) struct MutationPlan {
    /// The table that is written to.
    pub table: Arc<Table>,
    /// The kind of statement.
    pub kind: WriteKind,
    /// The USING clause.
    pub using: UsingPlan,
    /// The partitions and rows that are written.
    pub target: WriteTarget,
    /// The operations on columns of each row.
    pub row_operations: Vec<ColumnOperation>,
    /// The operations on static columns of each partition.
    pub static_operations: Vec<ColumnOperation>,
    /// The IF clause.
    pub condition: Option<PreparedCondition>,
    /// The JSON object that the target and the operations come from at execution.
    pub json: Option<JsonInsert>,
}

impl MutationPlan {
    /// The plan of an INSERT whose columns are not known yet.
    pub fn empty_insert(table: Arc<Table>) -> MutationPlan {
        MutationPlan {
            table,
            kind: WriteKind::Insert { static_only: false },
            using: UsingPlan::default(),
            target: WriteTarget::default(),
            row_operations: Vec::new(),
            static_operations: Vec::new(),
            condition: None,
            json: None,
        }
    }
}

/// The kind of a write: what it does to the rows of its target, apart from its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    /// INSERT, which marks each row as alive.
    Insert {
        /// Whether only static columns are given, so that there is no row to mark as alive.
        static_only: bool,
    },
    /// UPDATE, which does nothing else to rows.
    Update,
    /// DELETE of columns, which does nothing else to rows.
    DeleteCells,
    /// DELETE of whole rows, ranges or partitions.
    DeleteRows,
}

impl WriteKind {
    /// The name of the statement, for messages.
    pub fn name(self) -> &'static str {
        match self {
            WriteKind::Insert { .. } => "INSERT",
            WriteKind::Update => "UPDATE",
            WriteKind::DeleteCells | WriteKind::DeleteRows => "DELETE",
        }
    }
}

/// A table that a statement writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenTable<'a> {
    /// The table.
    pub table: &'a Table,
    /// Whether the write has a condition, whose answer may show rows.
    pub is_conditional: bool,
}

/// The plan of `BEGIN BATCH ... APPLY BATCH`.
#[derive(Debug)]
pub(super) struct BatchPlan {
    /// The kind of the batch.
    pub kind: TextBatchKind,
    /// The USING clause of the batch, for all its statements. It has no TTL.
    pub using: UsingPlan,
    /// The statements of the batch, in their order.
    pub writes: Vec<MutationPlan>,
}

impl ModifyPlan {
    /// The spec of each bind marker, in the order of the markers.
    pub fn variables(&self) -> &[ColumnSpec] {
        &self.variables
    }

    /// The tables that are written, in the order of the statements.
    pub(crate) fn written_tables(&self) -> impl Iterator<Item = WrittenTable<'_>> {
        let (writes, truncated) = match &self.work {
            DmlPlan::Write(write) => (std::slice::from_ref(&**write), None),
            DmlPlan::Batch(batch) => (&batch.writes[..], None),
            DmlPlan::Truncate(truncate) => (&[][..], Some(&truncate.table)),
        };
        let writes = writes.iter().map(|write| WrittenTable {
            table: &write.table,
            is_conditional: write.condition.is_some(),
        });
        writes.chain(truncated.map(|table| WrittenTable {
            table,
            is_conditional: false,
        }))
    }

    /// The table of each statement, in the order of the statements.
    pub fn tables(&self) -> Vec<TableId> {
        match &self.work {
            DmlPlan::Write(write) => vec![write.table.id],
            DmlPlan::Batch(batch) => batch.writes.iter().map(|write| write.table.id).collect(),
            DmlPlan::Truncate(truncate) => vec![truncate.table.id],
        }
    }

    /// The indexes of the bind markers that give the partition key, in the order of the key. Empty
    /// if a key column has another value than a single marker.
    pub fn partition_key_variables(&self) -> &[u16] {
        &self.partition_key_variables
    }
}

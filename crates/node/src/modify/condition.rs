//! The condition of a write: its IF clause.

use bytes::Bytes;
use cql::ast;
use cql::error::CqlError;
use storage::mutation::{Condition, PartitionMutation, RowPredicate};

/// An IF clause, resolved against the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreparedCondition {
    /// `IF NOT EXISTS`.
    NotExists,
}

impl PreparedCondition {
    /// Prepares the IF clause of an INSERT.
    ///
    /// # Errors
    /// Conditions other than `IF NOT EXISTS`.
    pub fn of_insert(
        condition: Option<&ast::Condition>,
    ) -> Result<Option<PreparedCondition>, CqlError> {
        match condition {
            None => Ok(None),
            Some(ast::Condition::NotExists) => Ok(Some(PreparedCondition::NotExists)),
            Some(ast::Condition::Exists | ast::Condition::Relations(_)) => Err(no_conditions()),
        }
    }

    /// Makes the condition on the row with this clustering key, in the partition of the mutation.
    pub fn on_row(self, mutation: &PartitionMutation, clustering: Vec<Bytes>) -> Condition {
        let predicate = match self {
            PreparedCondition::NotExists => RowPredicate::NotExists,
        };
        Condition {
            table: mutation.table,
            partition_key: mutation.partition_key.clone(),
            clustering,
            predicates: vec![predicate],
        }
    }
}

/// The error for a condition other than that of `INSERT ... IF NOT EXISTS`.
pub(super) fn no_conditions() -> CqlError {
    CqlError::invalid("Conditional updates are not supported yet, but for INSERT ... IF NOT EXISTS")
}

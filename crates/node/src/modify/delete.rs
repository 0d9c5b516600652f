//! Preparation of DELETE.

use std::sync::Arc;

use cql::ast::Delete;
use cql::error::CqlError;
use query::bind::PrepareContext;
use schema::{ColumnKind, Table};

use super::condition::PreparedCondition;
use super::operation::ColumnOperation;
use super::plan::{MutationPlan, WriteKind};
use super::restrict::prepare_target;
use super::update::check_rows;
use super::using::{UsingPlan, check_timestamp};

/// Prepares a DELETE from this table.
///
/// # Errors
/// Unknown columns, wrong types, keys that are not named far enough, and clauses that are not
/// supported.
pub(super) fn prepare(
    table: Arc<Table>,
    delete: &Delete,
    ctx: &mut PrepareContext,
) -> Result<MutationPlan, CqlError> {
    if delete.using.ttl.is_some() {
        return Err(CqlError::invalid(
            "Invalid USING TTL in a DELETE statement: a deletion does not expire",
        ));
    }
    let kind = if delete.targets.is_empty() {
        WriteKind::DeleteRows
    } else {
        WriteKind::DeleteCells
    };
    let mut row_operations = Vec::new();
    let mut static_operations = Vec::new();
    // Terms are prepared in the order of the text: targets, USING, WHERE.
    for target in &delete.targets {
        let operation = ColumnOperation::delete(&table, target, ctx)?;
        let is_static = table
            .column_by_id(operation.column)
            .is_some_and(|column| column.kind == ColumnKind::Static);
        if is_static {
            static_operations.push(operation);
        } else {
            row_operations.push(operation);
        }
    }
    let using = UsingPlan::prepare(&delete.using, ctx)?;
    let target = prepare_target(&table, kind, &delete.relations, ctx)?;
    let condition = PreparedCondition::prepare(&table, delete.condition.as_ref(), ctx)?;
    check_timestamp(condition.as_ref(), &delete.using)?;
    let is_on_row = condition
        .as_ref()
        .is_some_and(PreparedCondition::is_on_regular_columns);
    if kind == WriteKind::DeleteCells {
        let touches_rows = is_on_row || !row_operations.is_empty();
        check_rows(&table, kind, &target, touches_rows)?;
    } else if condition.is_some() && !target.is_of_whole_keys(&table) {
        return Err(CqlError::invalid(
            "DELETE statements must restrict all PRIMARY KEY columns with equality relations in \
             order to delete non static columns",
        ));
    }
    Ok(MutationPlan {
        table,
        kind,
        using,
        target,
        row_operations,
        static_operations,
        condition,
        json: None,
    })
}

//! Preparation of DELETE.

use std::sync::Arc;

use cql::ast::Delete;
use cql::error::CqlError;
use query::bind::PrepareContext;
use schema::{ColumnKind, Table};

use super::condition::no_conditions;
use super::operation::Operation;
use super::plan::{WriteKind, WritePlan};
use super::restrict::prepare_target;
use super::update::check_rows;
use super::using::UsingPlan;

/// Prepares a DELETE from this table.
///
/// # Errors
/// Unknown columns, wrong types, keys that are not named far enough, and clauses that are not
/// supported.
pub(super) fn prepare(
    table: Arc<Table>,
    delete: &Delete,
    ctx: &mut PrepareContext,
) -> Result<WritePlan, CqlError> {
    if delete.condition.is_some() {
        return Err(no_conditions());
    }
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
        let operation = Operation::delete(&table, target, ctx)?;
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
    if kind == WriteKind::DeleteCells {
        check_rows(&table, kind, &target, !row_operations.is_empty())?;
    }
    Ok(WritePlan {
        table,
        kind,
        using,
        target,
        row_operations,
        static_operations,
        condition: None,
        json: None,
    })
}

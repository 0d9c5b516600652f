//! Preparation of UPDATE.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cql::ast::{Assignment, Update};
use cql::error::CqlError;
use query::bind::PrepareContext;
use query::resolve;
use schema::{Column, ColumnKind, Table};

use super::condition::PreparedCondition;
use super::operation::{ColumnOperation, is_key};
use super::plan::{MutationPlan, WriteKind};
use super::restrict::prepare_target;
use super::target::WriteTarget;
use super::using::{UsingPlan, check_timestamp};

/// Prepares an UPDATE of this table.
///
/// # Errors
/// Unknown columns, wrong types, keys that are not named in full, and clauses that are not
/// supported.
pub(super) fn prepare(
    table: Arc<Table>,
    update: &Update,
    ctx: &mut PrepareContext,
) -> Result<MutationPlan, CqlError> {
    check_conflicts(&update.assignments)?;
    let using = UsingPlan::prepare(&update.using, ctx)?;
    let mut row_operations: Vec<ColumnOperation> = Vec::new();
    let mut static_operations: Vec<ColumnOperation> = Vec::new();
    for assignment in &update.assignments {
        let column = assigned_column(&table, assignment)?;
        let operation = ColumnOperation::assign(column, assignment, ctx)?;
        let operations = if column.kind == ColumnKind::Static {
            &mut static_operations
        } else {
            &mut row_operations
        };
        operations.push(operation);
    }
    let target = prepare_target(&table, WriteKind::Update, &update.relations, ctx)?;
    let condition = PreparedCondition::prepare(&table, update.condition.as_ref(), ctx)?;
    check_timestamp(condition.as_ref(), &update.using)?;
    let is_on_row = condition
        .as_ref()
        .is_some_and(PreparedCondition::is_on_regular_columns);
    let touches_rows = is_on_row || !row_operations.is_empty();
    check_rows(&table, WriteKind::Update, &target, touches_rows)?;
    Ok(MutationPlan {
        table,
        kind: WriteKind::Update,
        using,
        target,
        row_operations,
        static_operations,
        condition,
        json: None,
    })
}

/// Checks that a column has several assignments only if each changes a part of it, and no two the
/// same field. It is a mistake of the text, whatever columns the table has.
fn check_conflicts(assignments: &[Assignment]) -> Result<(), CqlError> {
    let mut assigned = HashMap::new();
    let mut fields = HashSet::new();
    for assignment in assignments {
        let column = assignment.column();
        let is_whole = matches!(assignment, Assignment::Set { .. });
        let earlier_is_whole = assigned.insert(column, is_whole);
        let is_field_again = match assignment {
            Assignment::SetField { field, .. } => !fields.insert((column, field.as_str())),
            _ => false,
        };
        if is_field_again || earlier_is_whole.is_some_and(|earlier| earlier || is_whole) {
            return Err(CqlError::syntax(format!(
                "Multiple incompatible setting of column {column}"
            )));
        }
    }
    Ok(())
}

fn assigned_column<'a>(table: &'a Table, assignment: &Assignment) -> Result<&'a Column, CqlError> {
    let name = assignment.column();
    let column = resolve::column(table, name)?;
    if is_key(column) {
        return Err(CqlError::invalid(format!(
            "PRIMARY KEY part {name} found in SET part"
        )));
    }
    Ok(column)
}

/// Checks that a statement on columns names whole rows if it changes rows, and only partitions if
/// it changes only static columns.
pub(super) fn check_rows(
    table: &Table,
    kind: WriteKind,
    target: &WriteTarget,
    touches_rows: bool,
) -> Result<(), CqlError> {
    let clustering = table.clustering_key();
    let restricted: usize = target
        .clustering
        .iter()
        .map(|part| part.columns.len())
        .sum();
    if touches_rows && restricted < clustering.len() {
        if kind == WriteKind::DeleteCells {
            return Err(CqlError::invalid(
                "Range deletions are not supported for specific columns",
            ));
        }
        let missing: Vec<&str> = clustering[restricted..]
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        return Err(CqlError::invalid(format!(
            "Some clustering keys are missing: {}",
            missing.join(", ")
        )));
    }
    if !touches_rows && restricted > 0 {
        return Err(CqlError::invalid(format!(
            "Invalid restrictions on clustering columns since the {} statement modifies only \
             static columns",
            kind.name()
        )));
    }
    Ok(())
}

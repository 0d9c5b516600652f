//! Preparation of INSERT.

use std::sync::Arc;

use cql::ast::{Insert, InsertValues, Term};
use cql::error::CqlError;
use query::bind::{PrepareContext, prepare_term};
use query::resolve;
use schema::{Column, ColumnKind, Table};

use super::condition::PreparedCondition;
use super::json::JsonInsert;
use super::operation::{ColumnOperation, is_key};
use super::plan::{MutationPlan, WriteKind};
use super::target::{KeyPart, WriteTarget};
use super::using::{UsingPlan, check_timestamp};

/// Prepares an INSERT into this table.
///
/// # Errors
/// Unknown columns, wrong types, missing key columns, and clauses that are not supported.
pub(super) fn prepare(
    table: Arc<Table>,
    insert: &Insert,
    ctx: &mut PrepareContext,
) -> Result<MutationPlan, CqlError> {
    let condition = PreparedCondition::prepare(&table, insert.condition.as_ref(), ctx)?;
    check_timestamp(condition.as_ref(), &insert.using)?;
    let (names, terms) = match &insert.values {
        InsertValues::Columns { columns, terms } => (columns, terms),
        InsertValues::Json {
            json,
            default_unset,
        } => {
            let json = JsonInsert::prepare(&table, json, *default_unset, ctx)?;
            return Ok(MutationPlan {
                using: UsingPlan::prepare(&insert.using, ctx)?,
                condition,
                json: Some(json),
                ..MutationPlan::empty_insert(table)
            });
        }
    };
    let given = pair(&table, names, terms)?;

    let column_kinds = |matching: fn(&Column) -> bool| given.iter().any(|(c, _)| matching(c));
    let static_only = !table.clustering_key().is_empty()
        && column_kinds(|column| column.kind == ColumnKind::Static)
        && !column_kinds(|column| {
            matches!(
                column.kind,
                ColumnKind::Regular | ColumnKind::Clustering { .. }
            )
        });

    let partition = key_parts(&table.partition_key(), &given, ctx, |missing| {
        format!("Some partition key parts are missing: {missing}")
    })?;
    let clustering = if static_only {
        Vec::new()
    } else {
        key_parts(&table.clustering_key(), &given, ctx, |missing| {
            format!("Some clustering keys are missing: {missing}")
        })?
    };

    let mut row_operations = Vec::new();
    let mut static_operations = Vec::new();
    for (column, term) in &given {
        if is_key(column) {
            continue;
        }
        let operation = ColumnOperation::set(column, term, ctx)?;
        if column.kind == ColumnKind::Static {
            static_operations.push(operation);
        } else {
            row_operations.push(operation);
        }
    }
    let using = UsingPlan::prepare(&insert.using, ctx)?;
    drop(given);
    Ok(MutationPlan {
        table,
        kind: WriteKind::Insert { static_only },
        using,
        target: WriteTarget {
            partition,
            clustering,
            slice: None,
        },
        row_operations,
        static_operations,
        condition,
        json: None,
    })
}

/// The named columns, each with the term given for it.
fn pair<'a>(
    table: &'a Table,
    names: &[String],
    terms: &'a [Term],
) -> Result<Vec<(&'a Column, &'a Term)>, CqlError> {
    if names.is_empty() {
        return Err(CqlError::invalid("No columns provided to INSERT"));
    }
    if names.len() != terms.len() {
        return Err(CqlError::invalid("Unmatched column names/values"));
    }
    let mut given: Vec<(&Column, &Term)> = Vec::with_capacity(names.len());
    for (name, term) in names.iter().zip(terms) {
        let column = resolve::column(table, name)?;
        if given.iter().any(|(other, _)| other.id == column.id) {
            return Err(CqlError::invalid(format!(
                "The column names contains duplicates: {name}"
            )));
        }
        given.push((column, term));
    }
    Ok(given)
}

/// The terms of the columns of a key. `missing_text` makes the error text from the names of columns
/// without a term.
fn key_parts(
    key: &[&Column],
    given: &[(&Column, &Term)],
    ctx: &mut PrepareContext,
    missing_text: impl Fn(String) -> String,
) -> Result<Vec<KeyPart>, CqlError> {
    let mut parts = Vec::new();
    let mut missing = Vec::new();
    for column in key {
        match given.iter().find(|(other, _)| other.id == column.id) {
            Some((_, term)) => {
                let term = prepare_term(term, &column.cql_type, &column.name, ctx)?;
                parts.push(KeyPart::one(&column.name, term));
            }
            None => missing.push(column.name.as_str()),
        }
    }
    if !missing.is_empty() {
        return Err(CqlError::invalid(missing_text(missing.join(", "))));
    }
    Ok(parts)
}

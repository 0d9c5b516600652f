//! Relations on the token of the partition.

use cql::ast;
use cql::error::CqlError;
use value::CqlType;

use super::RelationKind;
use super::single_term::single_term;
use crate::bind::{PrepareContext, prepare_term};
use crate::resolve::TableColumns;

/// Prepares `token(a, b) > ...`.
///
/// # Errors
/// Columns that are not the partition key in its order, IN, and terms that don't fit.
pub(super) fn prepare(
    table: TableColumns<'_>,
    names: &[String],
    relation: &ast::Relation,
    ctx: &mut PrepareContext,
) -> Result<RelationKind, CqlError> {
    for name in names {
        table.column(name)?;
    }
    let key = table.partition_key();
    if names.len() != key.len() || !key.iter().all(|column| names.contains(&column.name)) {
        return Err(CqlError::invalid(
            "The token() function must be applied to all partition key components or none of them",
        ));
    }
    if !key
        .iter()
        .zip(names)
        .all(|(column, name)| column.name == *name)
    {
        let order: Vec<&str> = key.iter().map(|column| column.name.as_str()).collect();
        return Err(CqlError::invalid(format!(
            "The token function arguments must be in the partition key order: {}",
            order.join(", ")
        )));
    }
    let Some(comparison) = relation.operator.comparison() else {
        return Err(CqlError::syntax(format!(
            "{} cannot be used with the token function",
            relation.operator.as_str()
        )));
    };
    let term = single_term(relation, "token()")?.without_parentheses();
    let value = prepare_term(term, &CqlType::Bigint, "partition key token", ctx)?;
    Ok(RelationKind::Token { comparison, value })
}

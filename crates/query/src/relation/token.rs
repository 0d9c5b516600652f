//! Relations on the token of the partition.

use cql::ast::{self, Term};
use cql::error::CqlError;
use schema::Column;
use value::CqlType;

use super::single_term::single_term;
use super::{RelationKind, TokenTerm};
use crate::bind::{PrepareContext, PreparedTerm, prepare_term};
use crate::resolve::Columns;

/// Prepares `token(a, b) > ...`.
///
/// # Errors
/// Columns that are not the partition key in its order, IN, and terms that don't fit.
pub(super) fn prepare(
    table: Columns<'_>,
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
        return Err(CqlError::invalid(format!(
            "{} cannot be used with the token function",
            relation.operator.as_str()
        )));
    };
    let value = match single_term(relation, "token()")?.without_parentheses() {
        Term::Function(call) if call.name == "token" => {
            TokenTerm::Of(token_arguments(&key, &call.arguments, ctx)?)
        }
        term => TokenTerm::Value(prepare_term(
            term,
            &CqlType::Bigint,
            "partition key token",
            ctx,
        )?),
    };
    Ok(RelationKind::Token { comparison, value })
}

/// Prepares the arguments of `token(...)`, which are values of the partition key's columns.
fn token_arguments(
    key: &[&Column],
    arguments: &[Term],
    ctx: &mut PrepareContext,
) -> Result<Vec<PreparedTerm>, CqlError> {
    if arguments.len() != key.len() {
        return Err(CqlError::invalid(format!(
            "Invalid number of arguments in call to function system.token: {} required but {} provided",
            key.len(),
            arguments.len()
        )));
    }
    arguments
        .iter()
        .zip(key)
        .enumerate()
        .map(|(index, (term, column))| {
            let name = format!("arg{index}(system.token)");
            prepare_term(term, &column.cql_type, &name, ctx)
        })
        .collect()
}

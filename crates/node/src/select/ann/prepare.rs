//! Preparation of an ANN query: resolves the parsed query to its plan.

use std::sync::Arc;

use cql::ast;
use cql::error::CqlError;
use index::Candidates;
use query::ordering::ordering;
use query::{bounds, clauses};
use schema::{Column, Index, Table};
use value::timeuuid;

use super::AnnPlan;
use crate::bind::{PrepareContext, natural_type, prepare_term};
use crate::select::limit;
use crate::select::place::Place;
use crate::select::projection::Projection;

/// Resolves an ANN query.
///
/// # Errors
/// Clauses that such a query can't have, in the words of ScyllaDB, and a column without a vector
/// index.
pub(in crate::select) fn prepare(
    table: &Table,
    select: &ast::Select,
    projection: &Projection,
    ctx: &mut PrepareContext,
) -> Result<AnnPlan, CqlError> {
    let ordering = ordering(&select.order_by)?;
    let column = table
        .column(ordering.column)
        .ok_or_else(|| clauses::unknown_column(ordering.column))?;
    let dimensions = clauses::float_vector_dimensions(&column.name, &column.cql_type)?;
    let index = newest_index(table, column).ok_or_else(|| {
        CqlError::invalid(format!(
            "ANN ordering by vector requires the column to be indexed using 'vector_index', but column {} is not",
            column.name
        ))
    })?;
    clauses::check(select, &column.name, !projection.aggregates.is_empty())?;
    let natural = natural_type(ordering.vector);
    clauses::check_dimensions(ordering.vector, natural.as_ref(), dimensions)?;
    let vector = prepare_term(ordering.vector, &column.cql_type, &column.name, ctx)?;
    let limit = prepared_limit(select, ctx)?;
    let key_columns: Vec<Column> = table
        .partition_key()
        .into_iter()
        .chain(table.clustering_key())
        .cloned()
        .collect();
    Ok(AnnPlan {
        candidates: Candidates::of(|name| index.options.get(name).map(String::as_str)),
        index: index.clone(),
        column: column.name.clone(),
        place: Place::of(column),
        dimensions,
        vector,
        limit,
        partition_columns: table.partition_key().len(),
        key_columns,
    })
}

/// The newest index of a column. Several indexes of one column serve the same queries, and the
/// newest was made to replace the others.
fn newest_index<'t>(table: &'t Table, column: &Column) -> Option<&'t Arc<Index>> {
    table
        .indexes
        .values()
        .filter(|index| index.column == column.name)
        .max_by_key(|index| (timeuuid::unix_micros(&index.version), index.version))
}

fn prepared_limit(
    select: &ast::Select,
    ctx: &mut PrepareContext,
) -> Result<crate::bind::PreparedTerm, CqlError> {
    limit::prepare(select.limit.as_ref(), limit::LIMIT, ctx)?.ok_or_else(bounds::no_limit)
}

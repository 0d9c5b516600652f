//! What an ANN query must and must not say.

use std::sync::Arc;

use cql::ast::{self, FunctionCall, Operator, Ordering, Selector, Subject, Term};
use cql::error::CqlError;
use cql::types::CqlType;
use cql::value::timeuuid;
use storage::catalog::{Column, Index, Table};

use super::AnnPlan;
use crate::bind::{PrepareContext, natural_type, prepare_term};
use crate::functions::Similarity;
use crate::select::limit;
use crate::select::place::Place;
use crate::select::projection::Projection;

/// An ordering by similarity, whichever way it was written.
struct AnnOrdering<'a> {
    column: &'a str,
    vector: &'a Term,
    descending: bool,
}

/// Whether the ordering is by similarity.
///
/// # Errors
/// Orderings by functions that are no similarity, and several orderings beside one.
pub(in crate::select) fn is_ann(order_by: &[Ordering]) -> Result<bool, CqlError> {
    let (mut similarities, mut has_bm25, mut others) = (0, false, 0);
    for ordering in order_by {
        match ordering {
            Ordering::Column { .. } => others += 1,
            Ordering::Ann { .. } => similarities += 1,
            Ordering::Function { function, .. } => match function.name.as_str() {
                "ann" => similarities += 1,
                "bm25" => {
                    similarities += 1;
                    has_bm25 = true;
                }
                _ => {
                    return Err(CqlError::invalid(
                        "Only ANN() and BM25() are supported as scoring functions in ORDER BY",
                    ));
                }
            },
        }
    }
    let fault = if similarities > 1 && has_bm25 {
        "BM25 and ANN cannot be combined in the same query"
    } else if similarities > 1 {
        "Cannot specify more than one similarity ordering"
    } else if similarities == 1 && others > 0 {
        "ANN ordering does not support any other ordering"
    } else if has_bm25 {
        "BM25 ordering is not supported by Annulus yet"
    } else {
        return Ok(similarities == 1);
    };
    Err(CqlError::invalid(fault))
}

/// Settles an ANN query.
///
/// # Errors
/// Everything that such a query can't ask for, in the words of ScyllaDB.
pub(in crate::select) fn prepare(
    table: &Table,
    select: &ast::Select,
    projection: &Projection,
    ctx: &mut PrepareContext,
) -> Result<AnnPlan, CqlError> {
    let ordering = ordering(&select.order_by)?;
    if ordering.descending {
        return Err(CqlError::invalid(
            "Descending ANN ordering is not supported",
        ));
    }
    let column = table
        .column(ordering.column)
        .ok_or_else(|| CqlError::invalid(format!("Unrecognized name {}", ordering.column)))?;
    let dimensions = column.cql_type.float_vector_dimensions().ok_or_else(|| {
        CqlError::invalid(format!(
            "ANN ordering requires a float vector argument, but column {} is of type {}",
            column.name, column.cql_type
        ))
    })?;
    let index = newest_index(table, column).ok_or_else(|| {
        CqlError::invalid(format!(
            "ANN ordering by vector requires the column to be indexed using 'vector_index', but column {} is not",
            column.name
        ))
    })?;
    check_clauses(select, projection)?;
    refuse_filters(select, column)?;
    check_dimensions(ordering.vector, dimensions)?;
    let vector = prepare_term(ordering.vector, &column.cql_type, &column.name, ctx)?;
    let limit = prepared_limit(select, ctx)?;
    let key_columns: Vec<Column> = table
        .partition_key()
        .into_iter()
        .chain(table.clustering_key())
        .cloned()
        .collect();
    Ok(AnnPlan {
        oversampling: oversampling(index),
        rescoring: rescoring(index),
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

fn ordering(order_by: &[Ordering]) -> Result<AnnOrdering<'_>, CqlError> {
    match order_by {
        [
            Ordering::Ann {
                column,
                vector,
                descending,
            },
        ] => Ok(AnnOrdering {
            column,
            vector,
            descending: *descending,
        }),
        [
            Ordering::Function {
                function,
                descending,
            },
        ] => {
            let (column, vector) = function_arguments(function)?;
            Ok(AnnOrdering {
                column,
                vector,
                descending: *descending,
            })
        }
        _ => Err(CqlError::invalid(
            "Cannot specify more than one similarity ordering",
        )),
    }
}

fn function_arguments(call: &FunctionCall<Selector>) -> Result<(&str, &Term), CqlError> {
    match call.arguments.as_slice() {
        [Selector::Column(column), Selector::Term(vector)] => Ok((column, vector)),
        [_, _] => Err(CqlError::invalid(
            "ANN() in ORDER BY takes a column and a vector, in this order",
        )),
        arguments => Err(CqlError::invalid(format!(
            "Invalid number of arguments in call to function ann: 2 required but {} provided",
            arguments.len()
        ))),
    }
}

/// Indexes of one column stand in for each other; the newest was made to replace the others.
fn newest_index<'t>(table: &'t Table, column: &Column) -> Option<&'t Arc<Index>> {
    table
        .indexes
        .values()
        .filter(|index| index.column == column.name)
        .max_by_key(|index| (timeuuid::unix_micros(&index.version), index.version))
}

fn check_clauses(select: &ast::Select, projection: &Projection) -> Result<(), CqlError> {
    let fault = if select.per_partition_limit.is_some() {
        "Vector ANN queries do not support per-partition limits"
    } else if !projection.aggregates.is_empty() || !select.group_by.is_empty() {
        "Vector ANN queries cannot be run with aggregation"
    } else if select.distinct {
        "Vector ANN queries do not support DISTINCT"
    } else {
        return Ok(());
    };
    Err(CqlError::invalid(fault))
}

/// Filters in the index are to come; until then each gets the error that tells why.
fn refuse_filters(select: &ast::Select, vector: &Column) -> Result<(), CqlError> {
    let Some(relation) = select.relations.first() else {
        return Ok(());
    };
    let on_vector = select
        .relations
        .iter()
        .any(|relation| matches!(&relation.subject, Subject::Column(name) if *name == vector.name));
    if on_vector {
        return Err(CqlError::invalid("Vector indexes only support ANN queries"));
    }
    let is_unsupported_subject = matches!(
        relation.subject,
        Subject::Element { .. } | Subject::Token(_) | Subject::Function(_)
    );
    let is_unsupported_operator = matches!(
        relation.operator,
        Operator::Contains
            | Operator::ContainsKey
            | Operator::Like
            | Operator::NotEq
            | Operator::NotIn
            | Operator::IsNotNull
    );
    Err(CqlError::invalid(if is_unsupported_subject {
        "Unsupported restriction in a Vector ANN query"
    } else if is_unsupported_operator {
        "Unsupported operator in restriction of a Vector ANN query"
    } else {
        "Filters beside ANN OF are not available yet: remove the WHERE clause"
    }))
}

/// Compares the dimensions where the term shows its own.
fn check_dimensions(term: &Term, dimensions: u16) -> Result<(), CqlError> {
    match term {
        Term::List(elements) if elements.len() != usize::from(dimensions) => {
            Err(wrong_dimensions(dimensions, elements.len()))
        }
        Term::TypeHint { .. } | Term::Function(_) => {
            match natural_type(term)
                .as_ref()
                .map(CqlType::float_vector_dimensions)
            {
                Some(Some(other)) if other != dimensions => {
                    Err(wrong_dimensions(dimensions, usize::from(other)))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// The error for a vector of the wrong length.
pub(super) fn wrong_dimensions(wanted: u16, got: usize) -> CqlError {
    CqlError::invalid(format!(
        "All arguments must have the same vector dimensions, but found vector<float, {wanted}> and vector<float, {got}>"
    ))
}

fn prepared_limit(
    select: &ast::Select,
    ctx: &mut PrepareContext,
) -> Result<crate::bind::PreparedTerm, CqlError> {
    limit::prepare(select.limit.as_ref(), limit::LIMIT, ctx)?.ok_or_else(no_limit)
}

/// The error for a query without LIMIT, or with an unset one.
pub(super) fn no_limit() -> CqlError {
    CqlError::invalid("Vector ANN queries must have a limit specified")
}

fn option<'i>(index: &'i Index, name: &str) -> Option<&'i str> {
    index.options.get(name).map(String::as_str)
}

/// CREATE INDEX has checked the options: what can't be read is taken for the default.
fn oversampling(index: &Index) -> f32 {
    option(index, "oversampling")
        .and_then(|text| text.trim().parse::<f32>().ok())
        .filter(|factor| factor.is_finite() && *factor >= 1.0)
        .unwrap_or(1.0)
}

fn rescoring(index: &Index) -> Option<Similarity> {
    let is_quantized =
        option(index, "quantization").is_some_and(|kind| !kind.eq_ignore_ascii_case("f32"));
    let is_wanted =
        option(index, "rescoring").is_some_and(|wanted| wanted.eq_ignore_ascii_case("true"));
    if !is_quantized || !is_wanted {
        return None;
    }
    let name = option(index, "similarity_function").unwrap_or("cosine");
    Some(Similarity::by_name(name).unwrap_or(Similarity::Cosine))
}

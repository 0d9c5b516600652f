//! Relations on several clustering columns at once.

use cql::ast::{self, Comparand, Operator, Term};
use cql::error::CqlError;
use schema::{Column, ColumnKind};
use value::CqlType;

use super::single_term::single_term;
use super::{RelationKind, TupleList, TupleTerm, TupleTest};
use crate::bind::{PrepareContext, prepare_term};
use crate::functions::term_excerpt;
use crate::resolve::TableColumns;

/// Prepares `(a, b) > ...`.
///
/// # Errors
/// Columns that are not successive clustering columns, other operators than comparisons and IN, and
/// terms that don't fit.
pub(super) fn prepare(
    table: TableColumns<'_>,
    names: &[String],
    relation: &ast::Relation,
    text: &str,
    ctx: &mut PrepareContext,
) -> Result<RelationKind, CqlError> {
    let columns = tuple_columns(table, names, text)?;
    let test = match relation.operator.comparison() {
        Some(comparison) => {
            let term = single_term(relation, text)?;
            TupleTest::Compare(comparison, tuple_term(&columns, term, ctx)?)
        }
        None if relation.operator == Operator::In => {
            TupleTest::In(tuple_list(&columns, &relation.comparand, text, ctx)?)
        }
        None => {
            return Err(CqlError::invalid(format!(
                "{} cannot be used for multi-column relations",
                relation.operator.as_str()
            )));
        }
    };
    Ok(RelationKind::Tuple { columns, test })
}

/// Finds the columns of a tuple, which must be successive clustering columns.
fn tuple_columns(
    table: TableColumns<'_>,
    names: &[String],
    text: &str,
) -> Result<Vec<Column>, CqlError> {
    let mut columns: Vec<Column> = Vec::with_capacity(names.len());
    let mut previous: Option<usize> = None;
    for name in names {
        let column = table.column(name)?;
        let ColumnKind::Clustering { position, .. } = column.kind else {
            return Err(CqlError::invalid(format!(
                "Multi-column relations can only be applied to clustering columns but was applied to: {name}"
            )));
        };
        if columns.iter().any(|seen| seen.id == column.id) {
            return Err(CqlError::invalid(format!(
                "Column \"{name}\" appeared twice in a relation: {text}"
            )));
        }
        if previous.is_some_and(|previous| position != previous + 1) {
            return Err(CqlError::invalid(format!(
                "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {text}"
            )));
        }
        previous = Some(position);
        columns.push(column.clone());
    }
    Ok(columns)
}

fn tuple_type(columns: &[Column]) -> CqlType {
    CqlType::Tuple(
        columns
            .iter()
            .map(|column| column.cql_type.clone())
            .collect(),
    )
}

fn tuple_name(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    format!("({})", names.join(","))
}

fn tuple_term(
    columns: &[Column],
    term: &Term,
    ctx: &mut PrepareContext,
) -> Result<TupleTerm, CqlError> {
    let terms = match term {
        Term::Tuple(terms) => terms.as_slice(),
        Term::Marker(_) => {
            return prepare_term(term, &tuple_type(columns), &tuple_name(columns), ctx)
                .map(TupleTerm::Whole);
        }
        _ => return Err(no_tuple(term)),
    };
    if terms.len() != columns.len() {
        return Err(CqlError::invalid(format!(
            "Expected {} elements in value tuple, but got {}: {}",
            columns.len(),
            terms.len(),
            term_excerpt(term)
        )));
    }
    terms
        .iter()
        .zip(columns)
        .map(|(term, column)| prepare_term(term, &column.cql_type, &column.name, ctx))
        .collect::<Result<_, _>>()
        .map(TupleTerm::Terms)
}

/// The error for a term that is neither a tuple nor a bind marker. The parser lets no such term
/// come after a tuple of columns.
fn no_tuple(term: &Term) -> CqlError {
    CqlError::invalid(format!(
        "Expected a tuple of values in parentheses or a bind marker, but got {}",
        term_excerpt(term)
    ))
}

fn tuple_list(
    columns: &[Column],
    comparand: &Comparand,
    text: &str,
    ctx: &mut PrepareContext,
) -> Result<TupleList, CqlError> {
    match comparand {
        Comparand::List(terms) => terms
            .iter()
            .map(|term| tuple_term(columns, term, ctx))
            .collect::<Result<_, _>>()
            .map(TupleList::Terms),
        Comparand::Term(term) => {
            let list = CqlType::List {
                element: Box::new(tuple_type(columns)),
                frozen: false,
            };
            let name = format!("in{}", tuple_name(columns));
            prepare_term(term, &list, &name, ctx).map(TupleList::Whole)
        }
        Comparand::None => Err(CqlError::invalid(format!("IN needs values: {text}"))),
    }
}

//! Filters: the conditions that each row is checked for after it is read.
//!
//! A row in which the column of a filter is null does not pass.

use bytes::Bytes;
use cql::error::CqlError;
use schema::Column;
use storage::read::Row;
use store_api::types::Restriction;
use value::predicate::{Collection, Comparison, Predicate, TuplePredicate};
use value::{CqlType, token::Partitioner};

use super::place::Place;
use super::relation::{Relation, RelationKind, Test, TupleTest};
use super::values::Values;
use crate::bind::{Bound, PreparedTerm};

/// A relation with its values bound.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// A predicate on one column.
    Column { place: Place, predicate: Predicate },
    /// A predicate on several columns together.
    Tuple {
        places: Vec<Place>,
        predicate: TuplePredicate,
    },
    /// A comparison of the partition's token.
    Token {
        comparison: Comparison,
        /// The token that the partition's token is compared with.
        token: i64,
    },
}

/// Makes filters of relations and their values.
///
/// # Errors
/// Null and unset values.
pub(super) fn bind_all<'r>(
    relations: impl IntoIterator<Item = &'r Relation>,
    partitioner: Partitioner,
    values: Values<'_>,
) -> Result<Vec<Filter>, CqlError> {
    let relations = relations.into_iter();
    relations
        .map(|relation| bind(relation, partitioner, values))
        .collect()
}

fn bind(
    relation: &Relation,
    partitioner: Partitioner,
    values: Values<'_>,
) -> Result<Filter, CqlError> {
    Ok(match &relation.kind {
        RelationKind::Column { column, test } => Filter::Column {
            place: Place::of(column),
            predicate: bind_test(column, test, values)?,
        },
        RelationKind::Entry { column, key, value } => Filter::Column {
            place: Place::of(column),
            predicate: Predicate::Entry {
                key_type: key.cql_type.clone(),
                value_type: value.cql_type.clone(),
                key: operand(values, key, column)?,
                value: operand(values, value, column)?,
            },
        },
        RelationKind::Tuple { columns, test } => Filter::Tuple {
            places: columns.iter().map(Place::of).collect(),
            predicate: bind_tuple_test(columns, test, values)?,
        },
        RelationKind::Token { comparison, value } => Filter::Token {
            comparison: *comparison,
            token: values.token(value, partitioner)?,
        },
    })
}

fn bind_test(column: &Column, test: &Test, values: Values<'_>) -> Result<Predicate, CqlError> {
    Ok(match test {
        Test::Compare(comparison, term) => Predicate::Compare {
            cql_type: column.cql_type.clone(),
            comparison: *comparison,
            value: operand(values, term, column)?,
        },
        Test::In(list) => Predicate::In {
            cql_type: column.cql_type.clone(),
            values: list
                .evaluate(values.parameters, values.clock)?
                .into_iter()
                .map(|bound| present(bound, column))
                .collect::<Result<_, _>>()?,
        },
        Test::Contains(term) => Predicate::Contains {
            collection: match &column.cql_type {
                CqlType::Set { element, .. } => Collection::Set((**element).clone()),
                CqlType::Map { value, .. } => Collection::MapValues((**value).clone()),
                _ => Collection::List(term.cql_type.clone()),
            },
            value: operand(values, term, column)?,
        },
        Test::ContainsKey(term) => Predicate::ContainsKey {
            key_type: term.cql_type.clone(),
            key: operand(values, term, column)?,
        },
    })
}

fn bind_tuple_test(
    columns: &[Column],
    test: &TupleTest,
    values: Values<'_>,
) -> Result<TuplePredicate, CqlError> {
    let types = columns
        .iter()
        .map(|column| column.cql_type.clone())
        .collect();
    Ok(match test {
        TupleTest::Compare(comparison, term) => TuplePredicate::Compare {
            types,
            comparison: *comparison,
            values: values.tuple(term, columns)?,
        },
        TupleTest::In(list) => TuplePredicate::In {
            types,
            tuples: values.tuples(list, columns)?,
        },
    })
}

fn operand(values: Values<'_>, term: &PreparedTerm, column: &Column) -> Result<Bytes, CqlError> {
    present(term.evaluate(values.parameters, values.clock)?, column)
}

fn present(bound: Bound, column: &Column) -> Result<Bytes, CqlError> {
    match bound {
        Bound::Value(bytes) => Ok(bytes),
        Bound::Null => Err(CqlError::invalid(format!(
            "Unsupported null value for column {}",
            column.name
        ))),
        Bound::Unset => Err(CqlError::invalid(format!(
            "Unsupported unset value for column {}",
            column.name
        ))),
    }
}

impl Filter {
    /// The filter in the words of the index service; `None` if it has no words for it. `relation`
    /// is the one that the filter was made of, and `partition_key` names the columns of that key.
    pub(super) fn restriction(
        &self,
        relation: &Relation,
        partition_key: &[String],
    ) -> Option<Restriction> {
        match self {
            Filter::Column { predicate, .. } => {
                query::filter::restriction(&relation.first_column()?.name, predicate)
            }
            Filter::Tuple { predicate, .. } => {
                let RelationKind::Tuple { columns, .. } = &relation.kind else {
                    return None;
                };
                let names = columns.iter().map(|column| column.name.clone());
                query::filter::tuple_restriction(&names.collect::<Vec<_>>(), predicate)
            }
            Filter::Token { comparison, token } => Some(query::filter::token_restriction(
                partition_key,
                *comparison,
                *token,
            )),
        }
    }

    /// Whether the row passes the filter.
    pub(super) fn accepts(&self, row: &Row) -> bool {
        match self {
            Filter::Column { place, predicate } => predicate.holds(place.content(row).observed()),
            Filter::Tuple { places, predicate } => {
                predicate.holds(|at| places[at].value(row).map(|value| &value[..]))
            }
            Filter::Token { comparison, token } => {
                comparison.accepts(row.partition.token.0.cmp(token))
            }
        }
    }
}

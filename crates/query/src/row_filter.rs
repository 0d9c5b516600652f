//! Filters: the conditions that each row is checked for after it is read.
//!
//! A row in which the column of a filter is null does not pass. The form of a row is the caller's
//! ([`FilteredRow`]): a filter knows the places of its columns in it.

use bytes::Bytes;
use cql::error::CqlError;
use schema::Column;
use store_api::types::Restriction;
use value::predicate::{Collection, Comparison, OneOf, OneOfTuples, Predicate, TuplePredicate};
use value::{CqlType, LikePattern};

use crate::bind::{Bound, PreparedTerm};
use crate::filter;
use crate::relation::{Relation, RelationKind, Test, TupleTest};
use crate::values::Values;

/// A relation with its values bound.
#[derive(Clone, Debug)]
pub enum RowFilter<P> {
    /// A predicate on one column.
    Column {
        /// The place of the column in a row.
        place: P,
        /// The condition on its value.
        predicate: Predicate,
    },
    /// A predicate on several columns together.
    Tuple {
        /// The places of the columns in a row.
        places: Vec<P>,
        /// The condition on their values.
        predicate: TuplePredicate,
    },
    /// A comparison of the partition's token.
    Token {
        /// The way in which the partition's token is compared.
        comparison: Comparison,
        /// The token that the partition's token is compared with.
        token: i64,
    },
}

/// A row as filters look at it. `P` is the place of a column in it.
pub trait FilteredRow<P> {
    /// Whether the content at a place satisfies a condition.
    fn satisfies(&self, place: &P, predicate: &Predicate) -> bool;

    /// The value at a place that holds a single one; `None` for null.
    fn value(&self, place: &P) -> Option<&[u8]>;

    /// The token of the row's partition.
    fn token(&self) -> i64;
}

/// Makes filters of relations and their values. `place` finds the place of a column in a row.
///
/// # Errors
/// Null and unset values.
pub fn bind_all<'r, P>(
    relations: impl IntoIterator<Item = &'r Relation>,
    place: impl Fn(&Column) -> P,
    values: Values<'_>,
) -> Result<Vec<RowFilter<P>>, CqlError> {
    let relations = relations.into_iter();
    relations
        .map(|relation| bind(relation, &place, values))
        .collect()
}

fn bind<P>(
    relation: &Relation,
    place: impl Fn(&Column) -> P,
    values: Values<'_>,
) -> Result<RowFilter<P>, CqlError> {
    Ok(match &relation.kind {
        RelationKind::Column { column, test } => RowFilter::Column {
            place: place(column),
            predicate: bind_test(column, test, values)?,
        },
        RelationKind::Entry { column, key, value } => RowFilter::Column {
            place: place(column),
            predicate: Predicate::Entry {
                key_type: key.cql_type.clone(),
                value_type: value.cql_type.clone(),
                key: operand(values, key, column)?,
                value: operand(values, value, column)?,
            },
        },
        RelationKind::Tuple { columns, test } => RowFilter::Tuple {
            places: columns.iter().map(&place).collect(),
            predicate: bind_tuple_test(columns, test, values)?,
        },
        RelationKind::Token { comparison, value } => RowFilter::Token {
            comparison: *comparison,
            token: values.token(value)?,
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
        Test::In(list) => {
            let listed = list.evaluate(values.bound, values.clock)?.into_iter();
            let listed = listed.map(|bound| present(bound, column));
            let listed = listed.collect::<Result<_, _>>()?;
            Predicate::In(OneOf::new(column.cql_type.clone(), listed))
        }
        Test::Like(term) => {
            let pattern = operand(values, term, column)?;
            let pattern = LikePattern::new(&pattern);
            Predicate::Like(pattern.map_err(|error| CqlError::invalid(error.0))?)
        }
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
        TupleTest::In(list) => {
            let tuples = values.tuples(list, columns)?;
            TuplePredicate::In(OneOfTuples::new(types, tuples))
        }
    })
}

fn operand(values: Values<'_>, term: &PreparedTerm, column: &Column) -> Result<Bytes, CqlError> {
    present(term.evaluate(values.bound, values.clock)?, column)
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

impl<P> RowFilter<P> {
    /// The filter in the words of the index service; `None` if it has no words for it. `relation`
    /// is the one that the filter was made of, and `partition_key` names the columns of that key.
    pub fn restriction(
        &self,
        relation: &Relation,
        partition_key: &[String],
    ) -> Option<Restriction> {
        match self {
            RowFilter::Column { predicate, .. } => {
                filter::restriction(&relation.first_column()?.name, predicate)
            }
            RowFilter::Tuple { predicate, .. } => {
                let RelationKind::Tuple { columns, .. } = &relation.kind else {
                    return None;
                };
                let names = columns.iter().map(|column| column.name.clone());
                filter::tuple_restriction(&names.collect::<Vec<_>>(), predicate)
            }
            RowFilter::Token { comparison, token } => Some(filter::token_restriction(
                partition_key,
                *comparison,
                *token,
            )),
        }
    }

    /// Whether the row passes the filter.
    pub fn accepts(&self, row: &impl FilteredRow<P>) -> bool {
        match self {
            RowFilter::Column { place, predicate } => row.satisfies(place, predicate),
            RowFilter::Tuple { places, predicate } => predicate.holds(|at| row.value(&places[at])),
            RowFilter::Token { comparison, token } => comparison.accepts(row.token().cmp(token)),
        }
    }
}

//! Filters: the conditions that each row is checked for after it is read.
//!
//! A row in which the column of a filter is null does not pass. The form of a row is the caller's
//! ([`FilteredRow`]): a filter knows the places of its columns in it.

use bytes::Bytes;
use cql::error::CqlError;
use schema::Column;
use store_api::ColumnsPredicate;
use value::predicate::{
    ComparisonOperator, OneOf, OneOfTuples, Predicate, SearchedCollection, TuplePredicate,
};
use value::{CqlType, LikePattern};

use crate::bind::{PreparedTerm, TermValue};
use crate::relation::{ColumnTest, PreparedRelation, RelationKind, TupleTest};
use crate::values::EvaluationInputs;

/// A relation with its values bound.
#[derive(Clone, Debug)]
pub enum BoundRelation<P> {
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
        comparison: ComparisonOperator,
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
    relations: impl IntoIterator<Item = &'r PreparedRelation>,
    place: impl Fn(&Column) -> P,
    values: EvaluationInputs<'_>,
) -> Result<Vec<BoundRelation<P>>, CqlError> {
    let relations = relations.into_iter();
    relations
        .map(|relation| bind(relation, &place, values))
        .collect()
}

fn bind<P>(
    relation: &PreparedRelation,
    place: impl Fn(&Column) -> P,
    values: EvaluationInputs<'_>,
) -> Result<BoundRelation<P>, CqlError> {
    Ok(match &relation.kind {
        RelationKind::Column { column, test } => BoundRelation::Column {
            place: place(column),
            predicate: bind_test(column, test, values)?,
        },
        RelationKind::Entry { column, key, value } => BoundRelation::Column {
            place: place(column),
            predicate: Predicate::Entry {
                key_type: key.cql_type.clone(),
                value_type: value.cql_type.clone(),
                key: operand(values, key, column)?,
                value: operand(values, value, column)?,
            },
        },
        RelationKind::Tuple { columns, test } => BoundRelation::Tuple {
            places: columns.iter().map(&place).collect(),
            predicate: bind_tuple_test(columns, test, values)?,
        },
        RelationKind::Token { comparison, value } => BoundRelation::Token {
            comparison: *comparison,
            token: values.token(value)?,
        },
    })
}

fn bind_test(
    column: &Column,
    test: &ColumnTest,
    values: EvaluationInputs<'_>,
) -> Result<Predicate, CqlError> {
    Ok(match test {
        ColumnTest::Compare(comparison, term) => Predicate::Compare {
            cql_type: column.cql_type.clone(),
            comparison: *comparison,
            value: operand(values, term, column)?,
        },
        ColumnTest::In(list) => {
            let listed = list.evaluate(values.bound, values.clock)?.into_iter();
            let listed = listed.map(|bound| present(bound, column));
            let listed = listed.collect::<Result<_, _>>()?;
            Predicate::In(OneOf::new(column.cql_type.clone(), listed))
        }
        ColumnTest::Like(term) => {
            let pattern = operand(values, term, column)?;
            let pattern = LikePattern::new(&pattern);
            Predicate::Like(pattern.map_err(|error| CqlError::invalid(error.0))?)
        }
        ColumnTest::Contains(term) => Predicate::Contains {
            collection: match &column.cql_type {
                CqlType::Set { element, .. } => SearchedCollection::Set((**element).clone()),
                CqlType::Map { value, .. } => SearchedCollection::MapValues((**value).clone()),
                _ => SearchedCollection::List(term.cql_type.clone()),
            },
            value: operand(values, term, column)?,
        },
        ColumnTest::ContainsKey(term) => Predicate::ContainsKey {
            key_type: term.cql_type.clone(),
            key: operand(values, term, column)?,
        },
    })
}

fn bind_tuple_test(
    columns: &[Column],
    test: &TupleTest,
    values: EvaluationInputs<'_>,
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

fn operand(
    values: EvaluationInputs<'_>,
    term: &PreparedTerm,
    column: &Column,
) -> Result<Bytes, CqlError> {
    present(term.evaluate(values.bound, values.clock)?, column)
}

fn present(bound: TermValue, column: &Column) -> Result<Bytes, CqlError> {
    match bound {
        TermValue::Value(bytes) => Ok(bytes),
        TermValue::Null => Err(CqlError::invalid(format!(
            "Unsupported null value for column {}",
            column.name
        ))),
        TermValue::Unset => Err(CqlError::invalid(format!(
            "Unsupported unset value for column {}",
            column.name
        ))),
    }
}

impl<P> BoundRelation<P> {
    /// The filter as a search goes by it; `None` for one that no index searches by. `relation` is
    /// the one that the filter was made of, and `partition_key` names the columns of that key.
    pub fn predicate(
        &self,
        relation: &PreparedRelation,
        partition_key: &[String],
    ) -> Option<ColumnsPredicate> {
        Some(match self {
            BoundRelation::Column {
                predicate: Predicate::NotEqual { .. } | Predicate::Like(_),
                ..
            } => return None,
            BoundRelation::Column { predicate, .. } => ColumnsPredicate::Column {
                column: relation.first_column()?.name.clone(),
                predicate: predicate.clone(),
            },
            BoundRelation::Tuple { predicate, .. } => {
                let RelationKind::Tuple { columns, .. } = &relation.kind else {
                    return None;
                };
                let names = columns.iter().map(|column| column.name.clone());
                ColumnsPredicate::Tuple {
                    columns: names.collect(),
                    predicate: predicate.clone(),
                }
            }
            BoundRelation::Token { comparison, token } => ColumnsPredicate::Token {
                columns: partition_key.to_vec(),
                comparison: *comparison,
                token: *token,
            },
        })
    }

    /// Whether the row passes the filter.
    pub fn accepts(&self, row: &impl FilteredRow<P>) -> bool {
        match self {
            BoundRelation::Column { place, predicate } => row.satisfies(place, predicate),
            BoundRelation::Tuple { places, predicate } => {
                predicate.holds(|at| row.value(&places[at]))
            }
            BoundRelation::Token { comparison, token } => {
                comparison.accepts(row.token().cmp(token))
            }
        }
    }
}

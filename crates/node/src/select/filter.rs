//! Filters: the conditions that each row is checked for after it is read.
//!
//! A row in which the column of a filter is null does not pass.

use std::cmp::Ordering;

use bytes::Bytes;
use cql::error::CqlError;
use storage::catalog::Column;
use storage::read::Row;
use value::{CqlType, compare, split_elements, split_entries, token::Partitioner};

use super::place::{Content, Place};
use super::relation::{Comparison, Relation, RelationKind, Test, TupleTest};
use super::values::Values;
use crate::bind::{Bound, PreparedTerm};

/// A relation with its values bound.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// `column > value`, or another comparison.
    Compare {
        place: Place,
        cql_type: CqlType,
        comparison: Comparison,
        value: Bytes,
    },
    /// `column IN (...)`.
    In {
        place: Place,
        cql_type: CqlType,
        values: Vec<Bytes>,
    },
    /// A value must be among the elements of a list or set, or among the values of a map.
    Contains {
        place: Place,
        kind: Collection,
        value: Bytes,
    },
    /// A key must be among the keys of a map.
    ContainsKey {
        place: Place,
        key_type: CqlType,
        key: Bytes,
    },
    /// A key of a map must have this value.
    Entry {
        place: Place,
        key_type: CqlType,
        value_type: CqlType,
        key: Bytes,
        value: Bytes,
    },
    /// `(a, b) > (1, 2)`, or another comparison. The columns are compared one after the other.
    Tuple {
        columns: Vec<(Place, CqlType)>,
        comparison: Comparison,
        values: Vec<Bytes>,
    },
    /// `(a, b) IN (...)`.
    TupleIn {
        columns: Vec<(Place, CqlType)>,
        values: Vec<Vec<Bytes>>,
    },
    Token {
        comparison: Comparison,
        /// The token that the partition's token is compared with.
        token: i64,
    },
}

/// A kind of collection, with the type of the value to find in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Collection {
    List(CqlType),
    Set(CqlType),
    MapValues(CqlType),
}

/// Makes a filter of a relation and its values.
///
/// # Errors
/// Null and unset values.
pub(super) fn bind(
    relation: &Relation,
    partitioner: Partitioner,
    values: Values<'_>,
) -> Result<Filter, CqlError> {
    Ok(match &relation.kind {
        RelationKind::Column { column, test } => bind_test(column, test, values)?,
        RelationKind::Entry { column, key, value } => Filter::Entry {
            place: Place::of(column),
            key_type: key.cql_type.clone(),
            value_type: value.cql_type.clone(),
            key: operand(values, key, column)?,
            value: operand(values, value, column)?,
        },
        RelationKind::Tuple { columns, test } => {
            let places = columns
                .iter()
                .map(|column| (Place::of(column), column.cql_type.clone()))
                .collect();
            match test {
                TupleTest::Compare(comparison, term) => Filter::Tuple {
                    columns: places,
                    comparison: *comparison,
                    values: values.tuple(term, columns)?,
                },
                TupleTest::In(list) => Filter::TupleIn {
                    columns: places,
                    values: values.tuples(list, columns)?,
                },
            }
        }
        RelationKind::Token { comparison, value } => Filter::Token {
            comparison: *comparison,
            token: values.token(value, partitioner)?,
        },
    })
}

fn bind_test(column: &Column, test: &Test, values: Values<'_>) -> Result<Filter, CqlError> {
    let place = Place::of(column);
    Ok(match test {
        Test::Compare(comparison, term) => Filter::Compare {
            place,
            cql_type: column.cql_type.clone(),
            comparison: *comparison,
            value: operand(values, term, column)?,
        },
        Test::In(list) => Filter::In {
            place,
            cql_type: column.cql_type.clone(),
            values: list
                .evaluate(values.parameters, values.clock)?
                .into_iter()
                .map(|bound| present(bound, column))
                .collect::<Result<_, _>>()?,
        },
        Test::Contains(term) => Filter::Contains {
            place,
            kind: match &column.cql_type {
                CqlType::Set { element, .. } => Collection::Set((**element).clone()),
                CqlType::Map { value, .. } => Collection::MapValues((**value).clone()),
                _ => Collection::List(term.cql_type.clone()),
            },
            value: operand(values, term, column)?,
        },
        Test::ContainsKey(term) => Filter::ContainsKey {
            place,
            key_type: term.cql_type.clone(),
            key: operand(values, term, column)?,
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
    /// Whether the row passes the filter.
    pub(super) fn accepts(&self, row: &Row) -> bool {
        match self {
            Filter::Compare {
                place,
                cql_type,
                comparison,
                value,
            } => place
                .value(row)
                .is_some_and(|got| comparison.accepts(compare(cql_type, got, value))),
            Filter::In {
                place,
                cql_type,
                values,
            } => place.value(row).is_some_and(|got| {
                values
                    .iter()
                    .any(|value| compare(cql_type, got, value).is_eq())
            }),
            Filter::Contains { place, kind, value } => kind.holds(place.content(row), value),
            Filter::ContainsKey {
                place,
                key_type,
                key,
            } => any_entry(place.content(row), |got, _| {
                compare(key_type, got, key).is_eq()
            }),
            Filter::Entry {
                place,
                key_type,
                value_type,
                key,
                value,
            } => any_entry(place.content(row), |got_key, got_value| {
                compare(key_type, got_key, key).is_eq()
                    && compare(value_type, got_value, value).is_eq()
            }),
            Filter::Tuple {
                columns,
                comparison,
                values,
            } => tuple_order(columns, row, values).is_some_and(|order| comparison.accepts(order)),
            Filter::TupleIn { columns, values } => values
                .iter()
                .any(|values| tuple_order(columns, row, values) == Some(Ordering::Equal)),
            Filter::Token { comparison, token } => {
                comparison.accepts(row.partition.token.0.cmp(token))
            }
        }
    }
}

/// The order of a row's columns relative to the values, compared one after the other; `None` if a
/// compared column is null.
fn tuple_order(columns: &[(Place, CqlType)], row: &Row, values: &[Bytes]) -> Option<Ordering> {
    for ((place, cql_type), value) in columns.iter().zip(values) {
        let order = compare(cql_type, place.value(row)?, value);
        if order.is_ne() {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}

impl Collection {
    fn holds(&self, content: Content<'_>, wanted: &Bytes) -> bool {
        let (Collection::List(cql_type)
        | Collection::Set(cql_type)
        | Collection::MapValues(cql_type)) = self;
        let is_wanted = |got: &Bytes| compare(cql_type, got, wanted).is_eq();
        match (content, self) {
            (Content::Null, _) => false,
            (Content::Elements(elements), Collection::Set(_)) => {
                elements.iter().any(|(path, _)| is_wanted(path))
            }
            (Content::Elements(elements), _) => {
                elements.iter().any(|(_, cell)| is_wanted(&cell.value))
            }
            (Content::Value(_), Collection::MapValues(_)) => {
                any_entry(content, |_, value| is_wanted(value))
            }
            (Content::Value(frozen), _) => {
                split_elements(frozen).is_ok_and(|elements| elements.iter().any(is_wanted))
            }
        }
    }
}

/// Whether `passes` holds for the key and value of any entry of a map.
fn any_entry(content: Content<'_>, passes: impl Fn(&Bytes, &Bytes) -> bool) -> bool {
    match content {
        Content::Null => false,
        Content::Elements(elements) => elements
            .iter()
            .any(|(path, cell)| passes(path, &cell.value)),
        Content::Value(frozen) => split_entries(frozen)
            .is_ok_and(|entries| entries.iter().any(|(key, value)| passes(key, value))),
    }
}

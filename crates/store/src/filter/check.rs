//! Conditions that look at the row of an id.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use value::predicate::{ColumnObservation, ComparisonOperator, Predicate, TuplePredicate};

use crate::identity::ColumnPlace;
use crate::keys::{self, EncodedValues, KeySchema, KeyTable};

/// A condition that looks at the row of an id.
#[derive(Clone, Debug)]
pub(super) enum RowCheck {
    /// The key column at this position has one of these values, in the form of encoded keys.
    OneOf(usize, HashSet<Bytes>),
    Column(ColumnPlace, Predicate),
    Tuple(Vec<ColumnPlace>, TuplePredicate),
    /// The token of the partition key compares so with this number.
    Token(ComparisonOperator, i64),
}

/// A row that is checked.
pub(super) struct CheckedRow<'a> {
    /// The columns of the key.
    pub schema: &'a KeySchema,
    /// The rows of the index.
    pub table: &'a KeyTable,
    /// The encoded key of the row.
    pub key: &'a [u8],
    /// The id of the row.
    pub id: u32,
}

impl CheckedRow<'_> {
    /// The value of a column; `None` for null.
    pub(super) fn value(&self, place: ColumnPlace) -> Option<Cow<'_, [u8]>> {
        match place {
            ColumnPlace::Key(at) => EncodedValues::of(self.key).nth(at).map(Cow::Borrowed),
            ColumnPlace::Filter(at) => self.table.filters().value(at, self.id),
        }
    }
}

impl RowCheck {
    /// Whether the condition holds for a row.
    pub(super) fn holds(&self, row: &CheckedRow<'_>) -> bool {
        match self {
            RowCheck::OneOf(at, values) => {
                let value = EncodedValues::of(row.key).nth(*at);
                value.is_some_and(|value| values.contains(value))
            }
            RowCheck::Column(place, predicate) => {
                let value = row.value(*place);
                predicate.holds(observed(value.as_deref()))
            }
            RowCheck::Tuple(places, predicate) => {
                let values: Vec<_> = places.iter().map(|place| row.value(*place)).collect();
                predicate.holds(|at| values.get(at)?.as_deref())
            }
            RowCheck::Token(comparison, token) => {
                comparison.accepts(keys::token(row.schema, row.key).cmp(token))
            }
        }
    }

    /// Whether the condition is on a column outside the primary key.
    pub(super) fn has_filter_columns(&self) -> bool {
        let is_filter = |place: &ColumnPlace| matches!(place, ColumnPlace::Filter(_));
        match self {
            RowCheck::OneOf(..) | RowCheck::Token(..) => false,
            RowCheck::Column(place, _) => is_filter(place),
            RowCheck::Tuple(places, _) => places.iter().any(is_filter),
        }
    }
}

fn observed(value: Option<&[u8]>) -> ColumnObservation<'_, std::iter::Empty<(&[u8], &[u8])>> {
    value.map_or(ColumnObservation::Null, ColumnObservation::Value)
}

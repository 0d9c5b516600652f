//! Predicates on serialised values: comparison, membership and containment, as relations of CQL
//! have them.
//!
//! A filter of a query and a condition of a write check a column in the same way, so both use this
//! predicate. Values compare in the order of [`compare()`], which is CQL's own for each type.
//!
//! A null satisfies no predicate, not even `!=`, as in a filter. A condition of a write takes null
//! for different from every value, so it has to check for null itself. A collection whose bytes are
//! malformed holds nothing.

mod one_of;

use std::cmp::Ordering;

use bytes::Bytes;
use one_of::tuple_order;
pub use one_of::{OneOf, OneOfTuples};

use crate::elements::{CollectionElements, MapEntries};
use crate::{CqlType, LikePattern, ValueError, compare};

/// A comparison that keeps one run of the values in their order: one value, or all up to or from a
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOperator {
    /// `=`.
    Eq,
    /// `<`.
    Lt,
    /// `<=`.
    LtEq,
    /// `>`.
    Gt,
    /// `>=`.
    GtEq,
}

/// A predicate on the value of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `column > value`, or another comparison.
    Compare {
        /// The type of the column.
        cql_type: CqlType,
        /// The comparison of the column with the value.
        comparison: ComparisonOperator,
        /// The value to compare with.
        value: Bytes,
    },
    /// `column != value`.
    NotEqual {
        /// The type of the column.
        cql_type: CqlType,
        /// The value that the column must not have.
        value: Bytes,
    },
    /// `column IN (...)`.
    In(OneOf),
    /// `column LIKE pattern`, of a text.
    Like(LikePattern),
    /// `column CONTAINS value`: the value is an element of a list or set, or a value of a map.
    Contains {
        /// The kind of the column, which says where elements are.
        collection: SearchedCollection,
        /// The value to find.
        value: Bytes,
    },
    /// `column CONTAINS KEY key`: the key is one of a map.
    ContainsKey {
        /// The type of the map's keys.
        key_type: CqlType,
        /// The key to find.
        key: Bytes,
    },
    /// `column[key] = value`: a key of a map has this value.
    Entry {
        /// The type of the map's keys.
        key_type: CqlType,
        /// The type of the map's values.
        value_type: CqlType,
        /// The key to find.
        key: Bytes,
        /// The value that the key must have.
        value: Bytes,
    },
}

/// A kind of collection, with the type of the values that CONTAINS looks for in it.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchedCollection {
    /// A list with elements of this type.
    List(CqlType),
    /// A set with elements of this type.
    Set(CqlType),
    /// A map with values of this type.
    MapValues(CqlType),
}

/// A predicate on several columns together. They are compared one after the other, and the first
/// that differs decides.
#[derive(Clone, Debug, PartialEq)]
pub enum TuplePredicate {
    /// `(a, b) > (1, 2)`, or another comparison.
    Compare {
        /// The types of the columns.
        types: Vec<CqlType>,
        /// The comparison of the columns with the values.
        comparison: ComparisonOperator,
        /// The values to compare with, one for each column.
        values: Vec<Bytes>,
    },
    /// `(a, b) IN ((1, 2), (3, 4))`.
    In(OneOfTuples),
}

/// The value of a column, as a predicate looks at it.
///
/// `E` iterates over the elements of a non-frozen collection, each as the (path, value) of its
/// cell. The path is the element of a set, and the key of a map.
#[derive(Clone, Copy, Debug)]
pub enum ColumnObservation<'v, E> {
    /// The column is null.
    Null,
    /// The column is one serialised value.
    Value(&'v [u8]),
    /// The column is a non-frozen collection with these elements. Only predicates on elements hold
    /// for it.
    Elements(E),
}

impl ComparisonOperator {
    /// Whether the comparison holds, given the order of its left side relative to its right side.
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            ComparisonOperator::Eq => order.is_eq(),
            ComparisonOperator::Lt => order.is_lt(),
            ComparisonOperator::LtEq => order.is_le(),
            ComparisonOperator::Gt => order.is_gt(),
            ComparisonOperator::GtEq => order.is_ge(),
        }
    }

    /// Whether a lower bound includes its value; `None` if the comparison is no lower bound.
    pub fn as_lower(self) -> Option<bool> {
        match self {
            ComparisonOperator::Gt => Some(false),
            ComparisonOperator::GtEq => Some(true),
            _ => None,
        }
    }

    /// Whether an upper bound includes its value; `None` if the comparison is no upper bound.
    pub fn as_upper(self) -> Option<bool> {
        match self {
            ComparisonOperator::Lt => Some(false),
            ComparisonOperator::LtEq => Some(true),
            _ => None,
        }
    }
}

impl Predicate {
    /// Whether the predicate holds for a column with this value.
    pub fn holds<'v>(
        &self,
        column: ColumnObservation<'v, impl Iterator<Item = (&'v [u8], &'v [u8])>>,
    ) -> bool {
        match self {
            Predicate::Compare {
                cql_type,
                comparison,
                value,
            } => column
                .value()
                .is_some_and(|got| comparison.accepts(compare(cql_type, got, value))),
            Predicate::NotEqual { cql_type, value } => column
                .value()
                .is_some_and(|got| compare(cql_type, got, value).is_ne()),
            Predicate::In(list) => column.value().is_some_and(|got| list.contains(got)),
            Predicate::Like(pattern) => column.value().is_some_and(|text| pattern.matches(text)),
            Predicate::Contains { collection, value } => collection.contains(column, value),
            Predicate::ContainsKey { key_type, key } => {
                any_entry(column, |got, _| compare(key_type, got, key).is_eq())
            }
            Predicate::Entry {
                key_type,
                value_type,
                key,
                value,
            } => any_entry(column, |got_key, got_value| {
                compare(key_type, got_key, key).is_eq()
                    && compare(value_type, got_value, value).is_eq()
            }),
        }
    }
}

impl TuplePredicate {
    /// Whether the predicate holds, given the value of each column by its position; `None` for
    /// null. A null column satisfies nothing unless a column before it has decided.
    pub fn holds<'v>(&self, column: impl Fn(usize) -> Option<&'v [u8]>) -> bool {
        match self {
            TuplePredicate::Compare {
                types,
                comparison,
                values,
            } => tuple_order(types, &column, values).is_some_and(|order| comparison.accepts(order)),
            TuplePredicate::In(list) => list.contains(column),
        }
    }
}

impl<'v, E> ColumnObservation<'v, E> {
    /// The one serialised value; `None` for null and for a non-frozen collection.
    fn value(&self) -> Option<&'v [u8]> {
        match self {
            ColumnObservation::Value(value) => Some(value),
            ColumnObservation::Null | ColumnObservation::Elements(_) => None,
        }
    }
}

/// Values that a collection must contain, all of them. They are looked for in one pass, however
/// many they are.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainsAll {
    among: SearchedPart,
    cql_type: CqlType,
    /// In order, each once.
    wanted: Vec<Bytes>,
}

/// The part of a collection among which values are looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SearchedPart {
    /// The elements of a list.
    Elements,
    /// The elements of a set.
    Set,
    MapKeys,
    MapValues,
}

impl ContainsAll {
    /// Elements of a list or set, or values of a map (CONTAINS).
    pub fn values(collection: SearchedCollection, wanted: Vec<Bytes>) -> ContainsAll {
        match collection {
            SearchedCollection::List(cql_type) => {
                ContainsAll::new(SearchedPart::Elements, cql_type, wanted)
            }
            SearchedCollection::Set(cql_type) => {
                ContainsAll::new(SearchedPart::Set, cql_type, wanted)
            }
            SearchedCollection::MapValues(cql_type) => {
                ContainsAll::new(SearchedPart::MapValues, cql_type, wanted)
            }
        }
    }

    /// Keys of a map (CONTAINS KEY).
    pub fn keys(key_type: CqlType, wanted: Vec<Bytes>) -> ContainsAll {
        ContainsAll::new(SearchedPart::MapKeys, key_type, wanted)
    }

    fn new(among: SearchedPart, cql_type: CqlType, mut wanted: Vec<Bytes>) -> ContainsAll {
        wanted.sort_by(|a, b| compare(&cql_type, a, b));
        wanted.dedup_by(|a, b| compare(&cql_type, a, b).is_eq());
        ContainsAll {
            among,
            cql_type,
            wanted,
        }
    }

    /// Whether a column with this value contains all of them.
    pub fn holds<'v>(
        &self,
        column: ColumnObservation<'v, impl Iterator<Item = (&'v [u8], &'v [u8])>>,
    ) -> bool {
        let mut is_missing = vec![true; self.wanted.len()];
        let mut missing = self.wanted.len();
        let mut see = |got: &[u8]| {
            let found = (self.wanted).binary_search_by(|of| compare(&self.cql_type, of, got));
            if let Ok(at) = found
                && std::mem::take(&mut is_missing[at])
            {
                missing -= 1;
            }
        };
        let pair = |(path, value): (&'v [u8], &'v [u8])| match self.among {
            SearchedPart::Set | SearchedPart::MapKeys => path,
            SearchedPart::Elements | SearchedPart::MapValues => value,
        };
        let is_whole = match (column, self.among) {
            (ColumnObservation::Null, _) => false,
            (ColumnObservation::Elements(elements), _) => {
                elements.for_each(|element| see(pair(element)));
                true
            }
            (ColumnObservation::Value(frozen), SearchedPart::MapKeys | SearchedPart::MapValues) => {
                see_all(MapEntries::new(frozen), |entry| see(pair(entry)))
            }
            (ColumnObservation::Value(frozen), _) => {
                see_all(CollectionElements::of_list(frozen), see)
            }
        };
        is_whole && missing == 0
    }
}

/// Whether all items of a serialised collection could be seen.
fn see_all<T>(
    items: Result<impl Iterator<Item = Result<T, ValueError>>, ValueError>,
    mut see: impl FnMut(T),
) -> bool {
    let Ok(items) = items else { return false };
    for item in items {
        match item {
            Ok(item) => see(item),
            Err(_) => return false,
        }
    }
    true
}

impl SearchedCollection {
    fn contains<'v>(
        &self,
        column: ColumnObservation<'v, impl Iterator<Item = (&'v [u8], &'v [u8])>>,
        wanted: &[u8],
    ) -> bool {
        let (SearchedCollection::List(cql_type)
        | SearchedCollection::Set(cql_type)
        | SearchedCollection::MapValues(cql_type)) = self;
        let is_wanted = |got: &[u8]| compare(cql_type, got, wanted).is_eq();
        match (column, self) {
            (ColumnObservation::Null, _) => false,
            (ColumnObservation::Elements(mut elements), SearchedCollection::Set(_)) => {
                elements.any(|(path, _)| is_wanted(path))
            }
            (ColumnObservation::Elements(mut elements), _) => {
                elements.any(|(_, value)| is_wanted(value))
            }
            (ColumnObservation::Value(frozen), SearchedCollection::MapValues(_)) => {
                any(MapEntries::new(frozen), |(_, value)| is_wanted(value))
            }
            (ColumnObservation::Value(frozen), _) => {
                any(CollectionElements::of_list(frozen), is_wanted)
            }
        }
    }
}

/// Whether `passes` holds for the key and value of any entry of a map.
fn any_entry<'v>(
    column: ColumnObservation<'v, impl Iterator<Item = (&'v [u8], &'v [u8])>>,
    passes: impl Fn(&[u8], &[u8]) -> bool,
) -> bool {
    match column {
        ColumnObservation::Null => false,
        ColumnObservation::Value(frozen) => {
            any(MapEntries::new(frozen), |(key, value)| passes(key, value))
        }
        ColumnObservation::Elements(mut elements) => {
            elements.any(|(key, value)| passes(key, value))
        }
    }
}

/// Whether any item of a serialised collection passes. It is read to its end, as a malformed one
/// holds nothing.
fn any<T>(
    items: Result<impl Iterator<Item = Result<T, ValueError>>, ValueError>,
    passes: impl Fn(T) -> bool,
) -> bool {
    let Ok(items) = items else { return false };
    let mut found = false;
    for item in items {
        match item {
            Ok(item) => found = found || passes(item),
            Err(_) => return false,
        }
    }
    found
}

#[cfg(test)]
mod tests;

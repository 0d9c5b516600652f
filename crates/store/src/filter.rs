//! The filter of a search: its predicates as conditions on the rows of one index. Those of a
//! request by HTTP are read from its restrictions first (contract, section 1.7; `restrictions`).
//!
//! Columns of the primary key are in the [`crate::keys`], all others that can be filtered by in
//! [`filter_columns::FilterColumns`]. A condition on only columns of the second kind is answered by
//! their postings. All other conditions are *checks*, which look at the row of an id. Where a
//! filter names whole partitions, the ids of their rows are the only ones that are looked at.
//!
//! A column of the partition key is compared byte by byte for equality, as the database does. A
//! null satisfies nothing.

mod restrictions;

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use filter_columns::FilterCondition;
pub(crate) use restrictions::values_of;
use restrictions::{columns_of, read};
use serde_json::Value as Json;
use store_api::ColumnsPredicate;
use store_api::types::{AnnRequest, Filter};
use value::predicate::{
    ColumnObservation, ComparisonOperator, OneOf, Predicate, SearchedCollection, TuplePredicate,
};
use value::{CqlType, clustering_form};

use crate::identity::{ColumnPlace, IndexIdentity};
use crate::keys::{self, EncodedValues, KeySchema, KeyTable, PrimaryKey};

/// The most partitions whose rows are looked up by the partition key. More are found by checks.
const PARTITIONS_MAX: usize = 1000;

/// The filter of a search of one index.
#[derive(Debug)]
pub(crate) struct SearchFilter {
    keys: KeySchema,
    /// Conditions on only filter columns.
    conditions: Vec<FilterCondition>,
    checks: Vec<RowCheck>,
    /// For each column of the partition key the values it may have, if the filter names them.
    partitions: Vec<Option<HashSet<Bytes>>>,
}

/// A restriction that no index can serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnsupportedRestriction {
    /// The index keeps no such column.
    #[error(
        "column {0} is not part of the primary key or filtering columns of the index: name it in \
         the index, as in ON table (vector, {0})"
    )]
    Column(String),
    /// The index can't return a column.
    #[error(
        "column {0} can't be returned, as the index doesn't store it: name it in the index, as in \
         ON table (vector, {0})"
    )]
    Returned(String),
    /// A value has no such type.
    #[error("column {column} is of type {cql_type}, and {value} is no such value")]
    Value {
        /// The restricted column.
        column: String,
        /// The type of the column.
        cql_type: CqlType,
        /// The value, as JSON.
        value: Json,
    },
    /// A column is no collection of the kind that the restriction looks into.
    #[error("column {column} is of type {cql_type}, which has no {what}")]
    Kind {
        /// The restricted column.
        column: String,
        /// The type of the column.
        cql_type: CqlType,
        /// The parts that the restriction looks for.
        what: &'static str,
    },
    /// A predicate is on values of another type than those of its column.
    #[error("column {column} is of type {cql_type} by now: ask again")]
    Retyped {
        /// The restricted column.
        column: String,
        /// The type of the column.
        cql_type: CqlType,
    },
    /// A token is not of the whole partition key.
    #[error("a token is of all columns of the partition key, in their order")]
    Token,
    /// A tuple has another length than the columns it is compared with.
    #[error("{columns} columns are compared with a tuple of {values} values")]
    Arity {
        /// The number of columns.
        columns: usize,
        /// The number of values.
        values: usize,
    },
}

#[derive(Debug)]
enum RowCheck {
    /// The key column at this position has one of these values, in the form of encoded keys.
    OneOf(usize, HashSet<Bytes>),
    Column(ColumnPlace, Predicate),
    Tuple(Vec<ColumnPlace>, TuplePredicate),
    /// The token of the partition key compares so with this number.
    Token(ComparisonOperator, i64),
}

/// The columns that a search needs of an index: those that it restricts, and those whose values it
/// wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchRequirements<'a> {
    /// All that are restricted.
    pub columns: Vec<&'a str>,
    /// Those that must equal a value, or one of several.
    pub equal: Vec<&'a str>,
    /// Whether the user said ALLOW FILTERING.
    pub is_allowed: bool,
    /// Those whose values the answer shall have.
    pub returned: &'a [String],
    /// Whether only the named index may answer, and no other on its column.
    pub is_for_one: bool,
}

impl<'a> SearchRequirements<'a> {
    /// The columns that a search needs.
    pub(crate) fn by(search: &'a AnnRequest) -> SearchRequirements<'a> {
        let mut needed = SearchRequirements {
            returned: search.return_columns.as_deref().unwrap_or_default(),
            is_for_one: !search.routing,
            ..SearchRequirements::default()
        };
        let Some(filter) = &search.filter else {
            return needed;
        };
        needed.is_allowed = filter.allow_filtering;
        for restriction in &filter.restrictions {
            let (columns, is_equality) = columns_of(restriction);
            let columns = columns.iter().map(String::as_str);
            if is_equality {
                needed.equal.extend(columns.clone());
            }
            needed.columns.extend(columns);
        }
        needed
    }

    /// The columns that predicates need, too. Whoever has them checks the rows, so they need no
    /// ALLOW FILTERING.
    #[must_use]
    pub(crate) fn and(mut self, predicates: &'a [ColumnsPredicate]) -> SearchRequirements<'a> {
        self.is_allowed |= !predicates.is_empty();
        for predicate in predicates {
            let columns = predicate.columns().iter().map(String::as_str);
            if predicate.is_equality() {
                self.equal.extend(columns.clone());
            }
            self.columns.extend(columns);
        }
        self
    }

    /// Whether an index has all of the columns. A local one needs its key restricted as well.
    pub(crate) fn fits(&self, index: &IndexIdentity) -> bool {
        let mut key = index.local_key.iter();
        key.all(|column| self.equal.contains(&column.as_str())) && self.are_in(index)
    }

    /// Whether an index has all of the columns.
    pub(crate) fn are_in(&self, index: &IndexIdentity) -> bool {
        self.columns.iter().all(|column| index.keeps(column))
            && self.returned.iter().all(|column| index.returns(column))
    }

    /// The restricted columns that are not of the index's local key.
    pub(crate) fn left_by(&self, index: &IndexIdentity) -> impl Iterator<Item = &'a str> {
        let columns = self.columns.iter().copied();
        columns.filter(|column| !index.local_key.iter().any(|key| key == column))
    }
}

/// Whether an index keeps the columns of a predicate, as values of the types that it compares.
pub(crate) fn suits(index: &IndexIdentity, predicate: &ColumnsPredicate) -> bool {
    let has_type = |(name, cql_type): (&String, &CqlType)| {
        index.place(name).is_some_and(|(_, of)| of == cql_type)
    };
    match predicate {
        ColumnsPredicate::Column { column, predicate } => index
            .place(column)
            .is_some_and(|(_, cql_type)| is_of(cql_type, predicate)),
        ColumnsPredicate::Tuple { columns, predicate } => {
            let types = types_of(predicate);
            types.len() == columns.len() && columns.iter().zip(types).all(has_type)
        }
        ColumnsPredicate::Token { .. } => true,
    }
}

/// Whether a predicate is one on values of a type.
fn is_of(cql_type: &CqlType, predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Compare { cql_type: of, .. } | Predicate::NotEqual { cql_type: of, .. } => {
            of == cql_type
        }
        Predicate::In(list) => list.cql_type() == cql_type,
        Predicate::Like(_) => matches!(cql_type, CqlType::Text | CqlType::Ascii),
        Predicate::Contains { collection, .. } => match (collection, cql_type) {
            (SearchedCollection::List(of), CqlType::List { element, .. })
            | (SearchedCollection::Set(of), CqlType::Set { element, .. }) => *of == **element,
            (SearchedCollection::MapValues(of), CqlType::Map { value, .. }) => *of == **value,
            _ => false,
        },
        Predicate::ContainsKey { key_type, .. } => {
            matches!(cql_type, CqlType::Map { key, .. } if **key == *key_type)
        }
        Predicate::Entry {
            key_type,
            value_type,
            ..
        } => matches!(
            cql_type,
            CqlType::Map { key, value, .. } if **key == *key_type && **value == *value_type
        ),
    }
}

/// Whether values that are equal have the same bytes in the form of encoded keys.
fn is_equal_by_bytes(cql_type: &CqlType) -> bool {
    !matches!(
        cql_type,
        CqlType::Boolean
            | CqlType::Float
            | CqlType::Double
            | CqlType::List { .. }
            | CqlType::Set { .. }
            | CqlType::Map { .. }
            | CqlType::Tuple(_)
            | CqlType::UserType { .. }
            | CqlType::Vector { .. }
    )
}

fn types_of(predicate: &TuplePredicate) -> &[CqlType] {
    match predicate {
        TuplePredicate::Compare { types, .. } => types,
        TuplePredicate::In(list) => list.types(),
    }
}

impl SearchFilter {
    /// Makes a filter of the restrictions of a request and of predicates; `None` if there are none.
    ///
    /// # Errors
    /// If the index does not keep a column, or a value is none of its column's type.
    pub(crate) fn new(
        index: &IndexIdentity,
        filter: Option<&Filter>,
        predicates: &[ColumnsPredicate],
    ) -> Result<Option<Box<SearchFilter>>, UnsupportedRestriction> {
        let mut all = read(index, filter)?;
        all.extend_from_slice(predicates);
        if all.is_empty() {
            return Ok(None);
        }
        let mut made = Box::new(SearchFilter {
            keys: index.keys.clone(),
            conditions: Vec::new(),
            checks: Vec::new(),
            partitions: vec![None; index.keys.partition.len()],
        });
        for predicate in all {
            made.add(index, predicate)?;
        }
        Ok(Some(made))
    }

    fn add(
        &mut self,
        index: &IndexIdentity,
        predicate: ColumnsPredicate,
    ) -> Result<(), UnsupportedRestriction> {
        match predicate {
            ColumnsPredicate::Column { column, predicate } => {
                let column = RestrictedColumn::of(index, &column)?;
                if !is_of(column.cql_type, &predicate) {
                    return Err(column.is_retyped());
                }
                self.add_to(&column, predicate);
            }
            ColumnsPredicate::Tuple { columns, predicate } => {
                let columns = TupleColumns::of(index, &columns)?;
                columns.check(types_of(&predicate))?;
                self.put_tuple(columns.places(), predicate);
            }
            ColumnsPredicate::Token {
                columns,
                comparison,
                token,
            } => {
                let key = self.keys.partition.iter().map(|column| &column.name);
                if !key.eq(&columns) {
                    return Err(UnsupportedRestriction::Token);
                }
                self.checks.push(RowCheck::Token(comparison, token));
            }
        }
        Ok(())
    }

    fn add_to(&mut self, column: &RestrictedColumn<'_>, predicate: Predicate) {
        match predicate {
            Predicate::In(list) => self.add_in(column, list),
            Predicate::Compare {
                cql_type,
                comparison: ComparisonOperator::Eq,
                value,
            } => self.add_in(column, OneOf::new(cql_type, vec![value])),
            predicate => self.put(column.place, predicate),
        }
    }

    fn put(&mut self, place: ColumnPlace, predicate: Predicate) {
        match place {
            ColumnPlace::Filter(column) => self
                .conditions
                .push(FilterCondition::Column { column, predicate }),
            ColumnPlace::Key(_) => self.checks.push(RowCheck::Column(place, predicate)),
        }
    }

    /// Adds `column IN values`, of which an equality is one with a single value.
    fn add_in(&mut self, column: &RestrictedColumn<'_>, list: OneOf) {
        match column.place {
            ColumnPlace::Filter(_) => self.put(column.place, Predicate::In(list)),
            ColumnPlace::Key(at) if at < self.partitions.len() => {
                let values: HashSet<Bytes> = list.values().iter().cloned().collect();
                let named = self.partitions[at].get_or_insert_with(|| values.clone());
                named.retain(|value| values.contains(value));
                self.checks.push(RowCheck::OneOf(at, values));
            }
            // Values of such a type that are equal may differ in their bytes, in a key, too.
            ColumnPlace::Key(_) if !is_equal_by_bytes(column.cql_type) => {
                self.put(column.place, Predicate::In(list));
            }
            ColumnPlace::Key(at) => {
                let form = |value: &Bytes| match clustering_form(column.cql_type, value) {
                    Cow::Borrowed(form) => value.slice_ref(form),
                    Cow::Owned(normal) => Bytes::from(normal),
                };
                let values = list.values().iter().map(form).collect();
                self.checks.push(RowCheck::OneOf(at, values));
            }
        }
    }

    fn put_tuple(&mut self, places: Vec<ColumnPlace>, predicate: TuplePredicate) {
        let filters = places.iter().map(|place| match place {
            ColumnPlace::Filter(at) => Some(*at),
            ColumnPlace::Key(_) => None,
        });
        match filters.collect::<Option<Vec<usize>>>() {
            Some(columns) => self
                .conditions
                .push(FilterCondition::Tuple { columns, predicate }),
            None => self.checks.push(RowCheck::Tuple(places, predicate)),
        }
    }

    /// The conditions on only filter columns. Together with [`SearchFilter::checks_hold`] they are
    /// the filter.
    pub(crate) fn conditions(&self) -> &[FilterCondition] {
        &self.conditions
    }

    /// Whether the filter restricts columns outside the primary key.
    pub(crate) fn has_filter_columns(&self) -> bool {
        let is_filter = |place: &ColumnPlace| matches!(place, ColumnPlace::Filter(_));
        !self.conditions.is_empty()
            || self.checks.iter().any(|check| match check {
                RowCheck::OneOf(..) | RowCheck::Token(..) => false,
                RowCheck::Column(place, _) => is_filter(place),
                RowCheck::Tuple(places, _) => places.iter().any(is_filter),
            })
    }

    /// Whether all other conditions hold for the row of an id.
    pub(crate) fn checks_hold(&self, keys: &KeyTable, id: u32) -> bool {
        let Some(key) = keys.key(id) else {
            return false;
        };
        let mut checks = self.checks.iter();
        checks.all(|check| check.holds(&self.keys, keys, key, id))
    }

    /// The ids of the rows in the partitions that the filter names; `None` if it does not name
    /// them, or too many. Some of them may not satisfy the filter.
    pub(crate) fn of_partitions(&self, keys: &KeyTable) -> Option<Vec<u32>> {
        let named: Vec<&HashSet<Bytes>> = self
            .partitions
            .iter()
            .map(Option::as_ref)
            .collect::<Option<_>>()?;
        let count = named
            .iter()
            .try_fold(1_usize, |count, values| count.checked_mul(values.len()))?;
        if count > PARTITIONS_MAX {
            return None;
        }
        let mut tuples: Vec<Vec<&[u8]>> = vec![Vec::new()];
        for values in named {
            let longer = tuples.iter().flat_map(|tuple| {
                let with = |value| [tuple.as_slice(), &[value]].concat();
                values.iter().map(move |value: &Bytes| with(&value[..]))
            });
            tuples = longer.collect();
        }
        let ids = tuples.into_iter().flat_map(|tuple| {
            if self.keys.has_clustering() {
                let partition = self.keys.encode_partition(tuple);
                return keys.partition(partition.as_bytes());
            }
            let key: PrimaryKey = self.keys.encode(tuple);
            keys.id(key.as_bytes()).into_iter().collect()
        });
        Some(ids.collect())
    }
}

impl RowCheck {
    fn holds(&self, schema: &KeySchema, table: &KeyTable, key: &[u8], id: u32) -> bool {
        let value = |place: ColumnPlace| match place {
            ColumnPlace::Key(at) => EncodedValues::of(key).nth(at).map(Cow::Borrowed),
            ColumnPlace::Filter(at) => table.filters().value(at, id),
        };
        match self {
            RowCheck::OneOf(at, values) => {
                let value = EncodedValues::of(key).nth(*at);
                value.is_some_and(|value| values.contains(value))
            }
            RowCheck::Column(place, predicate) => {
                let value = value(*place);
                predicate.holds(observed(value.as_deref()))
            }
            RowCheck::Tuple(places, predicate) => {
                let values: Vec<_> = places.iter().map(|place| value(*place)).collect();
                predicate.holds(|at| values.get(at)?.as_deref())
            }
            RowCheck::Token(comparison, token) => {
                comparison.accepts(keys::token(schema, key).cmp(token))
            }
        }
    }
}

fn observed(value: Option<&[u8]>) -> ColumnObservation<'_, std::iter::Empty<(&[u8], &[u8])>> {
    value.map_or(ColumnObservation::Null, ColumnObservation::Value)
}

/// A column that a search can be filtered by.
struct RestrictedColumn<'a> {
    name: &'a str,
    cql_type: &'a CqlType,
    place: ColumnPlace,
}

impl<'a> RestrictedColumn<'a> {
    fn of(
        index: &'a IndexIdentity,
        name: &'a str,
    ) -> Result<RestrictedColumn<'a>, UnsupportedRestriction> {
        let place = index.place(name);
        let (place, cql_type) =
            place.ok_or_else(|| UnsupportedRestriction::Column(name.to_owned()))?;
        Ok(RestrictedColumn {
            name,
            cql_type,
            place,
        })
    }

    fn is_retyped(&self) -> UnsupportedRestriction {
        UnsupportedRestriction::Retyped {
            column: self.name.to_owned(),
            cql_type: self.cql_type.clone(),
        }
    }
}

/// Columns that are compared with tuples.
struct TupleColumns<'a>(Vec<RestrictedColumn<'a>>);

impl<'a> TupleColumns<'a> {
    fn of(
        index: &'a IndexIdentity,
        names: &'a [String],
    ) -> Result<TupleColumns<'a>, UnsupportedRestriction> {
        let columns = names.iter().map(|name| RestrictedColumn::of(index, name));
        Ok(TupleColumns(columns.collect::<Result<_, _>>()?))
    }

    /// Checks that the columns are of the types that are compared.
    fn check(&self, types: &[CqlType]) -> Result<(), UnsupportedRestriction> {
        let TupleColumns(columns) = self;
        if columns.len() != types.len() {
            return Err(self.differ_from(types.len()));
        }
        let mut compared = columns.iter().zip(types);
        match compared.find(|(column, cql_type)| column.cql_type != *cql_type) {
            Some((column, _)) => Err(column.is_retyped()),
            None => Ok(()),
        }
    }

    fn differ_from(&self, values: usize) -> UnsupportedRestriction {
        let TupleColumns(columns) = self;
        UnsupportedRestriction::Arity {
            columns: columns.len(),
            values,
        }
    }

    fn types(&self) -> Vec<CqlType> {
        self.0
            .iter()
            .map(|column| column.cql_type.clone())
            .collect()
    }

    fn places(&self) -> Vec<ColumnPlace> {
        self.0.iter().map(|column| column.place).collect()
    }
}

#[cfg(test)]
mod tests;

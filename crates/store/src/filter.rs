//! The filter of a search: its predicates as conditions on the rows of one index. Those of a
//! request by HTTP are read from its restrictions first (contract, section 1.7; `restrictions`).
//!
//! Columns of the primary key are in the [`crate::keys`], all others that can be filtered by in
//! [`filter_columns::FilterColumns`]. A condition on only columns of the second kind is answered by
//! their postings. All other conditions are *checks*, which look at the row of an id. Where a
//! filter names whole partitions, the ids of their rows are the only ones that are looked at.
//!
//! Conditions that are made of others (OR, NOT) and those on words are *parts* (`tree`). A part is
//! a check, too, but it may name the ids of the only rows that can satisfy it.
//!
//! A column of the partition key is compared byte by byte for equality, as the database does. A
//! null satisfies nothing.

mod check;
mod restrictions;
mod tree;
mod words;

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use check::{CheckedRow, RowCheck};
use filter_columns::{FilterCondition, IdSet};
pub(crate) use restrictions::values_of;
use restrictions::{columns_of, read};
use serde_json::Value as Json;
use store_api::ColumnsPredicate;
use store_api::types::Filter;
use tree::FilterTree;
use value::predicate::{OneOf, Predicate, SearchedCollection, TuplePredicate};
use value::{CqlType, clustering_form};
pub(crate) use words::{TextVerdicts, WordRows, WordsCondition};

use crate::identity::{ColumnPlace, IndexIdentity};
use crate::keys::{KeySchema, KeyTable, PrimaryKey};

/// The most partitions whose rows are looked up by the partition key. More are found by checks.
const PARTITIONS_MAX: usize = 1000;

/// The filter of a search of one index.
#[derive(Clone, Debug)]
pub(crate) struct SearchFilter {
    keys: KeySchema,
    /// Conditions on only filter columns.
    conditions: Vec<FilterCondition>,
    checks: Vec<RowCheck>,
    /// Conditions that are made of others, and those on words.
    parts: Vec<FilterTree>,
    /// The conditions on words, by their numbers in the parts.
    words: Vec<WordsCondition>,
    /// The rows that the words name now; none before they were looked up.
    named: Vec<WordRows>,
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
    /// Whether a local index need not have its key restricted, as no rows are looked for.
    pub is_without_rows: bool,
}

impl<'a> SearchRequirements<'a> {
    /// The columns that a filter needs, and those whose values are wanted.
    pub(crate) fn by(
        filter: Option<&'a Filter>,
        returned: Option<&'a [String]>,
    ) -> SearchRequirements<'a> {
        let mut needed = SearchRequirements {
            returned: returned.unwrap_or_default(),
            ..SearchRequirements::default()
        };
        let Some(filter) = filter else {
            return needed;
        };
        needed.is_allowed = filter.allow_filtering;
        for restriction in filter.conjuncts() {
            let (columns, is_equality) = columns_of(restriction);
            if is_equality {
                needed.equal.extend(columns.iter().map(String::as_str));
            }
        }
        for restriction in filter.all_restrictions() {
            let (columns, _) = columns_of(restriction);
            needed.columns.extend(columns.iter().map(String::as_str));
        }
        needed
    }

    /// The columns that predicates need, too. Their holder checks the rows, so they need no
    /// ALLOW FILTERING.
    #[must_use]
    pub(crate) fn and(mut self, predicates: &'a [ColumnsPredicate]) -> SearchRequirements<'a> {
        self.is_allowed |= !predicates.is_empty();
        for predicate in predicates.iter().flat_map(ColumnsPredicate::conjuncts) {
            let columns = predicate.columns();
            if predicate.is_equality() {
                self.equal.extend(columns.iter().copied());
            }
            self.columns.extend(columns);
        }
        self
    }

    /// Whether an index has all of the columns. A local one needs its key restricted as well.
    pub(crate) fn fits(&self, index: &IndexIdentity) -> bool {
        let mut key = index.local_key.iter();
        let is_restricted = |column: &String| self.equal.contains(&column.as_str());
        (self.is_without_rows || key.all(is_restricted)) && self.are_in(index)
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
        ColumnsPredicate::Token { .. } | ColumnsPredicate::Words { .. } => true,
        ColumnsPredicate::All(parts) | ColumnsPredicate::Any(parts) => {
            parts.iter().all(|part| suits(index, part))
        }
        ColumnsPredicate::Not(inner) => suits(index, inner),
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
            parts: Vec::new(),
            words: Vec::new(),
            named: Vec::new(),
            partitions: vec![None; index.keys.partition.len()],
        });
        for predicate in all {
            made.add(index, predicate)?;
        }
        Ok(Some(made))
    }

    /// A filter of the predicates on the key of a local index alone, by which it knows the rows of
    /// one tenant; `None` if the index is none or the predicates do not name a tenant.
    ///
    /// # Errors
    /// As with [`SearchFilter::new`].
    pub(crate) fn of_tenant(
        index: &IndexIdentity,
        filter: Option<&Filter>,
        predicates: &[ColumnsPredicate],
    ) -> Result<Option<Box<SearchFilter>>, UnsupportedRestriction> {
        if index.local_key.is_empty() {
            return Ok(None);
        }
        let of_filter = read(index, filter)?;
        let all = of_filter.iter().chain(predicates);
        let all = all.flat_map(ColumnsPredicate::conjuncts);
        let is_of_key = |column: &&str| index.local_key.iter().any(|key| key == column);
        let of_key = all.filter(|predicate| {
            predicate.is_equality() && predicate.columns().iter().all(is_of_key)
        });
        let of_key: Vec<ColumnsPredicate> = of_key.cloned().collect();
        SearchFilter::new(index, None, &of_key)
    }

    fn add(
        &mut self,
        index: &IndexIdentity,
        predicate: ColumnsPredicate,
    ) -> Result<(), UnsupportedRestriction> {
        let part = self.tree(index, predicate, false)?;
        self.put(part);
        Ok(())
    }

    /// Adds a condition that must hold.
    fn put(&mut self, part: FilterTree) {
        match part {
            FilterTree::All(parts) => parts.into_iter().for_each(|part| self.put(part)),
            FilterTree::Condition(condition) => self.conditions.push(condition),
            FilterTree::Check(check) => {
                if let RowCheck::OneOf(at, values) = &check
                    && let Some(partition) = self.partitions.get_mut(*at)
                {
                    let named = partition.get_or_insert_with(|| values.clone());
                    named.retain(|value| values.contains(value));
                }
                self.checks.push(check);
            }
            part => self.parts.push(part),
        }
    }

    /// Whether the filter is a conjunction of conditions that are not made of others, nor on words.
    pub(crate) fn is_plain(&self) -> bool {
        self.parts.is_empty()
    }

    /// The conditions on words. A search goes by them once they are [looked
    /// up](SearchFilter::naming).
    pub(crate) fn words(&self) -> &[WordsCondition] {
        &self.words
    }

    /// The filter by the rows that its words name now, one for each of them.
    #[must_use]
    pub(crate) fn naming(&self, named: Vec<WordRows>) -> SearchFilter {
        SearchFilter {
            named,
            ..self.clone()
        }
    }

    /// An upper bound of the number of rows that satisfy the parts; `None` if they do not name any.
    pub(crate) fn estimate(&self, keys: &KeyTable) -> Option<usize> {
        tree::estimate_all(&self.parts, keys, &self.named)
    }

    /// The ids of the rows that may satisfy the parts, if they name any.
    pub(crate) fn select(&self, keys: &KeyTable) -> Option<IdSet> {
        tree::select_all(&self.parts, keys, &self.named)
    }

    /// The conditions on only filter columns. Together with [`SearchFilter::checks_hold`] they are
    /// the filter.
    pub(crate) fn conditions(&self) -> &[FilterCondition] {
        &self.conditions
    }

    /// Whether the filter restricts columns outside the primary key.
    pub(crate) fn has_filter_columns(&self) -> bool {
        !self.conditions.is_empty()
            || self.checks.iter().any(RowCheck::has_filter_columns)
            || self.parts.iter().any(FilterTree::has_filter_columns)
    }

    /// Whether all other conditions hold for the row of an id.
    pub(crate) fn checks_hold(&self, keys: &KeyTable, id: u32) -> bool {
        let Some(key) = keys.key(id) else {
            return false;
        };
        let row = CheckedRow {
            schema: &self.keys,
            table: keys,
            key,
            id,
        };
        self.checks.iter().all(|check| check.holds(&row))
            && self.parts.iter().all(|part| part.holds(&row, &self.named))
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

    /// `column IN values`, of which an equality is one with a single value.
    fn one_of(&self, index: &IndexIdentity, list: OneOf) -> FilterTree {
        match self.place {
            ColumnPlace::Filter(_) => self.leaf(Predicate::In(list)),
            ColumnPlace::Key(at) if at < index.keys.partition.len() => {
                let values = list.values().iter().cloned().collect();
                FilterTree::Check(RowCheck::OneOf(at, values))
            }
            // Values of such a type that are equal may differ in their bytes, in a key, too.
            ColumnPlace::Key(_) if !is_equal_by_bytes(self.cql_type) => {
                self.leaf(Predicate::In(list))
            }
            ColumnPlace::Key(at) => {
                let form = |value: &Bytes| match clustering_form(self.cql_type, value) {
                    Cow::Borrowed(form) => value.slice_ref(form),
                    Cow::Owned(normal) => Bytes::from(normal),
                };
                let values = list.values().iter().map(form).collect();
                FilterTree::Check(RowCheck::OneOf(at, values))
            }
        }
    }

    fn leaf(&self, predicate: Predicate) -> FilterTree {
        match self.place {
            ColumnPlace::Filter(column) => {
                FilterTree::Condition(FilterCondition::Column { column, predicate })
            }
            ColumnPlace::Key(_) => FilterTree::Check(RowCheck::Column(self.place, predicate)),
        }
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

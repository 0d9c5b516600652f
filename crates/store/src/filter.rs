//! The filter of a search: restrictions of a request (contract, section 1.7) as conditions on the
//! rows of one index.
//!
//! Columns of the primary key lie in the [keys](crate::keys), all others that can be filtered by in
//! [`columns::Columns`]. A condition on columns of the second kind alone is answered by their
//! postings. All other conditions are *checks*, which look at the row of an id. Where a filter
//! names whole partitions, the ids of their rows are the only ones that are looked at.
//!
//! A column of the partition key is compared byte by byte for equality, as the database does. A
//! null satisfies nothing.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use columns::Condition;
use serde_json::Value as Json;
use store_api::types::{AnnRequest, Filter, Restriction};
use value::predicate::{
    Collection, Comparison, Observed, OneOf, OneOfTuples, Predicate, TuplePredicate,
};
use value::{CqlType, clustering_form, from_key_json};

use crate::identity::{IndexIdentity, Place};
use crate::keys::{self, KeySchema, KeyTable, PrimaryKey, Values};

/// The most partitions whose rows are looked up by the partition key. More are found by checks.
const PARTITIONS_MAX: usize = 1000;

/// The filter of a search of one index.
#[derive(Debug)]
pub struct RowFilter {
    keys: KeySchema,
    /// Conditions on filter columns alone.
    conditions: Vec<Condition>,
    checks: Vec<Check>,
    /// For each column of the partition key the values it may have, if the filter names them.
    partitions: Vec<Option<HashSet<Bytes>>>,
}

/// A restriction that no index can serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuitable {
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
enum Check {
    /// The key column at this position has one of these values, in the form of encoded keys.
    OneOf(usize, HashSet<Bytes>),
    Column(Place, Predicate),
    Tuple(Vec<Place>, TuplePredicate),
    /// The token of the partition key compares so with this number.
    Token(Comparison, i64),
}

/// The columns that a search needs of an index: those that it restricts, and those whose values it
/// wants.
#[derive(Clone, Debug, Default)]
pub struct Needed<'a> {
    /// All that are restricted.
    pub columns: Vec<&'a str>,
    /// Those that must equal a value, or one of several.
    pub equal: Vec<&'a str>,
    /// Whether the user said ALLOW FILTERING.
    pub is_allowed: bool,
    /// Those whose values the answer shall have.
    pub returned: &'a [String],
    /// Whether the named index alone may answer, and no other on its column.
    pub is_for_one: bool,
}

impl<'a> Needed<'a> {
    /// The columns that a search needs.
    pub fn by(search: &'a AnnRequest) -> Needed<'a> {
        let mut needed = Needed {
            returned: search.return_columns.as_deref().unwrap_or_default(),
            is_for_one: !search.routing,
            ..Needed::default()
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

    /// Whether an index has all of the columns. A local one needs its key restricted as well.
    pub fn fits(&self, index: &IndexIdentity) -> bool {
        let mut key = index.local_key.iter();
        key.all(|column| self.equal.contains(&column.as_str())) && self.are_in(index)
    }

    /// Whether an index has all of the columns.
    pub fn are_in(&self, index: &IndexIdentity) -> bool {
        self.columns.iter().all(|column| index.keeps(column))
            && self.returned.iter().all(|column| index.returns(column))
    }

    /// The restricted columns that are not of the index's local key.
    pub fn left_by(&self, index: &IndexIdentity) -> impl Iterator<Item = &'a str> {
        let columns = self.columns.iter().copied();
        columns.filter(|column| !index.local_key.iter().any(|key| key == column))
    }
}

/// The columns of a restriction.
pub fn restricted_columns(restriction: &Restriction) -> &[String] {
    columns_of(restriction).0
}

/// The columns of a restriction, and whether it asks them to equal something.
fn columns_of(restriction: &Restriction) -> (&[String], bool) {
    use Restriction::{
        Contains, ContainsKey, Entry, Eq, EqTuple, Ge, GeTuple, Gt, GtTuple, In, InTuple, Le,
        LeTuple, Lt, LtTuple, TokenEq, TokenGe, TokenGt, TokenLe, TokenLt,
    };
    match restriction {
        Eq { lhs, .. } | In { lhs, .. } => (std::slice::from_ref(lhs), true),
        Lt { lhs, .. }
        | Le { lhs, .. }
        | Gt { lhs, .. }
        | Ge { lhs, .. }
        | Contains { lhs, .. }
        | ContainsKey { lhs, .. }
        | Entry { lhs, .. } => (std::slice::from_ref(lhs), false),
        EqTuple { lhs, .. } | InTuple { lhs, .. } => (lhs, true),
        LtTuple { lhs, .. }
        | LeTuple { lhs, .. }
        | GtTuple { lhs, .. }
        | GeTuple { lhs, .. }
        | TokenEq { lhs, .. }
        | TokenLt { lhs, .. }
        | TokenLe { lhs, .. }
        | TokenGt { lhs, .. }
        | TokenGe { lhs, .. } => (lhs, false),
    }
}

/// The number of values in a filter. A tuple has as many as it has elements.
pub fn values_of(filter: &Filter) -> usize {
    use Restriction::{
        Contains, ContainsKey, Entry, Eq, EqTuple, Ge, GeTuple, Gt, GtTuple, In, InTuple, Le,
        LeTuple, Lt, LtTuple, TokenEq, TokenGe, TokenGt, TokenLe, TokenLt,
    };
    let values = filter
        .restrictions
        .iter()
        .map(|restriction| match restriction {
            Eq { .. }
            | Lt { .. }
            | Le { .. }
            | Gt { .. }
            | Ge { .. }
            | Contains { .. }
            | ContainsKey { .. }
            | TokenEq { .. }
            | TokenLt { .. }
            | TokenLe { .. }
            | TokenGt { .. }
            | TokenGe { .. } => 1,
            Entry { .. } => 2,
            In { rhs, .. }
            | EqTuple { rhs, .. }
            | LtTuple { rhs, .. }
            | LeTuple { rhs, .. }
            | GtTuple { rhs, .. }
            | GeTuple { rhs, .. } => rhs.len(),
            InTuple { rhs, .. } => rhs.iter().map(Vec::len).sum(),
        });
    values.sum()
}

impl RowFilter {
    /// Makes a filter for an index; `None` if it restricts nothing.
    ///
    /// # Errors
    /// If the index does not keep a column, or a value is none of its column's type.
    pub fn new(
        index: &IndexIdentity,
        filter: Option<&Filter>,
    ) -> Result<Option<Box<RowFilter>>, Unsuitable> {
        let Some(filter) = filter.filter(|filter| !filter.restrictions.is_empty()) else {
            return Ok(None);
        };
        let mut made = Box::new(RowFilter {
            keys: index.keys.clone(),
            conditions: Vec::new(),
            checks: Vec::new(),
            partitions: vec![None; index.keys.partition.len()],
        });
        for restriction in &filter.restrictions {
            made.add(index, restriction)?;
        }
        Ok(Some(made))
    }

    fn add(&mut self, index: &IndexIdentity, restriction: &Restriction) -> Result<(), Unsuitable> {
        use Comparison::{Eq, Gt, GtEq, Lt, LtEq};
        match restriction {
            Restriction::Eq { lhs, rhs } => self.add_in(index, lhs, std::slice::from_ref(rhs)),
            Restriction::In { lhs, rhs } => self.add_in(index, lhs, rhs),
            Restriction::Lt { lhs, rhs } => self.add_range(index, lhs, Lt, rhs),
            Restriction::Le { lhs, rhs } => self.add_range(index, lhs, LtEq, rhs),
            Restriction::Gt { lhs, rhs } => self.add_range(index, lhs, Gt, rhs),
            Restriction::Ge { lhs, rhs } => self.add_range(index, lhs, GtEq, rhs),
            Restriction::EqTuple { lhs, rhs } => self.add_tuple(index, lhs, Eq, rhs),
            Restriction::LtTuple { lhs, rhs } => self.add_tuple(index, lhs, Lt, rhs),
            Restriction::LeTuple { lhs, rhs } => self.add_tuple(index, lhs, LtEq, rhs),
            Restriction::GtTuple { lhs, rhs } => self.add_tuple(index, lhs, Gt, rhs),
            Restriction::GeTuple { lhs, rhs } => self.add_tuple(index, lhs, GtEq, rhs),
            Restriction::InTuple { lhs, rhs } => {
                let columns = Columns::of(index, lhs)?;
                let tuples = rhs.iter().map(|tuple| columns.values(tuple));
                let tuples = tuples.collect::<Result<_, _>>()?;
                let predicate = TuplePredicate::In(OneOfTuples::new(columns.types(), tuples));
                self.put_tuple(columns.places(), predicate);
                Ok(())
            }
            Restriction::Contains { lhs, rhs } => self.add_part(index, lhs, |column| {
                let (collection, element) = match column.cql_type {
                    CqlType::List { element, .. } => {
                        (Collection::List((**element).clone()), element)
                    }
                    CqlType::Set { element, .. } => (Collection::Set((**element).clone()), element),
                    CqlType::Map { value, .. } => (Collection::MapValues((**value).clone()), value),
                    _ => return Err(column.has_no("elements")),
                };
                let value = column.part(element, rhs)?;
                Ok(Predicate::Contains { collection, value })
            }),
            Restriction::ContainsKey { lhs, rhs } => self.add_part(index, lhs, |column| {
                let CqlType::Map { key, .. } = column.cql_type else {
                    return Err(column.has_no("keys"));
                };
                Ok(Predicate::ContainsKey {
                    key_type: (**key).clone(),
                    key: column.part(key, rhs)?,
                })
            }),
            Restriction::Entry { lhs, key: at, rhs } => self.add_part(index, lhs, |column| {
                let CqlType::Map { key, value, .. } = column.cql_type else {
                    return Err(column.has_no("entries"));
                };
                Ok(Predicate::Entry {
                    key_type: (**key).clone(),
                    value_type: (**value).clone(),
                    key: column.part(key, at)?,
                    value: column.part(value, rhs)?,
                })
            }),
            Restriction::TokenEq { lhs, rhs } => self.add_token(lhs, Eq, *rhs),
            Restriction::TokenLt { lhs, rhs } => self.add_token(lhs, Lt, *rhs),
            Restriction::TokenLe { lhs, rhs } => self.add_token(lhs, LtEq, *rhs),
            Restriction::TokenGt { lhs, rhs } => self.add_token(lhs, Gt, *rhs),
            Restriction::TokenGe { lhs, rhs } => self.add_token(lhs, GtEq, *rhs),
        }
    }

    /// Adds a predicate that looks into a collection.
    fn add_part(
        &mut self,
        index: &IndexIdentity,
        column: &str,
        predicate: impl FnOnce(&Column<'_>) -> Result<Predicate, Unsuitable>,
    ) -> Result<(), Unsuitable> {
        let column = Column::of(index, column)?;
        let predicate = predicate(&column)?;
        self.put(column.place, predicate);
        Ok(())
    }

    fn add_token(
        &mut self,
        columns: &[String],
        comparison: Comparison,
        token: i64,
    ) -> Result<(), Unsuitable> {
        let key = self.keys.partition.iter().map(|column| &column.name);
        if !key.eq(columns) {
            return Err(Unsuitable::Token);
        }
        self.checks.push(Check::Token(comparison, token));
        Ok(())
    }

    fn put(&mut self, place: Place, predicate: Predicate) {
        match place {
            Place::Filter(column) => self
                .conditions
                .push(Condition::Column { column, predicate }),
            Place::Key(_) => self.checks.push(Check::Column(place, predicate)),
        }
    }

    /// Adds `column IN values`, of which an equality is one with a single value.
    fn add_in(
        &mut self,
        index: &IndexIdentity,
        column: &str,
        values: &[Json],
    ) -> Result<(), Unsuitable> {
        let column = Column::of(index, column)?;
        let values = values.iter().map(|value| column.value(value));
        let values: Vec<Bytes> = values.collect::<Result<_, _>>()?;
        match column.place {
            Place::Filter(at) => self.conditions.push(Condition::Column {
                column: at,
                predicate: Predicate::In(OneOf::new(column.cql_type.clone(), values)),
            }),
            Place::Key(at) if at < self.partitions.len() => {
                let values: HashSet<Bytes> = values.into_iter().collect();
                let named = self.partitions[at].get_or_insert_with(|| values.clone());
                named.retain(|value| values.contains(value));
                self.checks.push(Check::OneOf(at, values));
            }
            Place::Key(at) => {
                let form = |value: Bytes| match clustering_form(column.cql_type, &value) {
                    Cow::Borrowed(_) => value.clone(),
                    Cow::Owned(normal) => Bytes::from(normal),
                };
                let values = values.into_iter().map(form).collect();
                self.checks.push(Check::OneOf(at, values));
            }
        }
        Ok(())
    }

    fn add_range(
        &mut self,
        index: &IndexIdentity,
        column: &str,
        comparison: Comparison,
        value: &Json,
    ) -> Result<(), Unsuitable> {
        let column = Column::of(index, column)?;
        let predicate = Predicate::Compare {
            cql_type: column.cql_type.clone(),
            comparison,
            value: column.value(value)?,
        };
        self.put(column.place, predicate);
        Ok(())
    }

    fn add_tuple(
        &mut self,
        index: &IndexIdentity,
        columns: &[String],
        comparison: Comparison,
        values: &[Json],
    ) -> Result<(), Unsuitable> {
        let columns = Columns::of(index, columns)?;
        let predicate = TuplePredicate::Compare {
            types: columns.types(),
            comparison,
            values: columns.values(values)?,
        };
        self.put_tuple(columns.places(), predicate);
        Ok(())
    }

    fn put_tuple(&mut self, places: Vec<Place>, predicate: TuplePredicate) {
        let filters = places.iter().map(|place| match place {
            Place::Filter(at) => Some(*at),
            Place::Key(_) => None,
        });
        match filters.collect::<Option<Vec<usize>>>() {
            Some(columns) => self
                .conditions
                .push(Condition::Tuple { columns, predicate }),
            None => self.checks.push(Check::Tuple(places, predicate)),
        }
    }

    /// The conditions on filter columns alone. Together with [`RowFilter::checks_hold`] they are
    /// the filter.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Whether the filter restricts columns outside the primary key.
    pub fn has_filter_columns(&self) -> bool {
        let is_filter = |place: &Place| matches!(place, Place::Filter(_));
        !self.conditions.is_empty()
            || self.checks.iter().any(|check| match check {
                Check::OneOf(..) | Check::Token(..) => false,
                Check::Column(place, _) => is_filter(place),
                Check::Tuple(places, _) => places.iter().any(is_filter),
            })
    }

    /// Whether all other conditions hold for the row of an id.
    pub fn checks_hold(&self, keys: &KeyTable, id: u32) -> bool {
        let Some(key) = keys.key(id) else {
            return false;
        };
        let mut checks = self.checks.iter();
        checks.all(|check| check.holds(&self.keys, keys, key, id))
    }

    /// The ids of the rows in the partitions that the filter names; `None` if it does not name
    /// them, or too many. Some of them may not satisfy the filter.
    pub fn of_partitions(&self, keys: &KeyTable) -> Option<Vec<u32>> {
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

impl Check {
    fn holds(&self, schema: &KeySchema, table: &KeyTable, key: &[u8], id: u32) -> bool {
        let value = |place: Place| match place {
            Place::Key(at) => Values::of(key).nth(at).map(Cow::Borrowed),
            Place::Filter(at) => table.filters().value(at, id),
        };
        match self {
            Check::OneOf(at, values) => {
                let value = Values::of(key).nth(*at);
                value.is_some_and(|value| values.contains(value))
            }
            Check::Column(place, predicate) => {
                let value = value(*place);
                predicate.holds(observed(value.as_deref()))
            }
            Check::Tuple(places, predicate) => {
                let values: Vec<_> = places.iter().map(|place| value(*place)).collect();
                predicate.holds(|at| values.get(at)?.as_deref())
            }
            Check::Token(comparison, token) => {
                comparison.accepts(keys::token(schema, key).cmp(token))
            }
        }
    }
}

fn observed(value: Option<&[u8]>) -> Observed<'_, std::iter::Empty<(&[u8], &[u8])>> {
    value.map_or(Observed::Null, Observed::Value)
}

/// A column that a search can be filtered by.
struct Column<'a> {
    name: &'a str,
    cql_type: &'a CqlType,
    place: Place,
}

impl<'a> Column<'a> {
    fn of(index: &'a IndexIdentity, name: &'a str) -> Result<Column<'a>, Unsuitable> {
        let place = index.place(name);
        let (place, cql_type) = place.ok_or_else(|| Unsuitable::Column(name.to_owned()))?;
        Ok(Column {
            name,
            cql_type,
            place,
        })
    }

    fn value(&self, json: &Json) -> Result<Bytes, Unsuitable> {
        self.part(self.cql_type, json)
    }

    /// A value that is of this type in the column.
    fn part(&self, cql_type: &CqlType, json: &Json) -> Result<Bytes, Unsuitable> {
        from_key_json(cql_type, json).ok_or_else(|| Unsuitable::Value {
            column: self.name.to_owned(),
            cql_type: self.cql_type.clone(),
            value: json.clone(),
        })
    }

    fn has_no(&self, what: &'static str) -> Unsuitable {
        Unsuitable::Kind {
            column: self.name.to_owned(),
            cql_type: self.cql_type.clone(),
            what,
        }
    }
}

/// Columns that are compared with tuples.
struct Columns<'a>(Vec<Column<'a>>);

impl<'a> Columns<'a> {
    fn of(index: &'a IndexIdentity, names: &'a [String]) -> Result<Columns<'a>, Unsuitable> {
        let columns = names.iter().map(|name| Column::of(index, name));
        Ok(Columns(columns.collect::<Result<_, _>>()?))
    }

    fn types(&self) -> Vec<CqlType> {
        self.0
            .iter()
            .map(|column| column.cql_type.clone())
            .collect()
    }

    fn places(&self) -> Vec<Place> {
        self.0.iter().map(|column| column.place).collect()
    }

    fn values(&self, tuple: &[Json]) -> Result<Vec<Bytes>, Unsuitable> {
        let Columns(columns) = self;
        if columns.len() != tuple.len() {
            return Err(Unsuitable::Arity {
                columns: columns.len(),
                values: tuple.len(),
            });
        }
        let values = columns.iter().zip(tuple);
        values.map(|(column, value)| column.value(value)).collect()
    }
}

#[cfg(test)]
mod tests;

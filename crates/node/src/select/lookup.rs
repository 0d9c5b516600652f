//! Lookups: what a query looks up in its secondary indexes, once the values are known.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use query::relation::PreparedRelation;
use query::row_filter::BoundRelation;
use schema::{ColumnKind, SecondaryIndex};
use storage::TableView;
use storage::read::IndexedValues;
use value::predicate::{ComparisonOperator, Predicate, TuplePredicate};
use value::{CqlType, compare};

use super::access::IndexUse;
use super::failed::{INDEX_NOT_AVAILABLE, read_failure};
use super::filter::ResidualFilter;
use crate::statement::{ExecutionParameters, storage_error};

/// The values to look up in an index.
#[derive(Clone, Debug)]
pub(super) struct IndexLookup {
    /// The index.
    pub index: Arc<SecondaryIndex>,
    /// The values, of which a row must have one.
    pub values: IndexedValues,
    /// Whether all rows of a partition have the same value.
    pub names_partitions: bool,
}

/// A value to look up in an index, or a bound of the values.
struct IndexProbe<'f> {
    comparison: ComparisonOperator,
    value: &'f Bytes,
    /// The key of a map that has the value.
    key: Option<&'f Bytes>,
    /// The type of a value that is compared.
    cql_type: Option<&'f CqlType>,
}

impl IndexLookup {
    /// Whether the lookup is of one value. Then the index has the rows in the order of the disk.
    pub(super) fn is_of_one_value(&self) -> bool {
        match (&self.values.low, &self.values.high) {
            (Bound::Included(low), Bound::Included(high)) => low == high,
            _ => false,
        }
    }
}

/// The lookups of the relations that indexes serve, with the filters made of them; `None` if their
/// values leave no row.
pub(super) fn lookups(
    relations: &[PreparedRelation],
    filters: &[ResidualFilter],
) -> Option<Vec<IndexLookup>> {
    let mut lookups = Vec::new();
    for (relation, filter) in relations.iter().zip(filters) {
        let names_partitions = relation.first_column().is_some_and(|column| {
            matches!(
                column.kind,
                ColumnKind::PartitionKey { .. } | ColumnKind::Static
            )
        });
        for (index, wanted) in relation.indexes.iter().zip(index_probes(filter)) {
            add(&mut lookups, index, names_partitions, &wanted)?;
        }
    }
    Some(lookups)
}

/// The lookups whose indexes have the entries of all rows.
///
/// # Errors
/// An index that is still being built, if the query needs it.
pub(super) fn ready(
    mut lookups: Vec<IndexLookup>,
    view: &TableView,
    indexes: IndexUse,
    parameters: &ExecutionParameters,
) -> Result<Vec<IndexLookup>, CqlError> {
    let mut are_ready = Vec::with_capacity(lookups.len());
    for lookup in &lookups {
        let is_ready = view.is_index_ready(lookup.index.version);
        are_ready.push(is_ready.map_err(storage_error)?);
        if are_ready.last() == Some(&false) && indexes == IndexUse::Needed {
            return Err(not_available(&lookup.index.name, parameters));
        }
    }
    let mut are_ready = are_ready.into_iter();
    lookups.retain(|_| are_ready.next() == Some(true));
    Ok(lookups)
}

fn not_available(index: &str, parameters: &ExecutionParameters) -> CqlError {
    let message = format!("The secondary index '{index}' is not yet available as it is building");
    read_failure(parameters, INDEX_NOT_AVAILABLE, message)
}

/// The value of each column that the filter is on.
fn index_probes(filter: &ResidualFilter) -> Vec<IndexProbe<'_>> {
    match filter {
        ResidualFilter::Plain(BoundRelation::Column { predicate, .. }) => {
            IndexProbe::of(predicate).into_iter().collect()
        }
        // The term of a term is the term itself.
        ResidualFilter::Terms { terms, .. } => {
            IndexProbe::of(&terms.predicate).into_iter().collect()
        }
        ResidualFilter::Plain(BoundRelation::Tuple {
            predicate:
                TuplePredicate::Compare {
                    types,
                    comparison,
                    values,
                },
            ..
        }) => values
            .iter()
            .zip(types)
            .map(|(value, cql_type)| IndexProbe {
                comparison: *comparison,
                value,
                key: None,
                cql_type: Some(cql_type),
            })
            .collect(),
        ResidualFilter::Plain(BoundRelation::Tuple { .. } | BoundRelation::Token { .. })
        | ResidualFilter::Composed(_) => Vec::new(),
    }
}

impl<'f> IndexProbe<'f> {
    /// The value of a predicate on one column.
    fn of(predicate: &'f Predicate) -> Option<IndexProbe<'f>> {
        let equal = IndexProbe {
            comparison: ComparisonOperator::Eq,
            value: match predicate {
                Predicate::Compare { value, .. }
                | Predicate::Contains { value, .. }
                | Predicate::Entry { value, .. } => value,
                Predicate::ContainsKey { key, .. } => key,
                Predicate::NotEqual { .. } | Predicate::In { .. } | Predicate::Like(_) => {
                    return None;
                }
            },
            key: None,
            cql_type: None,
        };
        Some(match predicate {
            Predicate::Compare {
                cql_type,
                comparison,
                ..
            } => IndexProbe {
                comparison: *comparison,
                cql_type: Some(cql_type),
                ..equal
            },
            Predicate::Entry { key, .. } => IndexProbe {
                key: Some(key),
                ..equal
            },
            _ => equal,
        })
    }

    fn order(&self, low: &Bytes, high: &Bytes) -> Ordering {
        match self.cql_type {
            Some(cql_type) => compare(cql_type, low, high),
            None => low.cmp(high),
        }
    }
}

/// Adds a wanted value to the lookups. The two bounds of a range make one lookup. Returns `None` if
/// no value is between them.
fn add(
    lookups: &mut Vec<IndexLookup>,
    index: &Arc<SecondaryIndex>,
    names_partitions: bool,
    wanted: &IndexProbe<'_>,
) -> Option<()> {
    let lookup = |values| IndexLookup {
        index: index.clone(),
        values,
        names_partitions,
    };
    let edge = |inclusive| match inclusive {
        true => Bound::Included(wanted.value.clone()),
        false => Bound::Excluded(wanted.value.clone()),
    };
    let comparison = wanted.comparison;
    let (low, high) = (comparison.as_lower(), comparison.as_upper());
    if low.is_none() && high.is_none() {
        lookups.push(lookup(IndexedValues {
            key: wanted.key.cloned(),
            ..IndexedValues::one(wanted.value.clone())
        }));
        return Some(());
    }
    let of_range = |lookup: &&mut IndexLookup| lookup.index.version == index.version;
    let found = match lookups.iter_mut().find(of_range) {
        Some(found) => found,
        None => lookups.push_mut(lookup(IndexedValues {
            key: None,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
        })),
    };
    let values = &mut found.values;
    if let Some(inclusive) = low {
        values.low = edge(inclusive);
    } else if let Some(inclusive) = high {
        values.high = edge(inclusive);
    }
    let is_empty = match (&values.low, &values.high) {
        (Bound::Included(low), Bound::Included(high)) => wanted.order(low, high).is_gt(),
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => wanted.order(low, high).is_ge(),
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    };
    (!is_empty).then_some(())
}

//! From the relations of an access path and the bound values to partitions and slices.

use std::cmp::Ordering;
use std::ops::Bound as Edge;

use bytes::Bytes;
use cql::error::CqlError;
use cql::token::{Partitioner, Token, routing_key};
use cql::types::CqlType;
use cql::value::{compare, split_elements};
use storage::catalog::{Column, ColumnKind, Table};
use storage::read::{ClusteringBound, ClusteringSlice};

use super::access::{ClusteringAccess, PartitionAccess};
use super::relation::{
    Comparison, Relation, RelationKind, Test, TokenTerm, TupleList, TupleTerm, TupleTest,
};
use crate::bind::{Bound, PreparedTerm, StatementClock};
use crate::query::Parameters;
use crate::slices;

/// IN restrictions multiply. A query that names more partitions, or more slices of a partition,
/// than this is refused: it holds a key for each of them in memory.
pub(super) const COMBINATIONS_MAX: usize = 10_000;

/// The longest partition key, serialised, in bytes.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// The values that came with an execution.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub parameters: &'a Parameters,
    pub clock: &'a StatementClock,
}

/// The partitions to read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Targets {
    /// By key, in the order of their values, each once.
    Keys(Vec<Vec<Bytes>>),
    Tokens(Edge<Token>, Edge<Token>),
    /// The restrictions leave none.
    Nothing,
}

/// The rows to read of each partition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Slices {
    All,
    /// Disjoint and in the order of the disk; at least one.
    Some(Vec<ClusteringSlice>),
    /// The restrictions leave none.
    Nothing,
}

impl Values<'_> {
    /// The value of a term on the right of a condition.
    pub(super) fn condition(&self, term: &PreparedTerm, column: &str) -> Result<Bytes, CqlError> {
        in_condition(term.evaluate(self.parameters, self.clock)?, column)
    }

    /// The tokens and values of a relation's right side are bytes of `bigint`.
    pub(super) fn token(
        &self,
        value: &TokenTerm,
        partitioner: Partitioner,
    ) -> Result<i64, CqlError> {
        const NAME: &str = "token of the partition key";
        match value {
            TokenTerm::Value(term) => {
                let bytes = self.condition(term, NAME)?;
                bytes
                    .as_ref()
                    .try_into()
                    .map(i64::from_be_bytes)
                    .map_err(|_| {
                        CqlError::invalid(format!(
                            "Invalid empty value in condition for the {NAME}"
                        ))
                    })
            }
            TokenTerm::Of(terms) => {
                let key = terms
                    .iter()
                    .map(|term| self.condition(term, NAME))
                    .collect::<Result<Vec<Bytes>, _>>()?;
                Ok(partitioner.token(&routing_key(&key)).0)
            }
        }
    }

    /// The values of a tuple, one a column.
    pub(super) fn tuple(
        &self,
        term: &TupleTerm,
        columns: &[Column],
    ) -> Result<Vec<Bytes>, CqlError> {
        match term {
            TupleTerm::Terms(terms) => terms
                .iter()
                .zip(columns)
                .map(|(term, column)| self.condition(term, &column.name))
                .collect(),
            TupleTerm::Whole(term) => {
                let bytes = self.condition(term, &columns[0].name)?;
                tuple_fields(&bytes, columns)
            }
        }
    }

    /// The alternatives that an equality or IN gives, each one value a column.
    pub(super) fn alternatives(&self, relation: &Relation) -> Result<Vec<Vec<Bytes>>, CqlError> {
        match &relation.kind {
            RelationKind::Column {
                column,
                test: Test::Compare(_, term),
            } => Ok(vec![vec![self.condition(term, &column.name)?]]),
            RelationKind::Column {
                column,
                test: Test::In(list),
            } => list
                .evaluate(self.parameters, self.clock)?
                .into_iter()
                .map(|bound| Ok(vec![in_condition(bound, &column.name)?]))
                .collect(),
            RelationKind::Tuple {
                columns,
                test: TupleTest::Compare(_, term),
            } => Ok(vec![self.tuple(term, columns)?]),
            RelationKind::Tuple {
                columns,
                test: TupleTest::In(list),
            } => self.tuples(list, columns),
            _ => Ok(Vec::new()),
        }
    }

    /// The tuples of `(a, b) IN ...`.
    pub(super) fn tuples(
        &self,
        list: &TupleList,
        columns: &[Column],
    ) -> Result<Vec<Vec<Bytes>>, CqlError> {
        match list {
            TupleList::Terms(terms) => terms.iter().map(|term| self.tuple(term, columns)).collect(),
            TupleList::Whole(term) => {
                let bytes = self.condition(term, &columns[0].name)?;
                split_elements(&bytes)
                    .map_err(|error| CqlError::invalid(error.0))?
                    .iter()
                    .map(|tuple| tuple_fields(tuple, columns))
                    .collect()
            }
        }
    }
}

fn in_condition(bound: Bound, column: &str) -> Result<Bytes, CqlError> {
    match bound {
        Bound::Value(bytes) => Ok(bytes),
        Bound::Null => Err(CqlError::invalid(format!(
            "Invalid null value in condition for column {column}"
        ))),
        Bound::Unset => Err(CqlError::invalid(format!(
            "Invalid unset value for column {column}"
        ))),
    }
}

/// Takes a valid serialised tuple apart; every field must be there.
fn tuple_fields(bytes: &Bytes, columns: &[Column]) -> Result<Vec<Bytes>, CqlError> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut at = 0;
    for column in columns {
        let length = bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk::<4>())
            .map(|length| i32::from_be_bytes(*length))
            .and_then(|length| usize::try_from(length).ok());
        let field = length.and_then(|length| {
            let start = at + 4;
            let end = start.checked_add(length)?;
            (end <= bytes.len()).then(|| bytes.slice(start..end))
        });
        let Some(field) = field else {
            return Err(CqlError::invalid(format!(
                "Invalid null value in condition for column {}",
                column.name
            )));
        };
        at += 4 + field.len();
        fields.push(field);
    }
    Ok(fields)
}

/// The partitions that the relations name.
///
/// # Errors
/// Null, unset and oversized keys, and too many combinations.
pub(super) fn targets(
    table: &Table,
    access: &PartitionAccess,
    values: Values<'_>,
) -> Result<Targets, CqlError> {
    match access {
        PartitionAccess::Keys(relations) => keys(relations, values),
        PartitionAccess::Tokens(relations) => tokens(relations, table.partitioner, values),
    }
}

fn keys(relations: &[Relation], values: Values<'_>) -> Result<Targets, CqlError> {
    let mut keys: Vec<Vec<Bytes>> = vec![Vec::with_capacity(relations.len())];
    let mut types: Vec<&CqlType> = Vec::with_capacity(relations.len());
    for relation in relations {
        types.extend(relation.first_column().map(|column| &column.cql_type));
        extend(&mut keys, values.alternatives(relation)?, "partitions")?;
    }
    for key in &keys {
        check_key(key)?;
    }
    if keys.len() > 1 {
        keys.sort_by(|a, b| compare_keys(&types, a, b));
        keys.dedup();
    }
    Ok(if keys.is_empty() {
        Targets::Nothing
    } else {
        Targets::Keys(keys)
    })
}

/// Multiplies what is there with alternatives for the next columns.
fn extend(
    prefixes: &mut Vec<Vec<Bytes>>,
    mut alternatives: Vec<Vec<Bytes>>,
    what: &str,
) -> Result<(), CqlError> {
    if let [only] = alternatives.as_mut_slice() {
        for prefix in prefixes {
            prefix.extend_from_slice(only);
        }
        return Ok(());
    }
    let combinations = prefixes.len().saturating_mul(alternatives.len());
    if combinations > COMBINATIONS_MAX {
        return Err(CqlError::invalid(format!(
            "The IN restrictions name {combinations} {what}, which is more than the {COMBINATIONS_MAX} allowed; \
             ask for fewer in one query"
        )));
    }
    *prefixes = prefixes
        .iter()
        .flat_map(|prefix| {
            alternatives
                .iter()
                .map(move |values| [prefix.as_slice(), values].concat())
        })
        .collect();
    Ok(())
}

/// Keys that are equal in value but not in bytes are different partitions.
fn compare_keys(types: &[&CqlType], a: &[Bytes], b: &[Bytes]) -> Ordering {
    a.iter()
        .zip(b)
        .zip(types)
        .map(|((a, b), cql_type)| compare(cql_type, a, b).then_with(|| a.cmp(b)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn check_key(key: &[Bytes]) -> Result<(), CqlError> {
    if let [only] = key
        && only.is_empty()
    {
        return Err(CqlError::invalid("Key may not be empty"));
    }
    let framing = if key.len() > 1 { key.len() * 3 } else { 0 };
    let length = key.iter().map(Bytes::len).sum::<usize>() + framing;
    if length > KEY_BYTES_MAX || key.iter().any(|part| part.len() > KEY_BYTES_MAX) {
        return Err(CqlError::invalid(format!(
            "Key length of {length} is longer than maximum of {KEY_BYTES_MAX}"
        )));
    }
    Ok(())
}

fn tokens(
    relations: &[Relation],
    partitioner: Partitioner,
    values: Values<'_>,
) -> Result<Targets, CqlError> {
    let (mut start, mut end) = (Edge::Unbounded, Edge::Unbounded);
    for relation in relations {
        let RelationKind::Token { comparison, value } = &relation.kind else {
            continue;
        };
        let token = Token(values.token(value, partitioner)?);
        // The least token stands for the end of the ring where a range ends.
        let is_ring_end = token.0 == i64::MIN;
        match comparison {
            Comparison::Eq => {
                start = Edge::Included(token);
                end = Edge::Included(token);
            }
            Comparison::Gt => start = Edge::Excluded(token),
            Comparison::GtEq => start = Edge::Included(token),
            Comparison::Lt | Comparison::LtEq if is_ring_end => {}
            Comparison::Lt => end = Edge::Excluded(token),
            Comparison::LtEq => end = Edge::Included(token),
        }
    }
    let is_empty = match (&start, &end) {
        (Edge::Unbounded, _) | (_, Edge::Unbounded) => false,
        (Edge::Included(start), Edge::Included(end)) => start > end,
        (
            Edge::Included(start) | Edge::Excluded(start),
            Edge::Included(end) | Edge::Excluded(end),
        ) => start >= end,
    };
    Ok(if is_empty {
        Targets::Nothing
    } else {
        Targets::Tokens(start, end)
    })
}

/// The slices that the relations leave of each partition.
///
/// # Errors
/// Null and unset values, and too many combinations.
pub(super) fn slices(
    table: &Table,
    access: &ClusteringAccess,
    values: Values<'_>,
) -> Result<Slices, CqlError> {
    if access.values.is_empty() && access.bounds.is_empty() {
        return Ok(Slices::All);
    }
    let mut prefixes: Vec<Vec<Bytes>> = vec![Vec::new()];
    for relation in &access.values {
        extend(&mut prefixes, values.alternatives(relation)?, "slices")?;
    }
    let clustering = table.clustering_key();
    if prefixes.len() > 1 {
        prefixes.sort_by(|a, b| compare_clustering(&clustering, a, b));
        prefixes.dedup_by(|a, b| compare_clustering(&clustering, a, b).is_eq());
    }
    let slices = if access.bounds.is_empty() {
        prefixes
            .into_iter()
            .map(|prefix| ClusteringSlice {
                start: ClusteringBound::Inclusive(prefix.clone()),
                end: ClusteringBound::Inclusive(prefix),
            })
            .collect()
    } else {
        between(&clustering, &prefixes, &access.bounds, values)?
    };
    Ok(if slices.is_empty() {
        Slices::Nothing
    } else {
        Slices::Some(slices)
    })
}

fn between(
    clustering: &[&Column],
    prefixes: &[Vec<Bytes>],
    bounds: &[Relation],
    values: Values<'_>,
) -> Result<Vec<ClusteringSlice>, CqlError> {
    let (mut lower, mut upper) = (None, None);
    for relation in bounds {
        let (comparison, edge) = match &relation.kind {
            RelationKind::Column {
                column,
                test: Test::Compare(comparison, term),
            } => (*comparison, vec![values.condition(term, &column.name)?]),
            RelationKind::Tuple {
                columns,
                test: TupleTest::Compare(comparison, term),
            } => (*comparison, values.tuple(term, columns)?),
            _ => continue,
        };
        if let Some(inclusive) = comparison.as_lower() {
            lower = Some((edge, inclusive));
        } else if let Some(inclusive) = comparison.as_upper() {
            upper = Some((edge, inclusive));
        }
    }
    let (lower, upper) = (as_edge(&lower), as_edge(&upper));
    Ok(prefixes
        .iter()
        .flat_map(|prefix| slices::slices_between(clustering, prefix, lower, upper))
        .collect())
}

fn as_edge(bound: &Option<(Vec<Bytes>, bool)>) -> Option<slices::Edge<'_>> {
    bound.as_ref().map(|(values, inclusive)| slices::Edge {
        values,
        inclusive: *inclusive,
    })
}

/// Prefixes of one length in the order of the disk.
pub(super) fn compare_clustering(clustering: &[&Column], a: &[Bytes], b: &[Bytes]) -> Ordering {
    a.iter()
        .zip(b)
        .zip(clustering)
        .map(|((a, b), column)| {
            let order = compare(&column.cql_type, a, b);
            if is_descending(column) {
                order.reverse()
            } else {
                order
            }
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

pub(super) fn is_descending(column: &Column) -> bool {
    matches!(
        column.kind,
        ColumnKind::Clustering {
            descending: true,
            ..
        }
    )
}

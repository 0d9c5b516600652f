//! The partitions that an access path leads to, found once the values are known.

use std::cmp::Ordering;
use std::ops::Bound as Edge;

use bytes::Bytes;
use cql::error::CqlError;
use query::relation::{PreparedRelation, RelationKind};
use query::values::EvaluationInputs;
use value::predicate::ComparisonOperator;
use value::{CqlType, compare, token::Token};

use super::access::PartitionAccess;

/// The longest partition key, serialised, in bytes.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// The bounds of a range of tokens.
pub(super) type Tokens = (Edge<Token>, Edge<Token>);

/// The partitions that a query reads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WantedPartitions {
    /// Partitions by their keys (serialised values of the partition key columns), in the order of
    /// the values, without repeats.
    Keys(Vec<Vec<Bytes>>),
    /// All partitions with a token between these two bounds.
    Tokens(Edge<Token>, Edge<Token>),
    /// No partition: the restrictions leave none.
    Nothing,
}

impl WantedPartitions {
    /// The number of partitions that a query names; `None` if it reads a range of them.
    pub(super) fn named(&self) -> Option<usize> {
        match self {
            WantedPartitions::Keys(keys) => Some(keys.len()),
            WantedPartitions::Tokens(..) | WantedPartitions::Nothing => None,
        }
    }
}

/// Evaluates the relations to the partitions that they name.
///
/// # Errors
/// Null, unset and oversized keys, and too many combinations.
pub(super) fn wanted_partitions(
    access: &PartitionAccess,
    values: EvaluationInputs<'_>,
) -> Result<WantedPartitions, CqlError> {
    match access {
        PartitionAccess::Keys(relations) => keys(relations, values),
        PartitionAccess::Tokens(relations) => tokens(relations, values),
    }
}

fn keys(
    relations: &[PreparedRelation],
    values: EvaluationInputs<'_>,
) -> Result<WantedPartitions, CqlError> {
    let mut keys: Vec<Vec<Bytes>> = vec![Vec::with_capacity(relations.len())];
    let mut types: Vec<&CqlType> = Vec::with_capacity(relations.len());
    for relation in relations {
        types.extend(relation.first_column().map(|column| &column.cql_type));
        values.extend(&mut keys, relation, "partitions")?;
    }
    for key in &keys {
        check_key(key)?;
    }
    if keys.len() > 1 {
        keys.sort_by(|a, b| compare_keys(&types, a, b));
        keys.dedup();
    }
    Ok(if keys.is_empty() {
        WantedPartitions::Nothing
    } else {
        WantedPartitions::Keys(keys)
    })
}

/// Compares keys by value and then by bytes, as keys that are equal in value but not in bytes are
/// different partitions.
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
    relations: &[PreparedRelation],
    values: EvaluationInputs<'_>,
) -> Result<WantedPartitions, CqlError> {
    let (mut start, mut end) = (Edge::Unbounded, Edge::Unbounded);
    for relation in relations {
        let RelationKind::Token { comparison, value } = &relation.kind else {
            continue;
        };
        let token = Token(values.token(value)?);
        // As the end of a range, the least token means the end of the ring.
        let is_ring_end = token.0 == i64::MIN;
        match comparison {
            ComparisonOperator::Eq => {
                start = Edge::Included(token);
                end = Edge::Included(token);
            }
            ComparisonOperator::Gt => start = Edge::Excluded(token),
            ComparisonOperator::GtEq => start = Edge::Included(token),
            ComparisonOperator::Lt | ComparisonOperator::LtEq if is_ring_end => {}
            ComparisonOperator::Lt => end = Edge::Excluded(token),
            ComparisonOperator::LtEq => end = Edge::Included(token),
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
        WantedPartitions::Nothing
    } else {
        WantedPartitions::Tokens(start, end)
    })
}

//! The rows of a partition that an access path leads to, found once the values are known.

use std::cmp::Ordering;

use bytes::Bytes;
use cql::error::CqlError;
use query::relation::{ColumnTest, PreparedRelation, RelationKind, TupleTest};
use query::values::{EvaluationInputs, check_combinations};
use schema::{Column, ColumnKind, Table};
use storage::read::{ClusteringBound, ClusteringSlice};
use value::compare;

use super::access::ClusteringAccess;
use super::slices;

/// The rows to read of each partition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowSlices {
    /// All rows.
    All,
    /// The rows in these slices, which are disjoint and in the order of the disk; at least one.
    Some(Vec<ClusteringSlice>),
    /// No row: the restrictions leave none.
    Nothing,
}

/// Evaluates the relations to the slices that they leave of each of so many partitions.
///
/// # Errors
/// Null and unset values, and too many combinations.
pub(super) fn slices(
    table: &Table,
    access: &ClusteringAccess,
    values: EvaluationInputs<'_>,
    partitions: usize,
) -> Result<RowSlices, CqlError> {
    if access.values.is_empty() && access.bounds.is_empty() {
        return Ok(RowSlices::All);
    }
    let mut prefixes: Vec<Vec<Bytes>> = vec![Vec::new()];
    for relation in &access.values {
        values.extend(&mut prefixes, relation, "slices")?;
    }
    if prefixes.len() > 1 {
        let clustering = table.clustering_key();
        prefixes.sort_by(|a, b| compare_clustering(&clustering, a, b));
        prefixes.dedup_by(|a, b| compare_clustering(&clustering, a, b).is_eq());
    }
    // Each partition is read for each prefix.
    check_combinations(partitions.saturating_mul(prefixes.len()), "slices")?;
    let slices = if access.bounds.is_empty() {
        prefixes
            .into_iter()
            .map(|prefix| ClusteringSlice {
                start: ClusteringBound::Inclusive(prefix.clone()),
                end: ClusteringBound::Inclusive(prefix),
            })
            .collect()
    } else {
        between(&table.clustering_key(), &prefixes, &access.bounds, values)?
    };
    Ok(if slices.is_empty() {
        RowSlices::Nothing
    } else {
        RowSlices::Some(slices)
    })
}

fn between(
    clustering: &[&Column],
    prefixes: &[Vec<Bytes>],
    bounds: &[PreparedRelation],
    values: EvaluationInputs<'_>,
) -> Result<Vec<ClusteringSlice>, CqlError> {
    let (mut lower, mut upper) = (None, None);
    for relation in bounds {
        let (comparison, edge) = match &relation.kind {
            RelationKind::Column {
                column,
                test: ColumnTest::Compare(comparison, term),
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
    let (lower, upper) = (as_edge(lower.as_ref()), as_edge(upper.as_ref()));
    Ok(prefixes
        .iter()
        .flat_map(|prefix| slices::slices_between(clustering, prefix, lower, upper))
        .collect())
}

fn as_edge(bound: Option<&(Vec<Bytes>, bool)>) -> Option<slices::SliceBound<'_>> {
    bound.map(|(values, inclusive)| slices::SliceBound {
        values,
        inclusive: *inclusive,
    })
}

/// Compares clustering keys, or prefixes of them, by the order of the disk. Only the columns that
/// both have are compared.
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

/// Whether the column is a clustering column that is stored in descending order.
pub(super) fn is_descending(column: &Column) -> bool {
    matches!(
        column.kind,
        ColumnKind::Clustering {
            descending: true,
            ..
        }
    )
}

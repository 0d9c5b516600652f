//! ORDER BY: the order in which rows are wanted. On clustering columns it is the direction in which
//! partitions are read; `searches` has the order by searches.

use bytes::Bytes;
use cql::ast::OrderByItem;
use cql::error::CqlError;
use query::resolve;
use schema::{ColumnKind, Table};
use value::{CqlType, compare};

use super::access::{IndexUse, PartitionAccess, RowAccessPath};
use super::clustering::is_descending;
use super::searches::SearchOrder;

/// The order in which rows are wanted.
#[derive(Debug)]
pub(super) enum ResultOrder {
    /// Rows come in the order in which the access path leads to them.
    Clustering(ClusteringOrder),
    /// Rows come as searches rank them. Indexes name them in this order, and those that WHERE
    /// leaves out are passed over.
    Searched(Box<SearchOrder>),
    /// All rows with the words in WHERE come, in the order in which the index names them.
    Matching(Box<SearchOrder>),
}

/// The order of the rows of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClusteringOrder {
    /// Whether partitions are read against the order of the disk.
    pub reversed: bool,
    /// The columns of ORDER BY, as (position in the clustering key, whether descending); empty
    /// without ORDER BY. A column that is named twice is placed where it was named first, with the
    /// direction that was named last. The rows of several partitions are merged by these columns;
    /// for a single partition `reversed` is enough.
    pub columns: Vec<(usize, bool)>,
}

/// The order of rows of several partitions.
#[derive(Debug)]
pub(super) struct RowOrder {
    /// The clustering columns, as (position, type, whether descending).
    columns: Vec<(usize, CqlType, bool)>,
    /// Whether partitions are read against the order of the disk.
    reversed: bool,
}

impl RowOrder {
    /// The order of a table's rows.
    pub(super) fn new(table: &Table, order: &ClusteringOrder) -> RowOrder {
        let clustering = table.clustering_key();
        let columns = order.columns.iter().map(|(position, descending)| {
            let cql_type = clustering[*position].cql_type.clone();
            (*position, cql_type, *descending)
        });
        RowOrder {
            columns: columns.collect(),
            reversed: order.reversed,
        }
    }

    /// Compares two rows by their clustering keys. A row with static content only has none: it
    /// comes first in the order of the disk, and last against it.
    pub(super) fn compare(&self, a: Option<&[Bytes]>, b: Option<&[Bytes]>) -> std::cmp::Ordering {
        let (Some(a), Some(b)) = (a, b) else {
            let order = a.is_some().cmp(&b.is_some());
            return if self.reversed {
                order.reverse()
            } else {
                order
            };
        };
        self.columns
            .iter()
            .map(|(position, cql_type, descending)| {
                let order = compare(cql_type, &a[*position], &b[*position]);
                if *descending { order.reverse() } else { order }
            })
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    }
}

/// Resolves ORDER BY on clustering columns.
///
/// # Errors
/// Unknown columns, an order together with secondary indexes, and an order that partitions don't
/// have when they are read forwards or backwards.
pub(super) fn prepare(
    table: &Table,
    order_by: &[OrderByItem],
    access: &RowAccessPath,
) -> Result<ClusteringOrder, CqlError> {
    let mut order = ClusteringOrder::default();
    if order_by.is_empty() {
        return Ok(order);
    }
    for ordering in order_by {
        if let OrderByItem::Column { column, .. } = ordering {
            resolve::column(table, column)?;
        }
    }
    if access.indexes != IndexUse::Unused {
        return Err(CqlError::invalid(
            "ORDER BY with 2ndary indexes is not supported, except for ANN queries.",
        ));
    }
    if matches!(access.partitions, PartitionAccess::Tokens(_)) {
        return Err(CqlError::invalid(
            "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
        ));
    }
    for ordering in order_by {
        let OrderByItem::Column {
            column: name,
            descending,
        } = ordering
        else {
            continue;
        };
        let column = resolve::column(table, name)?;
        let ColumnKind::Clustering { position, .. } = column.kind else {
            return Err(CqlError::invalid(format!(
                "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {name}"
            )));
        };
        match order.columns.iter_mut().find(|(seen, _)| *seen == position) {
            Some((_, direction)) => *direction = *descending,
            None => order.columns.push((position, *descending)),
        }
    }
    check_key_order(&order.columns, access)?;
    order.reversed = is_reversed(table, &order.columns)?;
    Ok(order)
}

/// Checks that the columns are in the order of the key. A column before one of them may be left out
/// only if WHERE gives it a single value.
fn check_key_order(columns: &[(usize, bool)], access: &RowAccessPath) -> Result<(), CqlError> {
    let mut next = 0;
    for (position, _) in columns {
        while next < *position && access.clustering.fixes(next) {
            next += 1;
        }
        if next != *position {
            return Err(CqlError::invalid(
                "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY",
            ));
        }
        next += 1;
    }
    Ok(())
}

/// Whether all columns run against the order of the disk. A column with a single value counts, too:
/// if only it is named, it decides in which direction the columns after it run.
fn is_reversed(table: &Table, columns: &[(usize, bool)]) -> Result<bool, CqlError> {
    let clustering = table.clustering_key();
    let mut against = columns
        .iter()
        .map(|(position, descending)| *descending != is_descending(clustering[*position]));
    let first = against.next().unwrap_or(false);
    if against.any(|other| other != first) {
        return Err(CqlError::invalid("Unsupported order by relation"));
    }
    Ok(first)
}

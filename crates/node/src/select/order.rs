//! ORDER BY on clustering columns: the direction that partitions are read in.

use cql::ast::Ordering;
use cql::error::CqlError;
use storage::catalog::{ColumnKind, Table};

use super::access::{Access, PartitionAccess};
use super::clustering::is_descending;
use super::target;

/// In which order rows are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// Against the order of the disk.
    pub reversed: bool,
    /// Positions of clustering columns and whether they go down; empty without ORDER BY. Within a
    /// partition `reversed` says it all; rows of several partitions are merged by them.
    pub columns: Vec<(usize, bool)>,
}

/// Settles ORDER BY.
///
/// # Errors
/// An order that reading partitions forwards or backwards does not give.
pub(super) fn prepare(
    table: &Table,
    order_by: &[Ordering],
    access: &Access,
) -> Result<Order, CqlError> {
    let mut order = Order::default();
    if order_by.is_empty() {
        return Ok(order);
    }
    if matches!(access.partitions, PartitionAccess::Tokens(_)) {
        return Err(CqlError::invalid(
            "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
        ));
    }
    let fixed = |position| access.clustering.fixes(position);
    // The next column in the order of the key, and whether the columns so far go against the disk.
    let mut next = 0;
    let mut reversed: Option<bool> = None;
    for ordering in order_by {
        let Ordering::Column {
            column: name,
            descending,
        } = ordering
        else {
            continue;
        };
        let column = target::column(table, name)?;
        let ColumnKind::Clustering { position, .. } = column.kind else {
            return Err(CqlError::invalid(format!(
                "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {name}"
            )));
        };
        while next < position && fixed(next) {
            next += 1;
        }
        if next != position {
            return Err(CqlError::invalid(
                "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY",
            ));
        }
        next += 1;
        order.columns.push((position, *descending));
        if fixed(position) {
            continue;
        }
        let against = *descending != is_descending(column);
        if reversed.is_some_and(|reversed| reversed != against) {
            return Err(CqlError::invalid("Unsupported order by relation"));
        }
        reversed = Some(against);
    }
    order.reversed = reversed.unwrap_or(false);
    Ok(order)
}

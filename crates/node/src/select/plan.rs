//! A SELECT resolved against the catalog, and its printed form.

use std::fmt;

use query::bind::{PreparedTerm, StatementTimeout};
use query::relation::PreparedRelation;

use super::access::{IndexUse, PartitionAccess, RowAccessPath};
use super::group::ResolvedGroupBy;
use super::order::{ClusteringOrder, ResultOrder};
use super::projection::ResolvedSelection;
use super::selected_table::SelectedTable;
use crate::statement::ColumnSpec;

/// A resolved SELECT, which all executions of the statement share.
#[derive(Debug)]
pub(super) struct ResolvedSelect {
    /// The table that is read.
    pub selected: SelectedTable,
    /// The selection.
    pub projection: ResolvedSelection,
    /// `USING TIMEOUT`.
    pub timeout: Option<StatementTimeout>,
    /// The spec of each bind marker, in the order of the markers.
    pub variables: Vec<ColumnSpec>,
    /// The indexes of the bind markers that give the partition key, in the order of the key. Empty
    /// if a key column has another value than a single marker.
    pub partition_key_variables: Vec<u16>,
    /// The way to the rows, which the relations of WHERE lead to.
    pub access: RowAccessPath,
    /// ORDER BY.
    pub order: ResultOrder,
    /// GROUP BY. Without it and with aggregates, all rows are one group.
    pub grouping: Option<ResolvedGroupBy>,
    /// Whether the query is a SELECT DISTINCT, which returns one row for each partition.
    pub distinct: bool,
    /// LIMIT.
    pub limit: Option<PreparedTerm>,
    /// PER PARTITION LIMIT.
    pub per_partition_limit: Option<PreparedTerm>,
}

impl fmt::Display for ResolvedSelect {
    /// Prints one line for each decision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .projection
            .columns
            .iter()
            .map(|column| &*column.name)
            .collect();
        let table = &self.selected.table;
        let made = if self.selected.is_system {
            " (made)"
        } else {
            ""
        };
        writeln!(
            f,
            "select {} from {}.{}{made}",
            names.join(", "),
            table.keyspace,
            table.name
        )?;
        match &self.order {
            ResultOrder::Clustering(order) => self.fmt_reads(order, f),
            ResultOrder::Searched(searched) | ResultOrder::Matching(searched) => searched.fmt(f),
        }
    }
}

impl ResolvedSelect {
    /// Whether all rows are taken together into one row of aggregates.
    pub(super) fn is_one_group(&self) -> bool {
        self.grouping.is_none() && !self.projection.aggregates.is_empty()
    }

    fn fmt_reads(&self, order: &ClusteringOrder, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RowAccessPath {
            partitions,
            clustering,
            indexes,
            filters,
            wants_static_only,
        } = &self.access;
        match partitions {
            PartitionAccess::Keys(relations) => line(f, "partitions by key", relations)?,
            PartitionAccess::Tokens(relations) if relations.is_empty() => {
                writeln!(f, "all partitions")?;
            }
            PartitionAccess::Tokens(relations) => line(f, "partitions by token", relations)?,
        }
        if *indexes != IndexUse::Unused && matches!(partitions, PartitionAccess::Tokens(_)) {
            let served = filters.iter().filter(|relation| relation.is_served());
            line(f, "rows by index", served)?;
        } else if self.access.is_by_local_index() {
            let served = filters.iter().filter(|relation| relation.is_served());
            line(f, "rows by local index", served)?;
        }
        line(f, "slices of", &clustering.values)?;
        line(f, "slices between", &clustering.bounds)?;
        line(f, "filter", filters)?;
        if *wants_static_only {
            writeln!(f, "with partitions of static columns only")?;
        }
        if self.distinct {
            writeln!(f, "one row a partition")?;
        }
        if let Some(grouping) = &self.grouping {
            let columns = grouping.clustering_columns();
            writeln!(f, "groups by partition and {columns} clustering columns")?;
        }
        if order.reversed {
            writeln!(f, "against the order of the disk")?;
        }
        for (name, limit) in [
            ("limit", &self.limit),
            ("limit a partition", &self.per_partition_limit),
        ] {
            if limit.is_some() {
                writeln!(f, "{name}")?;
            }
        }
        Ok(())
    }
}

fn line<'r>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    relations: impl IntoIterator<Item = &'r PreparedRelation>,
) -> fmt::Result {
    let relations = relations.into_iter();
    let texts: Vec<&str> = relations.map(|relation| relation.text.as_str()).collect();
    if texts.is_empty() {
        return Ok(());
    }
    writeln!(f, "{name}: {}", texts.join(" and "))
}

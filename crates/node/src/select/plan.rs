//! A SELECT resolved against the catalog, and how it prints.

use std::fmt;

use super::access::{Access, PartitionAccess};
use super::ann::AnnPlan;
use super::order::Order;
use super::projection::Projection;
use super::relation::Relation;
use super::target::Target;
use crate::bind::{PreparedTerm, Timeout};
use crate::query::ColumnSpec;

/// What every execution of a statement shares.
#[derive(Debug)]
pub(super) struct Resolved {
    pub target: Target,
    pub projection: Projection,
    /// Checked when it is executed, and of no other effect.
    pub timeout: Option<Timeout>,
    pub variables: Vec<ColumnSpec>,
    pub partition_key_variables: Vec<u16>,
    pub kind: Kind,
}

/// The two ways of finding rows.
#[derive(Debug)]
pub(super) enum Kind {
    Rows(RowsPlan),
    Ann(AnnPlan),
}

/// Rows found by their key.
#[derive(Debug)]
pub(super) struct RowsPlan {
    pub access: Access,
    pub order: Order,
    /// One row a partition.
    pub distinct: bool,
    pub limit: Option<PreparedTerm>,
    pub per_partition_limit: Option<PreparedTerm>,
}

impl fmt::Display for Resolved {
    /// One line a decision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .projection
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        let table = &self.target.table;
        let made = if self.target.is_system { " (made)" } else { "" };
        writeln!(
            f,
            "select {} from {}.{}{made}",
            names.join(", "),
            table.keyspace,
            table.name
        )?;
        match &self.kind {
            Kind::Rows(rows) => rows.fmt(f),
            Kind::Ann(ann) => ann.fmt(f),
        }
    }
}

impl fmt::Display for RowsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access {
            partitions,
            clustering,
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
        line(f, "slices of", &clustering.values)?;
        line(f, "slices between", &clustering.bounds)?;
        line(f, "filter", filters)?;
        if *wants_static_only {
            writeln!(f, "with partitions of static columns only")?;
        }
        if self.distinct {
            writeln!(f, "one row a partition")?;
        }
        if self.order.reversed {
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

fn line(f: &mut fmt::Formatter<'_>, name: &str, relations: &[Relation]) -> fmt::Result {
    if relations.is_empty() {
        return Ok(());
    }
    let texts: Vec<&str> = relations
        .iter()
        .map(|relation| relation.text.as_str())
        .collect();
    writeln!(f, "{name}: {}", texts.join(" and "))
}

//! CREATE TABLE.

use std::collections::{BTreeMap, HashSet};

use cql::ast::{ColumnDefinition, CreateTable, Direction};
use cql::error::{CqlError, ErrorKind};
use query::clock;
use schema::{Catalog, Column, ColumnId, ColumnKind, Table, TableId};
use storage::clock::ServerClock;
use uuid::Uuid;
use value::token::Partitioner;

use super::column_type::{check_column_type, check_key_type};
use super::table_options::{DEFAULT_GC_GRACE_S, TableOptions};
use super::{Applied, names};
use crate::answer::SchemaChangeKind;

/// The most columns of a table. Many places search the columns one by one, and a CDC log has twice
/// as many as its table.
const MAX_COLUMNS: usize = 4096;

/// A prepared CREATE TABLE.
#[derive(Clone, Debug)]
pub(super) struct CreateTablePlan {
    /// The table, complete except for its id.
    definition: Table,
    /// The id given by `WITH ID`. Without it each execution makes a new id.
    id: Option<Uuid>,
    if_not_exists: bool,
}

impl CreateTablePlan {
    pub fn prepare(keyspace: &str, create: &CreateTable) -> Result<Self, CqlError> {
        let name = &create.table.name;
        names::check_table(name)?;
        if create.compact_storage {
            return Err(CqlError::invalid(
                "COMPACT STORAGE tables are not supported: leave the option out",
            ));
        }
        check_columns(create)?;
        check_key(keyspace, create)?;
        check_clustering_order(create)?;
        let columns: Vec<Column> = create
            .columns
            .iter()
            .zip(0..)
            .map(|(definition, id)| Column {
                id: ColumnId(id),
                name: definition.name.clone(),
                kind: kind(create, definition),
                cql_type: definition.cql_type.clone(),
            })
            .collect();
        let mut definition = Table {
            id: TableId(Uuid::nil()),
            keyspace: keyspace.to_owned(),
            name: name.clone(),
            next_column: ColumnId(columns.len() as u32),
            columns,
            dropped_columns: BTreeMap::new(),
            partitioner: Partitioner::Murmur3,
            default_ttl_s: 0,
            gc_grace_s: DEFAULT_GC_GRACE_S,
            options: BTreeMap::new(),
            indexes: BTreeMap::new(),
            secondary_indexes: BTreeMap::new(),
            cdc: None,
            log: None,
            log_of: None,
            truncated_at_ms: None,
        };
        TableOptions::parse(&create.options)?.apply(&mut definition)?;
        Ok(CreateTablePlan {
            definition,
            id: create.id,
            if_not_exists: create.if_not_exists,
        })
    }

    pub fn apply(&self, catalog: &mut Catalog, clock: &ServerClock) -> Result<Applied, CqlError> {
        let Table { keyspace, name, .. } = &self.definition;
        if catalog.keyspace(keyspace).is_none() {
            return super::missing_keyspace(keyspace, false);
        }
        if catalog.table(keyspace, name).is_some() {
            if self.if_not_exists {
                return Ok(Applied::Nothing);
            }
            return Err(CqlError::new(
                ErrorKind::AlreadyExists {
                    keyspace: keyspace.clone(),
                    table: name.clone(),
                },
                format!("Cannot add already existing table \"{name}\" to keyspace \"{keyspace}\""),
            ));
        }
        let id = TableId(self.id.unwrap_or_else(|| clock::timeuuid(clock)));
        if catalog.table_by_id(id).is_some() {
            return Err(CqlError::config(format!(
                "Another table has the ID {} already",
                id.0
            )));
        }
        catalog.put_table(Table {
            id,
            ..self.definition.clone()
        });
        Ok(Applied::table(SchemaChangeKind::Created, keyspace, name))
    }
}

fn check_columns(create: &CreateTable) -> Result<(), CqlError> {
    check_column_count(create.columns.len())?;
    let mut seen = HashSet::new();
    for column in &create.columns {
        names::check_column(&column.name)?;
        if !seen.insert(&column.name) {
            return Err(CqlError::invalid(format!(
                "Duplicate column '{}' declaration for table '{}'",
                column.name, create.table.name
            )));
        }
        check_column_type(&column.name, &column.cql_type)?;
    }
    if create.clustering_key.is_empty() && create.columns.iter().any(|column| column.is_static) {
        return Err(useless_static());
    }
    Ok(())
}

/// Refuses a table that would have too many columns.
pub(super) fn check_column_count(count: usize) -> Result<(), CqlError> {
    if count > MAX_COLUMNS {
        return Err(CqlError::invalid(format!(
            "A table has at most {MAX_COLUMNS} columns (got {count})"
        )));
    }
    Ok(())
}

/// The error for static columns in a table without clustering columns.
pub(super) fn useless_static() -> CqlError {
    CqlError::invalid(
        "Static columns are only useful (and thus allowed) if the table has at least one \
         clustering column",
    )
}

fn check_key(keyspace: &str, create: &CreateTable) -> Result<(), CqlError> {
    let table = &create.table.name;
    if create.partition_key.is_empty() {
        return Err(CqlError::invalid(format!(
            "No PRIMARY KEY specified for table '{keyspace}.{table}' (exactly one required)"
        )));
    }
    let key: Vec<&String> = create
        .partition_key
        .iter()
        .chain(&create.clustering_key)
        .collect();
    for (position, name) in key.iter().enumerate() {
        if key[..position].contains(name) {
            return Err(CqlError::invalid(format!(
                "Duplicate column '{name}' in PRIMARY KEY clause for table '{table}'"
            )));
        }
        let column = create
            .columns
            .iter()
            .find(|column| column.name == **name)
            .ok_or_else(|| {
                CqlError::invalid(format!(
                    "Unknown column '{name}' referenced in PRIMARY KEY for table '{table}'"
                ))
            })?;
        if column.is_static {
            return Err(CqlError::invalid(format!(
                "Static column '{name}' cannot be part of the PRIMARY KEY"
            )));
        }
        check_key_type(name, &column.cql_type)?;
    }
    Ok(())
}

fn check_clustering_order(create: &CreateTable) -> Result<(), CqlError> {
    let ordered: Vec<&String> = create
        .clustering_order
        .iter()
        .map(|(name, _)| name)
        .collect();
    // Clustering columns that the order leaves out ascend.
    if create
        .clustering_key
        .iter()
        .collect::<Vec<_>>()
        .starts_with(&ordered)
    {
        return Ok(());
    }
    Err(CqlError::invalid(
        "Clustering key columns must exactly match columns in CLUSTERING ORDER BY directive",
    ))
}

fn kind(create: &CreateTable, definition: &ColumnDefinition) -> ColumnKind {
    let position_in = |key: &[String]| key.iter().position(|name| *name == definition.name);
    if let Some(position) = position_in(&create.partition_key) {
        return ColumnKind::PartitionKey { position };
    }
    if let Some(position) = position_in(&create.clustering_key) {
        let descending = create.clustering_order.iter().any(|(name, direction)| {
            *name == definition.name && *direction == Direction::Descending
        });
        return ColumnKind::Clustering {
            position,
            descending,
        };
    }
    if definition.is_static {
        ColumnKind::Static
    } else {
        ColumnKind::Regular
    }
}

//! CREATE TABLE.

use std::collections::{BTreeMap, HashSet};

use cql::ast::{ColumnDefinition, CreateTable, SortDirection};
use cql::error::{CqlError, ErrorKind};
use query::statement_clock;
use schema::{Catalog, Column, ColumnId, ColumnKind, Keyspace, Table, TableId};
use storage::clock::ServerClock;
use value::token::Partitioner;

use super::column_type::{check_column_type, check_key_type};
use super::table_options::{DEFAULT_GC_GRACE_S, TableOptions};
use super::{ApplyOutcome, counters, names, row_ttl, user_type};
use crate::statement::CatalogChangeKind;

/// The most columns of a table. Many places search the columns one by one, and a CDC log has twice
/// as many as its table.
const MAX_COLUMNS: usize = 4096;

/// A prepared CREATE TABLE.
#[derive(Clone, Debug)]
pub(super) struct CreateTablePlan {
    keyspace: String,
    create: CreateTable,
    options: TableOptions,
}

impl CreateTablePlan {
    /// The keyspace of the table.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// The warnings that options have no effect.
    pub fn warnings(&self) -> Vec<String> {
        let table = &self.create.table.name;
        self.options.warnings(&self.keyspace, table)
    }

    pub fn prepare(keyspace: &str, create: &CreateTable) -> Result<Self, CqlError> {
        let name = &create.table.name;
        names::check_table(keyspace, name)?;
        if create.compact_storage {
            return Err(CqlError::invalid(
                "COMPACT STORAGE is not supported by Annulus: it lays rows out for clients of \
                 Thrift, which is gone; leave the option out, and CQL reads and writes the table \
                 as before",
            ));
        }
        check_columns(create)?;
        row_ttl::defined(&create.columns)?;
        check_key(keyspace, create)?;
        check_clustering_order(create)?;
        Ok(CreateTablePlan {
            keyspace: keyspace.to_owned(),
            create: create.clone(),
            options: TableOptions::parse(&create.options)?,
        })
    }

    /// The table, with the types of its columns as the keyspace has them.
    fn table(
        &self,
        id: TableId,
        keyspace: &Keyspace,
        clock: &ServerClock,
    ) -> Result<Table, CqlError> {
        let create = &self.create;
        let columns = create.columns.iter().zip(0..);
        let columns = columns
            .map(|(definition, id)| {
                let name = &definition.name;
                let kind = kind(create, definition);
                let cql_type = user_type::resolve(&definition.data_type, keyspace)?;
                check_column_type(name, &cql_type)?;
                if matches!(
                    kind,
                    ColumnKind::PartitionKey { .. } | ColumnKind::Clustering { .. }
                ) {
                    check_key_type(name, &cql_type)?;
                }
                Ok(Column {
                    id: ColumnId(id),
                    name: name.clone(),
                    kind,
                    cql_type,
                })
            })
            .collect::<Result<Vec<_>, CqlError>>()?;
        let mut table = Table {
            id,
            keyspace: self.keyspace.clone(),
            name: create.table.name.clone(),
            next_column: ColumnId(columns.len() as u32),
            columns,
            dropped_columns: BTreeMap::new(),
            partitioner: Partitioner::Murmur3,
            default_ttl_s: 0,
            row_ttl: None,
            gc_grace_s: DEFAULT_GC_GRACE_S,
            options: BTreeMap::new(),
            indexes: BTreeMap::new(),
            secondary_indexes: BTreeMap::new(),
            cdc: None,
            log: None,
            log_of: None,
            truncated_at_ms: None,
        };
        if let Some(column) = row_ttl::defined(&create.columns)? {
            row_ttl::set(&mut table, column, statement_clock::timeuuid(clock))?;
        }
        self.options.apply(&mut table)?;
        counters::check_table(&table)?;
        Ok(table)
    }

    pub fn apply(
        &self,
        catalog: &mut Catalog,
        clock: &ServerClock,
    ) -> Result<ApplyOutcome, CqlError> {
        let (keyspace, name) = (&self.keyspace, &self.create.table.name);
        let Some(in_keyspace) = catalog.keyspace(keyspace) else {
            return super::missing_keyspace(keyspace, false);
        };
        if in_keyspace.tables.contains_key(name) {
            if self.create.if_not_exists {
                return Ok(ApplyOutcome::Nothing);
            }
            return Err(CqlError::new(
                ErrorKind::AlreadyExists {
                    keyspace: keyspace.clone(),
                    table: name.clone(),
                },
                format!("Cannot add already existing table \"{name}\" to keyspace \"{keyspace}\""),
            ));
        }
        let id = TableId(
            self.create
                .id
                .unwrap_or_else(|| statement_clock::timeuuid(clock)),
        );
        if catalog.table_by_id(id).is_some() {
            return Err(CqlError::config(format!(
                "Another table has the ID {} already",
                id.0
            )));
        }
        let table = self.table(id, in_keyspace, clock)?;
        catalog.put_table(table);
        Ok(ApplyOutcome::table(
            CatalogChangeKind::Created,
            keyspace,
            name,
        ))
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
    let mut others = ordered.iter();
    if let Some(other) = others.find(|name| !create.clustering_key.contains(name)) {
        return Err(CqlError::invalid(format!(
            "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{other}] \
             are not clustering columns"
        )));
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
            *name == definition.name && *direction == SortDirection::Descending
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

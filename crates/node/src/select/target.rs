//! The table that a statement names.

use std::sync::Arc;

use cql::ast::TableName;
use cql::error::CqlError;
use storage::catalog::{Column, Table};

use crate::query::Database;

/// A table to read.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub table: Arc<Table>,
    /// Its rows are made when they are read.
    pub is_system: bool,
}

/// Finds a table; `keyspace` is the one in use.
pub(super) fn resolve(
    database: &Database,
    keyspace: Option<&str>,
    name: &TableName,
) -> Result<Target, CqlError> {
    let keyspace = name.keyspace.as_deref().or(keyspace).ok_or_else(|| {
        CqlError::invalid(
            "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
        )
    })?;
    let catalog = database.storage.catalog();
    if let Some(table) = catalog.table(keyspace, &name.name) {
        return Ok(Target {
            table: table.clone(),
            is_system: false,
        });
    }
    if let Some(table) = database.system.table(keyspace, &name.name) {
        return Ok(Target {
            table: table.clone(),
            is_system: true,
        });
    }
    if catalog.keyspace(keyspace).is_none() && database.system.keyspace(keyspace).is_none() {
        return Err(CqlError::invalid(format!(
            "Keyspace '{keyspace}' does not exist"
        )));
    }
    Err(CqlError::invalid(format!(
        "unconfigured table {}",
        name.name
    )))
}

/// The column of a name.
pub(super) fn column<'t>(table: &'t Table, name: &str) -> Result<&'t Column, CqlError> {
    table.column(name).ok_or_else(|| {
        CqlError::invalid(format!(
            "Undefined column name {name} in table {}.{}",
            table.keyspace, table.name
        ))
    })
}

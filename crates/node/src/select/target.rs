//! The table that a statement names.

use std::sync::Arc;

use cql::ast::TableName;
use cql::error::CqlError;
use storage::catalog::{Column, Table};

use crate::query::Database;
use crate::resolve;

/// A table to read.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The definition of the table.
    pub table: Arc<Table>,
    /// Whether the table is a system table, whose rows are made when they are read.
    pub is_system: bool,
}

/// Finds a table. `keyspace` is the one in use.
///
/// # Errors
/// If there is no such table, or no keyspace is named or in use.
pub(super) fn resolve(
    database: &Database,
    keyspace: Option<&str>,
    name: &TableName,
) -> Result<Target, CqlError> {
    let table = resolve::table(database, keyspace, name)?;
    let is_users = database
        .storage
        .catalog()
        .keyspace(&table.keyspace)
        .is_some();
    Ok(Target {
        table,
        is_system: !is_users,
    })
}

/// Finds a column by its name; an unknown name is an error.
pub(super) fn column<'t>(table: &'t Table, name: &str) -> Result<&'t Column, CqlError> {
    table
        .column(name)
        .ok_or_else(|| resolve::no_such_column(name, table))
}

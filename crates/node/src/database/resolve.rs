//! Finds the keyspaces and tables that the names in a statement mean; `query::resolve` finds
//! columns.

use std::sync::Arc;

use cql::ast::TableName;
use cql::error::CqlError;
use schema::Table;

use super::CqlDatabase;
use crate::statement::keyspace_name;

/// Checks that a keyspace can be in use.
///
/// # Errors
/// If it does not exist.
pub(crate) fn check_keyspace(database: &CqlDatabase, keyspace: &str) -> Result<(), CqlError> {
    let is_known = database.storage.catalog().keyspace(keyspace).is_some()
        || database.system.keyspace(keyspace).is_some();
    match is_known {
        true => Ok(()),
        // Cassandra has other words where it looks for a table.
        false => Err(CqlError::invalid(format!(
            "Keyspace '{keyspace}' does not exist"
        ))),
    }
}

/// Finds a system table or a table of the user by its name.
///
/// # Errors
/// If no keyspace is given or in use, or if the keyspace or the table does not exist.
pub(crate) fn table(
    database: &CqlDatabase,
    in_use: Option<&str>,
    name: &TableName,
) -> Result<Arc<Table>, CqlError> {
    let keyspace_name = keyspace_name(name.keyspace.as_deref(), in_use)?;
    let catalog = database.storage.catalog();
    let keyspace = catalog
        .keyspace(keyspace_name)
        .or_else(|| database.system.keyspace(keyspace_name))
        .ok_or_else(|| no_such_keyspace(keyspace_name))?;
    keyspace
        .tables
        .get(&name.name)
        .cloned()
        .ok_or_else(|| no_such_table(&name.name))
}

/// The error "keyspace x does not exist".
fn no_such_keyspace(name: &str) -> CqlError {
    CqlError::invalid(format!("keyspace {name} does not exist"))
}

/// The error "table x does not exist".
fn no_such_table(name: &str) -> CqlError {
    CqlError::invalid(format!("table {name} does not exist"))
}

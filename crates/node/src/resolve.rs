//! Finds the keyspaces and tables that the names in a statement stand for; `query::resolve` finds
//! columns.

use std::sync::Arc;

use cql::ast::TableName;
use cql::error::CqlError;
use schema::Table;

use crate::database::Database;

/// The keyspace of a name: the one given with the name (`own`), else the keyspace in use.
///
/// # Errors
/// If there is neither.
pub fn keyspace_name<'a>(
    own: Option<&'a str>,
    in_use: Option<&'a str>,
) -> Result<&'a str, CqlError> {
    own.or(in_use).ok_or_else(|| {
        CqlError::invalid(
            "No keyspace has been specified. USE a keyspace, or explicitly specify \
             keyspace.tablename",
        )
    })
}

/// Finds a system table or a table of the user by its name.
///
/// # Errors
/// If no keyspace is given or in use, or if the keyspace or the table does not exist.
pub fn table(
    database: &Database,
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
pub fn no_such_keyspace(name: &str) -> CqlError {
    CqlError::invalid(format!("keyspace {name} does not exist"))
}

/// The error "table x does not exist".
pub fn no_such_table(name: &str) -> CqlError {
    CqlError::invalid(format!("table {name} does not exist"))
}

//! Finds the columns that the names in a statement stand for.

use cql::error::CqlError;
use schema::{Column, Table};

/// Finds a column by its name.
///
/// # Errors
/// If the table has no such column.
pub fn column<'t>(table: &'t Table, name: &str) -> Result<&'t Column, CqlError> {
    table
        .column(name)
        .ok_or_else(|| no_such_column(name, table))
}

/// The error "Undefined column name x in table ks.t".
pub fn no_such_column(name: &str, table: &Table) -> CqlError {
    CqlError::invalid(format!(
        "Undefined column name {name} in table {}.{}",
        table.keyspace, table.name
    ))
}

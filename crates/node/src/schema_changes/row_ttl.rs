//! The column that says when its row expires: `TTL` after a column of CREATE TABLE, and
//! `ALTER TABLE ... TTL`, as in ScyllaDB.

use cql::ast::ColumnDefinition;
use cql::error::CqlError;
use schema::{ColumnKind, RowTtl, Table};
use uuid::Uuid;

/// Refuses two such columns in CREATE TABLE. Returns the name of the one.
pub(super) fn defined(columns: &[ColumnDefinition]) -> Result<Option<&str>, CqlError> {
    let mut marked = columns.iter().filter(|column| column.is_row_ttl);
    let first = marked.next().map(|column| &*column.name);
    match (first, marked.next()) {
        (Some(first), Some(second)) => Err(CqlError::invalid(format!(
            "A table has at most one TTL column, got {first} and {}",
            second.name
        ))),
        _ => Ok(first),
    }
}

/// Refuses `TTL` after a column that ALTER TABLE adds.
pub(super) fn check_added(table: &str, column: &ColumnDefinition) -> Result<(), CqlError> {
    if column.is_row_ttl {
        let name = &column.name;
        return Err(CqlError::invalid(format!(
            "Column {name} can't become the TTL column as it is added: add it without TTL, then \
             ALTER TABLE {table} TTL {name}"
        )));
    }
    Ok(())
}

/// Makes a column the one that says when its row expires, or with `None` leaves the table without
/// such a column. `version` is new.
pub(super) fn alter(
    table: &mut Table,
    column: Option<&str>,
    version: Uuid,
) -> Result<(), CqlError> {
    let current = table.row_ttl_column().map(|column| column.name.clone());
    match (column, current) {
        (Some(column), None) => set(table, column, version),
        (Some(column), Some(current)) => Err(CqlError::invalid(format!(
            "Column {column} can't become the TTL column of table '{0}.{1}', as {current} is: ALTER \
             TABLE {1} TTL NULL first",
            table.keyspace, table.name
        ))),
        (None, Some(_)) => {
            table.row_ttl = None;
            Ok(())
        }
        (None, None) => Err(CqlError::invalid(format!(
            "Table '{}.{}' has no TTL column",
            table.keyspace, table.name
        ))),
    }
}

/// Makes a column of a table without such a column the one that says when its row expires.
pub(super) fn set(table: &mut Table, name: &str, version: Uuid) -> Result<(), CqlError> {
    let Some(column) = table.column(name) else {
        return Err(CqlError::invalid(format!(
            "Column {name} was not found in table '{}.{}'",
            table.keyspace, table.name
        )));
    };
    match column.kind {
        ColumnKind::Regular => {}
        ColumnKind::Static => {
            return Err(CqlError::invalid(format!(
                "Static column {name} can't be the TTL column: take a regular one"
            )));
        }
        ColumnKind::PartitionKey { .. } | ColumnKind::Clustering { .. } => {
            return Err(CqlError::invalid(format!(
                "PRIMARY KEY column {name} can't be the TTL column: take a regular one"
            )));
        }
    }
    if !RowTtl::takes(&column.cql_type) {
        return Err(CqlError::invalid(format!(
            "The TTL column {name} has to be a timestamp, or a bigint or int of seconds since the \
             epoch (got {})",
            column.cql_type
        )));
    }
    table.row_ttl = Some(RowTtl {
        column: column.id,
        version,
    });
    Ok(())
}

/// Refuses to drop the column that says when its row expires.
pub(super) fn check_dropped(table: &Table, name: &str) -> Result<(), CqlError> {
    let is_it = |column: &schema::Column| column.name == name;
    if table.row_ttl_column().is_some_and(is_it) {
        return Err(CqlError::invalid(format!(
            "Cannot drop column {name}, as it is the TTL column: ALTER TABLE {} TTL NULL first",
            table.name
        )));
    }
    Ok(())
}

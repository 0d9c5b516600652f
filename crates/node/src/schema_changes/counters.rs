//! The rules of tables of counters: all columns outside the key are counters, nothing in them
//! expires, and no index and no CDC log is derived from them.

use cql::error::CqlError;
use schema::{Column, ColumnKind, Table};
use value::CqlType;

/// Checks a table whose columns or options are new.
///
/// # Errors
/// Counters together with other columns, and options that counters don't have.
pub(super) fn check_table(table: &Table) -> Result<(), CqlError> {
    let beside_key =
        |column: &&Column| matches!(column.kind, ColumnKind::Regular | ColumnKind::Static);
    let mut beside_key = table.columns.iter().filter(beside_key);
    let is_counter = table.is_counter();
    if beside_key.any(|column| (column.cql_type == CqlType::Counter) != is_counter) {
        return Err(CqlError::invalid(
            "Cannot mix counter and non counter columns in the same table",
        ));
    }
    if !is_counter {
        return Ok(());
    }
    if table.default_ttl_s > 0 {
        return Err(CqlError::invalid(
            "Cannot set default_time_to_live on a table with counters",
        ));
    }
    if table.cdc.as_ref().is_some_and(|cdc| cdc.enabled) {
        return Err(CqlError::invalid(
            "A table of counters has no CDC log: leave the option cdc out",
        ));
    }
    Ok(())
}

/// Checks the type of a column that is added to a table.
///
/// # Errors
/// A counter in a table of other columns, another column in a table of counters, and a counter of
/// the name of one that was dropped: its deleted total might show again.
pub(super) fn check_added(table: &Table, name: &str, cql_type: &CqlType) -> Result<(), CqlError> {
    let is_counter = *cql_type == CqlType::Counter;
    if is_counter && table.dropped_columns.contains_key(name) {
        return Err(CqlError::invalid(format!(
            "Cannot re-add previously dropped counter column {name}"
        )));
    }
    let (added, of_table) = match (table.is_counter(), is_counter) {
        (true, false) => ("non counter", "counter"),
        (false, true) => ("counter", "non counter"),
        _ => return Ok(()),
    };
    Err(CqlError::config(format!(
        "{}.{}: Cannot have a {added} column (\"{name}\") in a {of_table} table",
        table.keyspace, table.name
    )))
}

/// Refuses an index on a table of counters.
pub(super) fn check_index(table: &Table) -> Result<(), CqlError> {
    match table.is_counter() {
        true => Err(CqlError::invalid(
            "Secondary indexes on counter tables aren't supported",
        )),
        false => Ok(()),
    }
}

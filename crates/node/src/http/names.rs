//! Names in requests, the tables and columns that they mean, and names in statements.

use std::sync::Arc;

use schema::{Column, Table};
use value::identifier::quoted;
use value::json_column;

use super::HttpTables;
use super::failure::HttpFailure;

/// The table that a path names, its names as they are.
///
/// # Errors
/// 404 if there is none.
pub(super) fn table_of(
    tables: &HttpTables,
    keyspace: &str,
    name: &str,
) -> Result<Arc<Table>, HttpFailure> {
    let database = tables.sessions.database();
    let catalog = database.storage.catalog();
    if catalog.keyspace(keyspace).is_none() {
        return Err(HttpFailure::missing(format!(
            "there is no keyspace {keyspace}"
        )));
    }
    let table = catalog.table(keyspace, name).cloned();
    table.ok_or_else(|| HttpFailure::missing(format!("there is no table {keyspace}.{name}")))
}

/// The column that a request names: by its name as it is, else as a field of `SELECT JSON` does.
///
/// # Errors
/// 400 if there is none.
pub(super) fn column_of<'t>(table: &'t Table, given: &str) -> Result<&'t Column, HttpFailure> {
    let column = table
        .column(given)
        .or_else(|| table.column(&json_column(given)));
    column.ok_or_else(|| {
        let names = table.columns.iter().map(|column| column.name.as_str());
        HttpFailure::bad_request(
            format!("{}.{} has no column {given}", table.keyspace, table.name),
            format!("its columns are {}", names.collect::<Vec<_>>().join(", ")),
        )
    })
}

/// The columns of the primary key, partition key first.
pub(super) fn key_of(table: &Table) -> Vec<&Column> {
    let partition = table.partition_key().into_iter();
    partition.chain(table.clustering_key()).collect()
}

/// The name of a table as a statement has it.
pub(super) fn qualified(keyspace: &str, name: &str) -> String {
    format!("{}.{}", quoted(keyspace), quoted(name))
}

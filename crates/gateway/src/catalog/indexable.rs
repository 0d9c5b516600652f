//! Checks whether a table can have vector and full-text indexes.

use cql::ast::CreateIndex;
use cql::error::CqlError;
use index::SearchClass;

use super::base_table::BaseTable;
use super::cluster::{ClusterError, InternalSession};
use super::{log_table, tables};

/// Reads the table that an index is to be made on.
///
/// # Errors
/// If there is no such table, if it cannot be indexed, or if another table has the name of its log.
pub(super) async fn indexable(
    cluster: &InternalSession,
    keyspace: &str,
    create: &CreateIndex,
    class: SearchClass,
) -> Result<BaseTable, CqlError> {
    let name = &create.table.name;
    let Some(table) = BaseTable::read(cluster, keyspace, name).await? else {
        return Err(missing_table(cluster, keyspace, name).await?);
    };
    if table.counters {
        return Err(CqlError::invalid(format!(
            "{}es are not supported on counter tables",
            class.title()
        )));
    }
    if table.is_log() {
        return Err(CqlError::invalid(format!(
            "{keyspace}.{name} is a change log and cannot be indexed"
        )));
    }
    check_key(&table, class)?;
    let log_name = log_table::name_of(name);
    if let Some(log) = BaseTable::read(cluster, keyspace, &log_name).await?
        && !log.is_log()
    {
        return Err(CqlError::invalid(format!(
            "The index needs {keyspace}.{log_name} for its log, but this is another table: \
             rename or drop it first"
        )));
    }
    Ok(table)
}

/// Checks that a log can hold the keys of a table.
fn check_key(table: &BaseTable, class: SearchClass) -> Result<(), CqlError> {
    for (column, cql_type) in table.key() {
        let name = &column.name;
        if column.cql_type.is_none() {
            return Err(CqlError::invalid(format!(
                "{}es need key columns of CQL's own types: {name} is of type {cql_type}",
                class.title()
            )));
        }
        if log_table::is_own_column(name) {
            return Err(CqlError::invalid(format!(
                "The log of {}.{} would have two columns {name}: the table's key and its own. Such \
                 a table cannot be indexed",
                table.keyspace, table.name
            )));
        }
    }
    Ok(())
}

async fn missing_table(
    cluster: &InternalSession,
    keyspace: &str,
    table: &str,
) -> Result<CqlError, ClusterError> {
    Ok(CqlError::invalid(
        match tables::exists(cluster, keyspace).await? {
            true => format!("Table '{keyspace}.{table}' doesn't exist"),
            false => format!("Keyspace '{keyspace}' doesn't exist"),
        },
    ))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_key_column_named_as_one_of_the_log_is_refused() {
        let table = |key: &str| {
            let column = |name: &str, kind: &str| {
                let cql_type = "int".to_owned();
                (name.to_owned(), kind.to_owned(), 0, cql_type)
            };
            let columns = vec![column(key, "partition_key"), column("cdc$time", "regular")];
            BaseTable::new("k", "t", Uuid::nil(), columns)
        };
        assert_eq!(check_key(&table("id"), SearchClass::Vector), Ok(()));
        for own in ["cdc$time", "cdc$ttl", "cdc$operation"] {
            let error = check_key(&table(own), SearchClass::FullText).unwrap_err();
            assert!(error.message.contains(own), "{}", error.message);
        }
    }
}

//! Finds the columns that the names in a statement mean.

use cql::error::CqlError;
use schema::{Column, ColumnKind, Table};

/// The columns of a table, wherever the table is stored.
#[derive(Clone, Copy, Debug)]
pub struct TableColumns<'t> {
    /// The keyspace of the table.
    pub keyspace: &'t str,
    /// The name of the table.
    pub table: &'t str,
    /// All columns.
    pub columns: &'t [Column],
}

impl<'t> From<&'t Table> for TableColumns<'t> {
    fn from(table: &'t Table) -> Self {
        TableColumns {
            keyspace: &table.keyspace,
            table: &table.name,
            columns: &table.columns,
        }
    }
}

impl<'t> TableColumns<'t> {
    /// Finds a column by its name.
    ///
    /// # Errors
    /// If the table has no such column.
    pub fn column(self, name: &str) -> Result<&'t Column, CqlError> {
        let mut columns = self.columns.iter();
        columns.find(|column| column.name == name).ok_or_else(|| {
            let TableColumns {
                keyspace, table, ..
            } = self;
            CqlError::invalid(format!(
                "Undefined column name {name} in table {keyspace}.{table}"
            ))
        })
    }

    /// The partition key columns in their order.
    pub fn partition_key(self) -> Vec<&'t Column> {
        let position = |column: &'t Column| match column.kind {
            ColumnKind::PartitionKey { position } => Some((position, column)),
            _ => None,
        };
        let mut key: Vec<_> = self.columns.iter().filter_map(position).collect();
        key.sort_unstable_by_key(|(position, _)| *position);
        key.into_iter().map(|(_, column)| column).collect()
    }
}

/// Finds a column by its name.
///
/// # Errors
/// If the table has no such column.
pub fn column<'t>(table: &'t Table, name: &str) -> Result<&'t Column, CqlError> {
    TableColumns::from(table).column(name)
}

//! The table that a SELECT names.

use std::sync::Arc;

use cql::ast::TableName;
use cql::error::CqlError;
use schema::Table;

use crate::database::{CqlDatabase, resolve};

/// A table to read.
#[derive(Clone, Debug)]
pub(super) struct SelectedTable {
    /// The definition of the table.
    pub table: Arc<Table>,
    /// Whether the table is a system table, whose rows are made when they are read.
    pub is_system: bool,
}

impl SelectedTable {
    /// Finds a table. `keyspace` is the one in use.
    ///
    /// # Errors
    /// If there is no such table, or no keyspace is named or in use.
    pub(super) fn find(
        database: &CqlDatabase,
        keyspace: Option<&str>,
        name: &TableName,
    ) -> Result<SelectedTable, CqlError> {
        let table = resolve::table(database, keyspace, name)?;
        let is_users = database
            .storage
            .catalog()
            .keyspace(&table.keyspace)
            .is_some();
        Ok(SelectedTable {
            table,
            is_system: !is_users,
        })
    }
}

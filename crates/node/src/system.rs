//! The tables of `system`, `system_schema`, `system_distributed` and `system_virtual_schema`: made
//! from the catalog when they are read, and read-only.

use std::sync::Arc;

use cql::error::CqlError;
use storage::Storage;
use storage::catalog::{Keyspace, Table};
use storage::read::Row;

/// The definitions and contents of the system tables.
pub struct SystemTables {}

impl SystemTables {
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        let _ = name;
        todo!()
    }

    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Arc<Table>> {
        self.keyspace(keyspace)?.tables.get(name)
    }

    /// All rows of a system table, by partition in token order, then in clustering order.
    pub fn rows(&self, storage: &Storage, table: &Table) -> Result<Vec<Row>, CqlError> {
        let _ = (storage, table);
        todo!()
    }
}

//! Secondary indexes, whose entries the storage keeps.

use std::sync::Arc;

use ::schema::{SecondaryIndex, Table};
use async_trait::async_trait;
use storage::{REPAIR_COUNTERS, Storage, StorageError};
use store::database::{DatabaseIndex, IndexName, TableIdentity};
use tasks::Task;
use uuid::Uuid;

/// A secondary index of a table.
pub struct StoredSecondaryIndex {
    storage: Storage,
    table: Arc<Table>,
    index: Arc<SecondaryIndex>,
}

impl StoredSecondaryIndex {
    /// Finds an index by its name.
    pub fn find(storage: &Storage, name: &IndexName) -> Option<StoredSecondaryIndex> {
        let catalog = storage.catalog();
        let mut tables = catalog.keyspace(&name.keyspace)?.tables.values();
        let found = tables.find_map(|table| {
            let index = table.secondary_indexes.get(&name.index)?;
            Some((Arc::clone(table), Arc::clone(index)))
        });
        let (table, index) = found?;
        Some(StoredSecondaryIndex {
            storage: storage.clone(),
            table,
            index,
        })
    }
}

#[async_trait]
impl DatabaseIndex for StoredSecondaryIndex {
    fn version(&self) -> Uuid {
        self.index.version
    }

    fn table(&self) -> TableIdentity {
        TableIdentity {
            keyspace: self.table.keyspace.clone(),
            table: self.table.name.clone(),
            id: self.table.id.0,
        }
    }

    fn is_built(&self) -> bool {
        let view = self.storage.view(self.table.id);
        let is_ready = view.and_then(|view| view.is_index_ready(self.index.version));
        // One that was dropped is not built either.
        is_ready.unwrap_or(false)
    }

    fn counters(&self) -> &'static [&'static str] {
        REPAIR_COUNTERS
    }

    async fn repair(&self, task: &Task) -> anyhow::Result<bool> {
        let (table, index) = (self.table.id, self.index.version);
        match self.storage.repair_index(table, index, task).await {
            Err(StorageError::NoSuchTable(_) | StorageError::NoSuchIndex(_)) => Ok(false),
            ended => Ok(ended?),
        }
    }
}

//! The database of an index service in the same process: [`storage`] itself, by calls.
//!
//! Nothing is polled: a change of the schema ([`schema`]) and a commit that adds to a log ([`log`])
//! each wake the task that waits for it. Nothing is read while nothing is written, and no timer
//! runs.

#![warn(clippy::unwrap_used)]

mod catalog_changes;
#[cfg(test)]
mod fixtures;
mod log;
mod rows;
mod secondary_index;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ::schema::Table;
use async_trait::async_trait;
use catalog_changes::StoredSchema;
use rows::StoredRows;
use secondary_index::StoredSecondaryIndex;
use storage::clock::Clock;
use storage::{LogEnd, Storage};
use store::database::{
    CheckedFiles, DatabaseIndex, IndexIdentity, IndexName, LogFacts, LogHead, LogRun, Piece,
    RowReader, SchemaFollower, SourceDatabase, SourceTable, TableIdentity, TableSize, TokenRange,
    split,
};
use uuid::Uuid;

/// The name of the one reader of each log, as metrics show it.
const READER: &str = "fine";

/// The database in this process.
pub struct Embedded {
    storage: Storage,
}

impl Embedded {
    /// Makes the database of a storage.
    pub fn new(storage: Storage) -> Embedded {
        Embedded { storage }
    }
}

/// The table with this identity, if it is still there.
fn table_of(storage: &Storage, table: &TableIdentity) -> Option<Arc<Table>> {
    let catalog = storage.catalog();
    let found = catalog.table(&table.keyspace, &table.table)?;
    (found.id.0 == table.id).then(|| Arc::clone(found))
}

struct StorageLogHead(LogEnd);

impl LogHead for StorageLogHead {
    fn acknowledged_us(&self) -> i64 {
        self.0.acknowledged_micros()
    }

    fn slow_writers(&self) -> Box<dyn Send> {
        Box::new(self.0.slow_writers())
    }
}

#[async_trait]
impl SourceDatabase for Embedded {
    fn clock(&self) -> Arc<dyn Clock> {
        self.storage.clock().clone()
    }

    fn clock_lead(&self) -> Option<Duration> {
        let lead_micros = self.storage.clock().ahead_micros();
        Some(Duration::from_micros(
            u64::try_from(lead_micros).unwrap_or(0),
        ))
    }

    fn schema(&self) -> Box<dyn SchemaFollower> {
        Box::new(StoredSchema::new(self.storage.clone()))
    }

    fn has_index(&self, name: &IndexName) -> bool {
        let catalog = self.storage.catalog();
        catalog.keyspace(&name.keyspace).is_some_and(|keyspace| {
            let mut tables = keyspace.tables.values();
            tables.any(|table| {
                let index = table.indexes.get(&name.index);
                index.is_some_and(|index| catalog_changes::identity(table, index).is_ok())
            })
        })
    }

    fn is_current(&self, index: &IndexIdentity) -> bool {
        let catalog = self.storage.catalog();
        let of = &index.table;
        catalog.table(&of.keyspace, &of.table).is_some_and(|table| {
            let found = table.indexes.get(&index.name.index);
            table.id.0 == of.id
                && table.truncated_at_ms == index.truncated_ms
                && found.is_some_and(|found| Some(found.version) == index.version)
        })
    }

    fn keeps_all(&self, index: &IndexIdentity) -> bool {
        let catalog = self.storage.catalog();
        let table = catalog.table(&index.table.keyspace, &index.table.table);
        let wanted = table.and_then(|table| {
            let found = table.indexes.get(&index.name.index)?;
            catalog_changes::identity(table, found).ok()
        });
        wanted.is_none_or(|wanted| wanted.filter_columns == index.filter_columns)
    }

    fn reads_missing_rows(&self) -> bool {
        true
    }

    fn renamed(&self, index: &IndexIdentity) -> Option<IndexIdentity> {
        let table = table_of(&self.storage, &index.table)?;
        catalog_changes::renamed(&table, index)
    }

    fn database_index(&self, name: &IndexName) -> Option<Arc<dyn DatabaseIndex>> {
        let index = StoredSecondaryIndex::find(&self.storage, name)?;
        Some(Arc::new(index))
    }

    async fn log(&self, table: &TableIdentity) -> anyhow::Result<Option<LogFacts>> {
        let table = table_of(&self.storage, table);
        let Some(log) = table.as_ref().and_then(|table| table.log.as_ref()) else {
            return Ok(None);
        };
        let settled = self.storage.settle_log_to_end(log.table).await?;
        let settled_us = u64::try_from(settled.up_to_micros).unwrap_or(0);
        Ok(Some(LogFacts {
            id: log.table.0,
            ttl_s: log.options.ttl_s.into(),
            settled: Some(Duration::from_micros(settled_us)),
        }))
    }

    fn log_head(&self, table: &TableIdentity) -> Option<Arc<dyn LogHead>> {
        let table = table_of(&self.storage, table)?;
        let end = self.storage.log_end(table.log.as_ref()?.table)?;
        Some(Arc::new(StorageLogHead(end)))
    }

    fn log_readers(&self) -> Vec<String> {
        vec![READER.to_owned()]
    }

    async fn follow(&self, _: usize, run: LogRun) -> anyhow::Result<()> {
        log::follow(&self.storage, &run).await
    }

    fn rows(&self, reader: &RowReader, page_bytes: usize) -> Arc<dyn SourceTable> {
        Arc::new(StoredRows::new(
            self.storage.clone(),
            reader.clone(),
            page_bytes,
        ))
    }

    async fn pieces(&self, _: &TableIdentity, range: TokenRange, pieces_min: usize) -> Vec<Piece> {
        let node = BTreeSet::from([self.storage.catalog().host_id]);
        let pieces = split(range, &[], pieces_min).into_iter();
        pieces.map(|range| (range, node.clone())).collect()
    }

    fn check_files(
        &self,
        pass: &mut dyn FnMut(u64) -> bool,
    ) -> Option<anyhow::Result<CheckedFiles>> {
        let checked = self.storage.scrub(pass).map(|found| CheckedFiles {
            files: found.files,
            bytes: found.bytes,
            faults: found.faults.iter().map(ToString::to_string).collect(),
        });
        Some(checked.map_err(Into::into))
    }

    fn table_sizes(&self) -> Option<Vec<TableSize>> {
        let catalog = self.storage.catalog();
        let sizes = self.storage.table_sizes().into_iter();
        let sizes = sizes.filter_map(|size| {
            let table = catalog.table_by_id(size.table)?;
            let indexes = table.indexes.keys().chain(table.secondary_indexes.keys());
            Some(TableSize {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                disk_bytes: size.disk_bytes,
                rows_estimate: size.entries,
                index_disk_bytes: size.index_disk_bytes,
                indexes: indexes.cloned().collect(),
            })
        });
        let mut sizes: Vec<TableSize> = sizes.collect();
        sizes.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        Some(sizes)
    }

    fn file_bytes(&self) -> u64 {
        self.storage.statistics().disk_bytes
    }

    async fn shards(&self) -> BTreeMap<Uuid, usize> {
        BTreeMap::from([(self.storage.catalog().host_id, 1)])
    }
}

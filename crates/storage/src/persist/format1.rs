//! Format 1: one record of JSON for all of the catalog.

use std::collections::BTreeMap;

use schema::TableId;
use serde::Deserialize;
use uuid::Uuid;

use super::records::{self, KeyspaceRecord, TableRecord};
use super::{HeadRecord, LoadedCatalog, TableGenerations, catalog, changes, parse};
use crate::StorageError;

pub(super) const FORMAT: u32 = 1;

#[derive(Deserialize)]
struct CatalogRecord {
    #[serde(flatten)]
    head: HeadRecord,
    keyspaces: Vec<WholeKeyspace>,
    generations: BTreeMap<Uuid, u64>,
}

#[derive(Deserialize)]
struct WholeKeyspace {
    #[serde(flatten)]
    keyspace: KeyspaceRecord,
    tables: Vec<TableRecord>,
}

/// Reads a catalog, with the changes that convert it to the present format.
pub(super) fn load(bytes: &[u8]) -> Result<LoadedCatalog, StorageError> {
    let record: CatalogRecord = parse(bytes)?;
    let mut keyspaces = BTreeMap::new();
    for WholeKeyspace { keyspace, tables } in record.keyspaces {
        let mut keyspace = records::keyspace_of(keyspace)?;
        for table in tables {
            let table = records::table_of(table, &keyspace)?;
            keyspace.tables.insert(table.name.clone(), table.into());
        }
        keyspaces.insert(keyspace.name.clone(), keyspace);
    }
    let generations = record.generations.into_iter();
    let generations: TableGenerations = generations.map(|(id, n)| (TableId(id), n)).collect();
    let catalog = catalog(record.head, keyspaces);
    let conversion = changes(None, (&catalog, &generations));
    Ok(LoadedCatalog {
        catalog,
        generations,
        conversion,
    })
}

/// Calls `work` with each table and the name of its keyspace; not at all if the record has another
/// format.
pub(super) fn each_table(bytes: &[u8], mut work: impl FnMut(&TableRecord, &str)) {
    let Ok(record) = parse::<CatalogRecord>(bytes) else {
        return;
    };
    for WholeKeyspace { keyspace, tables } in &record.keyspaces {
        tables.iter().for_each(|table| work(table, &keyspace.name));
    }
}

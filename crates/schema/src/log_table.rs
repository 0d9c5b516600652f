//! The CDC log of a table as a table of its own: `<table>_scylla_cdc_log`.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;
use value::{CqlType, token::Partitioner};

use super::{
    CdcLog, CdcOptions, Column, ColumnId, ColumnKind, DeltaMode, ImageMode, Keyspace,
    StreamGeneration, Table, TableId, log_table_name,
};

/// Seconds that rows live in a log that only an index needs. This is ScyllaDB's default.
const INDEX_LOG_TTL_S: u32 = 86_400;

/// The names of a log's own columns.
pub mod column {
    /// The stream that the row is in.
    pub const STREAM_ID: &str = "cdc$stream_id";
    /// The time of the change, a timeuuid.
    pub const TIME: &str = "cdc$time";
    /// The position of the row among those of its group.
    pub const BATCH_SEQ_NO: &str = "cdc$batch_seq_no";
    /// The kind of the change, as a number.
    pub const OPERATION: &str = "cdc$operation";
    /// The time to live of the written cells.
    pub const TTL: &str = "cdc$ttl";
    /// Whether the row is the last of its group.
    pub const END_OF_BATCH: &str = "cdc$end_of_batch";

    /// The column that says whether a column of the base was deleted.
    pub fn deleted(name: &str) -> String {
        format!("cdc$deleted_{name}")
    }

    /// The column with the keys of the deleted elements of a collection.
    pub fn deleted_elements(name: &str) -> String {
        format!("cdc$deleted_elements_{name}")
    }
}

/// Creates, adapts or removes the log of a table, as its options and indexes require. Changes the
/// keyspace and [`Table::log`].
pub(super) fn adapt(keyspace: &mut Keyspace, table: &mut Table) {
    let Some(options) = wanted(table).or_else(|| kept(table)) else {
        remove(keyspace, table);
        table.log = None;
        return;
    };
    let name = log_table_name(&table.name);
    let old = keyspace.tables.get(&name).cloned();
    if let Some(old) = &old {
        assert_eq!(
            old.log_of,
            Some(table.id),
            "the name of the CDC log {name} is taken by another table"
        );
    }
    let old_log = table.log.take();
    let (id, streams) = match (&old, old_log) {
        (Some(old), Some(log)) if log.table == old.id => (old.id, log.streams),
        _ => {
            // The commit sets the time at which the streams begin.
            let streams = keyspace.tablets.then(|| StreamGeneration::of_one_tablet(0));
            (TableId(Uuid::new_v4()), streams)
        }
    };
    let log_table = build(table, id, old.as_deref().filter(|old| old.id == id));
    table.log = Some(CdcLog {
        table: id,
        options,
        streams,
    });
    keyspace.tables.insert(name, Arc::new(log_table));
}

/// Takes the log of a table out of the keyspace.
pub(super) fn remove(keyspace: &mut Keyspace, table: &Table) {
    let name = log_table_name(&table.name);
    if keyspace
        .tables
        .get(&name)
        .is_some_and(|log| log.log_of == Some(table.id))
    {
        keyspace.tables.remove(&name);
    }
}

fn wanted(table: &Table) -> Option<CdcOptions> {
    match &table.cdc {
        Some(options) if options.enabled => Some(options.clone()),
        _ if table.indexes.is_empty() => None,
        _ => Some(CdcOptions {
            enabled: true,
            preimage: ImageMode::Off,
            postimage: false,
            delta: DeltaMode::Keys,
            ttl_s: INDEX_LOG_TTL_S,
        }),
    }
}

/// The options of a log that the user enabled and then disabled. Nothing is written into it any
/// more, and readers still find its rows for as long as these live. It is dropped with its table,
/// as in ScyllaDB.
fn kept(table: &Table) -> Option<CdcOptions> {
    table.log.as_ref()?;
    table.cdc.clone().filter(|options| !options.enabled)
}

fn build(table: &Table, id: TableId, old: Option<&Table>) -> Table {
    let mut next_column = old.map_or(ColumnId(0), |old| old.next_column);
    let columns = definitions(table)
        .into_iter()
        .map(|(name, kind, cql_type)| {
            // A column that was dropped and added with another type is another column.
            let kept = old
                .and_then(|old| old.column(&name))
                .filter(|kept| kept.kind == kind && kept.cql_type == cql_type);
            let id = kept.map_or_else(
                || {
                    let id = next_column;
                    next_column.0 += 1;
                    id
                },
                |kept| kept.id,
            );
            Column {
                id,
                name,
                kind,
                cql_type,
            }
        })
        .collect();
    Table {
        id,
        keyspace: table.keyspace.clone(),
        name: log_table_name(&table.name),
        columns,
        next_column,
        dropped_columns: BTreeMap::new(),
        partitioner: Partitioner::Cdc,
        default_ttl_s: 0,
        row_ttl: None,
        gc_grace_s: 0,
        options: options(table),
        indexes: BTreeMap::new(),
        secondary_indexes: BTreeMap::new(),
        cdc: None,
        log: None,
        log_of: Some(table.id),
        truncated_at_ms: old.and_then(|old| old.truncated_at_ms),
    }
}

fn options(table: &Table) -> BTreeMap<String, String> {
    let text = |text: String| format!("'{}'", text.replace('\'', "''"));
    [
        ("caching", "{'enabled': 'false'}".to_owned()),
        (
            "comment",
            text(format!("CDC log for {}.{}", table.keyspace, table.name)),
        ),
        (
            "compaction",
            "{'class': 'TimeWindowCompactionStrategy', 'compaction_window_size': '60', \
             'compaction_window_unit': 'MINUTES', 'expired_sstable_check_frequency_seconds': \
             '1800'}"
                .to_owned(),
        ),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn definitions(table: &Table) -> Vec<(String, ColumnKind, CqlType)> {
    let clustering = |position| ColumnKind::Clustering {
        position,
        descending: false,
    };
    let own = [
        (
            column::STREAM_ID,
            ColumnKind::PartitionKey { position: 0 },
            CqlType::Blob,
        ),
        (column::TIME, clustering(0), CqlType::Timeuuid),
        (column::BATCH_SEQ_NO, clustering(1), CqlType::Int),
        (column::OPERATION, ColumnKind::Regular, CqlType::Tinyint),
        (column::TTL, ColumnKind::Regular, CqlType::Bigint),
        (column::END_OF_BATCH, ColumnKind::Regular, CqlType::Boolean),
    ];
    let mut definitions: Vec<_> = own
        .into_iter()
        .map(|(name, kind, cql_type)| (name.to_owned(), kind, cql_type))
        .collect();
    let key = table
        .partition_key()
        .into_iter()
        .chain(table.clustering_key());
    definitions.extend(key.map(|column| {
        (
            column.name.clone(),
            ColumnKind::Regular,
            column.cql_type.clone(),
        )
    }));
    for base in table.static_columns().chain(table.regular_columns()) {
        definitions.push((
            base.name.clone(),
            ColumnKind::Regular,
            logged_type(&base.cql_type),
        ));
        definitions.push((
            column::deleted(&base.name),
            ColumnKind::Regular,
            CqlType::Boolean,
        ));
        if base.cql_type.is_multi_cell() {
            let keys = CqlType::Set {
                element: Box::new(base.cql_type.path_type().clone()),
                frozen: true,
            };
            definitions.push((
                column::deleted_elements(&base.name),
                ColumnKind::Regular,
                keys,
            ));
        }
    }
    definitions
}

/// The type of a base column in the log: frozen, with a list as a map from its timeuuids.
pub fn logged_type(cql_type: &CqlType) -> CqlType {
    match cql_type {
        CqlType::List {
            element,
            frozen: false,
        } => CqlType::Map {
            key: Box::new(CqlType::Timeuuid),
            value: element.clone(),
            frozen: true,
        },
        other => other.frozen(),
    }
}

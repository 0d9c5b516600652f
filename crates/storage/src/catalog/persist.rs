//! The catalog on disk: one record of JSON, replaced whole.
//!
//! ```text
//! key       "catalog" in the meta space
//! value     {"format": 1, ...}: the structs below; types as CQL text, ids as UUID text
//! ```

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use cql::token::Partitioner;
use cql::types::CqlType;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    Catalog, CdcLog, CdcOptions, Column, ColumnId, ColumnKind, DeltaMode, DroppedColumn, ImageMode,
    Index, Keyspace, StreamGeneration, Table, TableId,
};
use crate::StorageError;

/// The version of the record. A greater one is refused.
const FORMAT: u32 = 1;

/// Generations of the tables' storage, counted up by TRUNCATE; a table that is not in it has 0.
pub(crate) type Generations = HashMap<TableId, u64>;

#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

#[derive(Serialize, Deserialize)]
struct CatalogRecord {
    format: u32,
    version: Uuid,
    host_id: Uuid,
    cluster_name: String,
    created_at_ms: i64,
    vnode_streams: StreamsRecord,
    keyspaces: Vec<KeyspaceRecord>,
    generations: BTreeMap<Uuid, u64>,
}

#[derive(Serialize, Deserialize)]
struct StreamsRecord {
    since_ms: i64,
    streams: Vec<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
struct KeyspaceRecord {
    name: String,
    replication: BTreeMap<String, String>,
    durable_writes: bool,
    tablets: bool,
    tables: Vec<TableRecord>,
}

#[derive(Serialize, Deserialize)]
struct TableRecord {
    id: Uuid,
    name: String,
    columns: Vec<ColumnRecord>,
    next_column: u32,
    dropped_columns: BTreeMap<String, DroppedRecord>,
    cdc_partitioner: bool,
    default_ttl_s: u32,
    gc_grace_s: u32,
    options: BTreeMap<String, String>,
    indexes: Vec<IndexRecord>,
    cdc: Option<CdcRecord>,
    log: Option<LogRecord>,
    log_of: Option<Uuid>,
    truncated_at_ms: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct ColumnRecord {
    id: u32,
    name: String,
    kind: KindRecord,
    cql_type: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindRecord {
    PartitionKey { position: usize },
    Clustering { position: usize, descending: bool },
    Static,
    Regular,
}

#[derive(Serialize, Deserialize)]
struct DroppedRecord {
    #[serde(default)]
    id: Option<u32>,
    cql_type: String,
    is_static: bool,
    dropped_at_micros: i64,
}

#[derive(Serialize, Deserialize)]
struct IndexRecord {
    name: String,
    target: String,
    column: String,
    options: BTreeMap<String, String>,
    class_name: String,
    version: Uuid,
}

#[derive(Serialize, Deserialize)]
struct CdcRecord {
    enabled: bool,
    preimage: ImageRecord,
    postimage: bool,
    delta: DeltaRecord,
    ttl_s: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ImageRecord {
    Off,
    On,
    Full,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DeltaRecord {
    Full,
    Keys,
}

#[derive(Serialize, Deserialize)]
struct LogRecord {
    table: Uuid,
    options: CdcRecord,
    streams: Option<StreamsRecord>,
}

pub(crate) fn encode(catalog: &Catalog, generations: &Generations) -> Bytes {
    let record = CatalogRecord {
        format: FORMAT,
        version: catalog.version,
        host_id: catalog.host_id,
        cluster_name: catalog.cluster_name.clone(),
        created_at_ms: catalog.created_at_ms,
        vnode_streams: streams_record(&catalog.vnode_streams),
        keyspaces: catalog
            .keyspaces
            .values()
            .map(|keyspace| KeyspaceRecord {
                name: keyspace.name.clone(),
                replication: keyspace.replication.clone(),
                durable_writes: keyspace.durable_writes,
                tablets: keyspace.tablets,
                tables: keyspace
                    .tables
                    .values()
                    .map(|table| table_record(table))
                    .collect(),
            })
            .collect(),
        generations: generations
            .iter()
            .map(|(table, generation)| (table.0, *generation))
            .collect(),
    };
    serde_json::to_vec(&record)
        .expect("a record of strings and numbers has a JSON form")
        .into()
}

pub(crate) fn decode(bytes: &[u8]) -> Result<(Catalog, Generations), StorageError> {
    let corrupt = |error: serde_json::Error| {
        StorageError::Corrupt(format!("the stored schema can't be read: {error}"))
    };
    let FormatOnly { format } = serde_json::from_slice(bytes).map_err(corrupt)?;
    if format > FORMAT {
        return Err(StorageError::NewerFormat(format!(
            "the schema was written by a newer version of Annulus (format {format}, this one knows \
             up to {FORMAT}): use that version"
        )));
    }
    let record: CatalogRecord = serde_json::from_slice(bytes).map_err(corrupt)?;
    let mut keyspaces = BTreeMap::new();
    for keyspace in record.keyspaces {
        let mut tables = BTreeMap::new();
        for table in keyspace.tables {
            let table = table_of(table, &keyspace.name)?;
            tables.insert(table.name.clone(), Arc::new(table));
        }
        keyspaces.insert(
            keyspace.name.clone(),
            Arc::new(Keyspace {
                name: keyspace.name,
                replication: keyspace.replication,
                durable_writes: keyspace.durable_writes,
                tablets: keyspace.tablets,
                tables,
            }),
        );
    }
    let generations = record
        .generations
        .into_iter()
        .map(|(table, generation)| (TableId(table), generation))
        .collect();
    let catalog = Catalog {
        version: record.version,
        host_id: record.host_id,
        cluster_name: record.cluster_name,
        created_at_ms: record.created_at_ms,
        vnode_streams: streams_of(record.vnode_streams),
        keyspaces,
    };
    Ok((catalog, generations))
}

fn streams_record(streams: &StreamGeneration) -> StreamsRecord {
    StreamsRecord {
        since_ms: streams.since_ms,
        streams: streams.streams.iter().map(|id| id.to_vec()).collect(),
    }
}

fn streams_of(record: StreamsRecord) -> StreamGeneration {
    StreamGeneration {
        since_ms: record.since_ms,
        streams: record.streams.into_iter().map(Bytes::from).collect(),
    }
}

fn cdc_record(options: &CdcOptions) -> CdcRecord {
    CdcRecord {
        enabled: options.enabled,
        preimage: match options.preimage {
            ImageMode::Off => ImageRecord::Off,
            ImageMode::On => ImageRecord::On,
            ImageMode::Full => ImageRecord::Full,
        },
        postimage: options.postimage,
        delta: match options.delta {
            DeltaMode::Full => DeltaRecord::Full,
            DeltaMode::Keys => DeltaRecord::Keys,
        },
        ttl_s: options.ttl_s,
    }
}

fn cdc_of(record: CdcRecord) -> CdcOptions {
    CdcOptions {
        enabled: record.enabled,
        preimage: match record.preimage {
            ImageRecord::Off => ImageMode::Off,
            ImageRecord::On => ImageMode::On,
            ImageRecord::Full => ImageMode::Full,
        },
        postimage: record.postimage,
        delta: match record.delta {
            DeltaRecord::Full => DeltaMode::Full,
            DeltaRecord::Keys => DeltaMode::Keys,
        },
        ttl_s: record.ttl_s,
    }
}

fn table_record(table: &Table) -> TableRecord {
    TableRecord {
        id: table.id.0,
        name: table.name.clone(),
        columns: table
            .columns
            .iter()
            .map(|column| ColumnRecord {
                id: column.id.0,
                name: column.name.clone(),
                kind: match column.kind {
                    ColumnKind::PartitionKey { position } => KindRecord::PartitionKey { position },
                    ColumnKind::Clustering {
                        position,
                        descending,
                    } => KindRecord::Clustering {
                        position,
                        descending,
                    },
                    ColumnKind::Static => KindRecord::Static,
                    ColumnKind::Regular => KindRecord::Regular,
                },
                cql_type: column.cql_type.to_string(),
            })
            .collect(),
        next_column: table.next_column.0,
        dropped_columns: table
            .dropped_columns
            .iter()
            .map(|(name, dropped)| {
                let record = DroppedRecord {
                    id: dropped.id.map(|id| id.0),
                    cql_type: dropped.cql_type.to_string(),
                    is_static: dropped.is_static,
                    dropped_at_micros: dropped.dropped_at_micros,
                };
                (name.clone(), record)
            })
            .collect(),
        cdc_partitioner: table.partitioner == Partitioner::Cdc,
        default_ttl_s: table.default_ttl_s,
        gc_grace_s: table.gc_grace_s,
        options: table.options.clone(),
        indexes: table
            .indexes
            .values()
            .map(|index| IndexRecord {
                name: index.name.clone(),
                target: index.target.clone(),
                column: index.column.clone(),
                options: index.options.clone(),
                class_name: index.class_name.clone(),
                version: index.version,
            })
            .collect(),
        cdc: table.cdc.as_ref().map(cdc_record),
        log: table.log.as_ref().map(|log| LogRecord {
            table: log.table.0,
            options: cdc_record(&log.options),
            streams: log.streams.as_ref().map(streams_record),
        }),
        log_of: table.log_of.map(|id| id.0),
        truncated_at_ms: table.truncated_at_ms,
    }
}

fn table_of(record: TableRecord, keyspace: &str) -> Result<Table, StorageError> {
    let columns = record
        .columns
        .into_iter()
        .map(|column| {
            Ok(Column {
                id: ColumnId(column.id),
                cql_type: type_of(&column.cql_type)?,
                name: column.name,
                kind: match column.kind {
                    KindRecord::PartitionKey { position } => ColumnKind::PartitionKey { position },
                    KindRecord::Clustering {
                        position,
                        descending,
                    } => ColumnKind::Clustering {
                        position,
                        descending,
                    },
                    KindRecord::Static => ColumnKind::Static,
                    KindRecord::Regular => ColumnKind::Regular,
                },
            })
        })
        .collect::<Result<_, StorageError>>()?;
    let dropped_columns = record
        .dropped_columns
        .into_iter()
        .map(|(name, dropped)| {
            let column = DroppedColumn {
                id: dropped.id.map(ColumnId),
                cql_type: type_of(&dropped.cql_type)?,
                is_static: dropped.is_static,
                dropped_at_micros: dropped.dropped_at_micros,
            };
            Ok((name, column))
        })
        .collect::<Result<_, StorageError>>()?;
    Ok(Table {
        id: TableId(record.id),
        keyspace: keyspace.to_owned(),
        name: record.name,
        columns,
        next_column: ColumnId(record.next_column),
        dropped_columns,
        partitioner: if record.cdc_partitioner {
            Partitioner::Cdc
        } else {
            Partitioner::Murmur3
        },
        default_ttl_s: record.default_ttl_s,
        gc_grace_s: record.gc_grace_s,
        options: record.options,
        indexes: record
            .indexes
            .into_iter()
            .map(|index| {
                let name = index.name.clone();
                let index = Index {
                    name: index.name,
                    target: index.target,
                    column: index.column,
                    options: index.options,
                    class_name: index.class_name,
                    version: index.version,
                };
                (name, Arc::new(index))
            })
            .collect(),
        cdc: record.cdc.map(cdc_of),
        log: record.log.map(|log| CdcLog {
            table: TableId(log.table),
            options: cdc_of(log.options),
            streams: log.streams.map(streams_of),
        }),
        log_of: record.log_of.map(TableId),
        truncated_at_ms: record.truncated_at_ms,
    })
}

fn type_of(text: &str) -> Result<CqlType, StorageError> {
    cql::parser::parse_type(text)
        .map_err(|_| StorageError::Corrupt(format!("the stored schema has an unknown type {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{DroppedColumn, RING_TOKENS};

    fn boxed(cql_type: CqlType) -> Box<CqlType> {
        Box::new(cql_type)
    }

    fn types() -> Vec<CqlType> {
        let map = |frozen| CqlType::Map {
            key: boxed(CqlType::Text),
            value: boxed(CqlType::List {
                element: boxed(CqlType::Varint),
                frozen: true,
            }),
            frozen,
        };
        let set = CqlType::Set {
            element: boxed(CqlType::Tuple(vec![CqlType::Inet, CqlType::Date])),
            frozen: false,
        };
        let vector = |element, dimensions| CqlType::Vector {
            element: boxed(element),
            dimensions,
        };
        vec![
            CqlType::Ascii,
            CqlType::Bigint,
            CqlType::Blob,
            CqlType::Boolean,
            CqlType::Counter,
            CqlType::Date,
            CqlType::Decimal,
            CqlType::Double,
            CqlType::Duration,
            CqlType::Float,
            CqlType::Int,
            CqlType::Smallint,
            CqlType::Time,
            CqlType::Timestamp,
            CqlType::Timeuuid,
            CqlType::Tinyint,
            CqlType::Uuid,
            map(true),
            map(false),
            set,
            vector(CqlType::Float, 16_000),
            vector(vector(CqlType::Text, 2), 3),
        ]
    }

    /// A catalog that uses every field.
    fn catalog() -> Catalog {
        let kinds = [
            ColumnKind::PartitionKey { position: 0 },
            ColumnKind::Clustering {
                position: 0,
                descending: true,
            },
            ColumnKind::Static,
        ];
        let columns = (0..).zip(types()).map(|(id, cql_type)| Column {
            id: ColumnId(id),
            name: format!("column \"{id}\""),
            kind: *kinds.get(id as usize).unwrap_or(&ColumnKind::Regular),
            cql_type,
        });
        let options = CdcOptions {
            enabled: true,
            preimage: ImageMode::Full,
            postimage: true,
            delta: DeltaMode::Keys,
            ttl_s: 7,
        };
        let streams = |tag: u8| StreamGeneration {
            since_ms: i64::from(tag),
            streams: vec![Bytes::from(vec![tag; 16]), Bytes::from(vec![0; 16])],
        };
        let index = Index {
            name: "i".to_owned(),
            target: "{\"pk\": []}".to_owned(),
            column: "v".to_owned(),
            options: BTreeMap::from([("similarity_function".to_owned(), "COSINE".to_owned())]),
            class_name: "vector_index".to_owned(),
            version: Uuid::from_u128(5),
        };
        let dropped = DroppedColumn {
            id: Some(ColumnId(8)),
            cql_type: CqlType::Text,
            is_static: true,
            dropped_at_micros: -3,
        };
        let table = Table {
            id: TableId(Uuid::from_u128(1)),
            keyspace: "ks".to_owned(),
            name: "Tablé".to_owned(),
            columns: columns.collect(),
            next_column: ColumnId(99),
            dropped_columns: BTreeMap::from([("old".to_owned(), dropped)]),
            partitioner: Partitioner::Cdc,
            default_ttl_s: 1,
            gc_grace_s: 2,
            options: BTreeMap::from([("comment".to_owned(), "'it''s'".to_owned())]),
            indexes: BTreeMap::from([("i".to_owned(), Arc::new(index))]),
            cdc: Some(options.clone()),
            log: Some(CdcLog {
                table: TableId(Uuid::from_u128(2)),
                options,
                streams: Some(streams(3)),
            }),
            log_of: Some(TableId(Uuid::from_u128(4))),
            truncated_at_ms: Some(6),
        };
        let keyspace = Keyspace {
            name: "ks".to_owned(),
            replication: BTreeMap::from([("class".to_owned(), "SimpleStrategy".to_owned())]),
            durable_writes: false,
            tablets: true,
            tables: BTreeMap::from([(table.name.clone(), Arc::new(table))]),
        };
        Catalog {
            version: Uuid::from_u128(8),
            host_id: Uuid::from_u128(9),
            cluster_name: "cluster".to_owned(),
            created_at_ms: 10,
            vnode_streams: streams(RING_TOKENS[0].0 as u8),
            keyspaces: BTreeMap::from([("ks".to_owned(), Arc::new(keyspace))]),
        }
    }

    #[test]
    fn a_catalog_comes_back_as_it_was() {
        let catalog = catalog();
        let generations = Generations::from([(TableId(Uuid::from_u128(1)), 12)]);
        let (read, read_generations) = decode(&encode(&catalog, &generations)).unwrap();
        assert_eq!(format!("{read:?}"), format!("{catalog:?}"));
        assert_eq!(read_generations, generations);
    }

    #[test]
    fn a_newer_format_is_refused_though_it_can_not_be_read() {
        let newer = decode(br#"{"format": 2, "what": "unknown"}"#);
        assert!(matches!(newer, Err(StorageError::NewerFormat(_))));
        for damaged in [&b""[..], b"{}", br#"{"format": 1}"#] {
            assert!(matches!(decode(damaged), Err(StorageError::Corrupt(_))));
        }
    }
}

//! Parts of the catalog as JSON: types as CQL text, ids as UUID text.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cql::ast::TableName;
use cql::ast::data_type::unknown_type;
use schema::{
    CdcLog, CdcOptions, Column, ColumnId, ColumnKind, DeltaMode, DroppedColumn, ImageMode,
    IndexedPart, Keyspace, RowTtl, SearchIndexMetadata, SecondaryIndex, StreamGeneration, Table,
    TableId,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use value::{CqlType, UserType, token::Partitioner};

use super::WITHIN_MAX;
use crate::StorageError;

#[derive(Serialize, Deserialize)]
pub(super) struct StreamsRecord {
    since_ms: i64,
    streams: Vec<Vec<u8>>,
}

/// A keyspace without its tables.
#[derive(Serialize, Deserialize)]
pub(super) struct KeyspaceRecord {
    pub name: String,
    pub replication: BTreeMap<String, String>,
    pub durable_writes: bool,
    pub tablets: bool,
    /// The user types, each after those that it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    types: Vec<TypeRecord>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TypeRecord {
    name: String,
    /// The fields as (name, type).
    fields: Vec<(String, String)>,
}

/// A table without its keyspace.
#[derive(Serialize, Deserialize)]
pub(super) struct TableRecord {
    pub id: Uuid,
    pub name: String,
    columns: Vec<ColumnRecord>,
    next_column: u32,
    dropped_columns: BTreeMap<String, DroppedRecord>,
    cdc_partitioner: bool,
    default_ttl_s: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    row_ttl: Option<RowTtlRecord>,
    gc_grace_s: u32,
    options: BTreeMap<String, String>,
    indexes: Vec<IndexRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secondary_indexes: Vec<SecondaryRecord>,
    cdc: Option<CdcRecord>,
    log: Option<LogRecord>,
    log_of: Option<Uuid>,
    truncated_at_ms: Option<i64>,
}

impl TableRecord {
    /// The version of the entries of the column with the time at which a row expires.
    pub fn row_ttl(&self) -> Option<Uuid> {
        self.row_ttl.as_ref().map(|row_ttl| row_ttl.version)
    }

    /// The versions and the names of the secondary indexes.
    pub fn secondary_indexes(&self) -> impl Iterator<Item = (Uuid, &str)> {
        let indexes = self.secondary_indexes.iter();
        indexes.map(|index| (index.version, index.name.as_str()))
    }
}

#[derive(Serialize, Deserialize)]
struct RowTtlRecord {
    column: u32,
    version: Uuid,
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
    // Version 0.1.0 wrote neither list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    local_key: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    filter_columns: Vec<String>,
    options: BTreeMap<String, String>,
    class_name: String,
    version: Uuid,
}

#[derive(Serialize, Deserialize)]
struct SecondaryRecord {
    name: String,
    column: u32,
    part: PartRecord,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_local: bool,
    class_name: Option<String>,
    options: BTreeMap<String, String>,
    version: Uuid,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartRecord {
    Value,
    Full,
    Values,
    Keys,
    Entries,
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

/// Whether the types of a keyspace have records of their own.
pub(super) fn are_types_apart(keyspace: &Keyspace) -> bool {
    keyspace.types.len() > WITHIN_MAX
}

pub(super) fn keyspace_record(keyspace: &Keyspace) -> KeyspaceRecord {
    KeyspaceRecord {
        name: keyspace.name.clone(),
        replication: keyspace.replication.clone(),
        durable_writes: keyspace.durable_writes,
        tablets: keyspace.tablets,
        types: match are_types_apart(keyspace) {
            // Each has a record of its own.
            true => Vec::new(),
            false => {
                let types = keyspace.types_in_order().into_iter();
                types.map(|definition| type_record(definition)).collect()
            }
        },
    }
}

/// Whether two keyspaces have the same record, whatever their tables, and the types that have
/// records of their own.
pub(super) fn has_same_record(a: &Keyspace, b: &Keyspace) -> bool {
    let Keyspace {
        name,
        replication,
        durable_writes,
        tablets,
        types,
        tables: _,
    } = a;
    (name, replication, durable_writes, tablets)
        == (&b.name, &b.replication, &b.durable_writes, &b.tablets)
        && match (are_types_apart(a), are_types_apart(b)) {
            (true, true) => true,
            (false, false) => *types == b.types,
            _ => false,
        }
}

pub(super) fn keyspace_of(record: KeyspaceRecord) -> Result<Keyspace, StorageError> {
    let mut keyspace = Keyspace {
        name: record.name,
        replication: record.replication,
        durable_writes: record.durable_writes,
        tablets: record.tablets,
        types: Default::default(),
        tables: BTreeMap::new(),
    };
    for record in record.types {
        put_type(&record, &mut keyspace)?;
    }
    Ok(keyspace)
}

/// Puts a type into its keyspace, which has the types that it uses.
pub(super) fn put_type(record: &TypeRecord, keyspace: &mut Keyspace) -> Result<(), StorageError> {
    let (mut field_names, mut field_types) = (Vec::new(), Vec::new());
    for (field, text) in &record.fields {
        field_names.push(field.clone());
        field_types.push(type_of(text, keyspace)?);
    }
    let definition = UserType {
        keyspace: keyspace.name.clone(),
        name: record.name.clone(),
        field_names,
        field_types,
    };
    keyspace
        .types
        .insert(record.name.clone(), Arc::new(definition));
    Ok(())
}

pub(super) fn type_record(definition: &UserType) -> TypeRecord {
    let fields = definition.fields();
    TypeRecord {
        name: definition.name.clone(),
        fields: fields
            .map(|(name, cql_type)| (name.to_owned(), cql_type.to_string()))
            .collect(),
    }
}

pub(super) fn streams_record(streams: &StreamGeneration) -> StreamsRecord {
    StreamsRecord {
        since_ms: streams.since_ms,
        streams: streams.streams.iter().map(|id| id.to_vec()).collect(),
    }
}

pub(super) fn streams_of(record: StreamsRecord) -> StreamGeneration {
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

fn secondary_record(index: &SecondaryIndex) -> SecondaryRecord {
    SecondaryRecord {
        name: index.name.clone(),
        column: index.column.0,
        part: match index.part {
            IndexedPart::Value => PartRecord::Value,
            IndexedPart::Full => PartRecord::Full,
            IndexedPart::Values => PartRecord::Values,
            IndexedPart::Keys => PartRecord::Keys,
            IndexedPart::Entries => PartRecord::Entries,
        },
        is_local: index.is_local,
        class_name: index.class_name.clone(),
        options: index.options.clone(),
        version: index.version,
    }
}

fn secondary_of(record: SecondaryRecord) -> SecondaryIndex {
    SecondaryIndex {
        name: record.name,
        column: ColumnId(record.column),
        part: match record.part {
            PartRecord::Value => IndexedPart::Value,
            PartRecord::Full => IndexedPart::Full,
            PartRecord::Values => IndexedPart::Values,
            PartRecord::Keys => IndexedPart::Keys,
            PartRecord::Entries => IndexedPart::Entries,
        },
        is_local: record.is_local,
        class_name: record.class_name,
        options: record.options,
        version: record.version,
    }
}

fn row_ttl_record(row_ttl: RowTtl) -> RowTtlRecord {
    RowTtlRecord {
        column: row_ttl.column.0,
        version: row_ttl.version,
    }
}

fn row_ttl_of(record: RowTtlRecord) -> RowTtl {
    RowTtl {
        column: ColumnId(record.column),
        version: record.version,
    }
}

pub(super) fn table_record(table: &Table) -> TableRecord {
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
        row_ttl: table.row_ttl.map(row_ttl_record),
        gc_grace_s: table.gc_grace_s,
        options: table.options.clone(),
        indexes: table
            .indexes
            .values()
            .map(|index| IndexRecord {
                name: index.name.clone(),
                target: index.target.clone(),
                column: index.column.clone(),
                local_key: index.local_key.clone(),
                filter_columns: index.filter_columns.clone(),
                options: index.options.clone(),
                class_name: index.class_name.clone(),
                version: index.version,
            })
            .collect(),
        secondary_indexes: {
            let indexes = table.secondary_indexes.values();
            indexes.map(|index| secondary_record(index)).collect()
        },
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

pub(super) fn table_of(record: TableRecord, keyspace: &Keyspace) -> Result<Table, StorageError> {
    let columns = record.columns.into_iter();
    let columns = columns
        .map(|column| column_of(column, keyspace))
        .collect::<Result<_, _>>()?;
    let dropped_columns = record
        .dropped_columns
        .into_iter()
        .map(|(name, dropped)| {
            let column = DroppedColumn {
                id: dropped.id.map(ColumnId),
                cql_type: type_of(&dropped.cql_type, keyspace)?,
                is_static: dropped.is_static,
                dropped_at_micros: dropped.dropped_at_micros,
            };
            Ok((name, column))
        })
        .collect::<Result<_, StorageError>>()?;
    Ok(Table {
        id: TableId(record.id),
        keyspace: keyspace.name.clone(),
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
        row_ttl: record.row_ttl.map(row_ttl_of),
        gc_grace_s: record.gc_grace_s,
        options: record.options,
        indexes: record
            .indexes
            .into_iter()
            .map(|index| {
                let name = index.name.clone();
                let index = SearchIndexMetadata {
                    name: index.name,
                    target: index.target,
                    column: index.column,
                    local_key: index.local_key,
                    filter_columns: index.filter_columns,
                    options: index.options,
                    class_name: index.class_name,
                    version: index.version,
                };
                (name, Arc::new(index))
            })
            .collect(),
        secondary_indexes: {
            let indexes = record.secondary_indexes.into_iter().map(secondary_of);
            indexes
                .map(|index| (index.name.clone(), Arc::new(index)))
                .collect()
        },
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

fn column_of(column: ColumnRecord, keyspace: &Keyspace) -> Result<Column, StorageError> {
    Ok(Column {
        id: ColumnId(column.id),
        cql_type: type_of(&column.cql_type, keyspace)?,
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
}

/// Reads the text of a type, in which the user types of the keyspace are given by their names.
fn type_of(text: &str, keyspace: &Keyspace) -> Result<CqlType, StorageError> {
    let known = |name: &TableName| {
        let definition = keyspace.types.get(&name.name);
        definition.cloned().ok_or_else(|| unknown_type(name))
    };
    cql::parser::parse_data_type(text)
        .and_then(|data_type| data_type.resolve(&known))
        .map_err(|_| StorageError::Corrupt(format!("the stored schema has an unknown type {text}")))
}

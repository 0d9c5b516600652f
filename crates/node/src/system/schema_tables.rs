//! `system_schema`: keyspaces, user types, tables, columns and indexes in the form that drivers
//! read.

use std::collections::BTreeMap;

use bytes::Bytes;
use schema::{
    CdcOptions, Column, ColumnKind, DeltaMode, ImageMode, Keyspace, SearchIndexMetadata,
    SecondaryIndex, Table,
};
use value::{Value, token::Partitioner};

use super::definition::VirtualTable;
use super::record::{NamedValues, record, text, text_map};
use super::{VirtualTableInputs, table_options};

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable {
        cql: "CREATE TABLE system_schema.keyspaces (
            keyspace_name text PRIMARY KEY,
            durable_writes boolean,
            replication frozen<map<text, text>>)",
        records: keyspaces,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.tables (
            keyspace_name text,
            table_name text,
            additional_write_policy text,
            allow_auto_snapshot boolean,
            bloom_filter_fp_chance double,
            caching frozen<map<text, text>>,
            cdc boolean,
            comment text,
            compaction frozen<map<text, text>>,
            compression frozen<map<text, text>>,
            crc_check_chance double,
            dclocal_read_repair_chance double,
            default_time_to_live int,
            extensions frozen<map<text, blob>>,
            flags frozen<set<text>>,
            gc_grace_seconds int,
            id uuid,
            incremental_backups boolean,
            max_index_interval int,
            memtable text,
            memtable_flush_period_in_ms int,
            min_index_interval int,
            read_repair text,
            read_repair_chance double,
            speculative_retry text,
            PRIMARY KEY (keyspace_name, table_name))",
        records: tables,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.columns (
            keyspace_name text,
            table_name text,
            column_name text,
            clustering_order text,
            column_name_bytes blob,
            kind text,
            position int,
            type text,
            PRIMARY KEY (keyspace_name, table_name, column_name))",
        records: columns,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.dropped_columns (
            keyspace_name text,
            table_name text,
            column_name text,
            dropped_time timestamp,
            kind text,
            type text,
            PRIMARY KEY (keyspace_name, table_name, column_name))",
        records: dropped_columns,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.types (
            keyspace_name text,
            type_name text,
            field_names frozen<list<text>>,
            field_types frozen<list<text>>,
            PRIMARY KEY (keyspace_name, type_name))",
        records: types,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.indexes (
            keyspace_name text,
            table_name text,
            index_name text,
            kind text,
            options frozen<map<text, text>>,
            PRIMARY KEY (keyspace_name, table_name, index_name))",
        records: indexes,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.scylla_tables (
            keyspace_name text,
            table_name text,
            cdc map<text, text>,
            partitioner text,
            version uuid,
            PRIMARY KEY (keyspace_name, table_name))",
        records: scylla_tables,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.scylla_keyspaces (
            keyspace_name text PRIMARY KEY,
            consistency text,
            initial_tablets int,
            storage_options frozen<map<text, text>>,
            storage_type text)",
        records: scylla_keyspaces,
    },
];

/// The partitioner of a CDC log, by ScyllaDB's name.
const CDC_PARTITIONER: &str = "com.scylladb.dht.CDCPartitioner";

fn keyspaces(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    source
        .keyspaces()
        .map(|keyspace| {
            record([
                ("keyspace_name", text(&keyspace.name)),
                ("durable_writes", Value::Boolean(keyspace.durable_writes)),
                (
                    "replication",
                    text_map(&replication(keyspace, source.system.data_center())),
                ),
            ])
        })
        .collect()
}

/// The replication options in the form with which drivers compute: the class with its package, and
/// the factor by data center.
fn replication(keyspace: &Keyspace, data_center: &str) -> BTreeMap<String, String> {
    let mut replication = keyspace.replication.clone();
    if let Some(class) = replication.get_mut("class")
        && !class.contains('.')
    {
        *class = format!("org.apache.cassandra.locator.{class}");
    }
    let by_data_center = replication
        .get("class")
        .is_some_and(|class| class.ends_with(".NetworkTopologyStrategy"));
    if by_data_center && let Some(factor) = replication.remove("replication_factor") {
        replication.entry(data_center.to_owned()).or_insert(factor);
    }
    replication
}

fn tables(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    source
        .tables()
        .map(|table| {
            let mut row = record([
                ("keyspace_name", text(&table.keyspace)),
                ("table_name", text(&table.name)),
                (
                    "default_time_to_live",
                    Value::Int(seconds(table.default_ttl_s)),
                ),
                ("extensions", Value::Map(Vec::new())),
                ("flags", flags(table)),
                ("gc_grace_seconds", Value::Int(seconds(table.gc_grace_s))),
                ("id", Value::Uuid(table.id.0)),
            ]);
            row.0.extend(table_options::columns(table));
            row
        })
        .collect()
}

fn flags(table: &Table) -> Value {
    let counter = table.is_counter().then_some("counter");
    let flags = std::iter::once("compound").chain(counter);
    Value::Set(flags.map(text).collect())
}

fn seconds(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

fn columns(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    source
        .tables()
        .flat_map(|table| {
            table
                .columns
                .iter()
                .map(|column| column_record(table, column))
        })
        .collect()
}

/// A row of the table `columns`, in `system_schema` or `system_virtual_schema`.
pub(super) fn column_record(table: &Table, column: &Column) -> NamedValues {
    let (kind, position, order) = match column.kind {
        ColumnKind::PartitionKey { position } => ("partition_key", position as i32, "none"),
        ColumnKind::Clustering {
            position,
            descending,
        } => (
            "clustering",
            position as i32,
            if descending { "desc" } else { "asc" },
        ),
        ColumnKind::Static => ("static", -1, "none"),
        ColumnKind::Regular => ("regular", -1, "none"),
    };
    let name = Bytes::copy_from_slice(column.name.as_bytes());
    record([
        ("keyspace_name", text(&table.keyspace)),
        ("table_name", text(&table.name)),
        ("column_name", text(&column.name)),
        ("clustering_order", text(order)),
        ("column_name_bytes", Value::Blob(name)),
        ("kind", text(kind)),
        ("position", Value::Int(position)),
        ("type", text(column.cql_type.to_string())),
    ])
}

fn dropped_columns(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    source
        .tables()
        .flat_map(|table| {
            table.dropped_columns.iter().map(|(name, dropped)| {
                let kind = if dropped.is_static {
                    "static"
                } else {
                    "regular"
                };
                record([
                    ("keyspace_name", text(&table.keyspace)),
                    ("table_name", text(&table.name)),
                    ("column_name", text(name)),
                    (
                        "dropped_time",
                        Value::Timestamp(dropped.dropped_at_micros.div_euclid(1000)),
                    ),
                    ("kind", text(kind)),
                    ("type", text(dropped.cql_type.to_string())),
                ])
            })
        })
        .collect()
}

fn types(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    source
        .keyspaces_of_users()
        .flat_map(|keyspace| keyspace.types.values())
        .map(|definition| {
            let (names, types): (Vec<_>, Vec<_>) = definition
                .fields()
                .map(|(name, cql_type)| (text(name), text(cql_type.to_string())))
                .unzip();
            record([
                ("keyspace_name", text(&definition.keyspace)),
                ("type_name", text(&definition.name)),
                ("field_names", Value::List(names)),
                ("field_types", Value::List(types)),
            ])
        })
        .collect()
}

fn indexes(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    source
        .tables()
        .flat_map(|table| {
            let of_services = table.indexes.values();
            let of_services =
                of_services.map(|index| (&index.name, "CUSTOM", index_options(index)));
            let secondary = table.secondary_indexes.values();
            let secondary = secondary.map(|index| {
                let kind = match index.is_storage_attached() {
                    true => "CUSTOM",
                    false => "COMPOSITES",
                };
                (&index.name, kind, secondary_options(table, index))
            });
            let mut indexes: Vec<_> = of_services.chain(secondary).collect();
            indexes.sort_unstable();
            indexes.into_iter().map(|(name, kind, options)| {
                record([
                    ("keyspace_name", text(&table.keyspace)),
                    ("table_name", text(&table.name)),
                    ("index_name", text(name)),
                    ("kind", text(kind)),
                    ("options", text_map(&options)),
                ])
            })
        })
        .collect()
}

/// The options that the user gave, with the target and the class if there is one, as in Cassandra.
fn secondary_options(table: &Table, index: &SecondaryIndex) -> BTreeMap<String, String> {
    let mut options = index.options.clone();
    options.insert("target".to_owned(), index.target(table));
    if let Some(class) = &index.class_name {
        options.insert("class_name".to_owned(), class.clone());
    }
    options
}

/// The options that the user gave and those that the database adds.
fn index_options(index: &SearchIndexMetadata) -> BTreeMap<String, String> {
    let mut options = index.options.clone();
    options.insert("target".to_owned(), index.target.clone());
    options.insert("class_name".to_owned(), index.class_name.clone());
    options.insert("index_version".to_owned(), index.version.to_string());
    options
}

fn scylla_tables(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    source
        .tables()
        .map(|table| {
            let partitioner = match table.partitioner {
                Partitioner::Murmur3 => None,
                Partitioner::Cdc => Some(text(CDC_PARTITIONER)),
            };
            let cdc = table.cdc.as_ref().map(|cdc| text_map(&cdc_options(cdc)));
            record([
                ("keyspace_name", text(&table.keyspace)),
                ("table_name", text(&table.name)),
            ])
            .with("partitioner", partitioner)
            .with("cdc", cdc)
        })
        .collect()
}

/// The value of the table option `cdc` as a map, with every sub-option.
pub(crate) fn cdc_options(cdc: &CdcOptions) -> BTreeMap<String, String> {
    let preimage = match cdc.preimage {
        ImageMode::Off => "false",
        ImageMode::On => "true",
        ImageMode::Full => "full",
    };
    let delta = match cdc.delta {
        DeltaMode::Full => "full",
        DeltaMode::Keys => "keys",
    };
    BTreeMap::from([
        ("enabled".to_owned(), cdc.enabled.to_string()),
        ("preimage".to_owned(), preimage.to_owned()),
        ("postimage".to_owned(), cdc.postimage.to_string()),
        ("delta".to_owned(), delta.to_owned()),
        ("ttl".to_owned(), cdc.ttl_s.to_string()),
    ])
}

/// The rows of `scylla_keyspaces`. Drivers and the CDC library recognise a keyspace with tablets by
/// its `initial_tablets`, which is not null.
fn scylla_keyspaces(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    source
        .keyspaces_of_users()
        .map(|keyspace| {
            record([("keyspace_name", text(&keyspace.name))])
                .with("initial_tablets", keyspace.tablets.then_some(Value::Int(0)))
        })
        .collect()
}

//! The system tables that list the streams of CDC. Each table of a keyspace with tablets has its
//! own generation of streams. All keyspaces without tablets share one generation.

use std::collections::BTreeMap;

use bytes::Bytes;
use schema::{StreamGeneration, Table};
use value::Value;

use super::VirtualTableInputs;
use super::definition::VirtualTable;
use super::record::{NamedValues, record, text};

/// The `stream_state` of the streams that belong to a generation. The states 1 and 2, for streams
/// that it closed and opened, are left out, since they follow from two generations.
const STATE_CURRENT: i8 = 0;

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable {
        cql: "CREATE TABLE system.cdc_timestamps (
            keyspace_name text,
            table_name text,
            timestamp timestamp,
            PRIMARY KEY ((keyspace_name, table_name), timestamp))
            WITH CLUSTERING ORDER BY (timestamp DESC)",
        records: timestamps,
    },
    VirtualTable {
        cql: "CREATE TABLE system.cdc_streams (
            keyspace_name text,
            table_name text,
            timestamp timestamp,
            stream_state tinyint,
            stream_id blob,
            PRIMARY KEY ((keyspace_name, table_name), timestamp, stream_state, stream_id))
            WITH CLUSTERING ORDER BY (timestamp DESC, stream_state ASC, stream_id ASC)",
        records: streams,
    },
    VirtualTable {
        cql: "CREATE TABLE system_distributed.cdc_generation_timestamps (
            key text,
            time timestamp,
            expired timestamp,
            PRIMARY KEY (key, time)) WITH CLUSTERING ORDER BY (time DESC)",
        records: generation_timestamps,
    },
    VirtualTable {
        cql: "CREATE TABLE system_distributed.cdc_streams_descriptions_v2 (
            time timestamp,
            range_end bigint,
            streams frozen<set<blob>>,
            PRIMARY KEY (time, range_end))",
        records: streams_descriptions,
    },
];

/// The tables with streams of their own, and these streams.
fn tables_with_streams<'a>(
    source: &'a VirtualTableInputs<'_>,
) -> impl Iterator<Item = (&'a Table, &'a StreamGeneration)> {
    source.tables().filter_map(|table| {
        let streams = table.log.as_ref()?.streams.as_ref()?;
        Some((&**table, streams))
    })
}

fn timestamps(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    tables_with_streams(source)
        .map(|(table, generation)| {
            record([
                ("keyspace_name", text(&table.keyspace)),
                ("table_name", text(&table.name)),
                ("timestamp", Value::Timestamp(generation.since_ms)),
            ])
        })
        .collect()
}

fn streams(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    tables_with_streams(source)
        .flat_map(|(table, generation)| {
            generation.streams.iter().map(|stream| {
                record([
                    ("keyspace_name", text(&table.keyspace)),
                    ("table_name", text(&table.name)),
                    ("timestamp", Value::Timestamp(generation.since_ms)),
                    ("stream_state", Value::Tinyint(STATE_CURRENT)),
                    ("stream_id", Value::Blob(stream.clone())),
                ])
            })
        })
        .collect()
}

fn generation_timestamps(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    vec![record([
        ("key", text("timestamps")),
        (
            "time",
            Value::Timestamp(source.catalog.vnode_streams.since_ms),
        ),
    ])]
}

fn streams_descriptions(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let generation = &source.catalog.vnode_streams;
    let mut by_range_end: BTreeMap<i64, Vec<Bytes>> = BTreeMap::new();
    for stream in &generation.streams {
        let token = value::token::Partitioner::Cdc.token(stream);
        by_range_end
            .entry(token.0)
            .or_default()
            .push(stream.clone());
    }
    by_range_end
        .into_iter()
        .map(|(range_end, mut streams)| {
            streams.sort();
            record([
                ("time", Value::Timestamp(generation.since_ms)),
                ("range_end", Value::Bigint(range_end)),
                (
                    "streams",
                    Value::Set(streams.into_iter().map(Value::Blob).collect()),
                ),
            ])
        })
        .collect()
}

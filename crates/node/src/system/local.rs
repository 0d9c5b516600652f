//! The system tables in which the node describes itself.
//!
//! `system.local` names the address at which the asking client reached the node, as drivers connect
//! to what it names.

use std::net::IpAddr;

use bytes::{BufMut, Bytes, BytesMut};
use schema::RING_TOKENS;
use storage::Storage;
use store_api::IndexServices;
use uuid::Uuid;
use value::{CqlType, Value, compare};

use super::definition::VirtualTable;
use super::record::{NamedValues, record, text};
use super::{CQL_VERSION, PARTITIONER, RACK, RELEASE_VERSION, VirtualTableInputs};

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable {
        cql: "CREATE TABLE system.local (
            key text PRIMARY KEY,
            bootstrapped text,
            broadcast_address inet,
            broadcast_port int,
            cluster_name text,
            cql_version text,
            data_center text,
            gossip_generation int,
            host_id uuid,
            listen_address inet,
            listen_port int,
            native_protocol_version text,
            partitioner text,
            rack text,
            release_version text,
            rpc_address inet,
            rpc_port int,
            schema_version uuid,
            tokens set<text>,
            truncated_at map<uuid, blob>)",
        records: local,
    },
    VirtualTable {
        cql: "CREATE TABLE system.versions (
            key text PRIMARY KEY,
            build_id text,
            build_mode text,
            version text)",
        records: versions,
    },
    // ScyllaDB's history of changes to the cluster's shared state. Clients that follow the schema
    // read its newest entry, so only that entry is stored here.
    VirtualTable {
        cql: "CREATE TABLE system.group0_history (
            key text,
            state_id timeuuid,
            description text,
            PRIMARY KEY (key, state_id)) WITH CLUSTERING ORDER BY (state_id DESC)",
        records: group0_history,
    },
    // The column that Cassandra calls table_name has the keyspace of the index, there, too.
    VirtualTable {
        cql: "CREATE TABLE system.\"IndexInfo\" (
            table_name text,
            index_name text,
            value blob,
            PRIMARY KEY (table_name, index_name))",
        records: index_info,
    },
    VirtualTable {
        cql: "CREATE TABLE system.prepared_statements (
            prepared_id blob PRIMARY KEY,
            logged_keyspace text,
            query_string text)",
        records: prepared_statements,
    },
    VirtualTable {
        cql: "CREATE TABLE system.truncated (
            table_uuid uuid PRIMARY KEY,
            truncated_at timestamp)",
        records: truncated,
    },
];

/// The port at which nodes of a cluster speak to each other. There is no other node, but drivers
/// read a port here.
const STORAGE_PORT: i32 = 7000;

fn local(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let catalog = source.catalog;
    let address = source.server;
    let inet = |address: IpAddr| Value::Inet(address);
    let port = Value::Int(i32::from(address.port()));
    let generation = i32::try_from(source.system.started_at_s).unwrap_or(i32::MAX);
    vec![record([
        ("key", text("local")),
        ("bootstrapped", text("COMPLETED")),
        ("broadcast_address", inet(address.ip())),
        ("broadcast_port", Value::Int(STORAGE_PORT)),
        ("cluster_name", text(&catalog.cluster_name)),
        ("cql_version", text(CQL_VERSION)),
        ("data_center", text(source.system.data_center())),
        ("gossip_generation", Value::Int(generation)),
        ("host_id", Value::Uuid(catalog.host_id)),
        ("listen_address", inet(address.ip())),
        ("listen_port", Value::Int(STORAGE_PORT)),
        ("native_protocol_version", text("5")),
        ("partitioner", text(PARTITIONER)),
        ("rack", text(RACK)),
        ("release_version", text(RELEASE_VERSION)),
        ("rpc_address", inet(address.ip())),
        ("rpc_port", port),
        ("schema_version", Value::Uuid(catalog.version)),
        ("tokens", tokens()),
        ("truncated_at", truncated_at(source)),
    ])]
}

/// The tokens of the ring, all of which belong to this node.
fn tokens() -> Value {
    let mut tokens: Vec<String> = RING_TOKENS
        .iter()
        .map(|token| token.0.to_string())
        .collect();
    tokens.sort();
    Value::Set(tokens.into_iter().map(text).collect())
}

/// The value of `truncated_at`: by table id, a position in a commit log (zero, since there is no
/// such log) and the time in milliseconds.
fn truncated_at(source: &VirtualTableInputs<'_>) -> Value {
    let mut entries: Vec<(Uuid, i64)> = truncations(source).collect();
    entries.sort_by(|(a, _), (b, _)| compare(&CqlType::Uuid, a.as_bytes(), b.as_bytes()));
    Value::Map(
        entries
            .into_iter()
            .map(|(id, at_ms)| (Value::Uuid(id), Value::Blob(truncation_record(at_ms))))
            .collect(),
    )
}

fn truncation_record(at_ms: i64) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i64(0);
    out.put_i32(0);
    out.put_i64(at_ms);
    out.freeze()
}

fn truncations<'a>(source: &'a VirtualTableInputs<'_>) -> impl Iterator<Item = (Uuid, i64)> + 'a {
    source
        .tables()
        .filter_map(|table| Some((table.id.0, table.truncated_at_ms?)))
}

fn versions(_: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    vec![record([
        ("key", text("local")),
        ("version", text(env!("CARGO_PKG_VERSION"))),
    ])]
}

fn group0_history(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    vec![record([
        ("key", text("history")),
        ("state_id", Value::Timeuuid(source.catalog.version)),
        ("description", text("schema change")),
    ])]
}

fn truncated(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    truncations(source)
        .map(|(id, at_ms)| {
            record([
                ("table_uuid", Value::Uuid(id)),
                ("truncated_at", Value::Timestamp(at_ms)),
            ])
        })
        .collect()
}

/// The indexes that are built.
fn index_info(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let tables = source
        .keyspaces_of_users()
        .flat_map(|keyspace| keyspace.tables.values());
    let built = tables.flat_map(|table| {
        let searched = table.indexes.values().filter(|index| {
            let serves = |(_, stores): (_, &IndexServices)| {
                stores.serves(&table.keyspace, &index.name, index.version)
            };
            source.running.is_none_or(serves)
        });
        let secondary = table.secondary_indexes.values().filter(|index| {
            let is_built = |(storage, _): (&Storage, _)| storage.is_index_built(index.version);
            source.running.is_none_or(is_built)
        });
        let searched = searched.map(|index| &index.name);
        let names = searched.chain(secondary.map(|index| &index.name));
        names.map(|name| {
            record([
                ("table_name", text(&table.keyspace)),
                ("index_name", text(name)),
            ])
        })
    });
    built.collect()
}

fn prepared_statements(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let id = source.wanted.key.and_then(|key| key.first());
    let prepared = source.system.prepared.list(id.map(|id| &id[..]));
    let records = prepared.into_iter().map(|prepared| {
        record([
            ("prepared_id", Value::Blob(prepared.id)),
            ("query_string", text(prepared.text)),
        ])
        .with("logged_keyspace", prepared.keyspace.map(text))
    });
    records.collect()
}

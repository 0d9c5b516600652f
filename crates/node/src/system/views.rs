//! The tables about this process: its connections and its settings, in the form of Cassandra
//! (`system_views`) and of ScyllaDB (`system.clients`, `system.config`), and the violations of its
//! guardrails.

use std::sync::atomic::Ordering;

use value::Value;

use super::VirtualTableInputs;
use super::clients::OpenConnection;
use super::definition::VirtualTable;
use super::record::{NamedValues, record, text, text_map};

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable {
        cql: "CREATE TABLE system_views.clients (
            address inet,
            port int,
            client_options frozen<map<text, text>>,
            connection_stage text,
            driver_name text,
            driver_version text,
            hostname text,
            keyspace_name text,
            protocol_version int,
            request_count bigint,
            ssl_cipher_suite text,
            ssl_enabled boolean,
            ssl_protocol text,
            username text,
            PRIMARY KEY (address, port))",
        records: clients,
    },
    VirtualTable {
        cql: "CREATE TABLE system_views.settings (name text PRIMARY KEY, value text)",
        records: settings,
    },
    VirtualTable {
        cql: "CREATE TABLE system.clients (
            address inet,
            port int,
            client_type text,
            connection_stage text,
            driver_name text,
            driver_version text,
            hostname text,
            protocol_version int,
            shard_id int,
            ssl_cipher_suite text,
            ssl_enabled boolean,
            ssl_protocol text,
            username text,
            PRIMARY KEY (address, port, client_type))",
        records: scylla_clients,
    },
    VirtualTable {
        cql: "CREATE TABLE system.config (
            name text PRIMARY KEY,
            source text,
            type text,
            value text)",
        records: config,
    },
    VirtualTable {
        cql: "CREATE TABLE system.large_data (
            keyspace_name text,
            table_name text,
            guardrail text,
            column_name text,
            largest bigint,
            last_seen timestamp,
            partition_key text,
            refused bigint,
            warned bigint,
            PRIMARY KEY (keyspace_name, table_name, guardrail, column_name))",
        records: large_data,
    },
];

/// The name of a user without a login, as in Cassandra.
const ANONYMOUS: &str = "anonymous";

fn clients(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let clients = source.system.clients.all();
    let clients = clients.iter().map(|client| {
        let requests = client.requests.load(Ordering::Relaxed);
        let keyspace = client.keyspace.load_full();
        of_client(client)
            .with("client_options", client.options().map(text_map))
            .with("keyspace_name", keyspace.map(|name| text(&*name)))
            .with("request_count", Some(Value::Bigint(requests.cast_signed())))
    });
    clients.collect()
}

fn scylla_clients(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let clients = source.system.clients.all();
    let clients = clients
        .iter()
        .map(|client| of_client(client).with("client_type", Some(text("cql"))));
    clients.collect()
}

/// The columns that both tables of connections have.
fn of_client(client: &OpenConnection) -> NamedValues {
    let option = |name: &str| client.options()?.get(name).map(text);
    let version = client.version();
    let version = version.map(|version| Value::Int(i32::from(version.number())));
    let tls = client.tls.as_ref();
    let user = client.role.get().map_or(ANONYMOUS, |role| role);
    record([
        ("address", Value::Inet(client.address.ip())),
        ("port", Value::Int(i32::from(client.address.port()))),
        ("connection_stage", text(client.stage())),
        ("ssl_enabled", Value::Boolean(tls.is_some())),
        ("username", text(user)),
    ])
    .with("protocol_version", version)
    .with("driver_name", option("DRIVER_NAME"))
    .with("driver_version", option("DRIVER_VERSION"))
    .with("ssl_protocol", tls.map(|tls| text(&tls.protocol)))
    .with("ssl_cipher_suite", tls.map(|tls| text(&tls.cipher_suite)))
}

fn settings(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let settings = source.system.settings.iter();
    let settings = settings.map(|setting| {
        record([
            ("name", text(&setting.name)),
            ("value", text(&setting.value)),
        ])
    });
    settings.collect()
}

fn config(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let settings = source.system.settings.iter().map(|setting| {
        record([
            ("name", text(&setting.name)),
            ("source", text(setting.source)),
            ("type", text(setting.kind)),
            ("value", text(&setting.value)),
        ])
    });
    settings.collect()
}

fn large_data(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let seen = source.system.guardrails.violations().into_iter();
    let seen = seen.map(|(key, entry)| {
        let count = |count: u64| Value::Bigint(count.cast_signed());
        let partition = Some(entry.partition).filter(|partition| !partition.is_empty());
        record([
            ("keyspace_name", text(key.keyspace)),
            ("table_name", text(key.table)),
            ("guardrail", text(key.guardrail.name())),
            ("column_name", text(key.column)),
            ("largest", count(entry.largest)),
            ("last_seen", Value::Timestamp(entry.last_micros / 1000)),
            ("refused", count(entry.refused)),
            ("warned", count(entry.warned)),
        ])
        .with("partition_key", partition.map(text))
    });
    seen.collect()
}

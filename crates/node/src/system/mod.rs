//! The tables of `system`, `system_schema`, `system_auth`, `system_distributed`, `system_traces`,
//! `system_views` and `system_virtual_schema`. They are made when they are read, and can't be
//! written.
//!
//! Drivers, `cqlsh` and CDC readers learn from them everything about a node. So their names and
//! types are those of Cassandra 5, or of ScyllaDB where Cassandra has no such table. Each table is
//! a [`definition::VirtualTable`] in the file of its kind: its `CREATE TABLE` statement next to the
//! function that makes its rows.

mod auth;
mod cdc;
pub(crate) mod clients;
mod definition;
mod local;
mod peers;
pub(crate) mod prepared_texts;
mod record;
mod schema_empty;
mod schema_tables;
mod table_options;
mod trace_tables;
mod views;
mod virtual_schema;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Bound;
use std::sync::Arc;

use ::schema::{Catalog, Keyspace, Table, TableId};
use ::traces::FinishedTraces;
use bytes::Bytes;
use clients::ConnectionRegistry;
use cql::error::CqlError;
use prepared_texts::PreparedTexts;
use record::NamedValues;
pub(crate) use schema_tables::cdc_options;
use slow_statements::SlowQueries;
use storage::Storage;
use storage::clock::{Clock, SystemClock};
use storage::read::Row;
use store_api::IndexServices;

use crate::guardrails::Guardrails;

/// The name of the one data center, unless the node's options give another.
pub const DATA_CENTER: &str = "datacenter1";
/// The name of the one rack.
pub const RACK: &str = "rack1";
/// The version of Cassandra whose schema tables these are. Drivers choose their queries by it.
pub const RELEASE_VERSION: &str = "5.0.0";
/// The version of CQL.
pub const CQL_VERSION: &str = "3.4.7";
/// The partitioner of the ring, by the name that drivers know.
pub const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

const LOCAL_STRATEGY: &str = "org.apache.cassandra.locator.LocalStrategy";
const SIMPLE_STRATEGY: &str = "org.apache.cassandra.locator.SimpleStrategy";

/// The keyspaces that `system_schema` does not list, since drivers look for them only in
/// `system_virtual_schema`.
const VIRTUAL: [&str; 2] = ["system_views", "system_virtual_schema"];

/// The server's address for a statement that came over no connection.
const UNCONNECTED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9042);

/// The definitions and contents of the system tables.
pub struct SystemTables {
    keyspaces: BTreeMap<String, Arc<Keyspace>>,
    contents: HashMap<TableId, fn(&VirtualTableInputs<'_>) -> Vec<NamedValues>>,
    data_center: String,
    traces: Arc<FinishedTraces>,
    clients: Arc<ConnectionRegistry>,
    prepared: Arc<PreparedTexts>,
    settings: Vec<ProcessSetting>,
    guardrails: Arc<Guardrails>,
    slow_queries: Arc<SlowQueries>,
    /// The time at which the node started, in seconds since the epoch.
    started_at_s: i64,
}

/// A setting of the process, as `system_views.settings` and `system.config` show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSetting {
    /// The name of the setting.
    pub name: String,
    /// The value that counts, as text.
    pub value: String,
    /// The place that the value comes from, such as `default` or `file`.
    pub source: &'static str,
    /// The kind of value, such as `integer`.
    pub kind: &'static str,
}

/// The keyspaces and tables whose rows are wanted. After each change drivers read the rows of one
/// table, and this must not cost as much as the rows of all tables.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RequestedRows<'a> {
    /// The name of the one wanted keyspace; `None` for all.
    pub keyspace: Option<&'a str>,
    /// The name of the one wanted table; `None` for all. It is set only together with a keyspace.
    pub table: Option<&'a str>,
    /// The serialised values of the one wanted partition key; `None` for all.
    pub key: Option<&'a [Bytes]>,
}

/// The data from which rows are made.
struct VirtualTableInputs<'a> {
    catalog: &'a Catalog,
    wanted: RequestedRows<'a>,
    system: &'a SystemTables,
    /// The address at which the client reaches the node.
    server: SocketAddr,
    /// The storage and the index services, which know the indexes that are built. Without them all
    /// indexes count as built.
    running: Option<(&'a Storage, &'a IndexServices)>,
}

impl Default for SystemTables {
    fn default() -> SystemTables {
        SystemTables::new()
    }
}

impl SystemTables {
    /// The system tables of a node that starts now.
    pub fn new() -> SystemTables {
        let mut keyspaces: BTreeMap<String, Keyspace> = BTreeMap::new();
        let mut contents = HashMap::new();
        let declarations = [
            local::TABLES,
            peers::TABLES,
            schema_tables::TABLES,
            schema_empty::TABLES,
            virtual_schema::TABLES,
            cdc::TABLES,
            auth::TABLES,
            trace_tables::TABLES,
            views::TABLES,
        ];
        for declaration in declarations.into_iter().flatten() {
            let table = declaration.table();
            contents.insert(table.id, declaration.records);
            keyspaces
                .entry(table.keyspace.clone())
                .or_insert_with(|| keyspace(&table.keyspace))
                .tables
                .insert(table.name.clone(), Arc::new(table));
        }
        SystemTables {
            keyspaces: keyspaces
                .into_iter()
                .map(|(name, keyspace)| (name, Arc::new(keyspace)))
                .collect(),
            contents,
            data_center: DATA_CENTER.to_owned(),
            traces: Arc::default(),
            clients: Arc::default(),
            prepared: Arc::default(),
            settings: Vec::new(),
            guardrails: Arc::default(),
            slow_queries: Arc::default(),
            started_at_s: storage::clock::seconds(SystemClock.now_micros()),
        }
    }

    /// These tables for a node in the data center of this name.
    #[must_use]
    pub fn in_data_center(self, data_center: &str) -> SystemTables {
        SystemTables {
            data_center: data_center.to_owned(),
            ..self
        }
    }

    /// These tables for a node with these settings.
    #[must_use]
    pub fn with_settings(self, settings: Vec<ProcessSetting>) -> SystemTables {
        SystemTables { settings, ..self }
    }

    /// These tables for a node with these guardrails.
    #[must_use]
    pub fn with_guardrails(self, guardrails: Arc<Guardrails>) -> SystemTables {
        SystemTables { guardrails, ..self }
    }

    /// These tables for a node with this log of slow statements.
    #[must_use]
    pub fn with_slow_queries(self, slow_queries: Arc<SlowQueries>) -> SystemTables {
        SystemTables {
            slow_queries,
            ..self
        }
    }

    /// The slow statements that `system_views.slow_queries` shows.
    pub fn slow_queries(&self) -> &Arc<SlowQueries> {
        &self.slow_queries
    }

    /// The guardrails, whose violations `system.large_data` shows.
    pub fn guardrails(&self) -> &Arc<Guardrails> {
        &self.guardrails
    }

    /// The open connections that `system_views.clients` shows.
    pub(crate) fn clients(&self) -> &Arc<ConnectionRegistry> {
        &self.clients
    }

    /// The statements that `system.prepared_statements` shows.
    pub(crate) fn prepared(&self) -> &Arc<PreparedTexts> {
        &self.prepared
    }

    /// The name of the one data center.
    pub fn data_center(&self) -> &str {
        &self.data_center
    }

    /// The traces that `system_traces` shows.
    pub fn traces(&self) -> &FinishedTraces {
        &self.traces
    }

    /// A system keyspace by its name.
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    /// All system keyspaces, by name.
    pub fn keyspaces(&self) -> impl Iterator<Item = &Arc<Keyspace>> {
        self.keyspaces.values()
    }

    /// A system table by its name.
    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Arc<Table>> {
        self.keyspace(keyspace)?.tables.get(name)
    }

    /// The rows of a system table, at least the wanted ones. They are by partition in token order,
    /// then in clustering order. `server` is the address at which the client reached the node.
    ///
    /// # Errors
    /// If the table is not a system table.
    pub(crate) fn rows(
        &self,
        (storage, stores): (&Storage, &IndexServices),
        table: &Table,
        wanted: RequestedRows<'_>,
        server: Option<SocketAddr>,
    ) -> Result<Vec<Row>, CqlError> {
        self.rows_from(
            &VirtualTableInputs {
                catalog: &storage.catalog(),
                wanted,
                system: self,
                server: server.unwrap_or(UNCONNECTED),
                running: Some((storage, stores)),
            },
            table,
        )
    }

    fn rows_from(
        &self,
        source: &VirtualTableInputs<'_>,
        table: &Table,
    ) -> Result<Vec<Row>, CqlError> {
        let records = self.contents.get(&table.id).ok_or_else(|| {
            CqlError::invalid(format!(
                "table {}.{} does not exist",
                table.keyspace, table.name
            ))
        })?;
        Ok(record::assemble(
            table,
            &records(source),
            source.catalog.created_at_ms * 1000,
        ))
    }
}

impl VirtualTableInputs<'_> {
    /// The wanted ones of the keyspaces that `system_schema` lists: the system's by name, then the
    /// users' by name.
    fn keyspaces(&self) -> impl Iterator<Item = &Arc<Keyspace>> {
        let of_the_system = named(&self.system.keyspaces, self.wanted.keyspace);
        of_the_system
            .filter(|keyspace| !VIRTUAL.contains(&&*keyspace.name))
            .chain(self.keyspaces_of_users())
    }

    /// The wanted keyspaces of users.
    fn keyspaces_of_users(&self) -> impl Iterator<Item = &Arc<Keyspace>> {
        named(&self.catalog.keyspaces, self.wanted.keyspace)
    }

    /// The wanted ones of the tables that `system_schema` lists.
    fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.keyspaces()
            .flat_map(|keyspace| named(&keyspace.tables, self.wanted.table))
    }
}

/// The value under `name`, or all values if no name is given.
fn named<'m, V>(
    map: &'m BTreeMap<String, V>,
    name: Option<&'m str>,
) -> impl Iterator<Item = &'m V> {
    let bounds = match name {
        Some(name) => (Bound::Included(name), Bound::Included(name)),
        None => (Bound::Unbounded, Bound::Unbounded),
    };
    map.range::<str, _>(bounds).map(|(_, value)| value)
}

fn keyspace(name: &str) -> Keyspace {
    let replicated = matches!(name, "system_auth" | "system_distributed" | "system_traces");
    let mut replication = BTreeMap::new();
    if replicated {
        replication.insert("class".to_owned(), SIMPLE_STRATEGY.to_owned());
        replication.insert("replication_factor".to_owned(), "1".to_owned());
    } else {
        replication.insert("class".to_owned(), LOCAL_STRATEGY.to_owned());
    }
    Keyspace {
        name: name.to_owned(),
        replication,
        durable_writes: true,
        tablets: false,
        types: Default::default(),
        tables: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests;

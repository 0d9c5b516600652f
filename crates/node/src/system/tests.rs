use std::collections::BTreeMap;

use bytes::Bytes;
use storage::read::Cell;
use value::{Value, token::routing_key};

use super::*;
use crate::fixtures;

/// The address at which the client of these tests reached the node.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9142);

fn tables() -> SystemTables {
    SystemTables::new()
}

impl SystemTables {
    /// The rows of a table, made only of a catalog.
    fn rows_of(
        &self,
        catalog: &Catalog,
        table: &Table,
        wanted: RequestedRows<'_>,
        server: SocketAddr,
    ) -> Result<Vec<Row>, CqlError> {
        let source = VirtualTableInputs {
            catalog,
            wanted,
            system: self,
            server,
            running: None,
        };
        self.rows_from(&source, table)
    }
}

fn rows(catalog: &Catalog, keyspace: &str, name: &str) -> Vec<BTreeMap<String, Value>> {
    let system = tables();
    let table = system.table(keyspace, name).unwrap();
    system
        .rows_of(catalog, table, RequestedRows::default(), SERVER)
        .unwrap()
        .iter()
        .map(|row| decoded(table, row))
        .collect()
}

/// A row as values by column name, without nulls.
fn decoded(table: &Table, row: &Row) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    let clustering = row.clustering.as_ref().unwrap();
    let keys = table.partition_key().into_iter().zip(&row.partition.key);
    let keys = keys.chain(table.clustering_key().into_iter().zip(clustering));
    for (column, value) in keys {
        let value = Value::deserialize(&column.cql_type, value).unwrap();
        values.insert(column.name.clone(), value);
    }
    for (id, cell) in &row.cells {
        let column = table.column_by_id(*id).unwrap();
        let serialized = match cell {
            Cell::Simple(cell) => cell.value.clone(),
            Cell::Elements(elements) => joined(&column.cql_type, elements),
        };
        let value = Value::deserialize(&column.cql_type, &serialized).unwrap();
        values.insert(column.name.clone(), value);
    }
    values
}

fn joined(cql_type: &value::CqlType, elements: &[(Bytes, storage::read::LiveCell)]) -> Bytes {
    match cql_type {
        value::CqlType::Map { .. } => value::join_entries(
            elements
                .iter()
                .map(|(path, cell)| (&path[..], &cell.value[..])),
        ),
        _ => value::join_elements(elements.iter().map(|(path, _)| &path[..])),
    }
}

fn text(row: &BTreeMap<String, Value>, column: &str) -> String {
    match row.get(column) {
        Some(Value::Text(text)) => text.clone(),
        other => panic!("{column}: {other:?}"),
    }
}

fn map(row: &BTreeMap<String, Value>, column: &str) -> BTreeMap<String, String> {
    let Some(Value::Map(entries)) = row.get(column) else {
        panic!("{column}: {:?}", row.get(column));
    };
    entries
        .iter()
        .map(|entry| match entry {
            (Value::Text(key), Value::Text(value)) => (key.clone(), value.clone()),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn named<'a>(
    rows: &'a [BTreeMap<String, Value>],
    wanted: &[(&str, &str)],
) -> &'a BTreeMap<String, Value> {
    let mut found = rows.iter().filter(|row| {
        let mut wanted = wanted.iter();
        wanted.all(|(column, value)| text(row, column) == *value)
    });
    let row = found.next().unwrap_or_else(|| panic!("no row {wanted:?}"));
    assert!(found.next().is_none(), "{wanted:?} is there twice");
    row
}

#[test]
fn every_table_has_valid_rows_in_order() {
    let system = tables();
    let catalog = fixtures::catalog();
    for table in system
        .keyspaces()
        .flat_map(|keyspace| keyspace.tables.values())
    {
        let rows = system
            .rows_of(&catalog, table, RequestedRows::default(), SERVER)
            .unwrap();
        let mut keys = std::collections::HashSet::new();
        for row in &rows {
            // Decoding checks every value against its column's type.
            decoded(table, row);
            let token = table.partitioner.token(&routing_key(&row.partition.key));
            assert_eq!(row.partition.token, token);
            let key = (row.partition.key.clone(), row.clustering.clone());
            assert!(keys.insert(key), "{}", table.name);
        }
        let partitions: Vec<_> = rows.iter().map(|row| row.partition.token).collect();
        assert!(partitions.is_sorted(), "{}", table.name);
    }
}

#[test]
fn of_one_table_no_more_rows_are_made_than_it_has() {
    let catalog = fixtures::catalog();
    let system = tables();
    let of_tables = system.keyspace("system_schema").unwrap().tables.values();
    let mut found = 0;
    for table in of_tables {
        let all = system
            .rows_of(&catalog, table, RequestedRows::default(), SERVER)
            .unwrap();
        for (keyspace, name) in [
            ("shop", Some("films")),
            ("shop", None),
            ("none", Some("films")),
        ] {
            let wanted = RequestedRows {
                keyspace: Some(keyspace),
                table: name,
                key: None,
            };
            let some = system.rows_of(&catalog, table, wanted, SERVER).unwrap();
            let is_wanted = |row: &&Row| {
                let clustering = row.clustering.as_ref().unwrap().first();
                let is_of_table = |name: &str| clustering.is_none_or(|first| first == name);
                row.partition.key[0] == keyspace && name.is_none_or(is_of_table)
            };
            let expected: Vec<&Row> = all.iter().filter(is_wanted).collect();
            let keys = |row: &Row| (row.partition.key.clone(), row.clustering.clone());
            assert!(
                some.iter()
                    .map(keys)
                    .eq(expected.iter().map(|row| keys(row))),
                "{}",
                table.name
            );
            found += some.len();
        }
    }
    assert!(found > 10);
}

#[test]
fn a_partition_is_shared_and_its_rows_are_in_clustering_order() {
    let catalog = fixtures::catalog();
    let system = tables();
    let table = system.table("system_schema", "columns").unwrap();
    let rows = system
        .rows_of(&catalog, table, RequestedRows::default(), SERVER)
        .unwrap();
    let of_shop: Vec<&Row> = rows
        .iter()
        .filter(|row| row.partition.key[0] == "shop")
        .collect();
    assert!(of_shop.len() > 5);
    let first = &of_shop[0].partition;
    assert!(of_shop.iter().all(|row| Arc::ptr_eq(&row.partition, first)));
    let clustering: Vec<_> = of_shop.iter().map(|row| row.clustering.clone()).collect();
    assert!(clustering.is_sorted());
}

#[test]
fn the_data_center_bears_the_name_it_was_given() {
    let system = tables().in_data_center("eu-west");
    let catalog = fixtures::catalog();
    let rows = |keyspace: &str, name: &str| -> Vec<BTreeMap<String, Value>> {
        let table = system.table(keyspace, name).unwrap();
        let rows = system
            .rows_of(&catalog, table, RequestedRows::default(), SERVER)
            .unwrap();
        rows.iter().map(|row| decoded(table, row)).collect()
    };
    assert_eq!(text(&rows("system", "local")[0], "data_center"), "eu-west");
    let keyspaces = rows("system_schema", "keyspaces");
    let old = named(&keyspaces, &[("keyspace_name", "old")]);
    assert_eq!(map(old, "replication")["eu-west"], "3");
}

#[test]
fn local_says_what_drivers_ask_for() {
    let catalog = fixtures::catalog();
    let rows = rows(&catalog, "system", "local");
    let [local] = &rows[..] else {
        panic!("one row");
    };
    assert_eq!(text(local, "key"), "local");
    assert_eq!(text(local, "cluster_name"), "Test Cluster");
    assert_eq!(text(local, "data_center"), "datacenter1");
    for port in ["broadcast_port", "listen_port"] {
        assert_eq!(local[port], Value::Int(7000), "{port}");
    }
    assert_eq!(local["host_id"], Value::Uuid(catalog.host_id));
    assert_eq!(local["schema_version"], Value::Uuid(catalog.version));
    assert_eq!(
        local["rpc_address"],
        Value::Inet("127.0.0.1".parse().unwrap())
    );
    assert_eq!(local["rpc_port"], Value::Int(9142));
    let Value::Set(tokens) = &local["tokens"] else {
        panic!("tokens");
    };
    assert!(!tokens.is_empty());
    for token in tokens {
        let Value::Text(token) = token else {
            panic!("{token:?}");
        };
        token.parse::<i64>().unwrap();
    }
}

#[test]
fn a_truncated_table_shows_with_its_time() {
    let mut catalog = fixtures::catalog();
    fixtures::edit_table(&mut catalog, "shop", "films", |table| {
        table.truncated_at_ms = Some(1234);
    });
    let truncated = rows(&catalog, "system", "truncated");
    assert_eq!(truncated.len(), 1);
    assert_eq!(truncated[0]["truncated_at"], Value::Timestamp(1234));
    let local = &rows(&catalog, "system", "local")[0];
    let Value::Map(entries) = &local["truncated_at"] else {
        panic!("{local:?}");
    };
    let (Value::Uuid(id), Value::Blob(record)) = &entries[0] else {
        panic!("{entries:?}");
    };
    assert_eq!(*id, catalog.table("shop", "films").unwrap().id.0);
    assert!(record.ends_with(&1234i64.to_be_bytes()));
}

#[test]
fn keyspaces_give_the_replication_that_drivers_compute_with() {
    let rows = rows(&fixtures::catalog(), "system_schema", "keyspaces");
    let shop = map(named(&rows, &[("keyspace_name", "shop")]), "replication");
    assert_eq!(shop["class"], "org.apache.cassandra.locator.SimpleStrategy");
    assert_eq!(shop["replication_factor"], "3");
    let old = map(named(&rows, &[("keyspace_name", "old")]), "replication");
    assert_eq!(
        old["class"],
        "org.apache.cassandra.locator.NetworkTopologyStrategy"
    );
    assert_eq!(old["datacenter1"], "3");
    assert!(!old.contains_key("replication_factor"));
    for name in [
        "system",
        "system_schema",
        "system_distributed",
        "system_traces",
    ] {
        named(&rows, &[("keyspace_name", name)]);
    }
    assert!(
        rows.iter()
            .all(|row| !VIRTUAL.contains(&&*text(row, "keyspace_name")))
    );
}

#[test]
fn tables_show_given_options_and_defaults() {
    let rows = rows(&fixtures::catalog(), "system_schema", "tables");
    let films = named(&rows, &[("keyspace_name", "shop"), ("table_name", "films")]);
    assert_eq!(text(films, "comment"), "it's all");
    assert_eq!(films["bloom_filter_fp_chance"], Value::Double(0.5));
    assert_eq!(
        map(films, "compaction")["class"],
        "LeveledCompactionStrategy"
    );
    assert_eq!(map(films, "caching")["keys"], "ALL");
    assert_eq!(films["gc_grace_seconds"], Value::Int(864_000));
    // Without this flag, drivers take the table for one with COMPACT STORAGE.
    assert_eq!(
        films["flags"],
        Value::Set(vec![Value::Text("compound".to_owned())])
    );
    named(&rows, &[("table_name", "films_scylla_cdc_log")]);
    named(
        &rows,
        &[("keyspace_name", "system"), ("table_name", "local")],
    );
}

#[test]
fn an_option_that_does_not_fit_falls_back_to_the_default() {
    let mut catalog = fixtures::catalog();
    fixtures::edit_table(&mut catalog, "shop", "films", |table| {
        for (name, value) in [
            ("bloom_filter_fp_chance", "'x'"),
            ("compaction", "1"),
            ("caching", "{"),
        ] {
            table.options.insert(name.to_owned(), value.to_owned());
        }
    });
    let rows = rows(&catalog, "system_schema", "tables");
    let films = named(&rows, &[("keyspace_name", "shop"), ("table_name", "films")]);
    assert_eq!(films["bloom_filter_fp_chance"], Value::Double(0.01));
    assert!(map(films, "compaction")["class"].ends_with("SizeTieredCompactionStrategy"));
    assert_eq!(map(films, "caching")["keys"], "ALL");
}

#[test]
fn columns_show_kinds_positions_and_types() {
    let rows = rows(&fixtures::catalog(), "system_schema", "columns");
    let column = |name: &str| {
        let row = named(
            &rows,
            &[
                ("keyspace_name", "shop"),
                ("table_name", "films"),
                ("column_name", name),
            ],
        );
        let Value::Int(position) = row["position"] else {
            panic!("{row:?}");
        };
        assert_eq!(
            row["column_name_bytes"],
            Value::Blob(Bytes::copy_from_slice(name.as_bytes()))
        );
        (
            text(row, "kind"),
            position,
            text(row, "clustering_order"),
            text(row, "type"),
        )
    };
    let expected = |kind: &str, position, order: &str, cql_type: &str| {
        (
            kind.to_owned(),
            position,
            order.to_owned(),
            cql_type.to_owned(),
        )
    };
    assert_eq!(column("year"), expected("partition_key", 1, "none", "int"));
    assert_eq!(
        column("released"),
        expected("clustering", 0, "desc", "timestamp")
    );
    assert_eq!(column("id"), expected("clustering", 1, "asc", "int"));
    assert_eq!(column("founder"), expected("static", -1, "none", "text"));
    assert_eq!(column("tags"), expected("regular", -1, "none", "set<text>"));
    assert_eq!(
        column("plot"),
        expected("regular", -1, "none", "vector<float, 3>")
    );
}

#[test]
fn indexes_show_the_users_options_and_the_databases() {
    let rows = rows(&fixtures::catalog(), "system_schema", "indexes");
    let index = named(&rows, &[("index_name", "films_plot")]);
    assert_eq!(text(index, "kind"), "CUSTOM");
    let options = map(index, "options");
    assert_eq!(options["similarity_function"], "COSINE");
    assert_eq!(options["class_name"], "vector_index");
    assert_eq!(options["index_version"], fixtures::version(7).to_string());
    assert!(options["target"].contains("\"tc\":\"plot\""));
}

#[test]
fn scyllas_tables_tell_tablets_partitioners_and_cdc() {
    let catalog = fixtures::catalog();
    let keyspaces = rows(&catalog, "system_schema", "scylla_keyspaces");
    let shop = named(&keyspaces, &[("keyspace_name", "shop")]);
    assert_eq!(shop["initial_tablets"], Value::Int(0));
    let old = named(&keyspaces, &[("keyspace_name", "old")]);
    assert!(!old.contains_key("initial_tablets"));

    let tables = rows(&catalog, "system_schema", "scylla_tables");
    let films = named(
        &tables,
        &[("keyspace_name", "shop"), ("table_name", "films")],
    );
    assert!(!films.contains_key("partitioner"));
    assert_eq!(map(films, "cdc")["preimage"], "full");
    let log = named(&tables, &[("table_name", "films_scylla_cdc_log")]);
    assert!(text(log, "partitioner").ends_with("CDCPartitioner"));
}

#[test]
fn streams_of_both_modes_are_listed() {
    let catalog = fixtures::catalog();
    let since = Value::Timestamp(1_700_000_000_000);
    let timestamps = rows(&catalog, "system", "cdc_timestamps");
    assert_eq!(timestamps.len(), 1);
    assert_eq!(text(&timestamps[0], "table_name"), "films");
    assert_eq!(timestamps[0]["timestamp"], since);
    let streams = rows(&catalog, "system", "cdc_streams");
    assert_eq!(streams.len(), 3);
    assert!(
        streams
            .iter()
            .all(|row| row["stream_state"] == Value::Tinyint(0))
    );

    let generations = rows(&catalog, "system_distributed", "cdc_generation_timestamps");
    assert_eq!(generations.len(), 1);
    assert_eq!(text(&generations[0], "key"), "timestamps");
    assert_eq!(generations[0]["time"], since);
    let descriptions = rows(
        &catalog,
        "system_distributed",
        "cdc_streams_descriptions_v2",
    );
    assert_eq!(descriptions.len(), 2);
    for row in &descriptions {
        let (Value::Bigint(end), Value::Set(streams)) = (&row["range_end"], &row["streams"]) else {
            panic!("{row:?}");
        };
        let Value::Blob(stream) = &streams[0] else {
            panic!("{row:?}");
        };
        assert_eq!(stream[..8], end.to_be_bytes());
    }
}

#[test]
fn the_virtual_schema_describes_what_has_no_storage() {
    let catalog = fixtures::catalog();
    let schema = "system_virtual_schema";
    let keyspaces = rows(&catalog, schema, "keyspaces");
    let mut names: Vec<String> = keyspaces
        .iter()
        .map(|row| text(row, "keyspace_name"))
        .collect();
    names.sort();
    assert_eq!(names, VIRTUAL);
    assert_eq!(rows(&catalog, schema, "tables").len(), 6);
    let columns = rows(&catalog, schema, "columns");
    named(
        &columns,
        &[("table_name", "clients"), ("column_name", "request_count")],
    );
    named(
        &columns,
        &[("table_name", "columns"), ("column_name", "kind")],
    );
}

#[test]
fn the_newest_state_is_the_catalogs_version() {
    let catalog = fixtures::catalog();
    let history = rows(&catalog, "system", "group0_history");
    assert_eq!(history.len(), 1);
    assert_eq!(text(&history[0], "key"), "history");
    assert_eq!(history[0]["state_id"], Value::Timeuuid(catalog.version));
}

#[test]
fn settings_and_clients_are_shown() {
    let system = tables().with_settings(vec![ProcessSetting {
        name: "cql-port".to_owned(),
        value: "9142".to_owned(),
        source: "file",
        kind: "integer",
    }]);
    let catalog = fixtures::catalog();
    let shown = |keyspace, name| {
        let table = system.table(keyspace, name).unwrap();
        let rows = system.rows_of(&catalog, table, RequestedRows::default(), SERVER);
        let rows = rows.unwrap();
        rows.iter()
            .map(|row| decoded(table, row))
            .collect::<Vec<_>>()
    };
    assert_eq!(text(&shown("system_views", "settings")[0], "value"), "9142");
    assert_eq!(text(&shown("system", "config")[0], "source"), "file");
    assert!(shown("system_views", "clients").is_empty());
    let client = system
        .clients()
        .register("127.0.0.1:5".parse().unwrap(), None, false);
    let [row] = &shown("system_views", "clients")[..] else {
        panic!("one client");
    };
    assert_eq!(text(row, "connection_stage"), "established");
    client.started(
        cql::wire::ProtocolVersion::V4,
        &[("DRIVER_NAME".to_owned(), "d".to_owned())],
    );
    let [row] = &shown("system", "clients")[..] else {
        panic!("one client");
    };
    assert_eq!(text(row, "connection_stage"), "ready");
    assert_eq!(text(row, "driver_name"), "d");
    assert_eq!(row["protocol_version"], Value::Int(4));
    drop(client);
    assert!(shown("system", "clients").is_empty());
}

#[test]
fn a_users_table_is_none_of_these() {
    let catalog = fixtures::catalog();
    let films = catalog.table("shop", "films").unwrap();
    assert!(
        tables()
            .rows_of(&catalog, films, RequestedRows::default(), SERVER)
            .is_err()
    );
}

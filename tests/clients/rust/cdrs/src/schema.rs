//! The server and the schema as the driver knows them. It keeps the nodes and how keyspaces are
//! replicated, and leaves tables to the program.

use cassandra_protocol::events::ServerEvent;
use cassandra_protocol::frame::events::{
    SchemaChangeOptions, SchemaChangeTarget, SchemaChangeType,
};
use cdrs_tokio::cluster::topology::ReplicationStrategy;
use cdrs_tokio::frame::Version;
use cdrs_tokio::frame::message_result::{ColType, ColTypeOptionValue, PreparedMetadata};
use cdrs_tokio::query_values;
use cdrs_tokio::types::map::Map;
use cdrs_tokio::types::{AsRustType, ByName};
use sections::{equal, eventually, in_time};

use crate::session::{Client, connect, node, rows, run, select, with};
use crate::types::types_of_version_5;

/// The version of the protocol of a connection.
async fn spoken(client: &Client) -> i32 {
    let found = select(
        client,
        "SELECT protocol_version FROM system_views.clients LIMIT 1",
    )
    .await;
    found[0].r_by_name("protocol_version").expect("a version")
}

pub async fn connected(client: &Client) {
    let local = select(client, "SELECT release_version FROM system.local").await;
    let release: String = local[0].r_by_name("release_version").expect("a release");
    assert!(!release.is_empty(), "a release");
    equal(spoken(client).await, 4, "the protocol that is spoken");
    let known = client.cluster_metadata();
    equal(known.nodes().len(), 1, "nodes");
    let node = known.nodes().values().next().expect("a node");
    assert!(
        !node.tokens().is_empty() && node.host_id().is_some(),
        "tokens and an id"
    );
}

pub async fn in_version_5(address: &str, keyspace: &str) {
    let node = node(address).with_version(Version::V5);
    let client = connect(node, Some(keyspace)).await;
    let clients = select(&client, "SELECT protocol_version FROM system_views.clients").await;
    let mut versions = clients
        .iter()
        .map(|row| row.r_by_name("protocol_version").expect("a version"));
    assert!(
        versions.any(|version: i32| version == 5),
        "no connection speaks version 5"
    );
    types_of_version_5(&client).await;
}

pub async fn metadata(client: &Client, keyspace: &str) {
    let factor = || {
        let known = client.cluster_metadata();
        match known
            .keyspace(keyspace)
            .expect("the keyspace")
            .replication_strategy
        {
            ReplicationStrategy::SimpleStrategy { replication_factor } => replication_factor,
            _ => panic!("not a SimpleStrategy"),
        }
    };
    equal(factor(), 1, "replication");
    let alter = format!(
        "ALTER KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 2}}"
    );
    run(client, &alter).await;
    eventually("a keyspace's change is known", async || factor() == 2).await;
    run(client, &alter.replace("': 2", "': 1")).await;
    run(client, "CREATE TYPE person (name text, born date)").await;
    run(
        client,
        "CREATE TABLE films (maker uuid, year int, title text, studio text static, cast_of list<frozen<person>>, \
         \"Mixed\" frozen<map<text, frozen<set<int>>>>, v vector<float, 3>, PRIMARY KEY ((maker, title), year))",
    )
    .await;
    run(client, "CREATE INDEX films_by_studio ON films (studio)").await;
    let insert =
        "INSERT INTO films (year, title, maker, cast_of, \"Mixed\", v) VALUES (?, ?, ?, ?, ?, ?)";
    let prepared = client.prepare_raw(insert).await.expect("it is prepared");
    check_variables(&prepared.metadata);
    let indexes = "SELECT options FROM system_schema.indexes WHERE keyspace_name = ? AND table_name = 'films'";
    let found = rows(with(client, indexes, query_values!(keyspace)).await);
    let options: Map = found[0].r_by_name("options").expect("options");
    let options: std::collections::HashMap<String, String> = options.as_r_type().expect("texts");
    equal(&options["target"], "studio", "the index's target");
}

fn check_variables(prepared: &PreparedMetadata) {
    equal(&prepared.pk_indexes, [2, 1], "where the partition key is");
    let types: Vec<ColType> = prepared
        .col_specs
        .iter()
        .map(|one| one.col_type.id)
        .collect();
    let expected = [
        ColType::Int,
        ColType::Varchar,
        ColType::Uuid,
        ColType::List,
        ColType::Map,
        ColType::Custom,
    ];
    equal(types, expected, "types of variables");
    let Some(ColTypeOptionValue::CList(person)) = &prepared.col_specs[3].col_type.value else {
        panic!("not a list: {:?}", prepared.col_specs[3]);
    };
    let Some(ColTypeOptionValue::UdtType(person)) = &person.value else {
        panic!("not a type of the program's own: {person:?}");
    };
    let fields: Vec<&str> = person
        .descriptions
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    equal(
        (&person.udt_name, fields),
        ("person", ["name", "born"]),
        "a type with its fields",
    );
}

/// A session is told of what another does.
pub async fn events(client: &Client, address: &str, keyspace: &str) {
    let second = connect(node(address), None).await;
    let mut told = second.create_event_receiver();
    for (statement, change) in [
        (
            "CREATE TABLE told (k int PRIMARY KEY)",
            SchemaChangeType::Created,
        ),
        ("ALTER TABLE told ADD a text", SchemaChangeType::Updated),
        ("DROP TABLE told", SchemaChangeType::Dropped),
    ] {
        run(client, statement).await;
        let ServerEvent::SchemaChange(event) = in_time(told.recv()).await.expect("an event") else {
            panic!("another event");
        };
        let table = SchemaChangeOptions::TableType(keyspace.to_owned(), "told".to_owned());
        equal(
            (event.change_type, event.target, event.options),
            (change, SchemaChangeTarget::Table, table),
            statement,
        );
    }
}

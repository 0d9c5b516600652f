//! The text of DESCRIBE, when it is executed, makes an equal schema.

use crate::client::Client;
use crate::real::start;

const SCHEMA: &[&str] = &[
    "CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': '1'} AND durable_writes = false",
    "CREATE KEYSPACE \"Old\" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'} AND tablets = {'enabled': false}",
    "CREATE TABLE shop.films (
        studio text, year int, released timestamp, id int,
        founder text STATIC, tags set<text>, cast list<frozen<map<text, int>>>, plot vector<float, 8>,
        PRIMARY KEY ((studio, year), released, id))
        WITH CLUSTERING ORDER BY (released DESC, id ASC)
        AND comment = 'it''s all' AND default_time_to_live = 100000 AND gc_grace_seconds = 5
        AND compaction = {'class': 'LeveledCompactionStrategy'} AND bloom_filter_fp_chance = 0.5",
    "CREATE CUSTOM INDEX films_plot ON shop.films (plot) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'dot_product', 'maximum_node_connections': '32'}",
    "CREATE TABLE shop.plain (id uuid PRIMARY KEY, amount decimal, at time, \"of\" frozen<set<inet>>)",
    "CREATE TABLE \"Old\".\"LoggedTable\" (\"Key\" blob, c tinyint, \"select\" duration, PRIMARY KEY (\"Key\", c)) WITH cdc = {'enabled': true, 'preimage': true, 'ttl': 3600}",
];

async fn statements(client: &mut Client) -> Vec<String> {
    client
        .rows("DESCRIBE SCHEMA")
        .await
        .into_iter()
        .map(|row| row[3][1..row[3].len() - 1].replace("''", "'"))
        .collect()
}

#[tokio::test]
async fn a_described_schema_can_be_made_again() {
    let node = start().await;
    let mut client = Client::open(node.address).await;
    for statement in SCHEMA {
        client.run(statement).await;
    }
    let described = statements(&mut client).await;
    assert_eq!(described.len(), SCHEMA.len());
    client.run("DROP KEYSPACE shop").await;
    client.run("DROP KEYSPACE \"Old\"").await;
    assert!(statements(&mut client).await.is_empty());
    for statement in &described {
        client.run(statement).await;
    }
    assert_eq!(statements(&mut client).await, described);
}

//! The schema events that registered clients get for changes by others.

use cql::wire::{EVENT_STREAM, EventKind, Request, Response, SchemaTarget, ServerEvent};

use crate::client::Client;
use crate::real::start_with_keyspace;

async fn next(client: &mut Client) -> String {
    let (context, response) = client.receive().await;
    assert_eq!(context.stream, EVENT_STREAM);
    let Response::Event(ServerEvent::SchemaChange(change)) = response else {
        panic!("{response:?}");
    };
    match change.target {
        SchemaTarget::Table(table) => format!("{:?} {}.{table}", change.change, change.keyspace),
        _ => format!("{:?} {}", change.change, change.keyspace),
    }
}

#[tokio::test]
async fn every_kind_of_change_is_told() {
    let (node, mut client) = start_with_keyspace().await;
    let mut listening = Client::open(node.address).await;
    let events = vec![EventKind::SchemaChange];
    let ready = listening.request(&Request::Register { events }).await;
    assert_eq!(ready, Response::Ready);
    for (statement, told) in [
        (
            "CREATE TABLE t (p int PRIMARY KEY, v vector<float, 2>)",
            &["Created k.t"][..],
        ),
        ("ALTER TABLE t ADD a int", &["Updated k.t"]),
        // The statement changes nothing, so there is no event.
        ("CREATE TABLE IF NOT EXISTS t (p int PRIMARY KEY)", &[]),
        ("TRUNCATE t", &[]),
        (
            "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'",
            &["Updated k.t", "Created k.t_scylla_cdc_log"],
        ),
        (
            "DROP INDEX i",
            &["Dropped k.t_scylla_cdc_log", "Updated k.t"],
        ),
        (
            "ALTER KEYSPACE k WITH durable_writes = false",
            &["Updated k"],
        ),
        ("DROP TABLE t", &["Dropped k.t"]),
        ("DROP KEYSPACE k", &["Dropped k"]),
    ] {
        client.run(statement).await;
        for change in told {
            assert_eq!(next(&mut listening).await, *change, "{statement}");
        }
    }
    listening.run("USE system").await;
}

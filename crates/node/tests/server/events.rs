//! Schema events reach the clients that registered for them, and no others.

use std::time::Duration;

use cql::wire::{EVENT_STREAM, EventKind, Request, Response, ServerEvent};
use tokio::time::timeout;

use crate::client::Client;
use crate::echo::{change, start};

async fn register(client: &mut Client, events: &[EventKind]) {
    client
        .send(
            1,
            &Request::Register {
                events: events.to_vec(),
            },
        )
        .await;
    assert_eq!(client.receive().await.1, Response::Ready);
}

#[tokio::test]
async fn registered_connections_hear_of_changes_once() {
    let server = start(|_| {}).await;
    let mut listening = Client::open(server.address).await;
    let everything = [
        EventKind::TopologyChange,
        EventKind::StatusChange,
        EventKind::SchemaChange,
    ];
    register(&mut listening, &everything).await;
    // A second registration changes nothing.
    register(&mut listening, &[EventKind::SchemaChange]).await;
    let mut deaf = Client::open(server.address).await;
    register(&mut deaf, &[EventKind::StatusChange]).await;
    let mut changing = Client::open(server.address).await;
    assert_eq!(
        changing.ask("change shop").await,
        Response::SchemaChange(change("shop"))
    );
    let (context, response) = listening.receive().await;
    assert_eq!(context.stream, EVENT_STREAM);
    assert_eq!(
        response,
        Response::Event(ServerEvent::SchemaChange(change("shop")))
    );
    listening.assert_alive().await;
    deaf.assert_alive().await;
    let more = timeout(Duration::from_millis(50), deaf.try_receive()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn the_one_who_changes_hears_of_it_too() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    register(&mut client, &[EventKind::SchemaChange]).await;
    client.query(7, "change shop").await;
    let mut streams = [
        client.receive().await.0.stream,
        client.receive().await.0.stream,
    ];
    streams.sort_unstable();
    assert_eq!(streams, [EVENT_STREAM, 7]);
}

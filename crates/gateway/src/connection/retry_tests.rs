//! Tests on a whole connection: writes that the node refuses because their tables have changed
//! since the gateway read the definitions.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BatchKind, BatchRequest, BatchStatement, BatchedStatement, BoundValue, Consistency, Request,
    Response,
};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use super::test_connection::{
    FramedPeer, SharedFixture, execute, is_prepare, prepare, prepared_as, query, rest, snapshot,
};
use crate::catalog::IndexCatalogSnapshot;
use crate::writes::test_tables::{events, products};

const INSERT: &str = "INSERT INTO shop.products (id, name) VALUES (1, 'tea')";

fn no_log() -> Response {
    let message = "table shop.products_scylla_cdc_log does not exist";
    Response::Error(CqlError::invalid(message))
}

/// A snapshot in which `shop.products` has another id: the table was recreated, and given an index
/// again.
fn recreated(id: u128) -> IndexCatalogSnapshot {
    let mut table = products();
    table.id = Uuid::from_u128(id);
    IndexCatalogSnapshot::new([Arc::new(table)], [])
}

/// Has the node prepare the INSERT of log rows, by a write that succeeds.
async fn log_is_prepared(client: &mut FramedPeer, node: &mut FramedPeer) {
    client.ask(&query(INSERT), 1).await;
    assert!(is_prepare(&node.request().await));
    node.answer(&prepared_as(b"log"), 1).await;
    assert_eq!(node.batch(2).await, 1);
    node.answer(&Response::Void, 1).await;
    client.response().await;
}

async fn passes(client: &mut FramedPeer, node: &mut FramedPeer, request: &Request, stream: i16) {
    assert_eq!(
        node.request().await,
        (stream, request.clone()),
        "as it came"
    );
    node.answer(&Response::Void, stream).await;
    assert_eq!(client.response().await, (stream, Response::Void));
}

#[tokio::test]
async fn a_write_whose_table_has_no_index_any_more_passes_as_it_came() {
    let conditional = format!("{INSERT} IF NOT EXISTS");
    let denied = CqlError::new(ErrorKind::Unauthorized, "no MODIFY permission on the log");
    for refusal in [no_log(), Response::Error(denied)] {
        for text in [INSERT, &conditional] {
            // The node refuses to prepare the INSERT of the log row.
            let shared = SharedFixture::new(snapshot());
            let (mut client, mut node) = shared.connect();
            client.ask(&query(text), 5).await;
            assert!(is_prepare(&node.request().await));
            shared.catalog.replace(IndexCatalogSnapshot::default());
            node.answer(&refusal, 5).await;
            passes(&mut client, &mut node, &query(text), 5).await;

            // The node refuses to write the log row.
            let shared = SharedFixture::new(snapshot());
            let (mut client, mut node) = shared.connect();
            log_is_prepared(&mut client, &mut node).await;
            client.ask(&query(text), 5).await;
            assert!(matches!(node.request().await, (5, Request::Batch(_))));
            shared.catalog.replace(IndexCatalogSnapshot::default());
            node.answer(&refusal, 5).await;
            passes(&mut client, &mut node, &query(text), 5).await;
        }
    }
}

#[tokio::test]
async fn a_write_whose_table_was_recreated_goes_with_the_new_log() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    log_is_prepared(&mut client, &mut node).await;
    client.ask(&query(INSERT), 5).await;
    assert_eq!(node.batch(2).await, 5);
    shared.catalog.replace(recreated(77));
    node.answer(&no_log(), 5).await;
    let request = node.request().await;
    assert!(request.0 == 5 && is_prepare(&request), "{request:?}");
    node.answer(&prepared_as(b"new log"), 5).await;
    assert_eq!(node.batch(2).await, 5);
    node.answer(&Response::Void, 5).await;
    assert_eq!(client.response().await, (5, Response::Void));
}

#[tokio::test]
async fn a_prepared_write_is_prepared_again_by_its_client() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    let text = "INSERT INTO shop.products (id, name) VALUES (?, 'tea')";
    let key = || BoundValue::Value(Bytes::from_static(&[0, 0, 0, 7]));
    let executed = execute(b"insert", vec![key()]);
    let in_a_batch = Request::Batch(BatchRequest {
        kind: BatchKind::Unlogged,
        statements: vec![BatchStatement {
            statement: BatchedStatement::Prepared(Bytes::from_static(b"insert")),
            values: vec![key()],
        }],
        consistency: Consistency::One,
        serial_consistency: None,
        timestamp: None,
        keyspace: None,
        now_in_seconds: None,
    });
    let elsewhere = IndexCatalogSnapshot::new([Arc::new(events())], []);
    for (id, request) in [(3, &executed), (4, &in_a_batch)] {
        shared.catalog.replace(recreated(id));
        client.ask(&prepare(text), 1).await;
        node.request().await;
        node.answer(&prepared_as(b"insert"), 1).await;
        client.response().await;
        client.ask(request, 2).await;
        assert!(is_prepare(&node.request().await));
        shared.catalog.replace(elsewhere.clone());
        node.answer(&no_log(), 2).await;
        let (stream, response) = client.response().await;
        let unprepared = ErrorKind::Unprepared {
            id: Bytes::from_static(b"insert"),
        };
        assert_eq!(stream, 2);
        assert!(
            matches!(&response, Response::Error(error) if error.kind == unprepared),
            "{response:?}"
        );
        node.receives_nothing().await;
        // The driver prepares again and executes once more, as drivers do upon UNPREPARED.
        client.ask(&prepare(text), 1).await;
        node.request().await;
        node.answer(&prepared_as(b"insert"), 1).await;
        client.response().await;
        client.ask(request, 2).await;
        passes(&mut client, &mut node, request, 2).await;
    }
}

#[tokio::test]
async fn a_mistake_of_the_client_is_answered_in_the_nodes_words() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    log_is_prepared(&mut client, &mut node).await;
    client.ask(&query(INSERT), 5).await;
    assert_eq!(node.batch(2).await, 5);
    let refusal = Response::Error(CqlError::invalid("Invalid STRING constant (tea)"));
    node.answer(&refusal, 5).await;
    assert_eq!(client.response().await, (5, refusal));
    node.receives_nothing().await;
}

#[tokio::test]
async fn a_write_that_may_have_happened_is_not_retried() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    log_is_prepared(&mut client, &mut node).await;
    client.ask(&query(INSERT), 5).await;
    assert_eq!(node.batch(2).await, 5);
    shared.catalog.replace(IndexCatalogSnapshot::default());
    let unknown = Response::Error(CqlError::server("who knows"));
    node.answer(&unknown, 5).await;
    assert_eq!(client.response().await, (5, unknown));
    node.receives_nothing().await;
}

#[tokio::test]
async fn a_write_is_retried_twice_at_most() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    client.ask(&query(INSERT), 5).await;
    for id in 1..=3 {
        let request = node.request().await;
        assert!(request.0 == 5 && is_prepare(&request), "{request:?}");
        shared.catalog.replace(recreated(id));
        node.answer(&no_log(), 5).await;
    }
    assert_eq!(client.response().await, (5, no_log()));
    node.receives_nothing().await;
    client.ask(&query(INSERT), 5).await;
    assert!(
        is_prepare(&node.request().await),
        "the stream is free again"
    );
}

#[tokio::test]
async fn a_use_waits_for_a_write_that_is_retried() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    client.ask(&query(INSERT), 5).await;
    client.ask(&query("USE other"), 6).await;
    assert!(is_prepare(&node.request().await));
    shared.catalog.replace(IndexCatalogSnapshot::default());
    node.answer(&no_log(), 5).await;
    passes(&mut client, &mut node, &query(INSERT), 5).await;
    assert_eq!(node.request().await, (6, query("USE other")));
}

#[tokio::test]
async fn a_client_that_sends_no_more_requests_has_its_write_retried() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    // The request under way keeps the way to the client open.
    client.ask(&query(INSERT), 5).await;
    assert!(is_prepare(&node.request().await));
    shared.catalog.replace(IndexCatalogSnapshot::default());
    node.answer(&no_log(), 5).await;
    assert_eq!(node.request().await, (5, query(INSERT)));
    client.socket.shutdown().await.unwrap();
    node.answer(&Response::Void, 5).await;
    assert_eq!(client.response().await, (5, Response::Void));
    assert_eq!(rest(client.socket).await, b"");
}

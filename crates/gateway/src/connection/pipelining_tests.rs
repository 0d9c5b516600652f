//! Tests of pipelining: requests that are sent before earlier ones are answered. No answer may be
//! taken for that of another request.

use bytes::{Bytes, BytesMut};
use cql::error::ErrorKind;
use cql::wire::{BoundValue, Request, Response};
use tokio::io::AsyncWriteExt;

use super::test_connection::{
    FramedPeer, SharedFixture, execute, is_prepare, prepare, prepared_as, query, rest, snapshot,
};
use crate::statement::ClassifiedStatement;

const INSERT: &str = "INSERT INTO products (id) VALUES (?)";
const QUALIFIED: &str = "INSERT INTO shop.products (id) VALUES (?)";

/// Sends several requests in one write.
async fn ask_together(client: &mut FramedPeer, requests: &[(i16, Request)]) {
    let mut out = BytesMut::new();
    for (stream, request) in requests {
        request.encode(*stream, None, &mut out);
    }
    client.socket.write_all(&out).await.unwrap();
}

/// Receives the error that the stream is in use.
async fn is_refused(client: &mut FramedPeer, stream: i16) {
    let (answered, response) = client.response().await;
    assert_eq!(answered, stream);
    assert!(
        matches!(&response, Response::Error(error) if error.kind == ErrorKind::ProtocolError),
        "{response:?}"
    );
}

#[tokio::test]
async fn an_answer_is_remembered_for_the_request_that_it_answers() {
    // The last stream is one of those that the gateway may use itself.
    for stream in [5, -3, i16::MAX] {
        let shared = SharedFixture::new(snapshot());
        let (mut client, mut node) = shared.connect();
        let select = prepare("SELECT name FROM shop.products");
        let requests = [(stream, prepare(QUALIFIED)), (stream, select)];
        ask_together(&mut client, &requests).await;
        assert_eq!(node.request().await, requests[0]);
        is_refused(&mut client, stream).await;
        node.answer(&prepared_as(b"insert"), stream).await;
        let answer = client.response().await;
        assert_eq!(answer, (stream, prepared_as(b"insert")));
        assert_eq!(rest(client.socket).await, b"", "the connection ends");
        let statement = shared.prepared.get(b"insert", &shared.catalog.snapshot());
        assert!(
            matches!(statement, Some(ClassifiedStatement::Write(_))),
            "{statement:?}"
        );
    }
}

#[tokio::test]
async fn the_answer_to_a_client_is_not_taken_for_one_to_a_write_under_way() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    let write = query("INSERT INTO shop.products (id) VALUES (1)");
    let other = prepare("SELECT name FROM shop.products");
    ask_together(&mut client, &[(5, other.clone()), (5, write.clone())]).await;
    assert_eq!(node.request().await, (5, other));
    is_refused(&mut client, 5).await;
    node.answer(&prepared_as(b"other"), 5).await;
    assert_eq!(client.response().await, (5, prepared_as(b"other")));
    assert_eq!(rest(client.socket).await, b"");
    // The id `other` was not taken for that of the INSERT of log rows: the node gets a PREPARE of
    // that INSERT.
    let (mut client, mut node) = shared.connect();
    client.ask(&write, 1).await;
    assert!(is_prepare(&node.request().await));
}

#[tokio::test]
async fn a_stream_is_free_again_once_it_is_answered() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    for _ in 0..3 {
        let select = query("SELECT name FROM shop.products");
        client.ask(&select, 5).await;
        assert_eq!(node.request().await, (5, select));
        node.answer(&Response::Void, 5).await;
        assert_eq!(client.response().await, (5, Response::Void));
    }
}

#[tokio::test]
async fn a_request_behind_a_use_is_understood_in_its_keyspace() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    let in_use = (1, query("USE shop"));
    let requests = [
        in_use.clone(),
        (2, prepare(INSERT)),
        (3, query("INSERT INTO products (id) VALUES (1)")),
    ];
    ask_together(&mut client, &requests).await;
    assert_eq!(node.request().await, in_use);
    node.receives_nothing().await;
    let keyspace = Response::SetKeyspace("shop".to_owned());
    node.answer(&keyspace, 1).await;
    assert_eq!(client.response().await, (1, keyspace));
    assert_eq!(node.request().await, requests[1]);
    node.answer(&prepared_as(b"insert"), 2).await;
    client.response().await;
    let of_log = node.request().await;
    assert!(of_log.0 == 3 && is_prepare(&of_log), "{of_log:?}");
    node.answer(&prepared_as(b"log"), 3).await;
    assert_eq!(node.batch(2).await, 3);

    let key = BoundValue::Value(Bytes::from_static(&[0, 0, 0, 7]));
    client.ask(&execute(b"insert", vec![key]), 4).await;
    assert_eq!(node.batch(2).await, 4);
}

#[tokio::test]
async fn a_use_waits_for_the_requests_before_it() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    let keyspace = |name: &str| Response::SetKeyspace(name.to_owned());
    // The USE is executed by its id, too.
    client.ask(&prepare("USE other"), 1).await;
    node.request().await;
    node.answer(&prepared_as(b"use"), 1).await;
    client.response().await;
    client.ask(&query("USE shop"), 1).await;
    node.request().await;
    node.answer(&keyspace("shop"), 1).await;
    client.response().await;

    let write = query("INSERT INTO products (id) VALUES (1) IF NOT EXISTS");
    let use_other = execute(b"use", vec![]);
    ask_together(&mut client, &[(1, write.clone()), (2, use_other.clone())]).await;
    assert!(is_prepare(&node.request().await));
    node.answer(&prepared_as(b"log"), 1).await;
    node.batch(1).await;
    node.answer(&Response::Void, 1).await;
    // The write is carried out in the keyspace that it was understood in.
    assert_eq!(node.request().await, (1, write));
    node.receives_nothing().await;
    node.answer(&Response::Void, 1).await;
    node.batch(1).await;
    node.answer(&Response::Void, 1).await;
    assert_eq!(client.response().await, (1, Response::Void));
    assert_eq!(node.request().await, (2, use_other));
    node.answer(&keyspace("other"), 2).await;
    assert_eq!(client.response().await, (2, keyspace("other")));
    // A USE that the node refuses changes nothing and holds up nothing.
    client.ask(&query("USE nowhere"), 1).await;
    node.request().await;
    let refusal = Response::Error(cql::error::CqlError::invalid("no such keyspace"));
    node.answer(&refusal, 1).await;
    assert_eq!(client.response().await, (1, refusal));
    let insert = query("INSERT INTO products (id) VALUES (1)");
    client.ask(&insert, 2).await;
    assert_eq!(node.request().await, (2, insert));
}

//! Requests on an open connection.

use std::sync::atomic::Ordering;

use cql::error::ErrorKind;
use cql::wire::{FrameFlags, Response};

use crate::client::{Client, echoed, error, raw_frame};
use crate::echo::{start, until};

#[tokio::test]
async fn a_slow_request_holds_nobody_up() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    client.query(1, "wait").await;
    until("the first request", || {
        server.echo.waiting.load(Ordering::SeqCst) == 1
    })
    .await;
    client.query(2, "quick").await;
    let (context, response) = client.receive().await;
    assert_eq!((context.stream, response), (2, echoed("quick")));
    server.echo.release.add_permits(1);
    let (context, response) = client.receive().await;
    assert_eq!((context.stream, response), (1, echoed("wait")));
}

#[tokio::test]
async fn many_streams_at_once_are_all_answered() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    let mut waiting = std::collections::HashSet::new();
    for stream in 0..1000 {
        client.query(stream, &format!("text {stream}")).await;
        waiting.insert(stream);
    }
    while !waiting.is_empty() {
        let (context, response) = client.receive().await;
        assert!(waiting.remove(&context.stream));
        assert_eq!(response, echoed(&format!("text {}", context.stream)));
    }
}

#[tokio::test]
async fn a_bug_fails_its_request_and_no_other() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    client.query(1, "wait").await;
    let error = error(client.ask("panic").await);
    assert_eq!(error.kind, ErrorKind::ServerError);
    assert!(error.message.contains("as asked"), "{error}");
    server.echo.release.add_permits(1);
    assert_eq!(client.receive().await.1, echoed("wait"));
    client.assert_alive().await;
    assert_eq!(server.server.counters()[0].1.panics, 1);
}

#[tokio::test]
async fn warnings_come_with_the_answer() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    client.query(1, "warn").await;
    let (context, response) = client.receive().await;
    assert_eq!(response, Response::Void);
    assert_eq!(context.warnings, ["careful"]);
}

#[tokio::test]
async fn a_service_without_traces_answers_a_request_for_one() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    let mut body = vec![0, 0, 0, 2];
    body.extend_from_slice(b"hi\x00\x01\x00");
    let frame = raw_frame(4, FrameFlags::TRACING.0, 4, 7, &body);
    client.send_bytes(&frame).await;
    let (context, response) = client.receive().await;
    assert_eq!(response, echoed("hi"));
    assert_eq!(context.tracing_id, None);
}

#[tokio::test]
async fn a_custom_payload_is_passed_over() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    // One entry of the payload: "k" -> 01.
    let mut body = vec![0, 1, 0, 1, b'k', 0, 0, 0, 1, 1];
    body.extend_from_slice(&[0, 0, 0, 2]);
    body.extend_from_slice(b"hi\x00\x01\x00");
    let frame = raw_frame(4, FrameFlags::CUSTOM_PAYLOAD.0, 4, 7, &body);
    client.send_bytes(&frame).await;
    assert_eq!(client.receive().await.1, echoed("hi"));
}

#[tokio::test]
async fn a_malformed_body_is_refused_and_the_connection_goes_on() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    for (flags, opcode, body) in [
        // QUERY with a text longer than the frame.
        (0, 7, &[0, 0, 0, 9, b'x'][..]),
        // QUERY without anything.
        (0, 7, &[]),
        // EXECUTE with half an id.
        (0, 10, &[0, 16, 1, 2]),
        // REGISTER for an event that does not exist.
        (0, 11, b"\x00\x01\x00\x02NO"),
        // A frame marked as compressed although no compression was agreed on.
        (1, 7, &[0, 0, 0, 1, b'x']),
        // An unknown opcode.
        (0, 0x7f, b"whatever"),
        // The opcode of a response.
        (0, 0x08, b"whatever"),
    ] {
        client
            .send_bytes(&raw_frame(4, flags, 5, opcode, body))
            .await;
        let (context, response) = client.receive().await;
        assert_eq!(context.stream, 5);
        let error = error(response);
        assert_eq!(error.kind, ErrorKind::ProtocolError, "{opcode} {body:?}");
    }
    client.assert_alive().await;
}

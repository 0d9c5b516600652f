//! Tests of the ends of connections, of either side and of the gateway.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncReadExt;

use crate::peer::{Peer, Setup, query, raw_frame, request_bytes, soon};

const VOID: &[u8] = b"\0\0\0\x01";

/// Sends a request and has the node receive it.
async fn ask(client: &mut Peer, node: &mut Peer, stream: i16) {
    let request = request_bytes(&query("SELECT 1"), stream, None);
    client.send(&request).await;
    assert_eq!(node.exactly(request.len()).await, request);
}

fn answer(stream: i16) -> Bytes {
    raw_frame(0x84, 0, stream, 0x08, VOID).into()
}

#[tokio::test]
async fn when_the_node_closes_the_client_gets_what_was_sent_and_is_closed() {
    let setup = Setup::new().await;
    for sent in [answer(1).to_vec(), answer(1)[..11].to_vec(), Vec::new()] {
        let (mut client, mut node) = setup.connect().await;
        ask(&mut client, &mut node, 1).await;
        node.send(&sent).await;
        drop(node);
        assert_eq!(client.rest().await, sent);
    }
}

#[tokio::test]
async fn when_the_client_is_gone_the_node_is_closed() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    ask(&mut client, &mut node, 1).await;
    client.socket.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(node.rest().await, "");
}

#[tokio::test]
async fn a_client_that_asks_nothing_more_still_gets_its_answers() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    ask(&mut client, &mut node, 1).await;
    ask(&mut client, &mut node, 2).await;
    client.finish().await;
    node.send(&answer(2)).await;
    assert_eq!(client.exactly(answer(2).len()).await, answer(2));
    let mut byte = [0];
    let read = node.socket.read(&mut byte);
    let read = tokio::time::timeout(Duration::from_millis(100), read).await;
    assert!(read.is_err(), "the node must not be told yet");
    node.send(&answer(1)).await;
    assert_eq!(client.rest().await, answer(1));
    assert_eq!(node.rest().await, "");
}

#[tokio::test]
async fn answers_that_never_come_are_not_waited_for_forever() {
    let setup = Setup::with(|options| options.drain_timeout = Duration::from_millis(100)).await;
    let (mut client, mut node) = setup.connect().await;
    ask(&mut client, &mut node, 1).await;
    client.finish().await;
    assert_eq!(client.rest().await, "");
    assert_eq!(node.rest().await, "");
}

#[tokio::test]
async fn a_refused_request_is_told_after_the_answers_in_flight() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    ask(&mut client, &mut node, 1).await;
    client.send(&raw_frame(6, 0, 2, 0x05, b"")).await;
    // Drivers read an error about the version on stream 0 alone.
    assert_eq!(client.response(None).await.0, 0);
    node.send(&answer(1)).await;
    assert_eq!(client.rest().await, answer(1));
}

#[tokio::test]
async fn nonsense_from_the_node_closes_both() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    ask(&mut client, &mut node, 1).await;
    node.send(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    assert_eq!(client.rest().await, "");
    node.rest().await;
}

#[tokio::test]
async fn a_stop_waits_for_answers_and_takes_no_more_requests() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    let (mut idle, _idle_node) = setup.connect().await;
    ask(&mut client, &mut node, 1).await;
    let stopping = setup.gateway.stop(Duration::from_secs(10));
    let conversation = async {
        assert_eq!(idle.rest().await, "", "nothing is due here");
        drop(idle);
        node.send(&answer(1)).await;
        assert_eq!(client.rest().await, answer(1));
        drop(client);
    };
    let (in_time, ()) = soon(async { tokio::join!(stopping, conversation) }).await;
    assert!(in_time);
}

#[tokio::test]
async fn a_stop_does_not_wait_longer_than_its_grace() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    ask(&mut client, &mut node, 1).await;
    assert!(!soon(setup.gateway.stop(Duration::from_millis(100))).await);
    assert_eq!(client.rest().await, "");
    assert_eq!(node.rest().await, "");
}

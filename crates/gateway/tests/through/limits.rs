//! Tests of requests that are too large, of too many connections, and of clients that are too slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cql::error::ErrorKind;
use cql::wire::{Compression, Request, Response, Startup};
use test_support::steady;
use tokio::io::AsyncWriteExt;

use crate::peer::{Peer, Setup, query, raw_frame, request_bytes, soon};

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_and_the_next_one_passes() {
    let setup = Setup::with(|options| options.frame_body_max = 1_000).await;
    let (mut client, mut node) = setup.connect().await;
    let before = request_bytes(&query("SELECT 1"), 1, None);
    client.send(&before).await;
    client.send(&raw_frame(4, 0, 2, 0x0D, &[0; 100_000])).await;
    let after = request_bytes(&query("SELECT 3"), 3, None);
    client.send(&after).await;
    let (stream, response) = client.response(None).await;
    assert_eq!(stream, 2);
    let Response::Error(error) = response else {
        panic!("{response:?}");
    };
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.message.contains("too big"), "{error}");
    let passed = [before, after].concat();
    assert_eq!(node.exactly(passed.len()).await, passed);
}

#[tokio::test]
async fn a_request_that_is_too_large_when_decompressed_is_refused() {
    let setup = Setup::with(|options| options.frame_body_max = 1_000).await;
    let (mut client, _node) = setup.connect_compressed(Compression::Lz4).await;
    let statement = "x".repeat(2_000);
    client
        .ask(&query(&statement), 4, Some(Compression::Lz4))
        .await;
    let (stream, response) = client.response(Some(Compression::Lz4)).await;
    assert_eq!(stream, 4);
    assert!(
        matches!(&response, Response::Error(error) if error.message.contains("when decompressed")),
        "{response:?}"
    );
}

#[tokio::test]
async fn a_client_not_let_in_yet_sends_little() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    // The client sends an AUTH_RESPONSE. Then the node sends AUTH_SUCCESS, and the client a BATCH.
    client.send(&raw_frame(4, 0, 1, 0x0F, &[0; 300_000])).await;
    let (stream, response) = client.response(None).await;
    assert_eq!(stream, 1);
    assert!(
        matches!(&response, Response::Error(error) if error.message.contains("too big")),
        "{response:?}"
    );
    let success = raw_frame(0x84, 0, 2, 0x10, &[0xFF; 4]);
    node.send(&success).await;
    client.exactly(success.len()).await;
    let batch = raw_frame(4, 0, 3, 0x0D, &[0; 300_000]);
    let ((), passed) = tokio::join!(client.send(&batch), node.exactly(batch.len()));
    assert!(passed == batch, "{} bytes", passed.len());
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() {
    let setup = Setup::with(|options| options.connections_max = 1).await;
    let (mut first, mut node) = setup.connect().await;
    let mut second = Peer::connect(setup.gateway.address()).await;
    assert_eq!(second.rest().await, "");
    let request = raw_frame(4, 0, 1, 0x05, b"");
    first.send(&request).await;
    assert_eq!(node.exactly(request.len()).await, request);
}

#[tokio::test]
async fn only_connections_that_were_not_let_in_give_way() {
    let setup = Setup::with(|options| options.connections_max = 2).await;
    let (mut first, mut node) = setup.connect().await;
    let (mut stranger, mut node_of_stranger) = setup.connect_unauthenticated().await;
    let (mut second, mut node_of_second) = setup.connect().await;
    assert_eq!(stranger.rest().await, "");
    assert_eq!(node_of_stranger.rest().await, "");
    let request = raw_frame(4, 0, 1, 0x05, b"");
    first.send(&request).await;
    assert_eq!(node.exactly(request.len()).await, request);
    second.send(&request).await;
    assert_eq!(node_of_second.exactly(request.len()).await, request);
}

/// Waits until a client that connects now is closed, as it says nothing. The time of any client
/// that connected before it is over by then.
async fn login_has_timed_out(setup: &Setup) {
    let (mut stranger, _node) = setup.connect_unauthenticated().await;
    assert_eq!(stranger.rest().await, "");
}

#[tokio::test]
async fn a_client_that_does_not_log_in_is_closed() {
    let setup = Setup::with(|options| options.handshake_timeout = Duration::from_secs(2)).await;
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    client.send(&[4, 0]).await;
    assert_eq!(client.rest().await, "");
    assert_eq!(node.rest().await, "");

    // A client may wait for the node for longer than the timeout. But it must log in afterwards.
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    let request = raw_frame(4, 0, 1, 0x05, b"");
    client.send(&request).await;
    node.exactly(request.len()).await;
    login_has_timed_out(&setup).await;
    node.answer(&Response::Supported(Vec::new()), 1, None).await;
    let told = (1, Response::Supported(Vec::new()));
    assert_eq!(client.response(None).await, told);
    assert_eq!(client.rest().await, "");

    // A client that has logged in may be silent for as long as it likes.
    let (mut client, mut node) = setup.connect().await;
    login_has_timed_out(&setup).await;
    client.send(&request).await;
    assert_eq!(node.exactly(request.len()).await, request);
}

#[tokio::test]
async fn a_startup_that_the_node_does_not_answer_ends_its_connection() {
    let setup = Setup::with(|options| options.handshake_timeout = Duration::from_secs(2)).await;
    let startup = request_bytes(&Request::Startup(Startup::default()), 1, None);
    let options = request_bytes(&Request::Options, 2, None);
    // The node leaves the STARTUP unanswered, or a request before it, for which it waits.
    for before in [&options[..0], &options] {
        let (mut client, mut node) = setup.connect_unauthenticated().await;
        client.send(&[before, &startup].concat()).await;
        let first = if before.is_empty() {
            &startup
        } else {
            &options
        };
        assert_eq!(&node.exactly(first.len()).await, first);
        assert_eq!(client.rest().await, "");
    }
}

#[tokio::test]
async fn a_silent_client_is_closed() {
    let setup = Setup::with(|options| options.handshake_timeout = Duration::from_millis(200)).await;
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    assert_eq!(client.rest().await, "");
    assert_eq!(node.rest().await, "");
}

#[tokio::test]
async fn a_request_that_does_not_become_whole_ends_its_connection() {
    let setup = Setup::with(|options| options.frame_timeout = Duration::from_millis(200)).await;
    let (mut client, mut node) = setup.connect().await;
    let request = request_bytes(&query("SELECT 1"), 1, None);
    client.send(&request[..request.len() - 1]).await;
    assert_eq!(client.rest().await, "");
    assert_eq!(node.rest().await, "");
    // A client that is silent between two requests stays connected, for longer than another may
    // take for a request.
    let (mut client, mut node) = setup.connect().await;
    client.send(&request).await;
    assert_eq!(node.exactly(request.len()).await, request);
    let (mut slow, _slow_node) = setup.connect().await;
    slow.send(&request[..request.len() - 1]).await;
    assert_eq!(slow.rest().await, "");
    client
        .send(&request_bytes(&query("SELECT 1"), 2, None))
        .await;
    node.exactly(request.len()).await;
}

#[tokio::test]
async fn frames_that_strangers_announce_take_nothing_from_others() {
    let setup = Setup::new().await;
    let mut strangers = Vec::new();
    for _ in 0..8 {
        let (mut client, node) = setup.connect_unauthenticated().await;
        // The header announces OPTIONS of 256 MiB. It is refused at once, before any of its body
        // comes.
        client.send(&[4, 0, 0, 1, 0x05, 0x10, 0, 0, 0]).await;
        let (_, response) = client.response(None).await;
        assert!(matches!(response, Response::Error(_)), "{response:?}");
        strangers.push((client, node));
    }
    let (mut client, mut node) = setup.connect().await;
    let large = raw_frame(4, 0, 1, 0x0D, &vec![0; 8 << 20]);
    let ((), passed) = tokio::join!(client.send(&large), node.exactly(large.len()));
    assert!(passed == large, "{} bytes", passed.len());
}

#[tokio::test]
async fn unread_answers_stay_with_the_node() {
    const ANSWERS: usize = 512;
    const BODY: usize = 256 << 10;
    let setup = Setup::new().await;
    let (mut client, node) = setup.connect().await;
    let answer = raw_frame(0x84, 0, 5, 0x08, &vec![7; BODY]);
    let sent = Arc::new(AtomicUsize::new(0));
    let sending = tokio::spawn({
        let (sent, answer, mut node) = (sent.clone(), answer.clone(), node);
        async move {
            for _ in 0..ANSWERS {
                node.socket.write_all(&answer).await.unwrap();
                sent.fetch_add(1, Ordering::SeqCst);
            }
            node
        }
    });
    // Waits until no more answers are sent: sockets buffer some megabytes, and the gateway less
    // than one. A pause of the machine may look like the end, and then less is tested.
    let period = Duration::from_millis(300);
    let before = steady("answers", period, async || sent.load(Ordering::SeqCst)).await;
    assert!(
        before < ANSWERS / 2,
        "{before} of {ANSWERS} answers were taken"
    );
    for _ in 0..ANSWERS {
        let came = client.exactly(answer.len()).await;
        assert!(came[..9] == answer[..9], "an answer is broken");
    }
    soon(sending).await.unwrap();
}

//! Tests that frames which the gateway does not change arrive byte for byte.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use crate::peer::{Peer, Setup, query, raw_frame, request_bytes, soon};

/// Sends bytes in pieces of changing sizes, so that frames are cut at any place.
async fn send_in_pieces(peer: &mut Peer, bytes: &[u8]) {
    let mut rest = bytes;
    for size in [1, 2, 7, 30, 300, 5_000, 50_000].into_iter().cycle() {
        if rest.is_empty() {
            return;
        }
        let (piece, after) = rest.split_at(size.min(rest.len()));
        peer.send(piece).await;
        tokio::task::yield_now().await;
        rest = after;
    }
}

fn body(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + seed * 7) as u8).collect()
}

#[tokio::test]
async fn requests_arrive_as_they_were_sent() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    let mut sent = Vec::new();
    // OPTIONS, AUTH_RESPONSE, REGISTER, BATCH: with every flag of version 4 except for compression.
    for (number, opcode) in [0x05, 0x0F, 0x0B, 0x0D].into_iter().enumerate() {
        for (length, flags) in [(0, 0x00), (1, 0x02), (300, 0x04), (70_000, 0x16)] {
            let stream = (number * 1_000 + length % 999) as i16;
            sent.extend(raw_frame(4, flags, stream, opcode, &body(length, number)));
        }
    }
    sent.extend(request_bytes(&query("SELECT 1"), -7, None));
    sent.extend(request_bytes(
        &query(&format!("SELECT '{}'", "x".repeat(1 << 20))),
        8,
        None,
    ));
    let sending = send_in_pieces(&mut client, &sent);
    let ((), arrived) = tokio::join!(sending, node.exactly(sent.len()));
    assert!(arrived == sent, "{} bytes", arrived.len());
}

#[tokio::test]
async fn responses_arrive_as_they_were_sent() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    let mut sent = Vec::new();
    // ERROR, READY, AUTHENTICATE, RESULT, AUTH_CHALLENGE, AUTH_SUCCESS.
    for (number, opcode) in [0x00, 0x02, 0x03, 0x08, 0x0E, 0x10].into_iter().enumerate() {
        for (length, flags) in [(0, 0x00), (1, 0x01), (300, 0x0E), (3 << 20, 0x1F)] {
            let stream = (number * 1_000 + length % 1_000) as i16;
            sent.extend(raw_frame(
                0x84,
                flags,
                stream,
                opcode,
                &body(length, number),
            ));
        }
    }
    let sending = send_in_pieces(&mut node, &sent);
    let ((), arrived) = tokio::join!(sending, client.exactly(sent.len()));
    assert!(arrived == sent, "{} bytes", arrived.len());
}

#[tokio::test]
async fn a_response_is_on_its_way_before_its_end_is_here() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    let response = raw_frame(0x84, 0, 1, 0x08, &body(1_000_000, 1));
    node.send(&response[..500_000]).await;
    assert_eq!(client.exactly(500_000).await, &response[..500_000]);
    node.send(&response[500_000..]).await;
    assert_eq!(client.exactly(500_009).await, &response[500_000..]);
}

/// Sends bytes that the other end does not read. Returns the number of bytes that were taken.
async fn taken_unread(sender: &mut Peer, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while taken < bytes.len() {
        let write = sender.socket.write(&bytes[taken..]);
        match tokio::time::timeout(Duration::from_millis(300), write).await {
            Ok(written) => taken += written.unwrap(),
            Err(_) => break,
        }
    }
    taken
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_sent_more() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    // The response is larger than the buffers of all sockets together.
    let length = 64 << 20;
    let response = Bytes::from(raw_frame(0x84, 0, 1, 0x08, &body(length, 1)));
    let taken = taken_unread(&mut node, &response).await;
    assert!(taken < response.len() / 2, "{taken} bytes");
    // The other direction still passes frames.
    let request = raw_frame(4, 0, 1, 0x05, b"");
    client.send(&request).await;
    assert_eq!(node.exactly(request.len()).await, request);
    let sending = async {
        soon(node.socket.write_all(&response[taken..]))
            .await
            .unwrap();
    };
    let ((), arrived) = tokio::join!(sending, client.exactly(response.len()));
    assert!(arrived == response, "{} bytes", arrived.len());
}

#[tokio::test]
async fn a_client_that_is_not_read_sends_no_more() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    let frame = |stream| raw_frame(4, 0, stream, 0x0D, &body(1 << 20, 3));
    let requests: Vec<u8> = (1..=64).flat_map(frame).collect();
    let taken = taken_unread(&mut client, &requests).await;
    assert!(taken < requests.len() / 2, "{taken} bytes");
    let response = raw_frame(0x84, 0, 1, 0x08, b"\0\0\0\x01");
    node.send(&response).await;
    assert_eq!(client.exactly(response.len()).await, response);
}

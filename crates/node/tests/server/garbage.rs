//! Whatever bytes come, the server neither panics nor hangs, and goes on serving all other clients.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::client::{Client, raw_frame};
use crate::echo::start;

/// Frames that are almost right: a v4 header with the right length, and a body of any bytes.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let frame = (
        any::<u8>(),
        any::<i16>(),
        prop_oneof![0u8..=0x11, any::<u8>()],
        prop::collection::vec(any::<u8>(), 0..80),
    );
    prop::collection::vec(frame, 1..8).prop_map(|frames| {
        let mut out = Vec::new();
        for (flags, stream, opcode, body) in frames {
            out.extend_from_slice(&raw_frame(4, flags, stream, opcode, &body));
        }
        out
    })
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..200)
}

#[test]
fn garbage_is_answered_or_hung_up_on() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(start(|_| {}));
    let mut runner = TestRunner::new(Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    });
    let bytes = prop_oneof![3 => frames(), 1 => noise()];
    runner
        .run(&(bytes, any::<bool>()), |(bytes, opened)| {
            runtime.block_on(async {
                let mut client = Client::connect(server.address).await;
                if opened {
                    client.start(None).await;
                }
                let _ = client.socket.write_all(&bytes).await;
                let _ = client.socket.shutdown().await;
                let mut answers = Vec::new();
                // The server answers the frames that made sense, then the connection ends.
                let end = timeout(
                    Duration::from_secs(10),
                    client.socket.read_to_end(&mut answers),
                );
                prop_assert!(end.await.is_ok(), "the server hangs");
                Ok(())
            })
        })
        .unwrap();
    runtime.block_on(async {
        Client::open(server.address).await.assert_alive().await;
        crate::echo::until("all connections to end", || {
            server.server.counters()[0].1.connections_open == 0
        })
        .await;
    });
    assert_eq!(server.server.counters()[0].1.panics, 0);
}

#[tokio::test]
async fn honest_frames_of_garbage_leave_the_connection_open() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    // QUERY, PREPARE, EXECUTE, BATCH and REGISTER with bodies that mean nothing.
    for opcode in [7u8, 9, 10, 13, 11] {
        for length in [0usize, 1, 2, 3, 5, 17, 200] {
            let body: Vec<u8> = (0..length).map(|n| 0x91 ^ n as u8).collect();
            client.send_bytes(&raw_frame(4, 0, 1, opcode, &body)).await;
            client.receive().await;
        }
    }
    client.assert_alive().await;
}

//! The memory that clients may hold together, whatever they leave unread or unfinished.

use std::time::Duration;

use bytes::BytesMut;
use client_memory::MemoryBudget;
use cql::error::ErrorKind;
use cql::wire::{Compression, Response};
use test_support::eventually;
use tokio::time::timeout;

use crate::client::{Client, echoed, error, query, raw_frame};
use crate::{echo, real};

const MIB: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// The beginning of a frame that announces this many bytes of body, with the bytes sent so far.
fn begun(opcode: u8, announced: u32, sent: usize) -> BytesMut {
    let mut frame = raw_frame(4, 0, 1, opcode, &vec![b'x'; sent]);
    frame[5..9].copy_from_slice(&announced.to_be_bytes());
    frame
}

#[tokio::test]
async fn answers_that_nobody_reads_are_refused_before_they_fill_the_memory() {
    let memory = MemoryBudget::new(16 * MIB);
    let (node, mut client) = real::start_with_memory(memory.clone()).await;
    client
        .run("CREATE TABLE k.t (p int, c int, b blob, PRIMARY KEY (p, c))")
        .await;
    let blob = "00".repeat(100_000);
    for c in 0..40 {
        let text = format!("INSERT INTO k.t (p, c, b) VALUES (1, {c}, 0x{blob})");
        client.run(&text).await;
    }
    let _ = memory.take_peak();
    // Four clients ask for 25 answers of 4 MB each, 400 MB together, and read nothing.
    let mut deaf = Vec::new();
    for _ in 0..4 {
        deaf.push(Client::open(node.address).await);
    }
    let queries = |streams: std::ops::Range<i16>| {
        let mut out = BytesMut::new();
        for stream in streams {
            query("SELECT * FROM k.t").encode(stream, None, &mut out);
        }
        out
    };
    // The first asks for one at a time until its socket is full, as answers that are made at once
    // may all be refused. All the while another client gets its answers.
    let mut asked = 0;
    eventually("unread answers are held", async || {
        let rows = client.rows("SELECT c FROM k.t WHERE p = 1 AND c = 7").await;
        assert_eq!(rows.len(), 1);
        let is_held = memory.used() >= 3 * MIB;
        if !is_held && asked < 25 {
            deaf[0].send_bytes(&queries(asked..asked + 1)).await;
            asked += 1;
        }
        is_held
    })
    .await;
    for (client, from) in deaf.iter_mut().zip([asked, 0, 0, 0]) {
        client.send_bytes(&queries(from..25)).await;
    }
    for _ in 0..20 {
        let rows = client.rows("SELECT c FROM k.t WHERE p = 1 AND c = 7").await;
        assert_eq!(rows.len(), 1);
    }
    let peak = memory.take_peak();
    assert!((3 * MIB..=16 * MIB).contains(&peak), "{peak}");
    // A client that reads gets every answer for which there was memory, and Overloaded for the
    // rest.
    let mut whole = 0;
    for client in &mut deaf {
        for _ in 0..25 {
            match timeout(PATIENCE, client.receive()).await.unwrap().1 {
                Response::Rows(rows) => {
                    assert_eq!(rows.row_count(), 40);
                    whole += 1;
                }
                refused => assert_eq!(error(refused).kind, ErrorKind::Overloaded),
            }
        }
    }
    assert!(whole >= 1, "{whole}");
    drop((deaf, client));
    echo::until("all memory is free", || memory.used() == 0).await;
}

#[tokio::test]
async fn a_frame_is_charged_for_what_came_of_it_and_not_for_what_it_announces() {
    let memory = MemoryBudget::new(16 * MIB);
    let server = echo::start(|options| options.memory = memory.clone()).await;
    let mut strangers = Vec::new();
    for opcode in [1, 7] {
        let mut stranger = Client::connect(server.address).await;
        stranger.send_bytes(&begun(opcode, 256 << 20, 9)).await;
        strangers.push(stranger);
    }
    let mut known = Vec::new();
    for _ in 0..10 {
        let mut client = Client::open(server.address).await;
        client.send_bytes(&begun(7, 7 << 20, 100 << 10)).await;
        known.push(client);
    }
    let mut client = Client::open(server.address).await;
    for bytes in [100, 10 << 10, 100 << 10, MIB] {
        let text = format!("warn {}", "x".repeat(bytes));
        let answer = timeout(PATIENCE, client.ask(&text)).await;
        assert_eq!(answer.expect("nobody is held up"), Response::Void);
    }
    assert!(memory.used() < 4 * MIB, "{memory:?}");
}

/// A segment that is small as it comes, and large when it is decompressed.
#[tokio::test]
async fn frames_behind_another_in_a_segment_wait_for_memory() {
    const KIB: usize = 1 << 10;
    let memory = MemoryBudget::new(512 * KIB);
    let server = echo::start(|options| options.memory = memory.clone()).await;
    let mut client = Client::open_v5(server.address, Some(Compression::Lz4)).await;
    let other = memory.client().unwrap();
    let mut held = other.charge();
    held.resize(240 * KIB).unwrap();
    let large = query(&format!("warn {}", "x".repeat(100 * KIB)));
    client
        .send_together(&[(1, &query("first")), (2, &large)])
        .await;
    let (context, response) = client.receive().await;
    assert_eq!((context.stream, response), (1, echoed("first")));
    drop(held);
    let (context, response) = client.receive().await;
    assert_eq!((context.stream, response), (2, Response::Void));
}

#[tokio::test]
async fn before_startup_only_small_frames_are_taken() {
    let server = echo::start(|_| {}).await;
    let mut stranger = Client::connect(server.address).await;
    stranger.send_bytes(&begun(1, 17 << 10, 0)).await;
    let refused = error(stranger.receive().await.1);
    assert!(refused.message.contains("too big"), "{refused}");
}

#[tokio::test]
async fn a_frame_that_never_comes_to_its_end_is_given_up() {
    let server = echo::start(|options| {
        options.connection.frame_timeout = Duration::from_millis(300);
    })
    .await;
    let mut slow = Client::open(server.address).await;
    slow.send_bytes(&begun(7, 10_000, 9)).await;
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    let trickle = async {
        loop {
            pace.tick().await;
            use tokio::io::AsyncWriteExt;
            if slow.socket.write_all(b"x").await.is_err() {
                return;
            }
        }
    };
    timeout(PATIENCE, trickle).await.expect("it is closed");
}

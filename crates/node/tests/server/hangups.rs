//! Clients that hang up at any moment leave nothing behind.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::client::{Client, raw_frame};
use crate::echo::{TestServer, start, until};

async fn all_gone(server: &TestServer) {
    until("all connections to end", || {
        let counters = server.server.counters()[0].1;
        counters.connections_accepted > 0 && counters.connections_open == 0
    })
    .await;
}

#[tokio::test]
async fn in_the_middle_of_a_frame() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    let frame = raw_frame(4, 0, 1, 7, &[0; 1000]);
    client.send_bytes(&frame[..500]).await;
    drop(client);
    all_gone(&server).await;
}

#[tokio::test]
async fn with_a_request_in_flight() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    client.query(1, "wait").await;
    until("the request", || {
        server.echo.waiting.load(Ordering::SeqCst) == 1
    })
    .await;
    drop(client);
    until("the service to know", || {
        server.echo.hung_up.load(Ordering::SeqCst) == 1
    })
    .await;
    server.echo.release.add_permits(1);
    all_gone(&server).await;
}

#[tokio::test]
async fn a_client_that_says_nothing_is_hung_up_on() {
    let server = start(|options| {
        options.connection.handshake_timeout = Duration::from_millis(100);
    })
    .await;
    let mut client = Client::connect(server.address).await;
    client.assert_closed().await;
    all_gone(&server).await;
}

#[tokio::test]
async fn a_client_that_stalls_within_a_frame_is_hung_up_on_and_an_idle_one_is_not() {
    let server = start(|options| {
        options.connection.stall_timeout = Duration::from_millis(200);
    })
    .await;
    let mut idle = Client::open(server.address).await;
    let mut stalled = Client::open(server.address).await;
    let frame = raw_frame(4, 0, 1, 7, &[0; 1000]);
    stalled.send_bytes(&frame[..500]).await;
    stalled.assert_closed().await;
    idle.assert_alive().await;
}

#[tokio::test]
async fn a_client_that_takes_no_answers_is_hung_up_on() {
    let server = start(|options| {
        options.connection.stall_timeout = Duration::from_millis(200);
    })
    .await;
    let mut client = Client::open(server.address).await;
    // The answer is larger than the sockets' buffers.
    client.query(1, "big 50000000").await;
    all_gone(&server).await;
}

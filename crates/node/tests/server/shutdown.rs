//! Stopping a server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::client::{Client, echoed};
use crate::echo::{start, until};

#[tokio::test]
async fn requests_in_flight_are_answered_and_new_connections_are_not_taken() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    let mut idle = Client::open(server.address).await;
    client.query(1, "wait").await;
    until("the request", || {
        server.echo.waiting.load(Ordering::SeqCst) == 1
    })
    .await;
    let stop = server.server.stop(Duration::from_secs(10));
    let during = async {
        idle.assert_closed().await;
        assert!(TcpStream::connect(server.address).await.is_err());
        server.echo.release.add_permits(1);
        assert_eq!(client.receive().await.1, echoed("wait"));
        client.assert_closed().await;
    };
    let (in_time, ()) = tokio::join!(stop, during);
    assert!(in_time);
    assert_eq!(server.echo.hung_up.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_request_not_done_in_time_is_cut_off() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address).await;
    client.query(1, "wait").await;
    until("the request", || {
        server.echo.waiting.load(Ordering::SeqCst) == 1
    })
    .await;
    assert!(!server.server.stop(Duration::from_millis(50)).await);
    client.assert_closed().await;
}

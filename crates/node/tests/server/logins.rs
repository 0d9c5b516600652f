//! Logins, as the connection sees them: deadlines and ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use cql::error::ErrorKind;
use cql::wire::{Request, Response};
use node::CqlListenerOptions;
use tokio::io::AsyncWriteExt;

use crate::client::{Client, error, startup};
use crate::echo::{CROWDED_TOKEN, TestServer, WRONG_TOKEN, start};

async fn start_with_login(adjust: impl FnOnce(&mut CqlListenerOptions)) -> TestServer {
    let server = start(adjust).await;
    server.echo.asks_for_login.store(true, Ordering::SeqCst);
    server
}

fn login(token: &'static [u8]) -> Request {
    Request::AuthResponse {
        token: Some(Bytes::from_static(token)).into(),
    }
}

/// A client that has begun and must log in.
async fn begun(server: &TestServer) -> Client {
    let mut client = Client::connect(server.address).await;
    client.send(0, &startup(None)).await;
    let answer = client.receive().await.1;
    assert!(
        matches!(answer, Response::Authenticate { .. }),
        "{answer:?}"
    );
    client
}

#[tokio::test]
async fn a_client_with_a_login_may_be_silent_beyond_the_deadline_of_the_handshake() {
    let server = start_with_login(|options| {
        options.connection.handshake_timeout = Duration::from_secs(3);
    })
    .await;
    let mut client = begun(&server).await;
    client.send(1, &login(b"right")).await;
    let answer = client.receive().await.1;
    assert!(matches!(answer, Response::AuthSuccess { .. }), "{answer:?}");
    // The time of the client is over before that of one who comes after it.
    let mut stranger = Client::connect(server.address).await;
    stranger.assert_closed().await;
    client.assert_alive().await;
}

#[tokio::test]
async fn a_refused_client_is_read_for_a_while_so_that_the_error_is_not_lost() {
    let server = start_with_login(|_| {}).await;
    let mut client = begun(&server).await;
    client.send(1, &login(WRONG_TOKEN)).await;
    let refused = error(client.receive().await.1);
    assert_eq!(refused.kind, ErrorKind::BadCredentials);
    client.assert_closed().await;
    // A socket that is closed answers bytes with a reset, which takes the error with it where it
    // comes first. More is sent than the sockets' buffers hold.
    let sent = client.socket.write_all(&vec![0; 16 << 20]).await;
    assert!(sent.is_ok(), "{sent:?}");
}

#[tokio::test]
async fn a_login_while_too_many_wait_is_closed_without_an_error() {
    let server = start_with_login(|_| {}).await;
    let mut client = begun(&server).await;
    client.send(1, &login(CROWDED_TOKEN)).await;
    client.assert_closed().await;
}

#[tokio::test]
async fn a_connection_without_a_login_gives_way_to_a_new_one() {
    let server = start_with_login(|options| options.connections_max = 2).await;
    let mut client = begun(&server).await;
    client.send(1, &login(b"right")).await;
    let answer = client.receive().await.1;
    assert!(matches!(answer, Response::AuthSuccess { .. }), "{answer:?}");
    let mut silent = begun(&server).await;
    let mut newcomer = begun(&server).await;
    silent.assert_closed().await;
    newcomer.send(1, &login(b"right")).await;
    let answer = newcomer.receive().await.1;
    assert!(matches!(answer, Response::AuthSuccess { .. }), "{answer:?}");
    for client in [&mut client, &mut newcomer] {
        client.assert_alive().await;
    }
}

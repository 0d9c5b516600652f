//! TLS: only clients that speak it are served, with the certificate that is there, by a deadline
//! and at a bounded price.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use client_memory::MemoryBudget;
use cql::wire::{FrameDecoder, FrameDirection, Request, Response};
use net::stream::TLS_BYTES;
use net::tls::authority::TestAuthority;
use net::tls::{self, Pem, TlsClients, TlsOptions};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::{Client, echoed, query, startup};
use crate::echo::{TestServer, start, until};

const PATIENCE: Duration = Duration::from_secs(20);
const BODY_LIMIT: usize = 1 << 30;

fn server_of(authority: &TestAuthority, clients: TlsClients) -> Arc<ServerConfig> {
    let (certificates, key) = authority.sign();
    let options = TlsOptions {
        certificates,
        key,
        clients,
    };
    tls::server(&options, &[]).unwrap()
}

fn client_of(authority: &TestAuthority, own: Option<&(Pem, Pem)>) -> Arc<ClientConfig> {
    let own = own.map(|(certificate, key)| (certificate, key));
    tls::client(&authority.pem(), own).unwrap()
}

/// A client under TLS.
struct TlsClient {
    socket: TlsStream<TcpStream>,
    input: BytesMut,
    decoder: FrameDecoder,
}

impl TlsClient {
    /// Connects and shakes hands.
    async fn connect(server: &TestServer, tls: Arc<ClientConfig>) -> std::io::Result<TlsClient> {
        let socket = TcpStream::connect(server.address).await?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        Ok(TlsClient {
            socket: TlsConnector::from(tls).connect(name, socket).await?,
            input: BytesMut::new(),
            decoder: FrameDecoder::new(FrameDirection::Response, BODY_LIMIT),
        })
    }

    /// Sends a request. `None` if the server has closed the connection.
    async fn ask(&mut self, request: &Request) -> Option<Response> {
        let mut out = BytesMut::new();
        request.encode(1, None, &mut out);
        self.socket.write_all(&out).await.ok()?;
        self.socket.flush().await.ok()?;
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.input).unwrap() {
                return Some(Response::decode(&frame, None, BODY_LIMIT).unwrap().1);
            }
            let read = timeout(PATIENCE, self.socket.read_buf(&mut self.input));
            if !matches!(read.await.expect("an answer in time"), Ok(1..)) {
                return None;
            }
        }
    }

    async fn open(server: &TestServer, tls: Arc<ClientConfig>) -> TlsClient {
        let mut client = TlsClient::connect(server, tls).await.unwrap();
        let answer = client.ask(&startup(None)).await;
        assert_eq!(answer, Some(Response::Ready));
        client
    }
}

#[tokio::test]
async fn answers_of_any_size_come_whole() {
    let authority = TestAuthority::new();
    let tls = server_of(&authority, TlsClients::Anyone);
    let server = start(|options| options.tls = Some(tls)).await;
    let mut client = TlsClient::open(&server, client_of(&authority, None)).await;
    for bytes in [1, 20_000, 3_000_000] {
        let answer = client.ask(&query(&format!("big {bytes}"))).await;
        assert!(matches!(answer, Some(Response::Rows(_))), "{bytes}");
    }
    let text = format!("warn {}", "x".repeat(3_000_000));
    assert_eq!(client.ask(&query(&text)).await, Some(Response::Void));
    let peers = server.echo.peers.lock().unwrap().clone();
    assert_eq!(peers.len(), 1);
    assert_eq!(peers[0].local, server.address);
    let address = client.socket.get_ref().0.local_addr().unwrap();
    assert_eq!(peers[0].remote, address);
    assert_eq!(peers[0].certificate_identity, None);
    let tls = peers[0].tls.as_ref().expect("TLS");
    assert!(["TLSv1.2", "TLSv1.3"].contains(&&*tls.protocol), "{tls:?}");
    assert!(tls.cipher_suite.starts_with("TLS_"), "{tls:?}");
}

#[tokio::test]
async fn a_session_knows_the_certificate_of_its_client() {
    let authority = TestAuthority::new();
    let tls = server_of(&authority, TlsClients::SignedBy(authority.pem()));
    let server = start(|options| options.tls = Some(tls)).await;
    let own = authority.sign();
    TlsClient::open(&server, client_of(&authority, Some(&own))).await;
    // Clients without a certificate, and with one of another authority. Under TLS 1.3 a client
    // learns of it when it reads.
    let strange = TestAuthority::new().sign();
    for own in [None, Some(&strange)] {
        if let Ok(mut client) = TlsClient::connect(&server, client_of(&authority, own)).await {
            assert_eq!(client.ask(&startup(None)).await, None);
        }
    }
    let peers = server.echo.peers.lock().unwrap().clone();
    let identities: Vec<_> = peers
        .iter()
        .map(|peer| &peer.certificate_identity)
        .collect();
    // The name that the library gives where none is set.
    assert_eq!(identities, [&Some("rcgen self signed cert".to_owned())]);
}

#[tokio::test]
async fn sessions_are_resumed_only_where_no_certificate_is_required() {
    let authority = TestAuthority::new();
    let own = authority.sign();
    for (clients, expected) in [
        (TlsClients::Anyone, HandshakeKind::Resumed),
        (TlsClients::SignedBy(authority.pem()), HandshakeKind::Full),
    ] {
        let tls = server_of(&authority, clients);
        let server = start(|options| options.tls = Some(tls)).await;
        let tls = client_of(&authority, Some(&own));
        let first = TlsClient::open(&server, tls.clone()).await;
        let second = TlsClient::open(&server, tls).await;
        let kinds = [first, second].map(|client| client.socket.get_ref().1.handshake_kind());
        assert_eq!(kinds, [Some(HandshakeKind::Full), Some(expected)]);
    }
}

#[tokio::test]
async fn a_client_in_clear_is_told_and_closed() {
    let authority = TestAuthority::new();
    let tls = server_of(&authority, TlsClients::Anyone);
    let server = start(|options| options.tls = Some(tls)).await;
    let mut client = Client::connect(server.address).await;
    client.send(5, &startup(None)).await;
    let (context, answer) = client.receive().await;
    assert_eq!(context.stream, 5);
    let Response::Error(error) = answer else {
        panic!("{answer:?}");
    };
    assert!(error.message.contains("TLS alone"), "{error}");
    client.socket.shutdown().await.unwrap();
    client.assert_closed().await;
    assert!(server.echo.peers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_stranger_has_until_the_deadline_for_all_its_handshakes() {
    let authority = TestAuthority::new();
    let tls = server_of(&authority, TlsClients::Anyone);
    let server = start(|options| {
        options.tls = Some(tls);
        options.connection.handshake_timeout = Duration::from_secs(2);
    })
    .await;
    // Nothing, the first byte of TLS, and the begin of a request in clear.
    for sent in [&b""[..], &[0x16], &[0x04, 0]] {
        let mut client = Client::connect(server.address).await;
        client.send_bytes(sent).await;
        client.assert_closed().await;
    }
    // TLS, but no STARTUP.
    let tls = client_of(&authority, None);
    let mut client = TlsClient::connect(&server, tls).await.unwrap();
    let read = timeout(PATIENCE, client.socket.read_buf(&mut client.input));
    assert!(!matches!(read.await.expect("it is closed"), Ok(1..)));
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_clients() {
    let (before, after) = (TestAuthority::new(), TestAuthority::new());
    let tls = server_of(&before, TlsClients::Anyone);
    let server = start(|options| options.tls = Some(tls)).await;
    let mut present = TlsClient::open(&server, client_of(&before, None)).await;
    let renewed = server_of(&after, TlsClients::Anyone);
    server.server.renew_tls(&renewed, false);
    TlsClient::open(&server, client_of(&after, None)).await;
    let refused = TlsClient::connect(&server, client_of(&before, None)).await;
    assert!(refused.is_err());
    assert_eq!(present.ask(&query("alive")).await, Some(echoed("alive")));
    // A listener in clear stays so.
    let clear = start(|_| {}).await;
    clear.server.renew_tls(&renewed, true);
    Client::open(clear.address).await.assert_alive().await;
}

#[tokio::test]
async fn connections_by_the_rules_of_before_end_with_their_requests() {
    let authority = TestAuthority::new();
    let tls = server_of(&authority, TlsClients::SignedBy(authority.pem()));
    let server = start(|options| options.tls = Some(tls)).await;
    let own = authority.sign();
    let tls = client_of(&authority, Some(&own));
    let mut idle = TlsClient::open(&server, tls.clone()).await;
    let mut waiting = TlsClient::open(&server, tls.clone()).await;
    let answer = async { waiting.ask(&query("wait")).await };
    let renewal = async {
        until("the request", || {
            server.echo.waiting.load(Ordering::SeqCst) == 1
        })
        .await;
        let rules = TlsClients::SignedBy(TestAuthority::new().pem());
        server.server.renew_tls(&server_of(&authority, rules), true);
        server.echo.release.add_permits(1);
    };
    let (answer, ()) = tokio::join!(answer, renewal);
    assert_eq!(answer, Some(echoed("wait")));
    for client in [&mut idle, &mut waiting] {
        assert_eq!(client.ask(&query("more")).await, None);
    }
    // Such a client is not let in again.
    if let Ok(mut client) = TlsClient::connect(&server, tls).await {
        assert_eq!(client.ask(&startup(None)).await, None);
    }
}

#[tokio::test]
async fn the_memory_of_tls_is_charged() {
    let authority = TestAuthority::new();
    let tls = server_of(&authority, TlsClients::Anyone);
    let memory = MemoryBudget::new(4 * TLS_BYTES);
    let server = start(|options| {
        options.tls = Some(tls);
        options.memory = memory.clone();
    })
    .await;
    let first = TlsClient::open(&server, client_of(&authority, None)).await;
    assert!(memory.used() >= TLS_BYTES);
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(TlsClient::connect(&server, client_of(&authority, None)).await);
    }
    // Each needs room, so those that have not begun give way.
    let mut begun = 0;
    for client in others.iter_mut().flatten() {
        begun += usize::from(client.ask(&startup(None)).await.is_some());
    }
    assert!((1..4).contains(&begun), "{begun} of 4 had room");
    assert!(memory.used() <= memory.bytes_max());
    drop((first, others));
    until("all memory is free", || memory.used() == 0).await;
}

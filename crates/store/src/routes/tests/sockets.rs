//! Tests of connections: their limits, bodies, TLS and host names.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Version;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use net::tls::authority::TestAuthority;
use net::tls::{self, Pem, TlsClients, TlsOptions};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind};
use test_support::eventually;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::listener::server_tls;
use super::Service;

/// The longest time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

const BODY: &str = r#"{"vector":[0,0]}"#;

fn search(more_headers: &str, body: &str) -> String {
    format!(
        "POST /api/v1/indexes/ks/idx/ann HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n{more_headers}\r\n{body}",
        body.len()
    )
}

fn status(more_headers: &str) -> String {
    format!("GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n{more_headers}\r\n")
}

const CLOSE: &str = "Connection: close\r\n";

/// Reads everything that comes until the server closes the connection.
async fn rest<S: AsyncRead + Unpin>(stream: &mut S) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes))
        .await
        .expect("the connection is closed")?;
    Ok(String::from_utf8(bytes).unwrap())
}

/// Sends the head of a search whose body the server now waits for. Returns the connection and that
/// body.
async fn begun(service: &Service) -> (TcpStream, &'static [u8]) {
    let mut stream = service.connect().await;
    let text = search("Expect: 100-continue\r\n", BODY);
    let head = &text.as_bytes()[..text.len() - BODY.len()];
    stream.write_all(head).await.unwrap();
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    (stream, BODY.as_bytes())
}

/// Sends a text and reads everything that comes back.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    text: &str,
) -> std::io::Result<String> {
    stream.write_all(text.as_bytes()).await?;
    rest(&mut stream).await
}

fn certified(authority: &TestAuthority, clients: TlsClients) -> TlsOptions {
    let (certificates, key) = authority.sign();
    TlsOptions {
        certificates,
        key,
        clients,
    }
}

/// A client that trusts `authority` and presents the certificate `own`.
fn believer(authority: &TestAuthority, own: Option<(Pem, Pem)>) -> Arc<ClientConfig> {
    let own = own.as_ref().map(|(certificate, key)| (certificate, key));
    tls::client(&authority.pem(), own).unwrap()
}

impl Service {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.listening.address()).await.unwrap()
    }

    async fn connect_tls(
        &self,
        config: Arc<ClientConfig>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = self.connect().await;
        TlsConnector::from(config).connect(name, stream).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_more_connection_can_always_come_in() {
    let service = Service::serving_with(|options| options.connections_max = 3).await;
    let mut mute = Vec::new();
    for _ in 0..3 {
        mute.push(service.connect().await);
    }
    for _ in 0..3 {
        let answer = exchange(service.connect().await, &status(CLOSE)).await;
        let answer = answer.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
    // The first silent connection has been closed.
    assert_eq!(rest(&mut mute[0]).await.unwrap(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_asks_nothing_is_closed() {
    let service = Service::serving_with(|options| {
        assert_eq!(options.mute_max, Duration::from_secs(30));
        options.mute_max = Duration::from_millis(50);
    })
    .await;
    // A connection is closed in the middle of a head, too. One that has sent a request stays.
    for sent in ["", "GET /api/v1/status HTTP/1.1\r\n"] {
        let mut mute = service.connect().await;
        mute.write_all(sent.as_bytes()).await.unwrap();
        let closed = tokio::time::timeout(PATIENCE, rest(&mut mute)).await;
        assert_eq!(closed.expect("it is closed").unwrap_or_default(), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_on_their_way_are_charged_as_they_come() {
    let service = Service::serving_with(|options| options.bodies_bytes_max = 1 << 20).await;
    let part = vec![b' '; 600 << 10];
    let head = "POST /api/v1/indexes/ks/idx/ann HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 2000000\r\n\r\n";
    // A body that is only announced takes nothing from the budget.
    let mut announced = Vec::new();
    for _ in 0..20 {
        let mut stream = service.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        announced.push(stream);
    }
    let mut stream = service.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may close the socket before it has read all of the body.
    let _ = stream.write_all(&part).await;
    let mut answer = [0; 12];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer))
        .await
        .expect("an answer")
        .unwrap();
    assert_eq!(&answer, b"HTTP/1.1 503");
    let found = exchange(service.connect().await, &search(CLOSE, BODY)).await;
    let found = found.unwrap();
    assert!(found.starts_with("HTTP/1.1 200 OK"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_may_come_before_the_last_is_answered() {
    let service = Service::serving().await;
    let text = [status(""), search("", BODY), search(CLOSE, BODY)].concat();
    let answers = exchange(service.connect().await, &text).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3, "{answers}");
    let first = answers.find("SERVING").expect("the status");
    let second = answers.find("primary_keys").expect("a search");
    assert!(first < second, "{answers}");
}

/// Sends two searches over HTTP/2 on one connection.
async fn search_by_http2<S>(stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = || {
        hyper::Request::post("http://localhost/api/v1/indexes/ks/idx/ann")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from_static(BODY.as_bytes())))
            .unwrap()
    };
    let both = [
        sender.send_request(request()),
        sender.send_request(request()),
    ];
    for answer in futures::future::join_all(both).await {
        let answer = answer.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.version()),
            (200, Version::HTTP_2)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_is_spoken_in_clear_and_in_tls() {
    let service = Service::serving().await;
    search_by_http2(service.connect().await).await;

    let authority = TestAuthority::new();
    let tls = certified(&authority, TlsClients::Anyone);
    let service = Service::serving_with(|options| options.tls = Some(tls)).await;
    let mut config = ClientConfig::clone(&believer(&authority, None));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = service.connect_tls(Arc::new(config)).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    search_by_http2(stream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_use_up_the_budget() {
    // The budget has room for one small answer.
    let service = Service::serving_with(|options| options.answer_bytes_max = 1024).await;
    // This client reads the heads of answers, but no byte of their bodies.
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(0)
        .handshake::<_, Full<Bytes>>(TokioIo::new(service.connect().await))
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut ask = async || {
        let request = hyper::Request::get("http://localhost/api/v1/indexes").body(Full::default());
        sender.send_request(request.unwrap()).await.unwrap()
    };
    let first = ask().await;
    assert_eq!(first.status(), 200);
    let refused = ask().await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    drop((first, refused));
    eventually("the room is free again", async || {
        ask().await.status() == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_never_ends_is_refused_and_takes_no_place() {
    let service = Service::serving_with(|options| {
        options.body_timeout = Duration::from_millis(200);
        options.searches_max = 1;
    })
    .await;
    let (mut slow, body) = begun(&service).await;
    slow.write_all(&body[..3]).await.unwrap();
    let other = exchange(service.connect().await, &search(CLOSE, BODY)).await;
    assert!(other.unwrap().starts_with("HTTP/1.1 200"));
    let answer = rest(&mut slow).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("did not arrive in time"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_the_limit_is_refused() {
    let service = Service::serving_with(|options| options.body_bytes_max = 100).await;
    let fits = search(CLOSE, &format!("{BODY:>100}"));
    let answer = exchange(service.connect().await, &fits).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let does_not = search(CLOSE, &format!("{BODY:>101}"));
    let answer = exchange(service.connect().await, &does_not).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_in_clear_is_refused_where_it_could_be_encrypted() {
    let authority = TestAuthority::new();
    let tls = certified(&authority, TlsClients::Anyone);
    let service = Service::serving_with(|options| options.tls = Some(tls)).await;

    let stream = service.connect_tls(believer(&authority, None)).await;
    let answer = exchange(stream.unwrap(), &search(CLOSE, BODY)).await;
    assert!(answer.unwrap().starts_with("HTTP/1.1 200"));

    let text = [status(""), search(CLOSE, BODY)].concat();
    let answers = exchange(service.connect().await, &text).await.unwrap();
    assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
    assert!(answers.contains("HTTP/1.1 403 Forbidden"), "{answers}");
    assert!(answers.contains("HTTPS"), "{answers}");
    let text_search = search(CLOSE, BODY).replace("/ann", "/bm25");
    let answer = exchange(service.connect().await, &text_search).await;
    assert!(answer.unwrap().starts_with("HTTP/1.1 403"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_resumed_only_where_no_certificate_is_required() {
    let authority = TestAuthority::new();
    for (clients, expected) in [
        (TlsClients::Anyone, HandshakeKind::Resumed),
        (TlsClients::SignedBy(authority.pem()), HandshakeKind::Full),
    ] {
        let tls = certified(&authority, clients);
        let service = Service::serving_with(|options| options.tls = Some(tls)).await;
        let config = believer(&authority, Some(authority.sign()));
        for kind in [HandshakeKind::Full, expected] {
            let mut stream = service.connect_tls(config.clone()).await.unwrap();
            let answer = exchange(&mut stream, &status(CLOSE)).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            assert_eq!(stream.get_ref().1.handshake_kind(), Some(kind));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_of_tls_alone_answers_nothing_in_clear() {
    let authority = TestAuthority::new();
    let clients = [TlsClients::Anyone, TlsClients::SignedBy(authority.pem())];
    for clients in clients {
        let tls = certified(&authority, clients);
        let service = Service::serving_with(|options| {
            options.tls = Some(tls);
            options.tls_alone = true;
        })
        .await;
        let own = Some(authority.sign());
        let stream = service.connect_tls(believer(&authority, own)).await;
        let answer = exchange(stream.unwrap(), &status(CLOSE)).await;
        assert!(answer.unwrap().starts_with("HTTP/1.1 200"));
        for text in [status(CLOSE), search(CLOSE, BODY)] {
            let answer = exchange(service.connect().await, &text).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 403 Forbidden"), "{answer}");
            assert!(answer.contains("https://"), "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_in_clear_are_refused_where_they_could_be_encrypted() {
    let authority = TestAuthority::new();
    let tls = certified(&authority, TlsClients::Anyone);
    let service = Service::serving_with(|options| options.tls = Some(tls)).await;
    let repair = "/api/v1/indexes/ks/idx/repair";
    for (method, path) in [
        ("DELETE", "/api/v1/tasks/x"),
        ("POST", repair),
        ("PATCH", repair),
        ("PUT", "/api/v1/indexes/ks/idx/repair/schedule"),
    ] {
        let answer = service.send(method, path, "application/json", "{}").await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.body);
    }
    for path in ["/api/v1/tasks", repair] {
        assert_eq!(service.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_not_served_in_clear_where_it_could_be_encrypted() {
    let authority = TestAuthority::new();
    let tls = certified(&authority, TlsClients::Anyone);
    let service = Service::serving_with(|options| options.tls = Some(tls)).await;
    for path in ["/", "/console/app.js"] {
        let answer = service.get(path).await;
        assert_eq!(answer.status, 403, "{path}: {}", answer.body);
        assert!(answer.body.contains("https://"), "{path}: {}", answer.body);
        let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{CLOSE}\r\n");
        let stream = service.connect_tls(believer(&authority, None)).await;
        let answer = exchange(stream.unwrap(), &text).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_does_not_talk_to_an_expired_or_unknown_certificate() {
    let authority = TestAuthority::new();
    let (certificates, key) = authority.sign_until(2001);
    let clients = TlsClients::Anyone;
    let tls = TlsOptions {
        certificates,
        key,
        clients,
    };
    let service = Service::serving_with(|options| options.tls = Some(tls)).await;
    let refused = async |authority: &TestAuthority| {
        let connected = service.connect_tls(believer(authority, None)).await;
        connected.unwrap_err().to_string()
    };
    let error = refused(&authority).await;
    assert!(error.contains("expired"), "{error}");
    let error = refused(&TestAuthority::new()).await;
    assert!(error.contains("invalid peer certificate"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_clients_need_a_certificate_no_other_gets_in() {
    let authority = TestAuthority::new();
    let clients = TestAuthority::new();
    let tls = certified(&authority, TlsClients::SignedBy(clients.pem()));
    let service = Service::serving_with(|options| options.tls = Some(tls)).await;
    let text = search(CLOSE, BODY);

    let known = believer(&authority, Some(clients.sign()));
    let stream = service.connect_tls(known).await.unwrap();
    let answer = exchange(stream, &text).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    for own in [
        None,
        Some(TestAuthority::new().sign()),
        Some(clients.sign_until(2001)),
    ] {
        // A client of TLS 1.3 learns of the refusal only when it reads.
        let answer = match service.connect_tls(believer(&authority, own)).await {
            Ok(stream) => exchange(stream, &text).await,
            Err(error) => Err(error),
        };
        assert!(answer.is_err(), "{answer:?}");
    }
    let in_clear = exchange(service.connect().await, &text).await;
    assert!(!in_clear.unwrap_or_default().contains("HTTP/1.1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_with_a_name_of_its_own_reads_and_changes_nothing() {
    let mut service = Service::serving_with(|options| options.names = vec!["vs".into()]).await;
    let rebound = |text: String| text.replace("Host: localhost", "Host: evil.example:6080");
    let requests = [
        search(CLOSE, BODY),
        status(CLOSE),
        format!("DELETE /api/v1/tasks/1 HTTP/1.1\r\nHost: localhost\r\n{CLOSE}\r\n"),
    ];
    for request in requests {
        for refused in [
            rebound(request.clone()),
            request.replace(CLOSE, &format!("{CLOSE}Origin: http://evil.example\r\n")),
        ] {
            let answer = exchange(service.connect().await, &refused).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 403"), "{refused}: {answer}");
        }
        let named = request.replace("Host: localhost", "Host: VS:6080");
        for taken in [request, named] {
            let answer = exchange(service.connect().await, &taken).await.unwrap();
            assert!(!answer.starts_with("HTTP/1.1 403"), "{taken}: {answer}");
        }
    }
    // Names can be changed while the listener serves.
    service.listening.set_names(&[]);
    let named = status(CLOSE).replace("Host: localhost", "Host: vs");
    let answer = exchange(service.connect().await, &named).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(answer.contains("--http-host"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_change_while_requests_are_answered() {
    let (before, after) = (TestAuthority::new(), TestAuthority::new());
    let tls = certified(&before, TlsClients::Anyone);
    let mut service = Service::serving_with(|options| options.tls = Some(tls)).await;
    let mut open = service.connect_tls(believer(&before, None)).await.unwrap();

    let broken = TlsOptions {
        key: after.sign().1,
        ..certified(&after, TlsClients::Anyone)
    };
    assert!(server_tls(Some(&broken)).is_err());
    service
        .connect_tls(believer(&before, None))
        .await
        .expect("the old certificate");

    let renewed = certified(&after, TlsClients::Anyone);
    service
        .listening
        .set_tls(server_tls(Some(&renewed)).unwrap());
    service
        .connect_tls(believer(&after, None))
        .await
        .expect("the new certificate");
    service
        .connect_tls(believer(&before, None))
        .await
        .unwrap_err();
    let answer = exchange(&mut open, &search(CLOSE, BODY)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_other_rules_end_when_their_requests_are_answered() {
    let mut service = Service::serving().await;
    let mut idle = service.connect().await;
    idle.write_all(status("").as_bytes()).await.unwrap();
    let mut byte = [0];
    idle.read_exact(&mut byte).await.unwrap();
    let (mut busy, body) = begun(&service).await;

    let tls = certified(&TestAuthority::new(), TlsClients::Anyone);
    service.listening.set_tls(server_tls(Some(&tls)).unwrap());
    rest(&mut idle).await.unwrap();
    busy.write_all(body).await.unwrap();
    let answer = rest(&mut busy).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_answers_what_is_in_flight() {
    let service = Service::serving().await;
    let (mut busy, body) = begun(&service).await;
    service.listening.stop();
    busy.write_all(body).await.unwrap();
    let answer = rest(&mut busy).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    tokio::time::timeout(PATIENCE, service.listening.stopped())
        .await
        .expect("no connection is left");
}

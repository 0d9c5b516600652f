//! Tests of the metrics that operators see.

use std::net::SocketAddr;
use std::sync::Arc;

use gateway::InternalSessionOptions;
use http_server::{TokenAuthorizer, TokenSet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use web_console::{SettingLine, SettingLines};

use crate::peer::{Setup, query, raw_frame, request_bytes, soon};

/// Sends an HTTP request. Returns the answer, head and body.
pub async fn http(address: SocketAddr, request: &str) -> String {
    let mut socket = soon(TcpStream::connect(address)).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(socket.read_to_string(&mut answer)).await.unwrap();
    answer
}

pub async fn get(address: SocketAddr, path: &str, host: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    http(address, &request).await
}

#[tokio::test]
async fn requests_and_refusals_are_counted() {
    let setup = Setup::with(|options| {
        options.metrics_address = Some("127.0.0.1:0".parse().unwrap());
    })
    .await;
    let address = setup.gateway.metrics_address().unwrap();
    let (mut client, mut node) = setup.connect().await;
    let request = request_bytes(&query("SELECT 1"), 1, None);
    client.send(&request).await;
    node.exactly(request.len()).await;
    // An EXECUTE of an id that was not prepared through the gateway is refused.
    client
        .send(&raw_frame(4, 0, 2, 0x0A, &[0, 1, 7, 0, 1, 0]))
        .await;
    client.response(None).await;
    let told = get(address, "/metrics", &address.to_string()).await;
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    for line in [
        // The STARTUP of the connection counts too.
        "gateway_requests_total{kind=\"passed\"} 2",
        "gateway_requests_total{kind=\"refused\"} 1",
        "gateway_refusals_total{error=\"unprepared\"} 1",
        "gateway_connections 1",
        "gateway_refuses_writes 0",
    ] {
        assert!(told.lines().any(|said| said == line), "{line}\n{told}");
    }
}

#[tokio::test]
async fn connections_that_gave_way_are_counted() {
    let setup = Setup::with(|options| {
        options.metrics_address = Some("127.0.0.1:0".parse().unwrap());
        options.connections_max = 1;
    })
    .await;
    let address = setup.gateway.metrics_address().unwrap();
    let (mut stranger, _node_of_stranger) = setup.connect_unauthenticated().await;
    let _second = setup.connect().await;
    assert_eq!(stranger.rest().await, "");
    let text = get(address, "/metrics", &address.to_string()).await;
    let line = "gateway_connections_given_way_total 1";
    assert!(text.lines().any(|found| found == line), "{text}");
}

#[tokio::test]
async fn another_host_name_and_other_paths_are_refused() {
    let setup = Setup::with(|options| {
        options.metrics_address = Some("127.0.0.1:0".parse().unwrap());
    })
    .await;
    let address = setup.gateway.metrics_address().unwrap();
    let foreign = get(address, "/metrics", "rebound.example").await;
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    let why =
        "\r\n\r\nthis listener is on a loopback address and answers to loopback names alone\n";
    assert!(foreign.ends_with(why), "{foreign}");
    let other = get(address, "/other", "localhost").await;
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
    assert!(other.ends_with("\r\n\r\nask for /metrics\n"), "{other}");
    let post = "POST /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let post = http(address, post).await;
    assert!(post.starts_with("HTTP/1.1 405"), "{post}");
    assert!(post.ends_with("\r\n\r\nask with GET\n"), "{post}");
    let head = "HEAD /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let head = http(address, head).await;
    assert!(head.starts_with("HTTP/1.1 405"), "{head}");
}

#[tokio::test]
async fn health_needs_no_token_and_waits_for_the_cluster() {
    for (has_catalog, status) in [(false, "200"), (true, "503")] {
        let setup = Setup::with(|options| {
            options.metrics_address = Some("127.0.0.1:0".parse().unwrap());
            let tokens = TokenSet::parse("0123456789abcdef").unwrap();
            options.tokens = Arc::new(TokenAuthorizer::new(Some(tokens)));
            // The cluster is one that can't be reached.
            options.catalog = has_catalog.then(|| InternalSessionOptions {
                contact_points: vec!["127.0.0.1:1".to_owned()],
                ..InternalSessionOptions::default()
            });
        })
        .await;
        let address = setup.gateway.metrics_address().unwrap();
        let live = get(address, "/health/live", "localhost").await;
        assert!(live.starts_with("HTTP/1.1 200"), "{live}");
        assert!(live.ends_with("live"), "{live}");
        let ready = get(address, "/health/ready", "localhost").await;
        assert!(ready.starts_with(&format!("HTTP/1.1 {status}")), "{ready}");
        let metrics = get(address, "/metrics", "localhost").await;
        assert!(metrics.starts_with("HTTP/1.1 401"), "{metrics}");
        let challenge = "www-authenticate: Bearer realm=\"annulus\"\r\n";
        assert!(metrics.contains(challenge), "{metrics}");
        assert!(
            metrics.ends_with("send Authorization: Bearer TOKEN\n"),
            "{metrics}"
        );
        for closed in ["/other", "/api/v1/settings"] {
            let closed = get(address, closed, "localhost").await;
            assert!(closed.starts_with("HTTP/1.1 401"), "{closed}");
        }
    }
}

#[tokio::test]
async fn the_console_is_where_the_metrics_are() {
    let line = SettingLine {
        name: "metrics-listen".to_owned(),
        value: "127.0.0.1:0".to_owned(),
        source: "file",
    };
    let setup = Setup::with(|options| {
        options.metrics_address = Some("127.0.0.1:0".parse().unwrap());
        options.settings = SettingLines::new(vec![line]);
    })
    .await;
    let address = setup.gateway.metrics_address().unwrap();
    let page = get(address, "/", "localhost").await;
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("content-security-policy: default-src 'none'"));
    let session = get(address, "/api/v1/session", "localhost").await;
    let cql = format!("\"cql\":\"{}\"", setup.gateway.address());
    for part in [
        "\"program\":\"gateway\"",
        "\"login\":\"none\"",
        "\"metrics\":true",
        "\"search\":false",
        cql.as_str(),
    ] {
        assert!(session.contains(part), "{part}: {session}");
    }
    let settings = get(address, "/api/v1/settings", "localhost").await;
    assert!(
        settings.contains("\"name\":\"metrics-listen\""),
        "{settings}"
    );
    let end = "HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    for request in ["POST /api/v1/cql", "PUT /api/v1/tables/ks/t/rows"] {
        let answer = http(address, &format!("{request} {end}")).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert!(answer.contains("no tables over HTTP"), "{answer}");
    }
}

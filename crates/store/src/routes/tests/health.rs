//! Health: whether the process answers and whether it serves, before and after the start.

use std::sync::Arc;

use http_server::{TokenAuthorizer, TokenSet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// Sends a request on a connection that stays open. Returns the status and the body.
async fn ask(stream: &mut TcpStream, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let (_, length) = head.split_once("content-length: ").expect("a length");
    let length = length.lines().next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, String::from_utf8(body).unwrap())
}

fn is(status: u16, body: &str) -> (u16, String) {
    (status, body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_from_before_the_start_sees_the_service_serve() {
    let options = ApiSocketOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut bound = BoundSocket::bind(options).await.unwrap();
    bound.answer_health();
    let mut stream = TcpStream::connect(bound.address()).await.unwrap();
    let initializing = "\"INITIALIZING\"";
    assert_eq!(ask(&mut stream, "/health/live").await, is(200, "live"));
    let ready = ask(&mut stream, "/health/ready").await;
    assert_eq!(ready, is(503, initializing));
    let status = ask(&mut stream, "/api/v1/status").await;
    assert_eq!(status, is(200, initializing));
    for path in ["/api/v1/indexes", "/api/v1/session", "/metrics", "/health"] {
        let (status, text) = ask(&mut stream, path).await;
        assert_eq!(status, 503, "{path}");
        assert!(text.contains("is starting"), "{path}: {text}");
    }
    // The page shows that the service starts.
    let (status, page) = ask(&mut stream, "/").await;
    assert_eq!(status, 200, "{page}");

    let service = Service::start_on(bound, Arc::new(Silent), None, false);
    assert_eq!(ask(&mut stream, "/health/live").await, is(200, "live"));
    let ready = ask(&mut stream, "/health/ready").await;
    assert_eq!(ready, is(503, initializing));
    assert_eq!(ask(&mut stream, "/api/v1/indexes").await, is(200, "[]"));
    service.engine.set_connected(true);
    service.engine.first_discovery();
    let ready = ask(&mut stream, "/health/ready").await;
    assert_eq!(ready, is(200, "\"SERVING\""));
    service.engine.set_connected(false);
    let (status, _) = ask(&mut stream, "/health/ready").await;
    assert_eq!(status, 503);
}

#[tokio::test]
async fn a_listener_that_never_serves_is_closed() {
    let options = ApiSocketOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut bound = BoundSocket::bind(options).await.unwrap();
    bound.answer_health();
    let mut stream = TcpStream::connect(bound.address()).await.unwrap();
    assert_eq!(ask(&mut stream, "/health/live").await, is(200, "live"));
    drop(bound);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_login() {
    let tokens = TokenAuthorizer::new(Some(TokenSet::parse("0123456789abcdef").unwrap()));
    let service = Service::start_behind(Some(Arc::new(tokens)), false, |_| {}).await;
    service.get("/health/live").await.is(200, "live");
    assert_eq!(service.get("/health/ready").await.status, 503);
    assert_eq!(service.get("/metrics").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_in_maintenance_takes_no_searches() {
    let service = Service::serving().await;
    let set = async |body: &str| {
        let path = "/api/v1/maintenance";
        service.send("PUT", path, "application/json", body).await
    };
    let body = r#"{"vector": [0, 0]}"#;
    assert_eq!(service.ann("idx", body).await.status, 200);
    let on = r#"{"maintenance":true,"requests_in_progress":0}"#;
    set(r#"{"maintenance": true}"#).await.is(200, on);
    service.get("/api/v1/maintenance").await.is(200, on);
    service
        .get("/health/ready")
        .await
        .is(503, "\"MAINTENANCE\"");
    let refused = service.ann("idx", body).await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("maintenance"), "{}", refused.body);
    // A search that has begun counts until it is answered.
    service.api.maintenance.set(false);
    let begun = service.api.maintenance.begin().unwrap();
    let answer = set(r#"{"maintenance": true}"#).await;
    answer.is(200, r#"{"maintenance":true,"requests_in_progress":1}"#);
    drop(begun);
    service.get("/api/v1/maintenance").await.is(200, on);
    let off = r#"{"maintenance":false,"requests_in_progress":0}"#;
    set(r#"{"maintenance": false}"#).await.is(200, off);
    assert_eq!(service.ann("idx", body).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_the_id_of_its_request() {
    let service = Service::serving().await;
    for path in ["/health/live", "/api/v1/indexes", "/nowhere"] {
        let answer = service.get(path).await;
        assert!(answer.headers.contains_key("x-request-id"), "{path}");
    }
    let searched = service.ann("idx", r#"{"vector": [0, 0]}"#).await;
    assert!(searched.headers.contains_key("x-request-id"));
}

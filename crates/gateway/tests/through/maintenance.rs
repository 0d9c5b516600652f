//! Tests of maintenance: statements that have begun are answered, and no other begins.

use std::net::SocketAddr;
use std::sync::Arc;

use cql::error::ErrorKind;
use cql::wire::Response;
use http_server::{TokenAuthorizer, TokenSet};

use crate::metrics::{get, http};
use crate::peer::{Peer, Setup, query};

const ROUTE: &str = "/api/v1/maintenance";

/// Sends this body by PUT, with more headers. Returns the answer, head and body.
async fn put(address: SocketAddr, headers: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "PUT {ROUTE} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         {headers}content-length: {length}\r\n\r\n{body}"
    );
    http(address, &request).await
}

/// Sends a statement, which must be refused so that drivers go to another gateway.
async fn is_refused(client: &mut Peer, stream: i16) {
    client.ask(&query("SELECT 2"), stream, None).await;
    let (answered, response) = client.response(None).await;
    assert_eq!(answered, stream);
    let Response::Error(error) = response else {
        panic!("{response:?}");
    };
    assert_eq!(error.kind, ErrorKind::IsBootstrapping);
    assert!(error.message.contains("maintenance"), "{error}");
}

#[tokio::test]
async fn statements_that_have_begun_are_answered_and_no_other_begins() {
    let setup = Setup::with(|options| {
        options.metrics_address = Some("127.0.0.1:0".parse().unwrap());
    })
    .await;
    let address = setup.gateway.metrics_address().unwrap();
    let (mut client, mut node) = setup.connect().await;
    client.ask(&query("SELECT 1"), 1, None).await;
    assert_eq!(node.request(None).await, (1, query("SELECT 1")));
    let begun = put(address, "", r#"{"maintenance": true}"#).await;
    assert!(begun.starts_with("HTTP/1.1 200"), "{begun}");
    let one = r#"{"maintenance":true,"requests_in_progress":1}"#;
    assert!(begun.ends_with(one), "{begun}");
    let ready = get(address, "/health/ready", "localhost").await;
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    assert!(ready.ends_with("\"MAINTENANCE\""), "{ready}");

    is_refused(&mut client, 2).await;
    // Drivers connect to a server in maintenance, and learn of it by the answer to a statement.
    let (mut other, _node_of_other) = setup.connect().await;
    is_refused(&mut other, 1).await;

    node.answer(&Response::Void, 1, None).await;
    assert_eq!(client.response(None).await, (1, Response::Void));
    let drained = get(address, ROUTE, "localhost").await;
    let none = r#"{"maintenance":true,"requests_in_progress":0}"#;
    assert!(drained.ends_with(none), "{drained}");
    let post = format!("POST {ROUTE} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let refused = http(address, &post).await;
    assert!(refused.starts_with("HTTP/1.1 405"), "{refused}");
    assert!(refused.contains("with PUT"), "{refused}");
    let metrics = get(address, "/metrics", "localhost").await;
    assert!(metrics.contains("annulus_maintenance 1"), "{metrics}");

    let ended = put(address, "", r#"{"maintenance": false}"#).await;
    assert!(ended.starts_with("HTTP/1.1 200"), "{ended}");
    let ready = get(address, "/health/ready", "localhost").await;
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    client.ask(&query("SELECT 3"), 3, None).await;
    assert_eq!(node.request(None).await, (3, query("SELECT 3")));
}

#[tokio::test]
async fn a_token_is_needed_to_set_maintenance_and_none_to_see_it() {
    let setup = Setup::with(|options| {
        options.metrics_address = Some("127.0.0.1:0".parse().unwrap());
        let tokens = TokenSet::parse("0123456789abcdef").unwrap();
        options.tokens = Arc::new(TokenAuthorizer::new(Some(tokens)));
    })
    .await;
    let address = setup.gateway.metrics_address().unwrap();
    let refused = put(address, "", r#"{"maintenance": true}"#).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let token = "authorization: Bearer 0123456789abcdef\r\n";
    for wrong in ["", "{}", r#"{"maintenance": 1}"#, r#"{"mode": true}"#] {
        let refused = put(address, token, wrong).await;
        assert!(refused.starts_with("HTTP/1.1 400"), "{wrong}: {refused}");
        assert!(
            refused.contains(r#"send {"maintenance": true}"#),
            "{refused}"
        );
    }
    let seen = get(address, ROUTE, "localhost").await;
    let off = r#"{"maintenance":false,"requests_in_progress":0}"#;
    assert!(seen.ends_with(off), "{seen}");
    let begun = put(address, token, r#"{"maintenance": true}"#).await;
    assert!(begun.starts_with("HTTP/1.1 200"), "{begun}");
}

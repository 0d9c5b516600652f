//! Tests of the client against a service on a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use store_api::types::AnnRequest;
use store_api::{ClientError, ClientOptions, KeyValue, StoreClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answers every request of every connection with the same bytes.
async fn service(answer: String) -> (String, Arc<AtomicUsize>) {
    listen(Some(answer)).await
}

/// Takes requests, and never answers.
async fn silent() -> (String, Arc<AtomicUsize>) {
    listen(None).await
}

async fn listen(answer: Option<String>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(stream, answer.clone()));
        }
    });
    (uri, connections)
}

async fn serve(mut stream: TcpStream, answer: Option<String>) {
    let mut pending = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => pending.extend_from_slice(&buffer[..n]),
        }
        // Bodies are small enough here to come together with their head.
        if pending.windows(4).any(|four| four == b"\r\n\r\n") {
            pending.clear();
            let Some(answer) = &answer else {
                return std::future::pending().await;
            };
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

fn http(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn client(base_uris: &[&str]) -> StoreClient {
    StoreClient::new(ClientOptions {
        base_uris: base_uris.iter().map(|uri| (*uri).to_owned()).collect(),
        request_timeout: Duration::from_millis(500),
        ..ClientOptions::default()
    })
    .unwrap()
}

const FOUND: &str = r#"{"primary_keys":{"id":[7]},"distances":[0.0],"similarity_scores":[1.0]}"#;

#[tokio::test]
async fn connections_are_kept() {
    let (uri, connections) = service(http("200 OK", FOUND)).await;
    let client = client(&[&uri]);
    for _ in 0..5 {
        let found = client
            .ann("ks", "i", &AnnRequest::new(vec![1.0], 1), &["id"])
            .await
            .unwrap();
        let key = KeyValue::Json(serde_json::json!(7));
        assert_eq!(found.keys, vec![vec![key]]);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_service_and_no_answer() {
    assert_eq!(
        StoreClient::disabled()
            .ann("ks", "i", &AnnRequest::new(vec![1.0], 1), &["id"])
            .await,
        Err(ClientError::Disabled)
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(
        client(&[&closed])
            .ann("ks", "i", &AnnRequest::new(vec![1.0], 1), &["id"])
            .await,
        Err(ClientError::Unavailable)
    );
    let (slow, _) = silent().await;
    assert_eq!(
        client(&[&slow])
            .ann("ks", "i", &AnnRequest::new(vec![1.0], 1), &["id"])
            .await,
        Err(ClientError::Aborted)
    );
}

#[tokio::test]
async fn only_unavailable_moves_on() {
    let (starting, _) = service(http(
        "503 Service Unavailable",
        r#"{"reason":"NODE_BOOTSTRAPPING"}"#,
    ))
    .await;
    let (serving, _) = service(http("200 OK", FOUND)).await;
    let both = client(&[&starting, &serving]);
    for _ in 0..4 {
        assert!(
            both.ann("ks", "i", &AnnRequest::new(vec![1.0], 1), &["id"])
                .await
                .is_ok()
        );
    }
    let (building, _) = service(http(
        "503 Service Unavailable",
        r#"{"reason":"INDEX_BUILDING","message":"soon"}"#,
    ))
    .await;
    let client = client(&[&building, &serving]);
    let mut refused = 0;
    for _ in 0..64 {
        if let Err(error) = client
            .ann("ks", "i", &AnnRequest::new(vec![1.0], 1), &["id"])
            .await
        {
            assert_eq!(
                error.to_string(),
                "Vector Store error: HTTP status 503 Service Unavailable, message: soon"
            );
            refused += 1;
        }
    }
    // The order is random: one of 2^63 runs asks the same service every time.
    assert!(
        (1..64).contains(&refused),
        "an error is the answer, whichever service gives it: {refused} of 64"
    );
}

//! Asking an index service.
//!
//! The rules of failing over are those of the contract (section 2.2) cut down to one round: the
//! services are tried in turn, the first one rotating from request to request, and only
//! "unavailable" (no connection, or a service that is still starting) moves on to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::{IndexStatus, NodeStatus, PrimaryKeys, UnavailableReason};
use crate::{ClientError, InvalidUri};

/// An answer beyond this is refused: 100,000 rows, the most that a CQL query can ask for, with
/// keys of 2 KiB.
const RESPONSE_BYTES_MAX: usize = 256 << 20;

/// Where and how to ask.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// `http://host:port` of each index service. None disables vector search.
    pub base_uris: Vec<String>,
    /// How long a request may take, from the first byte sent to the last received.
    pub request_timeout: Duration,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// Idle connections kept to each service.
    pub idle_connections_max: usize,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            base_uris: Vec::new(),
            request_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(3),
            idle_connections_max: 256,
        }
    }
}

/// Asks index services for neighbours. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    http: HttpClient<HttpConnector, Full<Bytes>>,
    /// `http://host:port`, without a trailing slash; never empty.
    base_uris: Vec<String>,
    request_timeout: Duration,
    /// Which service the next request tries first.
    next: AtomicUsize,
}

/// An `/ann` answer, reduced to what a CQL node needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// For each row, nearest first: the primary key columns' values as JSON, in the order asked for.
    pub keys: Vec<Vec<Value>>,
    /// Higher is nearer.
    pub similarity_scores: Vec<f32>,
}

impl Client {
    /// A client of the services at `options.base_uris`; without any it is [`Client::disabled`].
    pub fn new(options: ClientOptions) -> Result<Client, InvalidUri> {
        if options.base_uris.is_empty() {
            return Ok(Client::disabled());
        }
        let base_uris = options
            .base_uris
            .iter()
            .map(|uri| checked_base_uri(uri))
            .collect::<Result<_, _>>()?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(options.connect_timeout));
        connector.set_keepalive(Some(options.connect_timeout));
        let http = HttpClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(options.idle_connections_max)
            .build(connector);
        Ok(Client {
            inner: Some(Arc::new(Inner {
                http,
                base_uris,
                request_timeout: options.request_timeout,
                next: AtomicUsize::new(0),
            })),
        })
    }

    /// A client that answers every request with [`ClientError::Disabled`].
    pub fn disabled() -> Client {
        Client { inner: None }
    }

    /// The up to `limit` nearest rows of an index.
    ///
    /// `key_columns`: every column of the primary key, partition key first.
    pub async fn ann(
        &self,
        keyspace: &str,
        index: &str,
        vector: &[f32],
        limit: usize,
        key_columns: &[&str],
    ) -> Result<Neighbours, ClientError> {
        let path = format!(
            "/api/v1/indexes/{}/{}/ann",
            segment(keyspace),
            segment(index)
        );
        let body = serde_json::to_vec(&AnnBody { vector, limit })
            .expect("numbers and a list of numbers always serialise");
        let answer = self.ask(Method::POST, &path, body.into()).await?;
        neighbours(&answer, key_columns)
    }

    /// The state of the first service that answers.
    pub async fn node_status(&self) -> Result<NodeStatus, ClientError> {
        let answer = self
            .ask(Method::GET, "/api/v1/status", Bytes::new())
            .await?;
        serde_json::from_slice(&answer).map_err(|_| ClientError::InvalidJson)
    }

    /// Where an index stands.
    pub async fn index_status(
        &self,
        keyspace: &str,
        index: &str,
    ) -> Result<IndexStatus, ClientError> {
        let path = format!(
            "/api/v1/indexes/{}/{}/status",
            segment(keyspace),
            segment(index)
        );
        let answer = self.ask(Method::GET, &path, Bytes::new()).await?;
        serde_json::from_slice(&answer).map_err(|_| ClientError::InvalidJson)
    }

    /// The body of a successful answer.
    async fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, ClientError> {
        let inner = self.inner.as_ref().ok_or(ClientError::Disabled)?;
        tokio::time::timeout(inner.request_timeout, inner.ask_any(&method, path, &body))
            .await
            .unwrap_or(Err(ClientError::Aborted))
    }
}

impl Inner {
    async fn ask_any(
        &self,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Result<Bytes, ClientError> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for turn in 0..self.base_uris.len() {
            let base = &self.base_uris[first.wrapping_add(turn) % self.base_uris.len()];
            match self.ask_one(base, method, path, body.clone()).await {
                Err(ClientError::Unavailable) => continue,
                answer => return answer,
            }
        }
        Err(ClientError::Unavailable)
    }

    async fn ask_one(
        &self,
        base: &str,
        method: &Method,
        path: &str,
        body: Bytes,
    ) -> Result<Bytes, ClientError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .expect("a checked base and escaped segments make a URI");
        let response = self.http.request(request).await.map_err(|error| {
            tracing::debug!(%error, base, "index service not reached");
            ClientError::Unavailable
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| match error.downcast_ref::<hyper::Error>() {
                Some(_) => ClientError::Unavailable,
                None => ClientError::InvalidJson,
            })?
            .to_bytes();
        if status == StatusCode::OK {
            Ok(body)
        } else {
            Err(refusal(status, &body))
        }
    }
}

#[derive(Serialize)]
struct AnnBody<'a> {
    vector: &'a [f32],
    limit: usize,
}

fn checked_base_uri(text: &str) -> Result<String, InvalidUri> {
    let invalid = |reason: &str| InvalidUri {
        uri: text.to_owned(),
        reason: reason.to_owned(),
    };
    let uri: Uri = text
        .trim()
        .parse()
        .map_err(|error| invalid(&format!("{error}")))?;
    if uri.scheme_str() != Some("http") {
        return Err(invalid("its scheme is not http"));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(invalid("it has a path"));
    }
    let authority = uri.authority().ok_or_else(|| invalid("it has no host"))?;
    if authority.port_u16().is_none() {
        return Err(invalid("it has no port"));
    }
    Ok(format!("http://{authority}"))
}

/// A name as a path segment: whatever is not unreserved in RFC 3986 is percent-encoded.
fn segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// What an answer other than 200 means.
fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    #[derive(Deserialize)]
    struct Refusal {
        reason: Option<Value>,
        message: Option<String>,
    }
    let refusal = serde_json::from_slice::<Refusal>(body).ok();
    if status == StatusCode::SERVICE_UNAVAILABLE
        && let Some(reason) = refusal.as_ref().and_then(|refusal| refusal.reason.clone())
        && let Ok(UnavailableReason::NodeBootstrapping) = serde_json::from_value(reason)
    {
        return ClientError::Unavailable;
    }
    let message = refusal
        .and_then(|refusal| refusal.message)
        .or_else(|| serde_json::from_slice::<String>(body).ok())
        .unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    ClientError::Status {
        status: match status.canonical_reason() {
            Some(reason) => format!("{} {reason}", status.as_u16()),
            None => status.as_u16().to_string(),
        },
        message,
    }
}

/// Turns the columns of an answer into rows. There are as many rows as scores; a column may be
/// longer.
fn neighbours(body: &[u8], key_columns: &[&str]) -> Result<Neighbours, ClientError> {
    #[derive(Deserialize)]
    struct Answer {
        primary_keys: PrimaryKeys,
        similarity_scores: Vec<f32>,
    }
    let mut answer: Answer = serde_json::from_slice(body).map_err(|_| ClientError::InvalidJson)?;
    let count = answer.similarity_scores.len();
    let mut keys: Vec<Vec<Value>> = (0..count)
        .map(|_| Vec::with_capacity(key_columns.len()))
        .collect();
    for column in key_columns {
        let values = answer
            .primary_keys
            .take(column)
            .filter(|values| values.len() >= count)
            .ok_or(ClientError::InvalidJson)?;
        for (row, value) in keys.iter_mut().zip(values) {
            row.push(value);
        }
    }
    Ok(Neighbours {
        keys,
        similarity_scores: answer.similarity_scores,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_rows() {
        let body = br#"{"primary_keys":{"c":["x","y","z"],"p":[1,2]},"distances":[0,1],
            "similarity_scores":[1,0.5],"more":0}"#;
        let found = neighbours(body, &["p", "c"]).unwrap();
        assert_eq!(found.keys[0], vec![Value::from(1), Value::from("x")]);
        assert_eq!(found.keys[1], vec![Value::from(2), Value::from("y")]);
        assert_eq!(found.similarity_scores, [1.0, 0.5]);
    }

    #[test]
    fn an_answer_of_another_shape_is_invalid() {
        for body in [
            "",
            "[]",
            r#"{"primary_keys":{"p":[1]}}"#,
            r#"{"primary_keys":{"p":[1]},"similarity_scores":[1,2]}"#,
            r#"{"primary_keys":{"q":[1]},"similarity_scores":[1]}"#,
            r#"{"primary_keys":{"p":[1]},"similarity_scores":["1"]}"#,
            r#"{"primary_keys":{"p":[1]},"similarity_scores":[null]}"#,
        ] {
            assert_eq!(
                neighbours(body.as_bytes(), &["p"]),
                Err(ClientError::InvalidJson),
                "{body}"
            );
        }
    }

    #[test]
    fn error_bodies_are_decoded() {
        let text = |code: u16, body: &str| {
            refusal(StatusCode::from_u16(code).unwrap(), body.as_bytes()).to_string()
        };
        assert_eq!(
            text(404, "missing index: ks.none"),
            "Vector Store error: HTTP status 404 Not Found, message: missing index: ks.none"
        );
        assert_eq!(
            text(400, "\"quoted \\u00e9\""),
            "Vector Store error: HTTP status 400 Bad Request, message: quoted é"
        );
        assert_eq!(
            text(503, r#"{"reason":"INDEX_BUILDING","message":"12.500%"}"#),
            "Vector Store error: HTTP status 503 Service Unavailable, message: 12.500%"
        );
        assert_eq!(
            text(503, r#"{"reason":"NODE_BOOTSTRAPPING"}"#),
            "Vector Store service is unavailable"
        );
        assert_eq!(
            text(500, r#"{"reason":"NODE_BOOTSTRAPPING"}"#),
            "Vector Store error: HTTP status 500 Internal Server Error, message: {\"reason\":\"NODE_BOOTSTRAPPING\"}"
        );
        assert_eq!(
            text(503, r#"{"reason":"later","message":"m"}"#),
            "Vector Store error: HTTP status 503 Service Unavailable, message: m"
        );
    }

    #[test]
    fn base_uris_are_checked() {
        assert_eq!(
            checked_base_uri(" http://127.0.0.1:6080/ ").unwrap(),
            "http://127.0.0.1:6080"
        );
        for uri in [
            "",
            "127.0.0.1",
            "http://h",
            "https://h:1",
            "http://h:1/x",
            "http://h:1?q",
        ] {
            assert!(checked_base_uri(uri).is_err(), "{uri}");
        }
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(segment("My_idx-1.0"), "My_idx-1.0");
        assert_eq!(segment("a/b c%é"), "a%2Fb%20c%25%C3%A9");
    }
}

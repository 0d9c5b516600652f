//! Searches by the Vector Store's HTTP API, and what it says of an index.
//!
//! A searcher has a connection of its own and sends bodies that were made before: what is measured is the server,
//! and the client does as little as it can.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use store_api::types::{IndexState, IndexStatus};
use tokio::net::TcpStream;

use super::{Names, Questions};
use crate::load::{Done, Failure};

/// `http://HOST:PORT` of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Url {
    authority: String,
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let expected = || format!("{text:?} is not http://HOST:PORT");
        let authority = text.strip_prefix("http://").ok_or_else(expected)?;
        let authority = authority.trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').ok_or_else(expected)?;
        if host.is_empty() || host.contains('/') || port.parse::<u16>().is_err() {
            return Err(expected());
        }
        Ok(Url {
            authority: authority.to_owned(),
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// A connection that is opened when it is needed.
struct Connection {
    url: Url,
    timeout: Duration,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    fn new(url: &Url, timeout: Duration) -> Connection {
        Connection {
            url: url.clone(),
            timeout,
            sender: None,
        }
    }

    /// Status and body of an answer. After a failure the next request opens a new connection.
    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let sender = self.sender.take();
        let asked = tokio::time::timeout(self.timeout, self.ask_on(sender, method, path, body));
        asked.await.unwrap_or(Err(Failure("timeout".to_owned())))
    }

    async fn ask_on(
        &mut self,
        sender: Option<SendRequest<Full<Bytes>>>,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let mut sender = match sender {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await?,
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.url.authority)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| Failure(format!("request: {error}")))?;
        let broken = |error: hyper::Error| Failure(format!("connection broke: {error}"));
        sender.ready().await.map_err(broken)?;
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(broken)?;
        self.sender = Some(sender);
        Ok((status, body.to_bytes()))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let refused = |error: std::io::Error| Failure(format!("cannot connect: {}", error.kind()));
        let stream = TcpStream::connect(&self.url.authority)
            .await
            .map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Failure(format!("connection broke: {error}")))?;
        // Ends when the sender is dropped; what goes wrong the sender hears of too.
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// The bodies of all queries.
pub fn bodies(questions: &Questions) -> anyhow::Result<Arc<Vec<Bytes>>> {
    #[derive(Serialize)]
    struct Body<'a> {
        vector: &'a [f32],
        limit: usize,
    }
    let limit = questions.k;
    let bodies = questions
        .queries
        .rows()
        .map(|vector| Ok(serde_json::to_vec(&Body { vector, limit })?.into()));
    Ok(Arc::new(bodies.collect::<anyhow::Result<_>>()?))
}

/// Searches over one connection.
pub struct Searcher {
    connection: Connection,
    path: String,
    key_column: String,
    questions: Questions,
    bodies: Arc<Vec<Bytes>>,
}

impl Searcher {
    /// One that searches `names.index`; `bodies` are those of the questions.
    pub fn new(
        url: &Url,
        names: &Names,
        questions: &Questions,
        bodies: &Arc<Vec<Bytes>>,
        timeout: Duration,
    ) -> Searcher {
        Searcher {
            connection: Connection::new(url, timeout),
            path: format!("/api/v1/indexes/{}/{}/ann", names.keyspace, names.index),
            key_column: names.key_column.clone(),
            questions: questions.clone(),
            bodies: Arc::clone(bodies),
        }
    }

    /// Sends the `number`th search.
    pub async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let query = self.questions.query(number);
        let body = self.bodies[query].clone();
        let (status, body) = self.connection.ask(Method::POST, &self.path, body).await?;
        let done = Done::now();
        if status != StatusCode::OK {
            return Err(refusal(status, &body));
        }
        let ids = ids(&body, &self.key_column)?;
        Ok(self.questions.judged(query, done, ids))
    }
}

/// An answer other than 200, by status and what the body says of it.
fn refusal(status: StatusCode, body: &[u8]) -> Failure {
    #[derive(Deserialize)]
    struct Body {
        reason: String,
    }
    let code = status.as_u16();
    match serde_json::from_slice::<Body>(body) {
        Ok(body) => Failure(format!("HTTP {code} {}", body.reason)),
        Err(_) => Failure(format!("HTTP {code}")),
    }
}

/// The ids in an answer.
fn ids(body: &[u8], key_column: &str) -> Result<Vec<i64>, Failure> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        primary_keys: BTreeMap<&'a str, Vec<Id>>,
    }
    let answer: Answer<'_> = serde_json::from_slice(body)
        .map_err(|error| Failure(format!("answer not understood: {:?}", error.classify())))?;
    let mut keys = answer.primary_keys;
    let ids = keys.remove(key_column).ok_or_else(|| {
        Failure(format!(
            "no column {key_column} in the answer (--key-column)"
        ))
    })?;
    Ok(ids.into_iter().map(|id| id.0).collect())
}

/// An integer, as a number or as a string of digits.
struct Id(i64);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer")
            }

            fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<Id, E> {
                i64::try_from(id).map(Id).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, id: i64) -> Result<Id, E> {
                Ok(Id(id))
            }

            fn visit_str<E: serde::de::Error>(self, id: &str) -> Result<Id, E> {
                id.parse().map(Id).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// What the server says of an index.
pub async fn index_status(url: &Url, names: &Names) -> anyhow::Result<IndexStatus> {
    let path = format!("/api/v1/indexes/{}/{}/status", names.keyspace, names.index);
    let mut connection = Connection::new(url, Duration::from_secs(10));
    let (status, body) = connection
        .ask(Method::GET, &path, Bytes::new())
        .await
        .map_err(|Failure(kind)| anyhow::anyhow!("{url}: {kind}"))?;
    if status == StatusCode::NOT_FOUND {
        bail!(
            "{url} has no index {}.{}; `annulus bench build-index` makes one, --keyspace and --index name another",
            names.keyspace,
            names.index
        );
    }
    if status != StatusCode::OK {
        bail!("{url}{path}: {}", refusal(status, &body).0);
    }
    serde_json::from_slice(&body).with_context(|| format!("{url}{path}"))
}

/// What the server says to Prometheus.
pub async fn metrics(url: &Url) -> anyhow::Result<String> {
    let mut connection = Connection::new(url, Duration::from_secs(10));
    let (_, body) = connection
        .ask(Method::GET, "/metrics", Bytes::new())
        .await
        .map_err(|Failure(kind)| anyhow::anyhow!("{url}: {kind}"))?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Whether the index is there and serves, with an error that says what to do if not.
pub async fn check(url: &Url, names: &Names) -> anyhow::Result<()> {
    let status = index_status(url, names).await?;
    if status.status != IndexState::Serving {
        bail!(
            "index {}.{} is {:?}, not yet serving; wait until it is",
            names.keyspace,
            names.index,
            status.status
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_host_and_a_port() {
        let url: Url = "http://127.0.0.1:6080/".parse().unwrap();
        assert_eq!(url.to_string(), "http://127.0.0.1:6080");
        for text in [
            "127.0.0.1:6080",
            "http://h",
            "http://h:x",
            "http://h:1/a",
            "https://h:1",
            "http://:1",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    #[test]
    fn ids_are_numbers_or_digits() {
        let body = br#"{"primary_keys":{"p":["x","y"],"id":[7,"-3"]},"distances":[0,1]}"#;
        let failure = ids(body, "id").unwrap_err();
        assert!(failure.0.contains("not understood"), "{failure:?}");
        let body = br#"{"primary_keys":{"id":[7,"-3"]},"distances":[0,1]}"#;
        assert_eq!(ids(body, "id").unwrap(), [7, -3]);
        assert!(ids(body, "pk").unwrap_err().0.contains("--key-column"));
    }

    #[test]
    fn refusals_are_told_apart_by_status_and_reason() {
        let building = br#"{"reason":"INDEX_BUILDING","message":"12.500%"}"#;
        let failure = refusal(StatusCode::SERVICE_UNAVAILABLE, building);
        assert_eq!(failure.0, "HTTP 503 INDEX_BUILDING");
        assert_eq!(refusal(StatusCode::NOT_FOUND, b"missing").0, "HTTP 404");
    }
}

//! Searches by the Vector Store HTTP API, and reads the status and the options of an index.
//!
//! A searcher has a connection of its own and sends bodies that were made before. So the client
//! does as little as it can, and the server is measured.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use annulus_bench::data::SimilarityMetric;
use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use net::stream::ConnectedSocket;
use rustls::ClientConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store_api::types::{IndexInfo, IndexOptions, IndexState, IndexStatus};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::wire::{SearchBodies, SearchEncoding};
use super::{SearchQueries, TableNames};
use crate::load::{AnsweredRequest, RequestFailure};

/// The URL of a server, `http://HOST:PORT` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerUrl {
    is_secure: bool,
    authority: String,
}

impl ServerUrl {
    /// Whether requests go under TLS.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerUrl, String> {
        let expected = || format!("{text:?} is not http://HOST:PORT or https://HOST:PORT");
        let (scheme, authority) = text.split_once("://").ok_or_else(expected)?;
        let is_secure = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(expected()),
        };
        let authority = authority.trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').ok_or_else(expected)?;
        if host.is_empty() || host.contains('/') || port.parse::<u16>().is_err() {
            return Err(expected());
        }
        Ok(ServerUrl {
            is_secure,
            authority: authority.to_owned(),
        })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

/// A server, and what requests to it are sent with. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ApiServer {
    /// Its URL.
    pub url: ServerUrl,
    /// The TLS of connections; `None` for none.
    pub tls: Option<Arc<ClientConfig>>,
    /// The header `Authorization` of every request.
    pub authorization: Option<HeaderValue>,
}

/// A server that requires no login and has no TLS.
impl From<ServerUrl> for ApiServer {
    fn from(url: ServerUrl) -> ApiServer {
        ApiServer {
            url,
            tls: None,
            authorization: None,
        }
    }
}

impl fmt::Display for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// A connection that is opened with the first request.
struct ApiConnection {
    server: ApiServer,
    timeout: Duration,
    /// Whether every request opens a connection of its own.
    reconnect: bool,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl ApiConnection {
    fn new(server: &ApiServer, timeout: Duration, reconnect: bool) -> ApiConnection {
        ApiConnection {
            server: server.clone(),
            timeout,
            reconnect,
            sender: None,
        }
    }

    /// Sends a request. Returns the status and the body of the answer. After a failure the next
    /// request opens a new connection.
    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        wire: SearchEncoding,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), RequestFailure> {
        let (sender, timeout) = (self.sender.take(), self.timeout);
        let asked = self.ask_on(sender, method, path, wire, body);
        let asked = tokio::time::timeout(timeout, asked);
        asked
            .await
            .unwrap_or(Err(RequestFailure("timeout".to_owned())))
    }

    async fn ask_on(
        &mut self,
        sender: Option<SendRequest<Full<Bytes>>>,
        method: Method,
        path: &str,
        wire: SearchEncoding,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), RequestFailure> {
        let mut sender = match sender {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await?,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.server.url.authority)
            .header(CONTENT_TYPE, wire.content_type())
            .header(ACCEPT, wire.accepted());
        if let Some(authorization) = &self.server.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| RequestFailure(format!("request: {error}")))?;
        let broken = |error: hyper::Error| RequestFailure(format!("connection broke: {error}"));
        sender.ready().await.map_err(broken)?;
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(broken)?;
        self.sender = Some(sender).filter(|_| !self.reconnect);
        Ok((status, body.to_bytes()))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, RequestFailure> {
        let refused =
            |error: std::io::Error| RequestFailure(format!("cannot connect: {}", error.kind()));
        let authority = &self.server.url.authority;
        let stream = TcpStream::connect(authority).await.map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        let socket = ConnectedSocket::of_server(stream, authority, self.server.tls.clone()).await;
        let socket =
            socket.map_err(|error| RequestFailure(format!("cannot connect by TLS: {error}")))?;
        match socket {
            ConnectedSocket::Clear(stream) => begin(stream).await,
            ConnectedSocket::Tls(stream) => begin(stream).await,
        }
    }
}

/// Begins to send requests on a stream.
async fn begin(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<SendRequest<Full<Bytes>>, RequestFailure> {
    let (sender, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(|error| RequestFailure(format!("connection broke: {error}")))?;
    // The task ends when the sender is dropped. The sender gets its errors too.
    tokio::spawn(connection);
    Ok(sender)
}

/// A worker that searches over one connection.
pub struct ApiSearcher {
    connection: ApiConnection,
    path: String,
    key_column: String,
    questions: SearchQueries,
    bodies: SearchBodies,
}

impl ApiSearcher {
    /// Makes a worker that searches `names.index`; `bodies` must be those of `questions`.
    pub fn new(
        server: &ApiServer,
        names: &TableNames,
        questions: &SearchQueries,
        bodies: &SearchBodies,
        timeout: Duration,
    ) -> ApiSearcher {
        ApiSearcher {
            connection: ApiConnection::new(server, timeout, bodies.reconnect()),
            path: format!(
                "/api/v1/indexes/{}/{}/ann{}",
                names.keyspace,
                names.index,
                bodies.query_string()
            ),
            key_column: names.key_column.clone(),
            questions: questions.clone(),
            bodies: bodies.clone(),
        }
    }

    /// Sends the `number`th search.
    pub async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        let query = self.questions.query(number);
        let (wire, body) = (self.bodies.wire(), self.bodies.of(query));
        let asked = self.connection.ask(Method::POST, &self.path, wire, body);
        let (status, body) = asked.await?;
        let done = AnsweredRequest::now();
        if status != StatusCode::OK {
            return Err(refusal(status, &body));
        }
        let ids = wire.ids(body, &self.key_column)?;
        Ok(self.questions.judged(query, done, ids))
    }
}

/// The failure for an answer other than 200, by its status and the reason in its body.
fn refusal(status: StatusCode, body: &[u8]) -> RequestFailure {
    #[derive(Deserialize)]
    struct ErrorBody {
        reason: String,
    }
    let code = status.as_u16();
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => RequestFailure(format!("HTTP {code} {}", body.reason)),
        Err(_) => RequestFailure(format!("HTTP {code}")),
    }
}

/// Requests the status of an index. Fails if the server does not know the index.
pub async fn index_status(server: &ApiServer, names: &TableNames) -> anyhow::Result<IndexStatus> {
    let found = find_index_status(server, names).await?;
    found.ok_or_else(|| no_index(server, names))
}

/// Requests the status of an index. Returns `None` if the server does not know it.
pub async fn find_index_status(
    server: &ApiServer,
    names: &TableNames,
) -> anyhow::Result<Option<IndexStatus>> {
    let path = format!("/api/v1/indexes/{}/{}/status", names.keyspace, names.index);
    find(server, &path).await
}

/// Requests the options that an index was made with.
pub async fn index_info(server: &ApiServer, names: &TableNames) -> anyhow::Result<IndexInfo> {
    let path = format!("/api/v1/indexes/{}/{}", names.keyspace, names.index);
    let found = find(server, &path).await?;
    found.ok_or_else(|| no_index(server, names))
}

fn no_index(server: &ApiServer, names: &TableNames) -> anyhow::Error {
    anyhow::anyhow!(
        "{server} has no index {}.{}; make it with `annulus bench build-index`, or name another with --keyspace and --index",
        names.keyspace,
        names.index
    )
}

/// Gets and decodes the resource at `path`. Returns `None` if the server answers 404.
async fn find<T: DeserializeOwned>(server: &ApiServer, path: &str) -> anyhow::Result<Option<T>> {
    let mut connection = ApiConnection::new(server, Duration::from_secs(10), false);
    let (status, body) = connection
        .ask(Method::GET, path, SearchEncoding::Json, Bytes::new())
        .await
        .map_err(|RequestFailure(kind)| anyhow::anyhow!("{server}: {kind}"))?;
    if status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    if status != StatusCode::OK {
        bail!("{server}{path}: {}", refusal(status, &body).0);
    }
    let found = serde_json::from_slice(&body).with_context(|| format!("{server}{path}"))?;
    Ok(Some(found))
}

/// Gets the metrics of the server, in the text form of Prometheus.
pub async fn metrics(server: &ApiServer) -> anyhow::Result<String> {
    let mut connection = ApiConnection::new(server, Duration::from_secs(10), false);
    let (_, body) = connection
        .ask(Method::GET, "/metrics", SearchEncoding::Json, Bytes::new())
        .await
        .map_err(|RequestFailure(kind)| anyhow::anyhow!("{server}: {kind}"))?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Checks that the index exists and serves. The error says what to do.
pub async fn check(server: &ApiServer, names: &TableNames) -> anyhow::Result<()> {
    let status = index_status(server, names).await?;
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

/// A warning if the index finds the nearest by another metric than `expected`. `None` if the server
/// does not tell the metric: not every server does, and searches need no more.
pub async fn other_metric(
    server: &ApiServer,
    names: &TableNames,
    expected: Option<SimilarityMetric>,
) -> Option<String> {
    let expected = expected?;
    let info = index_info(server, names).await.ok()?;
    disagreement(&info.options, expected)
}

fn disagreement(options: &IndexOptions, expected: SimilarityMetric) -> Option<String> {
    let IndexOptions::Vector {
        similarity_function,
        ..
    } = options
    else {
        return None;
    };
    let agree = similarity_function.word() == Some(expected.name());
    (!agree).then(|| {
        format!(
            "the index measures by {similarity_function:?}, but the true neighbours are those by {}: recall means \
             nothing unless all vectors have one length (build-index --metric)",
            expected.name()
        )
    })
}

#[cfg(test)]
mod tests {
    use index::Quantization;

    use super::*;

    #[test]
    fn an_index_of_another_metric_is_told_of() {
        let of = |similarity_function| IndexOptions::Vector {
            dimensions: 2,
            maximum_node_connections: 8,
            construction_beam_width: 32,
            search_beam_width: 16,
            similarity_function,
            quantization: Quantization::F32,
        };
        let cosine = of(index::SimilarityFunction::Cosine);
        assert_eq!(disagreement(&cosine, SimilarityMetric::Cosine), None);
        let said = disagreement(&cosine, SimilarityMetric::Euclidean).unwrap();
        assert!(said.contains("by euclidean"), "{said}");
        assert!(
            disagreement(
                &of(index::SimilarityFunction::Hamming),
                SimilarityMetric::Cosine
            )
            .is_some()
        );
    }

    #[test]
    fn urls_have_a_host_and_a_port() {
        for (text, is_secure) in [
            ("http://127.0.0.1:6080/", false),
            ("https://127.0.0.1:6080/", true),
        ] {
            let url: ServerUrl = text.parse().unwrap();
            assert_eq!(format!("{url}/"), text);
            assert_eq!(url.is_secure(), is_secure);
        }
        for text in [
            "127.0.0.1:6080",
            "http://h",
            "http://h:x",
            "http://h:1/a",
            "ftp://h:1",
            "http://:1",
        ] {
            assert!(text.parse::<ServerUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn refusals_are_told_apart_by_status_and_reason() {
        let building = br#"{"reason":"INDEX_BUILDING","message":"12.500%"}"#;
        let failure = refusal(StatusCode::SERVICE_UNAVAILABLE, building);
        assert_eq!(failure.0, "HTTP 503 INDEX_BUILDING");
        assert_eq!(refusal(StatusCode::NOT_FOUND, b"missing").0, "HTTP 404");
    }
}

//! Embeddings of texts, from a server of OpenAI's form: `POST` of `{"model", "input": [text]}`,
//! which answers `{"data": [{"index", "embedding"}]}`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use credentials::files::{password, pem};
use futures::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, Receiver};
use tokio_rustls::TlsConnector;

use super::convert::vector_bytes;
use super::feed::FeedBatch;
use super::rows::FeedRow;
use crate::ToolError;

/// The requests in flight, of a batch of texts each.
const REQUESTS_IN_FLIGHT: usize = 4;

/// The longest answer, of 64 vectors of the most dimensions as text.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The longest time that an answer may take: models on a processor are slow.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// The tries of a request, and the pause after the first, which doubles.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Where systems have the certificates of public authorities.
static SYSTEM_AUTHORITIES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// A server of embeddings.
pub struct EmbeddingsClient {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<(ServerName<'static>, Arc<ClientConfig>)>,
    authorization: Option<HeaderValue>,
    model: String,
}

/// The flags that name a server of embeddings.
#[derive(Clone, Debug)]
pub struct EmbeddingsFlags {
    /// Its URL.
    pub url: String,
    /// The model.
    pub model: String,
    /// The file with the key of its API.
    pub key_file: Option<PathBuf>,
    /// The authorities of its certificate.
    pub authorities: Option<PathBuf>,
}

#[derive(Serialize)]
struct EmbeddingsRequest<'a> {
    model: &'a str,
    input: &'a [String],
}

#[derive(Deserialize)]
struct EmbeddingsAnswer {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// A connection, encrypted or not.
trait ByteConnection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteConnection for S {}

impl EmbeddingsClient {
    /// A client of the server.
    ///
    /// # Errors
    /// If the URL or a file can't be used.
    pub fn new(flags: &EmbeddingsFlags) -> Result<EmbeddingsClient, ToolError> {
        let wrong = |why: &str| ToolError::Usage(format!("--embeddings-url {}: {why}", flags.url));
        let uri: Uri = flags.url.parse().map_err(|_| wrong("it is no URL"))?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("write http://HOST:PORT/v1/embeddings")),
        };
        let host = uri.host().ok_or_else(|| wrong("it names no host"))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let tls = match is_https {
            false => None,
            true => {
                let name = ServerName::try_from(host.clone());
                let name = name.map_err(|_| wrong("a certificate can't have that name"))?;
                Some((name, client_config(flags.authorities.as_deref())?))
            }
        };
        let authorization = match &flags.key_file {
            None => None,
            Some(path) => {
                let key = password(path)?;
                let header = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
                let mut header = header.map_err(|_| {
                    ToolError::Usage(format!("{}: it holds no key of one line", path.display()))
                })?;
                header.set_sensitive(true);
                Some(header)
            }
        };
        Ok(EmbeddingsClient {
            uri,
            host,
            port,
            tls,
            authorization,
            model: flags.model.clone(),
        })
    }

    /// The embeddings of texts, in their order. A server that is busy is tried again.
    ///
    /// # Errors
    /// If the server can't be reached, refuses the texts, or answers something else.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ToolError> {
        let request = EmbeddingsRequest {
            model: &self.model,
            input: texts,
        };
        let failed = |why: String| {
            ToolError::Connection(format!("the embeddings server at {}: {why}", self.uri))
        };
        let body = serde_json::to_vec(&request).map_err(|error| failed(error.to_string()))?;
        let body = Bytes::from(body);
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=TRIES {
            let exchange = tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(body.clone()));
            let why = match exchange.await {
                Ok(Ok((StatusCode::OK, answer))) => {
                    return vectors(&answer, texts.len()).map_err(failed);
                }
                Ok(Ok((status, answer))) => {
                    let answer: String =
                        String::from_utf8_lossy(&answer).chars().take(300).collect();
                    let why = format!("{status}: {answer}");
                    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
                        return Err(failed(why));
                    }
                    why
                }
                Ok(Err(why)) => why,
                Err(_) => format!("no answer within {ANSWER_TIMEOUT:?}"),
            };
            if attempt == TRIES {
                return Err(failed(format!("{why} (tried {TRIES} times)")));
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(failed("no answer".to_owned()))
    }

    async fn exchange(&self, body: Bytes) -> Result<(StatusCode, Bytes), String> {
        let said = |error: &dyn ToString| error.to_string();
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(|error| said(&error))?;
        let stream: Box<dyn ByteConnection> = match &self.tls {
            None => Box::new(stream),
            Some((name, config)) => {
                let connector = TlsConnector::from(config.clone());
                let stream = connector.connect(name.clone(), stream).await;
                Box::new(stream.map_err(|error| said(&error))?)
            }
        };
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| said(&error))?;
        let driven = tokio::spawn(connection);
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        let mut request = Request::post(path)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| said(&error))?;
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| said(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await;
        let body = body.map_err(|error| said(&error))?;
        driven.abort();
        Ok((status, body.to_bytes()))
    }
}

fn client_config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, ToolError> {
    let system = || {
        SYSTEM_AUTHORITIES
            .iter()
            .map(Path::new)
            .find(|path| path.exists())
    };
    let path = authorities.or_else(system).ok_or_else(|| {
        ToolError::Usage(
            "this system has no list of authorities: name one with --embeddings-ca".to_owned(),
        )
    })?;
    let config = net::tls::client(&pem(path)?, None);
    config.map_err(|error| ToolError::Usage(error.to_string()))
}

/// The vectors of an answer, in the order of the texts.
fn vectors(answer: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let answer: EmbeddingsAnswer = serde_json::from_slice(answer)
        .map_err(|error| format!("its answer is not of OpenAI's form: {error}"))?;
    let mut vectors = vec![None; texts];
    for (position, item) in answer.data.into_iter().enumerate() {
        if let Some(vector) = vectors.get_mut(item.index.unwrap_or(position)) {
            *vector = Some(item.embedding);
        }
    }
    let vectors: Option<Vec<_>> = vectors.into_iter().collect();
    vectors.ok_or_else(|| format!("its answer lacks vectors of the {texts} texts"))
}

/// The column that gets the embeddings.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedColumn {
    /// Its position among the values of a row.
    pub position: usize,
    /// Its dimensions.
    pub dimensions: usize,
}

/// Passes batches on with the embeddings of their texts, in the order in which they come.
pub fn stage(
    client: Arc<EmbeddingsClient>,
    column: EmbeddedColumn,
    batches: Receiver<FeedBatch>,
) -> Receiver<FeedBatch> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let batches = stream::unfold(batches, |mut batches| async move {
            let batch = batches.recv().await?;
            Some((batch, batches))
        });
        let filled = batches.map(|batch| {
            let client = client.clone();
            async move { fill(&client, column, batch?).await }
        });
        let mut filled = std::pin::pin!(filled.buffered(REQUESTS_IN_FLIGHT));
        while let Some(batch) = filled.next().await {
            if sender.send(batch).await.is_err() {
                return;
            }
        }
    });
    receiver
}

/// Makes the embeddings of a batch. A row without a text has none, and null in its place.
async fn fill(client: &EmbeddingsClient, column: EmbeddedColumn, batch: Vec<FeedRow>) -> FeedBatch {
    let mut texts = Vec::new();
    for row in &batch {
        if let FeedRow::Converted(row) = row {
            texts.extend(row.text.clone());
        }
    }
    if texts.is_empty() {
        return Ok(batch);
    }
    let mut vectors = client.embed(&texts).await?.into_iter();
    let filled = batch.into_iter().map(|row| match row {
        FeedRow::Converted(mut row) if row.text.is_some() => {
            row.text = None;
            let vector = vectors.next().unwrap_or_default();
            if vector.len() != column.dimensions {
                return FeedRow::Rejected(row.refused(&format!(
                    "its embedding has {} elements, the column {}",
                    vector.len(),
                    column.dimensions
                )));
            }
            row.values[column.position] = Some(vector_bytes(&vector));
            FeedRow::Converted(row)
        }
        other => other,
    });
    Ok(filled.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(url: &str) -> EmbeddingsFlags {
        EmbeddingsFlags {
            url: url.to_owned(),
            model: "m".to_owned(),
            key_file: None,
            authorities: None,
        }
    }

    #[test]
    fn urls_that_name_no_server_are_refused() {
        for url in ["", "localhost:80", "ftp://a/b", "http://"] {
            let error = EmbeddingsClient::new(&flags(url)).err();
            let error = error.map(|error| error.to_string());
            assert!(
                error.is_some_and(|error| error.contains("--embeddings-url")),
                "{url}"
            );
        }
        let client = EmbeddingsClient::new(&flags("http://[::1]:8080/v1/embeddings")).ok();
        let client = client.map(|client| (client.host, client.port));
        assert_eq!(client, Some(("::1".to_owned(), 8080)));
    }

    #[test]
    fn vectors_come_in_the_order_of_the_texts() {
        let answer =
            br#"{"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]}"#;
        assert_eq!(vectors(answer, 2), Ok(vec![vec![1.0], vec![2.0]]));
        let answer = br#"{"data": [{"embedding": [1]}]}"#;
        assert_eq!(vectors(answer, 1), Ok(vec![vec![1.0]]));
        assert!(vectors(answer, 2).is_err());
        assert!(vectors(b"{}", 1).is_err());
    }
}

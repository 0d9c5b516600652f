//! The client: a connection for each request, in clear or under TLS, and the tries.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use credentials::files::{password, pem};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use crate::answer::vectors;
use crate::options::{EmbedderError, EmbedderLimits, EmbedderOptions};

/// The pause after the first try, which doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The most characters of a refusal that an error shows.
const REFUSAL_CHARACTERS: usize = 300;

/// Where systems have the certificates of public authorities.
static SYSTEM_AUTHORITIES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// A client of a server of embeddings.
pub struct TextEmbedder {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<(ServerName<'static>, Arc<ClientConfig>)>,
    authorization: Option<HeaderValue>,
    model: String,
    limits: EmbedderLimits,
}

#[derive(Serialize)]
struct TextsToEmbed<'a> {
    model: &'a str,
    input: &'a [String],
}

/// A connection, encrypted or not.
trait ByteConnection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteConnection for S {}

impl TextEmbedder {
    /// A client of the server.
    ///
    /// # Errors
    /// If the URL or a file can't be used.
    pub fn new(options: &EmbedderOptions) -> Result<TextEmbedder, EmbedderError> {
        let wrong = |why: &str| {
            // An address with a secret in it is not repeated.
            let host = options.url.split('@').next_back().unwrap_or_default();
            let shown = host.split('?').next().unwrap_or_default();
            EmbedderError::Options(format!("--embeddings-url {shown}: {why}"))
        };
        let uri: Uri = options.url.parse().map_err(|_| wrong("it is no URL"))?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("write http://HOST:PORT/v1/embeddings")),
        };
        let authority = uri.authority();
        if authority.is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong(
                "it has a name or a password: put the key of the API into a file (--embeddings-key-file)",
            ));
        }
        let host = uri.host().ok_or_else(|| wrong("it names no host"))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let tls = match is_https {
            false => None,
            true => {
                let name = ServerName::try_from(host.clone());
                let name = name.map_err(|_| wrong("a certificate can't have that name"))?;
                Some((name, client_config(options.authorities.as_deref())?))
            }
        };
        let key_file = options.key_file.as_deref();
        Ok(TextEmbedder {
            uri,
            host,
            port,
            tls,
            authorization: key_file.map(key).transpose()?,
            model: options.model.clone(),
            limits: options.limits,
        })
    }

    /// The name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The embeddings of texts, in their order. A server that is busy is tried again, if the limits
    /// say so.
    ///
    /// # Errors
    /// If the server can't be reached, refuses the texts, or answers something else.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedderError> {
        let request = TextsToEmbed {
            model: &self.model,
            input: texts,
        };
        let failed = |why: String| {
            EmbedderError::Server(format!("the embeddings server at {}: {why}", self.shown()))
        };
        let body = serde_json::to_vec(&request).map_err(|error| failed(error.to_string()))?;
        let body = Bytes::from(body);
        let EmbedderLimits {
            answer_within,
            tries,
            ..
        } = self.limits;
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=tries {
            let exchange = tokio::time::timeout(answer_within, self.exchange(body.clone()));
            let why = match exchange.await {
                Ok(Ok((StatusCode::OK, answer))) => {
                    return vectors(&answer, texts.len()).map_err(failed);
                }
                Ok(Ok((status, answer))) => {
                    let answer = String::from_utf8_lossy(&answer);
                    let answer: String = answer.chars().take(REFUSAL_CHARACTERS).collect();
                    let why = format!("{status}: {answer}");
                    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
                        return Err(failed(why));
                    }
                    why
                }
                Ok(Err(why)) => why,
                Err(_) => format!("no answer within {answer_within:?}"),
            };
            if attempt == tries {
                return Err(failed(match tries {
                    1 => why,
                    tries => format!("{why} (tried {tries} times)"),
                }));
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(failed("no answer".to_owned()))
    }

    /// The address without its query, which may have a key.
    fn shown(&self) -> String {
        let uri = self.uri.to_string();
        uri.split('?').next().unwrap_or_default().to_owned()
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
        // It ends with this exchange, also if that takes too long.
        let _driven = AbortOnDropHandle::new(tokio::spawn(connection));
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
        let body = Limited::new(answer.into_body(), self.limits.answer_bytes_max)
            .collect()
            .await;
        let body = body.map_err(|error| said(&error))?;
        Ok((status, body.to_bytes()))
    }
}

impl std::fmt::Debug for TextEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TextEmbedder({})", self.shown())
    }
}

/// The header with the key in a file.
fn key(path: &Path) -> Result<HeaderValue, EmbedderError> {
    let key = password(path)?;
    let header = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
    let mut header = header.map_err(|_| {
        EmbedderError::Options(format!("{}: it holds no key of one line", path.display()))
    })?;
    header.set_sensitive(true);
    Ok(header)
}

fn client_config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, EmbedderError> {
    let system = || {
        SYSTEM_AUTHORITIES
            .iter()
            .map(Path::new)
            .find(|path| path.exists())
    };
    let path = authorities.or_else(system).ok_or_else(|| {
        EmbedderError::Options(
            "this system has no list of authorities: name one with --embeddings-ca".to_owned(),
        )
    })?;
    let config = net::tls::client(&pem(path)?, None);
    config.map_err(|error| EmbedderError::Options(error.to_string()))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn options(url: &str) -> EmbedderOptions {
        EmbedderOptions {
            url: url.to_owned(),
            model: "m".to_owned(),
            key_file: None,
            authorities: None,
            limits: EmbedderLimits::OF_A_USER,
        }
    }

    #[test]
    fn urls_that_name_no_server_are_refused() {
        for url in [
            "",
            "localhost:80",
            "ftp://a/b",
            "http://",
            "http://ada:lovelace@localhost/v1/embeddings",
        ] {
            let error = TextEmbedder::new(&options(url)).unwrap_err().to_string();
            assert!(error.contains("--embeddings-url"), "{url}: {error}");
            assert!(!error.contains("lovelace"), "{error}");
        }
        let client = TextEmbedder::new(&options("http://[::1]:8080/v1/embeddings?key=secret"));
        let client = client.unwrap();
        assert_eq!((client.host.as_str(), client.port), ("::1", 8080));
        assert!(!format!("{client:?}").contains("secret"));
    }

    /// Answers one request with this text.
    async fn answer_once(listener: TcpListener, answer: String) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            let mut bytes = [0; 1024];
            let read = stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "the client hung up");
            request.extend_from_slice(&bytes[..read]);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
    }

    /// The outcome of a request to a server that answers so.
    async fn embedded(answer: &str) -> Result<Vec<Vec<f32>>, EmbedderError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
        let client = TextEmbedder::new(&options(&url)).unwrap();
        let answering = tokio::spawn(answer_once(listener, answer.to_owned()));
        let found = client.embed(&["tea".to_owned()]).await;
        answering.await.unwrap();
        found
    }

    #[tokio::test]
    async fn a_text_gets_its_vector_or_the_reason_why_not() {
        let with = |status: &str, body: &str| {
            let length = body.len();
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        let found = embedded(&with("200 OK", r#"{"data": [{"embedding": [0.5, 1]}]}"#)).await;
        assert_eq!(found, Ok(vec![vec![0.5, 1.0]]));
        for (answer, why) in [
            (with("404 Not Found", "no such model"), "no such model"),
            (with("503 Service Unavailable", "busy"), "busy"),
            (with("200 OK", "[]"), "not of OpenAI's form"),
            ("nonsense\r\n\r\n".to_owned(), "the embeddings server at"),
        ] {
            let error = embedded(&answer).await.unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}

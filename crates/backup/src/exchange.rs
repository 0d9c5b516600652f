//! The HTTP client of stores: connections of hyper, encrypted by rustls.
//!
//! `object_store` makes and signs requests. Here they are sent. Answers that say that the store is
//! busy become errors ([`ExchangeFault`]), so that one place, the module `objects`, decides about
//! all retries.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper::{StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector as TcpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use net::tls::Pem;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::error::BackupError;
use crate::files;

/// The longest time until a connection is open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which an idle connection is closed, before stores and their proxies do it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The time after which a peer that acknowledges nothing counts as away.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// Idle connections: as many as chunks are in flight.
const IDLE_CONNECTIONS: usize = 8;

/// Bytes of the longest file of authorities, which is some times that of all public ones.
const CA_BYTES_MAX: u64 = 4 << 20;

/// The name at which machines of Google's cloud get their credentials, without encryption. Others
/// use link-local addresses.
const METADATA_HOST: &str = "metadata.google.internal";

/// The longest time until such a service answers.
const METADATA_TIMEOUT: Duration = Duration::from_secs(2);

/// A request that has no answer to go on with.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeFault {
    /// The store is busy or has failed for now.
    #[error("the store answered {status}")]
    Busy {
        /// The status of the answer.
        status: StatusCode,
    },
    /// The store lacks the operation.
    #[error("the store lacks this operation (it answered {status})")]
    Lacking {
        /// The status of the answer.
        status: StatusCode,
    },
    /// The address is not encrypted.
    #[error(
        "http://{host} would be reached without encryption: use an https address, or --allow-http"
    )]
    InClear {
        /// The host.
        host: String,
    },
    /// The certificate of the store is refused.
    #[error("{text}: name the authority of the store's certificate with --location-ca")]
    Certificate {
        /// The reason.
        text: String,
    },
    /// No credentials are set, and the machine has none of its own.
    #[error("no credentials are set, and this machine has none of its own ({text})")]
    NoCredentials {
        /// The reason.
        text: String,
    },
    /// The connection can't be made, or broke.
    #[error("{text}")]
    Connection {
        /// The reason.
        text: String,
    },
}

impl ExchangeFault {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            ExchangeFault::Busy { .. } | ExchangeFault::Connection { .. }
        )
    }

    fn into_error(self) -> HttpError {
        // No kind that object_store would retry by itself.
        HttpError::new(HttpErrorKind::Unknown, self)
    }

    /// The fault that an error of hyper is.
    fn of(error: &(dyn Error + 'static)) -> ExchangeFault {
        let mut text = error.to_string();
        let mut cause = error.source();
        let mut is_certificate = of_certificate(error);
        while let Some(error) = cause {
            is_certificate |= of_certificate(error);
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        match is_certificate {
            true => ExchangeFault::Certificate { text },
            false => ExchangeFault::Connection { text },
        }
    }
}

/// Whether an error is that of a certificate. An error of the system hides the one inside of it
/// from `source`.
fn of_certificate(error: &(dyn Error + 'static)) -> bool {
    let inner = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    let of_tls = match inner {
        Some(inner) => inner.downcast_ref::<rustls::Error>(),
        None => error.downcast_ref::<rustls::Error>(),
    };
    matches!(of_tls, Some(rustls::Error::InvalidCertificate(_)))
}

/// The fault of a request inside of an error of `object_store`.
pub fn fault_in<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e ExchangeFault> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(fault) = error.downcast_ref::<ExchangeFault>() {
            return Some(fault);
        }
        cause = error.source();
    }
    None
}

/// Makes HTTP clients for `object_store`, which all share their connections.
#[derive(Clone, Debug)]
pub struct StoreConnector {
    exchange: StoreExchange,
}

impl StoreConnector {
    /// `ca` is a PEM file of the authorities to trust; `None` for those of the system.
    pub fn new(ca: Option<&Path>, allow_http: bool) -> Result<StoreConnector, BackupError> {
        let tls = match ca {
            Some(file) => private_authority(file)?,
            None => authorities_of_system()?,
        };
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_keepalive(Some(PEER_TIMEOUT));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(PEER_TIMEOUT));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build(StoreSocket { tcp, tls });
        Ok(StoreConnector {
            exchange: StoreExchange { client, allow_http },
        })
    }
}

fn private_authority(file: &Path) -> Result<Arc<ClientConfig>, BackupError> {
    let wrong = |problem: String| BackupError::OptionFile {
        file: file.to_owned(),
        problem,
    };
    let bytes = files::read_option(file, CA_BYTES_MAX)?;
    let pem = Pem {
        bytes: bytes.into(),
        origin: "--location-ca".to_owned(),
    };
    net::tls::client(&pem, None).map_err(|error| wrong(error.to_string()))
}

/// Without any authority, connections in clear still work, and others say what is missing.
fn authorities_of_system() -> Result<Arc<ClientConfig>, BackupError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| BackupError::OptionFile {
            file: PathBuf::from("--location-ca"),
            problem: error.to_string(),
        })?;
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

impl HttpConnector for StoreConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.exchange.clone()))
    }
}

/// Sends requests and receives answers.
#[derive(Clone, Debug)]
struct StoreExchange {
    client: Client<StoreSocket, HttpRequestBody>,
    allow_http: bool,
}

impl StoreExchange {
    fn may_reach(&self, uri: &Uri) -> Result<(), ExchangeFault> {
        let host = uri.host().unwrap_or_default();
        let is_encrypted = uri.scheme_str() == Some("https");
        if is_encrypted || self.allow_http || is_loopback(host) || is_metadata(host) {
            return Ok(());
        }
        Err(ExchangeFault::InClear {
            host: host.to_owned(),
        })
    }
}

fn address(host: &str) -> Option<IpAddr> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    name.parse().ok()
}

/// Whether a host is this machine.
fn is_loopback(host: &str) -> bool {
    match address(host) {
        Some(address) => address.to_canonical().is_loopback(),
        None => host == "localhost",
    }
}

/// Whether a host is the service of a cloud that only a machine in it reaches.
fn is_metadata(host: &str) -> bool {
    match address(host) {
        Some(IpAddr::V4(address)) => address.is_link_local(),
        Some(IpAddr::V6(_)) => false,
        None => host == METADATA_HOST,
    }
}

#[async_trait]
impl HttpService for StoreExchange {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_metadata = is_metadata(request.uri().host().unwrap_or_default());
        let answered = if is_metadata {
            let answered = tokio::time::timeout(METADATA_TIMEOUT, self.answer(request)).await;
            let answered = answered.unwrap_or_else(|_| {
                let text = "its service doesn't answer".to_owned();
                Err(ExchangeFault::Connection { text })
            });
            answered.map_err(|fault| ExchangeFault::NoCredentials {
                text: fault.to_string(),
            })
        } else {
            self.answer(request).await
        };
        answered.map_err(ExchangeFault::into_error)
    }
}

impl StoreExchange {
    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, ExchangeFault> {
        self.may_reach(request.uri())?;
        let answer = self.client.request(request).await;
        let (parts, body) = answer
            .map_err(|error| ExchangeFault::of(&error))?
            .into_parts();
        let status = parts.status;
        if status == StatusCode::NOT_IMPLEMENTED {
            return Err(ExchangeFault::Lacking { status });
        }
        let waits = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
        if status.is_server_error() || waits.contains(&status) {
            return Err(ExchangeFault::Busy { status });
        }
        let body = body.map_err(|error| ExchangeFault::of(&error).into_error());
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// Opens connections to the host of a request.
#[derive(Clone, Debug)]
struct StoreSocket {
    tcp: TcpConnector,
    tls: Arc<ClientConfig>,
}

/// A connection, encrypted or not.
trait StoreStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> StoreStream for S {}

impl Connection for Box<dyn StoreStream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

type OpenedStream = TokioIo<Box<dyn StoreStream>>;

type OpeningFault = Box<dyn Error + Send + Sync>;

impl Service<Uri> for StoreSocket {
    type Response = OpenedStream;
    type Error = OpeningFault;
    type Future = Pin<Box<dyn Future<Output = Result<OpenedStream, OpeningFault>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OpeningFault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let socket = self.clone();
        Box::pin(async move {
            let opened = tokio::time::timeout(CONNECT_TIMEOUT * 2, socket.open(uri)).await;
            opened.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        })
    }
}

impl StoreSocket {
    async fn open(mut self, uri: Uri) -> Result<OpenedStream, OpeningFault> {
        let is_encrypted = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default();
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let stream = self.tcp.call(uri).await?.into_inner();
        let stream: Box<dyn StoreStream> = if is_encrypted {
            let name = ServerName::try_from(host)?;
            Box::new(TlsConnector::from(self.tls).connect(name, stream).await?)
        } else {
            Box::new(stream)
        };
        Ok(TokioIo::new(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_alone_is_reached_in_clear() {
        for host in ["127.0.0.1", "[::1]", "localhost"] {
            assert!(is_loopback(host) && !is_metadata(host), "{host}");
        }
        for host in ["169.254.169.254", METADATA_HOST] {
            assert!(is_metadata(host) && !is_loopback(host), "{host}");
        }
        for host in ["10.0.0.1", "s3.example.com", "[fe80::1]", ""] {
            assert!(!is_loopback(host) && !is_metadata(host), "{host}");
        }
        let exchange = StoreConnector::new(None, false).unwrap().exchange;
        let uri: Uri = "http://s3.example.com/bucket".parse().unwrap();
        let fault = exchange.may_reach(&uri).unwrap_err();
        assert!(fault.to_string().contains("--allow-http"), "{fault}");
        assert!(!fault.is_transient());
        let uri: Uri = "https://s3.example.com/bucket".parse().unwrap();
        assert!(exchange.may_reach(&uri).is_ok());
    }

    #[test]
    fn a_wrong_certificate_is_named_as_one() {
        let refused = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let fault = ExchangeFault::of(&io::Error::other(refused));
        assert!(fault.to_string().contains("--location-ca"), "{fault}");
        let fault = ExchangeFault::of(&io::Error::from(io::ErrorKind::ConnectionRefused));
        assert!(fault.is_transient());
    }

    #[tokio::test]
    async fn a_host_that_is_away_is_a_transient_fault() {
        let connector = StoreConnector::new(None, false).unwrap();
        let uri: Uri = "http://127.0.0.1:1/bucket".parse().unwrap();
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = uri;
        let error = connector.exchange.call(request).await.unwrap_err();
        assert!(fault_in(&error).unwrap().is_transient(), "{error}");
    }
}

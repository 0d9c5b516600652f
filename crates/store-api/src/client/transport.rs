//! Connections to one address of a service.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// The shortest pause of keepalives, as systems count it in seconds.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);

/// Connects to a fixed address, whatever host the request names.
#[derive(Clone)]
pub struct AddressConnector {
    /// The address.
    pub address: SocketAddr,
    /// The name that the service's certificate must have, with the TLS configuration; `None` for
    /// connections in clear.
    pub tls: Option<(ServerName<'static>, Arc<ClientConfig>)>,
    /// The longest time until a connection is open, or a dead one is noticed.
    pub timeout: Duration,
}

/// A connection, encrypted or not.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

impl Connection for Box<dyn ByteStream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Service<Uri> for AddressConnector {
    type Response = TokioIo<Box<dyn ByteStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            tokio::time::timeout(connector.timeout, connector.connect())
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        })
    }
}

impl AddressConnector {
    async fn connect(&self) -> io::Result<TokioIo<Box<dyn ByteStream>>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        let keepalive = TcpKeepalive::new()
            .with_time(self.timeout.max(KEEPALIVE_MIN))
            .with_interval(self.timeout.max(KEEPALIVE_MIN));
        socket.set_tcp_keepalive(&keepalive)?;
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(Some(self.timeout))?;
        let stream: Box<dyn ByteStream> = match &self.tls {
            None => Box::new(stream),
            Some((name, config)) => {
                let connector = TlsConnector::from(config.clone());
                Box::new(connector.connect(name.clone(), stream).await?)
            }
        };
        Ok(TokioIo::new(stream))
    }
}

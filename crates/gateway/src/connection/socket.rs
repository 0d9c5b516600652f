//! The two sockets of a connection, each in clear or under TLS.
//!
//! TLS ends at the gateway, and each side has TLS or not by itself. Frames take the same way over
//! either kind of socket.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// A connected socket without TLS or with it.
pub(super) enum Socket {
    Clear(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// The socket of a client. With `tls` the client has to begin with a handshake.
    pub(super) async fn of_client(
        socket: TcpStream,
        tls: Option<Arc<ServerConfig>>,
    ) -> io::Result<Socket> {
        Ok(match tls {
            None => Socket::Clear(socket),
            Some(config) => {
                let accepted = TlsAcceptor::from(config).accept(socket).await?;
                Socket::Tls(Box::new(accepted.into()))
            }
        })
    }

    /// The socket to the node at `address`, a `HOST:PORT`. With `tls` the node's certificate has to
    /// name that host.
    pub(super) async fn of_node(
        socket: TcpStream,
        address: &str,
        tls: Option<Arc<ClientConfig>>,
    ) -> io::Result<Socket> {
        Ok(match tls {
            None => Socket::Clear(socket),
            Some(config) => {
                let connector = TlsConnector::from(config);
                let connected = connector.connect(host(address)?, socket).await?;
                Socket::Tls(Box::new(connected.into()))
            }
        })
    }

    /// The address of this side of the socket.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Socket::Clear(socket) => socket.local_addr(),
            Socket::Tls(socket) => socket.get_ref().0.local_addr(),
        }
    }

    /// Splits the socket into its two directions. It is closed when both are dropped.
    pub(super) fn into_split(self) -> (ReadHalf, WriteHalf) {
        match self {
            Socket::Clear(socket) => {
                let (read, write) = socket.into_split();
                (ReadHalf::Clear(read), WriteHalf::Clear(write))
            }
            Socket::Tls(socket) => {
                let (read, write) = tokio::io::split(*socket);
                (ReadHalf::Tls(read), WriteHalf::Tls(write))
            }
        }
    }
}

/// The name that the node's certificate has to have: the host of a `HOST:PORT`.
fn host(address: &str) -> io::Result<ServerName<'static>> {
    let host = address
        .rsplit_once(':')
        .map_or(address, |(host, _)| host)
        .trim_start_matches('[')
        .trim_end_matches(']');
    ServerName::try_from(host.to_owned()).map_err(io::Error::other)
}

/// Writes bytes and flushes them: TLS keeps back what the socket does not take at once.
pub(super) async fn send(socket: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    socket.write_all(bytes).await?;
    socket.flush().await
}

/// The direction from the peer to the gateway.
pub(super) enum ReadHalf {
    Clear(OwnedReadHalf),
    Tls(tokio::io::ReadHalf<TlsStream<TcpStream>>),
}

/// The direction from the gateway to the peer.
pub(super) enum WriteHalf {
    Clear(OwnedWriteHalf),
    Tls(tokio::io::WriteHalf<TlsStream<TcpStream>>),
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ReadHalf::Clear(half) => Pin::new(half).poll_read(context, buffer),
            ReadHalf::Tls(half) => match Pin::new(half).poll_read(context, buffer) {
                // Drivers close without the goodbye of TLS. The lengths of frames show whether
                // bytes are missing.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    Poll::Ready(Ok(()))
                }
                polled => polled,
            },
        }
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            WriteHalf::Clear(half) => Pin::new(half).poll_write(context, bytes),
            WriteHalf::Tls(half) => Pin::new(half).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            WriteHalf::Clear(half) => Pin::new(half).poll_flush(context),
            WriteHalf::Tls(half) => Pin::new(half).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            WriteHalf::Clear(half) => Pin::new(half).poll_shutdown(context),
            WriteHalf::Tls(half) => Pin::new(half).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_to_name_the_host_alone() {
        for (address, named) in [
            ("10.0.0.1:9042", "10.0.0.1"),
            ("[2001:db8::1]:9042", "2001:db8::1"),
            ("node.example:9042", "node.example"),
        ] {
            assert_eq!(host(address).unwrap().to_str(), named);
        }
        assert!(host("a host:9042").is_err());
    }
}

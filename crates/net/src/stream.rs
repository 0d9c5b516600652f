//! A connected socket, in clear or under TLS. Bytes take the same way over either kind.

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

use crate::tls;

/// The most bytes that TLS keeps for a peer that does not take them. A writer waits then.
const UNTAKEN_BYTES_MAX: usize = 32 << 10;

/// The most memory that TLS takes for a connection, in bytes: what is buffered for the peer, a
/// record that is still coming in, and its text. The messages of a handshake take no more.
pub const TLS_BYTES: usize = 64 << 10;

/// The first byte of a TLS connection: a record of the handshake.
pub const TLS_FIRST_BYTE: u8 = 0x16;

/// The TLS of a connection, by the names of the standards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// The version of the protocol, such as `TLSv1.3`.
    pub protocol: String,
    /// The cipher suite, such as `TLS_AES_256_GCM_SHA384`.
    pub cipher_suite: String,
}

/// A connected socket without TLS or with it.
pub enum ConnectedSocket {
    /// Without TLS.
    Clear(TcpStream),
    /// With TLS, after its handshake.
    Tls(Box<TlsStream<TcpStream>>),
}

impl ConnectedSocket {
    /// The socket of a client. With `tls` the client has to begin with a handshake.
    ///
    /// # Errors
    /// If the handshake fails.
    pub async fn of_client(
        socket: TcpStream,
        tls: Option<Arc<ServerConfig>>,
    ) -> io::Result<ConnectedSocket> {
        Ok(match tls {
            None => ConnectedSocket::Clear(socket),
            Some(config) => {
                let accepting = TlsAcceptor::from(config).accept_with(socket, |connection| {
                    connection.set_buffer_limit(Some(UNTAKEN_BYTES_MAX));
                });
                let accepted = accepting.await?;
                ConnectedSocket::Tls(Box::new(accepted.into()))
            }
        })
    }

    /// The socket to the server at `address`, a `HOST:PORT`. With `tls` the server's certificate
    /// has to name that host.
    ///
    /// # Errors
    /// If the handshake fails.
    pub async fn of_server(
        socket: TcpStream,
        address: &str,
        tls: Option<Arc<ClientConfig>>,
    ) -> io::Result<ConnectedSocket> {
        Ok(match tls {
            None => ConnectedSocket::Clear(socket),
            Some(config) => {
                let connector = TlsConnector::from(config);
                let connected = connector.connect(host(address)?, socket).await?;
                ConnectedSocket::Tls(Box::new(connected.into()))
            }
        })
    }

    /// The identity that a client has proved by a certificate ([`tls::identity`]). `None` without
    /// TLS, and if the server requests no certificates.
    pub fn client_identity(&self) -> Option<String> {
        let ConnectedSocket::Tls(socket) = self else {
            return None;
        };
        let certificates = socket.get_ref().1.peer_certificates()?;
        tls::identity(certificates.first()?)
    }

    /// The protocol and the cipher suite of a connection under TLS.
    pub fn tls_session(&self) -> Option<TlsSession> {
        let ConnectedSocket::Tls(socket) = self else {
            return None;
        };
        let connection = socket.get_ref().1;
        let protocol = connection.protocol_version()?.as_str()?;
        let suite = connection.negotiated_cipher_suite()?.suite().as_str()?;
        Some(TlsSession {
            protocol: protocol.replace('_', "."),
            cipher_suite: suite.replace("TLS13_", "TLS_"),
        })
    }

    /// The address of this side of the socket.
    ///
    /// # Errors
    /// If the socket is closed already.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            ConnectedSocket::Clear(socket) => socket.local_addr(),
            ConnectedSocket::Tls(socket) => socket.get_ref().0.local_addr(),
        }
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// If the other end is gone already.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            ConnectedSocket::Clear(socket) => socket.peer_addr(),
            ConnectedSocket::Tls(socket) => socket.get_ref().0.peer_addr(),
        }
    }

    /// Splits the socket into its two directions. It is closed when both are dropped.
    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        match self {
            ConnectedSocket::Clear(socket) => {
                let (read, write) = socket.into_split();
                (ReadHalf::Clear(read), WriteHalf::Clear(write))
            }
            ConnectedSocket::Tls(socket) => {
                let (read, write) = tokio::io::split(*socket);
                (ReadHalf::Tls(read), WriteHalf::Tls(write))
            }
        }
    }
}

/// The name that the server's certificate has to have: the host of a `HOST:PORT`.
fn host(address: &str) -> io::Result<ServerName<'static>> {
    let host = address
        .rsplit_once(':')
        .map_or(address, |(host, _)| host)
        .trim_start_matches('[')
        .trim_end_matches(']');
    ServerName::try_from(host.to_owned()).map_err(io::Error::other)
}

/// Writes bytes and flushes them: TLS keeps back what the socket does not take at once.
///
/// # Errors
/// If the socket fails.
pub async fn send(socket: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    socket.write_all(bytes).await?;
    socket.flush().await
}

/// The direction from the peer to here.
pub enum ReadHalf {
    /// Without TLS.
    Clear(OwnedReadHalf),
    /// With TLS.
    Tls(tokio::io::ReadHalf<TlsStream<TcpStream>>),
}

/// The direction from here to the peer.
pub enum WriteHalf {
    /// Without TLS.
    Clear(OwnedWriteHalf),
    /// With TLS.
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

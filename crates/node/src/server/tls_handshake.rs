//! The steps from an accepted socket to one whose frames are read: its addresses, and the TLS
//! handshake if the listener has a certificate.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use client_memory::{MemoryAccount, MemoryCharge};
use cql::error::CqlError;
use cql::wire::{ProtocolVersion, Response, ResponseContext};
use net::pending_connections::ConnectionAdmission;
use net::sockets::linger;
use net::stream::{ConnectedSocket, TLS_BYTES, TLS_FIRST_BYTE, send};
use rustls::ServerConfig;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::peer::ConnectionInfo;
use super::service::CqlService;
use super::shared::ListenerState;

/// The bytes of a frame up to its stream, by which a client knows the request that an answer is to.
const UP_TO_STREAM: usize = 4;

/// A connection whose frames may be read.
pub(super) struct AcceptedConnection {
    pub socket: ConnectedSocket,
    pub peer: ConnectionInfo,
    /// The charge for the memory that TLS takes.
    pub tls_memory: Option<MemoryCharge>,
}

/// Lets a connection in. `None` if it has ended: the client has disconnected, failed the handshake,
/// or did not finish it before the deadline. The log says so.
pub(super) async fn enter<S: CqlService>(
    stream: TcpStream,
    shared: &ListenerState<S>,
    account: &MemoryAccount,
    guest: &ConnectionAdmission,
    deadline: Instant,
) -> Option<AcceptedConnection> {
    let (Ok(local), Ok(remote)) = (stream.local_addr(), stream.peer_addr()) else {
        // The client has disconnected already.
        return None;
    };
    let mut tls_memory = None;
    let socket = match shared.tls.load_full() {
        None => ConnectedSocket::Clear(stream),
        Some(config) => {
            let mut charge = account.charge();
            let room = guest.find_room(|| charge.resize(TLS_BYTES).ok());
            if room.await.is_none() {
                shared.counters.connections_refused.add(1);
                tracing::warn!(
                    "clients hold all the memory that they may: a connection is refused"
                );
                return None;
            }
            tls_memory = Some(charge);
            let shaking = timeout_at(deadline, accept_tls(stream, config));
            match shared.shutdown.stop.run_until_cancelled(shaking).await? {
                Ok(Ok(socket)) => socket,
                Ok(Err(HandshakeFailure::WithoutTls)) => {
                    if let Some(clients) = shared.seldom.without_tls.is_due() {
                        tracing::warn!(
                            %remote,
                            clients,
                            "clients without TLS are refused: this port serves TLS alone, so connect with TLS (cqlsh --ssl)"
                        );
                    }
                    return None;
                }
                Ok(Err(HandshakeFailure::Gone)) => return None,
                Ok(Err(HandshakeFailure::Handshake(error))) => {
                    if let Some(clients) = shared.seldom.handshakes.is_due() {
                        tracing::warn!(%remote, %error, clients, "TLS handshakes of clients failed");
                    }
                    return None;
                }
                Err(_) => {
                    tracing::debug!(%remote, "a client did not finish a TLS handshake in time");
                    return None;
                }
            }
        }
    };
    let peer = ConnectionInfo {
        local,
        remote,
        certificate_identity: socket.client_identity(),
        tls: socket.tls_session(),
    };
    Some(AcceptedConnection {
        socket,
        peer,
        tls_memory,
    })
}

/// The reason for which a client is not served.
enum HandshakeFailure {
    /// It speaks no TLS, and has got an error.
    WithoutTls,
    /// It has closed the connection before it said anything, as checks of ports do.
    Gone,
    /// The handshake failed.
    Handshake(io::Error),
}

async fn accept_tls(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> Result<ConnectedSocket, HandshakeFailure> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(0) | Err(_) => Err(HandshakeFailure::Gone),
        Ok(_) if first[0] != TLS_FIRST_BYTE => {
            refuse_clear(stream).await;
            Err(HandshakeFailure::WithoutTls)
        }
        Ok(_) => {
            let accepted = ConnectedSocket::of_client(stream, Some(config)).await;
            accepted.map_err(HandshakeFailure::Handshake)
        }
    }
}

/// Answers the first request of a client that speaks no TLS, so that its driver can tell the
/// reason. A client of another protocol may send less than a request, and is not answered.
async fn refuse_clear(mut stream: TcpStream) {
    let mut begin = [0; UP_TO_STREAM];
    if stream.read_exact(&mut begin).await.is_err() {
        return;
    }
    let stream_id = i16::from_be_bytes([begin[2], begin[3]]);
    let error = CqlError::server(
        "this port serves clients under TLS alone: connect with TLS (cqlsh --ssl, or the driver's SSL options)",
    );
    let mut answer = BytesMut::new();
    let version = ProtocolVersion::from_number(begin[0]).unwrap_or_default();
    let context = ResponseContext::new(stream_id).at(version);
    Response::Error(error).encode(&context, None, &mut answer);
    if send(&mut stream, &answer).await.is_ok() {
        linger(&mut stream).await;
    }
}

//! The far end of a connection, as far as the server knows it.

use std::net::SocketAddr;

use net::stream::TlsSession;

/// The addresses of a connection, and the identity that its client has proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The address of this server to which the client connected.
    pub local: SocketAddr,
    /// The address of the client.
    pub remote: SocketAddr,
    /// The name in the client's certificate, if it showed one that an authority of the listener
    /// has signed.
    pub certificate_identity: Option<String>,
    /// The TLS of the connection; `None` if it is in clear.
    pub tls: Option<TlsSession>,
}

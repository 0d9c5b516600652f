//! The options of listeners: their addresses and their bounds. Every bound has a default.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use client_memory::{MemoryBudget, MemoryShares};
use cql::wire::DEFAULT_BODY_LIMIT;
use rustls::ServerConfig;

/// A listener with bounds of its own. The requests at one listener take nothing from another's.
#[derive(Clone, Debug)]
pub struct CqlListenerOptions {
    /// The name of the listener in logs and metrics.
    pub name: &'static str,
    /// The address to listen on. With port 0 the system chooses a free port.
    pub address: SocketAddr,
    /// The most connections open at once. Beyond it the longest silent one that has not begun gives
    /// way, and if all have begun, further ones are closed as they come.
    pub connections_max: usize,
    /// The most requests that are worked on at once. Further ones are answered Overloaded.
    pub requests_max: usize,
    /// The certificate of the listener, which then serves clients only under TLS. `None` for no
    /// TLS.
    pub tls: Option<Arc<ServerConfig>>,
    /// The memory that requests and answers may hold. The bytes of a large request stay in the
    /// socket for a while if there is no room. A request or an answer that gets no room is answered
    /// Overloaded.
    pub memory: MemoryBudget,
    /// The bounds of each connection.
    pub connection: ConnectionOptions,
}

impl Default for CqlListenerOptions {
    fn default() -> Self {
        CqlListenerOptions {
            name: "public",
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9042),
            connections_max: 10_000,
            requests_max: 32_768,
            tls: None,
            memory: MemoryBudget::new(MemoryShares::default().cql),
            connection: ConnectionOptions::default(),
        }
    }
}

/// The bounds of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// The longest body of a frame, in bytes as sent or decompressed. A longer one is refused.
    pub frame_body_max: usize,
    /// The most requests of the connection that are worked on at once. Further ones are answered
    /// Overloaded.
    pub requests_max: usize,
    /// The most bytes of answers that the client has not read. Beyond it no more requests are read.
    pub unread_bytes_max: usize,
    /// The longest time in which a client must complete the handshake.
    pub handshake_timeout: Duration,
    /// The longest time for which a client may send no bytes of an unfinished frame, or take no
    /// bytes of an answer.
    pub stall_timeout: Duration,
    /// The longest time from the beginning to the end of one frame.
    pub frame_timeout: Duration,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        ConnectionOptions {
            frame_body_max: DEFAULT_BODY_LIMIT,
            requests_max: 16_384,
            unread_bytes_max: 32 << 20,
            handshake_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            frame_timeout: Duration::from_secs(120),
        }
    }
}

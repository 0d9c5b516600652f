//! How a node serves: where it listens and how much it takes on. Every bound has a default.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use client_memory::{Budget, Shares};
use cql::wire::DEFAULT_BODY_LIMIT;

/// How a node serves.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The listeners. Drivers are told the address that they came to.
    pub listeners: Vec<ListenerOptions>,
    /// Bytes that prepared statements may take, about: beyond it the least useful are forgotten, and drivers prepare them
    /// again.
    pub prepared_bytes_max: u64,
    /// The name of the data center that the node is in.
    pub data_center: String,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            listeners: vec![ListenerOptions::default()],
            prepared_bytes_max: Shares::default().prepared as u64,
            data_center: crate::system::DATA_CENTER.to_owned(),
        }
    }
}

/// A listener with a budget of its own: what clients of one listener ask for takes nothing from another's.
#[derive(Clone, Debug)]
pub struct ListenerOptions {
    /// What logs and metrics call it.
    pub name: &'static str,
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Connections open at once; more are closed as they come.
    pub connections_max: usize,
    /// Requests worked on at once; more are answered Overloaded.
    pub requests_max: usize,
    /// What requests and answers may hold. Requests are left in the socket until there is room, and answers for which there
    /// is none are Overloaded.
    pub memory: Budget,
    /// The bounds of each connection.
    pub connection: ConnectionOptions,
}

impl Default for ListenerOptions {
    fn default() -> Self {
        ListenerOptions {
            name: "public",
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9042),
            connections_max: 10_000,
            requests_max: 32_768,
            memory: Budget::new(Shares::default().cql),
            connection: ConnectionOptions::default(),
        }
    }
}

/// The bounds of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Bytes of a frame's body, as sent or decompressed; a longer one is refused.
    pub frame_body_max: usize,
    /// Requests worked on at once; more are answered Overloaded.
    pub requests_max: usize,
    /// Bytes of answers that the client has not read yet; beyond it no more requests are read.
    pub unread_bytes_max: usize,
    /// How long a client may take to open a connection.
    pub handshake_timeout: Duration,
    /// How long a client may take to send the next bytes of a frame it has begun, or to take the next bytes
    /// of an answer.
    pub stall_timeout: Duration,
    /// How long a client may take to send the whole of a frame.
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

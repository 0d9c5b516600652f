//! The sockets of the HTTP API.

use std::net::SocketAddr;
use std::time::Duration;

use client_memory::MemoryShares;
use http_server::{ConnectionLimits, HttpListenerOptions, OverflowPolicy};
use net::tls::TlsOptions;

/// The options of one socket of the HTTP API.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiSocketOptions {
    /// The address of the listener. Port 0 takes a free port.
    pub address: SocketAddr,
    /// The names that the listener answers to, in addition to those of the loopback address. A
    /// listener on a loopback address answers to no other name. A listener elsewhere answers to any
    /// name if there are none here.
    pub names: Vec<String>,
    /// The certificate with which the listener speaks HTTPS; `None` for HTTP only.
    pub tls: Option<TlsOptions>,
    /// Whether a listener with a certificate refuses every request in clear. Otherwise it refuses
    /// searches and changes, as ScyllaDB's own service does.
    pub tls_alone: bool,
    /// The number of searches taken in at a time, including those that wait. More are refused with
    /// 503.
    pub searches_max: usize,
    /// The longest time that a search may wait. A search that can't begin within it is refused with
    /// 503, immediately if that can be foreseen.
    pub search_wait_max: Duration,
    /// The limit for bytes of answers that clients have not taken yet. Answers beyond it are
    /// refused with 503.
    pub answer_bytes_max: usize,
    /// The limit for bytes of request bodies in transit, which are charged as they come. Bodies
    /// beyond it are refused with 503. A body that arrives whole at once is not charged.
    pub bodies_bytes_max: usize,
    /// The limit for connections at a time. At the limit, the connection that has been silent for
    /// the longest is closed.
    pub connections_max: usize,
    /// The longest time that a connection may be open without a complete first request; then it is
    /// closed.
    pub mute_max: Duration,
    /// The limit for the bytes of a request body. Larger bodies are refused with 413.
    pub body_bytes_max: usize,
    /// The longest time that a body may take to arrive. Slower ones are refused with 408.
    pub body_timeout: Duration,
    /// The answer to searches with keys that the service does not know.
    pub unknown_keys: UnknownKeyRule,
}

/// The rule for keys of a search that the service does not know. Within a filter they are refused
/// by either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownKeyRule {
    /// Such a search is refused with 400. Its answer might hold rows that were not wanted.
    #[default]
    Refused,
    /// They are left unread, as ScyllaDB's own service does, and counted.
    Counted,
}

impl ApiSocketOptions {
    /// The default of [`ApiSocketOptions::searches_max`].
    pub const SEARCHES_MAX: usize = 4096;

    /// The default of [`ApiSocketOptions::search_wait_max`].
    pub const SEARCH_WAIT_MAX: Duration = Duration::from_secs(2);

    /// A listener with the default budgets.
    pub fn new(address: SocketAddr) -> ApiSocketOptions {
        ApiSocketOptions {
            address,
            names: Vec::new(),
            tls: None,
            tls_alone: false,
            searches_max: Self::SEARCHES_MAX,
            search_wait_max: Self::SEARCH_WAIT_MAX,
            answer_bytes_max: MemoryShares::default().http_answers,
            bodies_bytes_max: MemoryShares::default().http_bodies,
            connections_max: 16_384,
            mute_max: Duration::from_secs(30),
            // The limit of the framework that ScyllaDB's own service uses. 16,000 dimensions take
            // about 340 KB.
            body_bytes_max: 2 << 20,
            body_timeout: Duration::from_secs(10),
            unknown_keys: UnknownKeyRule::default(),
        }
    }

    /// The options of the server's listener.
    pub(crate) fn http(&self) -> HttpListenerOptions {
        HttpListenerOptions {
            address: self.address,
            names: self.names.clone(),
            tls_alone: self.tls_alone,
            answer_bytes_max: self.answer_bytes_max,
            connections_max: self.connections_max,
            when_full: OverflowPolicy::SilentGivesWay,
            connection: ConnectionLimits {
                mute_max: self.mute_max,
                ..ConnectionLimits::default()
            },
        }
    }

    /// Sets the budgets for memory to this listener's part of the shares. `listeners` is the number
    /// of listeners that divide them.
    #[must_use]
    pub fn with_memory(self, shares: MemoryShares, listeners: usize) -> ApiSocketOptions {
        ApiSocketOptions {
            answer_bytes_max: shares.http_answers / listeners,
            bodies_bytes_max: shares.http_bodies / listeners,
            ..self
        }
    }
}

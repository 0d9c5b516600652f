//! The sockets of the HTTP API.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use client_memory::Shares;

/// A socket of the HTTP API.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerOptions {
    /// Where it listens; port 0 takes a free one.
    pub address: SocketAddr,
    /// Names that it answers to beside those of the loopback address. On a loopback address it answers to no other;
    /// elsewhere to any if there are none here.
    pub names: Vec<String>,
    /// With a certificate it speaks HTTPS too; absent: HTTP alone.
    pub tls: Option<TlsOptions>,
    /// Searches taken in at a time, waiting ones included; more are refused with 503.
    pub searches_max: usize,
    /// A search that can't begin within this is refused with 503, at once if that can be told.
    pub search_wait_max: Duration,
    /// Bytes of answers that clients have not yet taken; answers beyond this are refused with 503.
    pub answer_bytes_max: usize,
    /// Bytes of bodies that are on their way, charged as they come; bodies beyond this are refused with 503. One that comes at once
    /// is not waited for, and so not counted.
    pub bodies_bytes_max: usize,
    /// Connections at a time; at the limit the one that has been silent for the longest gives way.
    pub connections_max: usize,
    /// A connection that has not asked anything by then is closed.
    pub mute_max: Duration,
    /// Bodies beyond this are refused with 413.
    pub body_bytes_max: usize,
    /// Bodies that take longer to arrive are refused with 408.
    pub body_timeout: Duration,
}

/// What a listener proves itself with, and whom it lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// The listener's certificate, and those between it and the authority.
    pub certificates: Pem,
    /// The certificate's key.
    pub key: Pem,
    /// Who may come in.
    pub clients: TlsClients,
}

/// Who may come in to a listener with a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsClients {
    /// Everyone. Requests in clear are answered too, but not searches: those get 403.
    Anyone,
    /// Clients with a certificate that one of these authorities has signed.
    SignedBy(Pem),
}

/// Certificates or a key in the PEM format.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The text.
    pub bytes: Arc<[u8]>,
    /// Where it comes from, for messages.
    pub origin: String,
}

impl fmt::Debug for Pem {
    /// Without the text, which may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pem").field(&self.origin).finish()
    }
}

impl ListenerOptions {
    /// The default of [`ListenerOptions::searches_max`].
    pub const SEARCHES_MAX: usize = 4096;

    /// The default of [`ListenerOptions::search_wait_max`].
    pub const SEARCH_WAIT_MAX: Duration = Duration::from_secs(2);

    /// A listener with the default budgets.
    pub fn new(address: SocketAddr) -> ListenerOptions {
        ListenerOptions {
            address,
            names: Vec::new(),
            tls: None,
            searches_max: Self::SEARCHES_MAX,
            search_wait_max: Self::SEARCH_WAIT_MAX,
            answer_bytes_max: Shares::default().http_answers,
            bodies_bytes_max: Shares::default().http_bodies,
            connections_max: 16_384,
            mute_max: Duration::from_secs(30),
            // What the original's framework allows; 16,000 dimensions take about 340 KB.
            body_bytes_max: 2 << 20,
            body_timeout: Duration::from_secs(10),
        }
    }

    /// With the memory that it has as one of so many listeners.
    pub fn with_memory(self, shares: Shares, listeners: usize) -> ListenerOptions {
        ListenerOptions {
            answer_bytes_max: shares.http_answers / listeners,
            bodies_bytes_max: shares.http_bodies / listeners,
            ..self
        }
    }
}

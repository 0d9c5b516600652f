//! The options of a listener.

use std::net::SocketAddr;
use std::time::Duration;

/// The longest time that a connection of HTTP/1.1 may wait for a whole request head. A client that
/// keeps connections open may not send a request for long. If it sends one just as its connection
/// is closed, it takes the service for dead. So this time is long, and the number of connections is
/// bounded instead.
const IDLE_MAX: Duration = Duration::from_secs(3600);

/// The options of one listener, but for its certificate.
#[derive(Clone, Debug)]
pub struct HttpListenerOptions {
    /// The address of the listener. Port 0 takes a free port.
    pub address: SocketAddr,
    /// The names that the listener answers to, in addition to those of the loopback address. A
    /// listener on a loopback address answers to no other name. A listener elsewhere answers to any
    /// name if there are none here.
    pub names: Vec<String>,
    /// Whether a listener with a certificate refuses every request in clear. Otherwise it refuses
    /// those of private routes.
    pub tls_alone: bool,
    /// The limit for bytes of answers that clients have not taken yet. Answers beyond it are
    /// refused with 503.
    pub answer_bytes_max: usize,
    /// The limit for connections at a time.
    pub connections_max: usize,
    /// The fate of one connection more than that.
    pub when_full: OverflowPolicy,
    /// The bounds of each connection.
    pub connection: ConnectionLimits,
}

/// The fate of one connection more than a listener may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// It is served, and the connection that has been silent for the longest is closed.
    SilentGivesWay,
    /// It waits until another has ended.
    Waits,
}

/// The bounds of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The longest time that a connection may be open without a complete first request; then it is
    /// closed.
    pub mute_max: Duration,
    /// The longest time that a connection of HTTP/1.1 may wait for the head of another request.
    pub idle_max: Duration,
    /// The longest time that a connection may be open in all; `None` for any time.
    pub open_max: Option<Duration>,
    /// Whether the listener speaks HTTP/2, too.
    pub has_http2: bool,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
            mute_max: Duration::from_secs(30),
            idle_max: IDLE_MAX,
            open_max: None,
            has_http2: true,
        }
    }
}

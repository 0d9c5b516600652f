//! The state that the connections of a listener share.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use net::log_limiter::LogLimiter;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::RequestLimiter;
use super::counters::ListenerCounters;
use super::options::CqlListenerOptions;

/// The parts that the connections of a listener share.
pub(super) struct ListenerState<S> {
    pub service: Arc<S>,
    pub options: CqlListenerOptions,
    pub admission: RequestLimiter,
    pub counters: Arc<ListenerCounters>,
    pub shutdown: StopSignals,
    /// The certificate for clients that connect from now on. `None` for no TLS.
    pub tls: ArcSwapOption<ServerConfig>,
    /// Cancelled when the present connections must end. A connection takes it before it looks at
    /// `tls`.
    pub connections: ArcSwap<CancellationToken>,
    pub seldom: HandshakeLogLimits,
}

/// Limits the log lines about clients that fail before their first frame.
#[derive(Default)]
pub(super) struct HandshakeLogLimits {
    /// Clients that speak no TLS where it is required.
    pub without_tls: LogLimiter,
    /// Handshakes that failed.
    pub handshakes: LogLimiter,
}

/// Signals the tasks of a server to stop, and the server that they have stopped.
#[derive(Clone, Default)]
pub(super) struct StopSignals {
    /// Cancelled when no more connections and requests may be taken.
    pub stop: CancellationToken,
    /// Cancelled when the server no longer waits for clients to take their answers.
    pub kill: CancellationToken,
    /// The tasks of listeners, connections and requests.
    pub tasks: TaskTracker,
}

//! The state that the connections of a listener share.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use net::seldom::Seldom;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::Admission;
use super::counters::Counters;
use super::options::ListenerOptions;

/// The parts that the connections of a listener share.
pub(super) struct Shared<S> {
    pub service: Arc<S>,
    pub options: ListenerOptions,
    pub admission: Admission,
    pub counters: Arc<Counters>,
    pub shutdown: Shutdown,
    /// The certificate for clients that connect from now on. `None` for no TLS.
    pub tls: ArcSwapOption<ServerConfig>,
    /// Cancelled when the present connections must end. A connection takes it before it looks at
    /// `tls`.
    pub connections: ArcSwap<CancellationToken>,
    pub seldom: Refusals,
}

/// Limits the log lines about clients that fail before their first frame.
#[derive(Default)]
pub(super) struct Refusals {
    /// Clients that speak no TLS where it is required.
    pub without_tls: Seldom,
    /// Handshakes that failed.
    pub handshakes: Seldom,
}

/// Signals the tasks of a server to stop, and the server that they have stopped.
#[derive(Clone, Default)]
pub(super) struct Shutdown {
    /// Cancelled when no more connections and requests may be taken.
    pub stop: CancellationToken,
    /// Cancelled when the server no longer waits for clients to take their answers.
    pub kill: CancellationToken,
    /// The tasks of listeners, connections and requests.
    pub tasks: TaskTracker,
}

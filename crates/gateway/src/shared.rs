//! The state that all connections of a gateway share.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use http_server::{MetricsHistory, MetricsRegistry};
use net::log_limiter::LogLimiter;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer_cache::AnswerCache;
use crate::catalog::IndexCatalog;
use crate::clients::OpenConnections;
use crate::metrics::{GaugeReadings, RequestCounters};
use crate::node_requests::AnswerMemory;
use crate::options::GatewayOptions;
use crate::prepared::StatementsById;
use crate::ring::Ring;
use crate::writes::ChangeLog;

/// The state that all connections of a gateway share.
pub(crate) struct ServingState {
    /// The settings of the gateway.
    pub(crate) options: GatewayOptions,
    /// The TLS of new client connections; without one they are in clear.
    pub(crate) client_tls: ArcSwapOption<ServerConfig>,
    /// Cancelled when the present connections must end, those to come left aside. A connection
    /// takes it before it looks at `client_tls`.
    pub(crate) connections: ArcSwap<CancellationToken>,
    /// The gateways before the nodes of the cluster.
    pub(crate) ring: Arc<Ring>,
    /// The prepared statements of the gateway.
    pub(crate) prepared: Arc<StatementsById>,
    /// The definitions of vector indexes.
    pub(crate) catalog: Arc<IndexCatalog>,
    /// The state that all writes to change logs share.
    pub(crate) log: Arc<ChangeLog>,
    /// The open connections of clients.
    pub(crate) clients: Arc<OpenConnections>,
    /// The counters that metrics show.
    pub(crate) metrics: Arc<RequestCounters>,
    /// The families of metrics that the gateway shows.
    pub(crate) registry: MetricsRegistry,
    /// The values of the main metrics in the last hours.
    pub(crate) history: MetricsHistory,
    /// Answers that many clients request.
    pub(crate) answer_cache: Arc<AnswerCache>,
    /// The memory for the rows of searches.
    pub(crate) answer_memory: AnswerMemory,
    /// Cancelled when the gateway stops: no more connections and no more requests are taken.
    pub(crate) stop: CancellationToken,
    /// Cancelled when the gateway's time to stop is over: nothing waits for answers any more.
    pub(crate) kill: CancellationToken,
    /// The tasks of the gateway, which a stop waits for.
    pub(crate) tasks: TaskTracker,
    /// Limits the log lines about clients that are refused because the cluster cannot be reached.
    pub(crate) refused: LogLimiter,
}

impl ServingState {
    /// The values that metrics show of this moment.
    pub(crate) fn gauges(&self) -> GaugeReadings {
        let clocks = self.catalog.clocks();
        GaugeReadings {
            connections: self.clients.open().len(),
            refuses_writes: clocks.is_wrong() || self.catalog.snapshot().lapsed(),
            node_clock: clocks.of_node(),
            gateway_clocks: clocks.of_gateways(),
        }
    }
}

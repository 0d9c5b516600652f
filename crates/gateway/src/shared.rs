//! The state that all connections of a gateway share.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use net::seldom::Seldom;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog::Catalog;
use crate::clients::Clients;
use crate::inquiry::AnswerMemory;
use crate::kept_answers::KeptAnswers;
use crate::metrics::{Gauges, Metrics};
use crate::options::GatewayOptions;
use crate::prepared::PreparedStatements;
use crate::ring::Ring;
use crate::writes::ChangeLog;

/// The state that all connections of a gateway share.
pub(crate) struct Shared {
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
    pub(crate) prepared: Arc<PreparedStatements>,
    /// The definitions of vector indexes.
    pub(crate) catalog: Arc<Catalog>,
    /// The state that all writes to change logs share.
    pub(crate) log: Arc<ChangeLog>,
    /// The open connections of clients.
    pub(crate) clients: Arc<Clients>,
    /// The counters that metrics show.
    pub(crate) metrics: Arc<Metrics>,
    /// Answers that many clients request.
    pub(crate) kept_answers: Arc<KeptAnswers>,
    /// The memory for the rows of searches.
    pub(crate) answer_memory: AnswerMemory,
    /// Cancelled when the gateway stops: no more connections and no more requests are taken.
    pub(crate) stop: CancellationToken,
    /// Cancelled when the gateway's time to stop is over: nothing waits for answers any more.
    pub(crate) kill: CancellationToken,
    /// The tasks of the gateway, which a stop waits for.
    pub(crate) tasks: TaskTracker,
    /// Limits the log lines about clients that are refused because the cluster cannot be reached.
    pub(crate) refused: Seldom,
}

impl Shared {
    /// The values that metrics show of this moment.
    pub(crate) fn gauges(&self) -> Gauges {
        let clocks = self.catalog.clocks();
        Gauges {
            connections: self.clients.open().len(),
            refuses_writes: clocks.is_wrong() || self.catalog.snapshot().lapsed(),
            node_clock: clocks.of_node(),
            gateway_clocks: clocks.of_gateways(),
        }
    }
}

//! A gateway: started and stopped as a whole.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use http_server::{BoundHttpListener, MetricsHistory, MetricsRegistry, TokenSet};
use net::listener::{BindError, Listener};
use net::log_limiter::LogLimiter;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog::IndexCatalog;
use crate::clients::OpenConnections;
use crate::http_routes;
use crate::listener::accept;
use crate::log_clock::LogClock;
use crate::metrics::RequestCounters;
use crate::node_requests::AnswerMemory;
use crate::options::GatewayOptions;
use crate::prepared::StatementsById;
use crate::shared::ServingState;
use crate::writes::{ChangeLog, LATE_AFTER};

/// A running gateway. It goes on when this value is dropped; [`Gateway::stop`] ends it.
pub struct Gateway {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    shared: Arc<ServingState>,
}

impl Gateway {
    /// Starts a gateway, which listens and serves from now on. Its node need not be reachable yet.
    /// Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If one of the addresses cannot be listened on.
    pub async fn start(options: GatewayOptions) -> Result<Gateway, BindError> {
        let listener = Listener::bind(options.address).await?;
        let address = listener.address();
        let for_metrics = match options.metrics_address {
            Some(address) => Some(http_routes::bind(address).await?),
            None => None,
        };
        let metrics = Arc::<RequestCounters>::default();
        let registry = MetricsRegistry::default();
        let clients = Arc::new(OpenConnections::default());
        let clock = Arc::new(LogClock::new(options.clock.clone()));
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        let catalog = IndexCatalog::start(
            options.catalog.clone(),
            address.to_string(),
            clients.clone(),
            clock.clone(),
            (stop.clone(), kill.clone()),
            |follower| {
                tasks.spawn(follower);
            },
        );
        let shared = Arc::new(ServingState {
            ring: Arc::new(options.ring.clone()),
            prepared: Arc::new(StatementsById::new(options.prepared_bytes_max)),
            log: Arc::new(ChangeLog::new(
                options.batch_bytes_max,
                LATE_AFTER,
                clock,
                metrics.clone(),
            )),
            catalog,
            clients,
            metrics,
            history: MetricsHistory::new(registry.clone()),
            registry,
            answer_cache: Arc::default(),
            answer_memory: AnswerMemory::new(options.answer_bytes_max),
            kill,
            tasks,
            refused: LogLimiter::default(),
            client_tls: ArcSwapOption::new(options.client_tls.clone()),
            connections: ArcSwap::from_pointee(stop.child_token()),
            stop,
            options,
        });
        let (counted, maintenance) = (shared.clients.clone(), &shared.options.maintenance);
        maintenance.count_also(move || counted.in_flight());
        shared.tasks.spawn(accept(listener, shared.clone()));
        let metrics_address = for_metrics.as_ref().map(BoundHttpListener::address);
        if let Some(bound) = for_metrics {
            serve_metrics(bound, &shared, address);
        }
        Ok(Gateway {
            address,
            metrics_address,
            shared,
        })
    }

    /// The address that the gateway listens on, with the port that was chosen if it was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address at which the gateway answers `GET /metrics`; `None` if it does not.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// The metrics that the gateway shows. The process around it may add families to them.
    pub fn metrics(&self) -> &MetricsRegistry {
        &self.shared.registry
    }

    /// The connections of clients, to be read at any time: those that are open, all that were
    /// accepted, and those that gave way to others before they had begun.
    pub fn connections(&self) -> impl Fn() -> (u64, u64, u64) + Send + Sync + use<> {
        // The registry, which the state has, may hold it.
        let shared = Arc::downgrade(&self.shared);
        move || {
            let Some(shared) = shared.upgrade() else {
                return (0, 0, 0);
            };
            let (opened, given_way) = shared.metrics.connections();
            (shared.clients.open().len() as u64, opened, given_way)
        }
    }

    /// Whether clients are served, to be read at any time.
    pub fn readiness(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || {
            let shared = shared.upgrade();
            shared.is_some_and(|shared| shared.catalog.is_ready())
        }
    }

    /// Waits until the gateway has read the definitions of vector indexes from the cluster. Clients
    /// are not served before.
    pub async fn ready(&self) {
        self.shared.catalog.ready().await;
    }

    /// Uses `tls` for clients that connect from now on, in place of [`GatewayOptions::client_tls`].
    /// If there are `other_rules` for certificates of clients, present connections end once their
    /// requests in flight are answered. Else they go on.
    pub fn renew_client_tls(&self, tls: Arc<ServerConfig>, other_rules: bool) {
        self.shared.client_tls.store(Some(tls));
        if other_rules {
            let from_now_on = Arc::new(self.shared.stop.child_token());
            self.shared.connections.swap(from_now_on).cancel();
        }
    }

    /// Takes other tokens for `GET /metrics`. Returns whether they differ.
    pub fn renew_tokens(&self, tokens: Option<TokenSet>) -> bool {
        self.shared.options.tokens.replace(tokens)
    }

    /// Stops the gateway. It accepts no connections and reads no requests any more, waits at most
    /// `grace` for the answers to requests in flight, then closes all connections. Returns true if
    /// all requests were answered in time.
    pub async fn stop(&self, grace: Duration) -> bool {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        let in_time = tokio::time::timeout(grace, self.shared.tasks.wait())
            .await
            .is_ok();
        self.shared.kill.cancel();
        in_time
    }
}

/// Serves the listener of metrics, and samples them for its history, until the gateway stops.
fn serve_metrics(bound: BoundHttpListener, shared: &Arc<ServingState>, address: SocketAddr) {
    let served = http_routes::serve(bound, shared, address);
    let stop = shared.stop.clone();
    let sampled = shared.clone();
    shared.tasks.spawn(async move {
        let now_s = || clock::seconds(sampled.options.clock.now_micros());
        tokio::select! {
            () = stop.cancelled() => {}
            () = sampled.history.run(now_s) => {}
        }
        served.stop();
        served.stopped().await;
    });
}

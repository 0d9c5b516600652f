//! The listener: accepts connections of clients and limits their number.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog::Catalog;
use crate::clients::Clients;
use crate::connection;
use crate::inquiry::AnswerMemory;
use crate::kept_answers::KeptAnswers;
use crate::metrics::{Gauges, Metrics};
use crate::options::GatewayOptions;
use crate::prepared::PreparedStatements;
use crate::ring::Ring;
use crate::seldom::Seldom;
use crate::writes::ChangeLog;

/// The time after which the kernel probes a silent peer.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
/// The time between two probes of a silent peer.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// The pause after a failed accept, which mostly fails for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The state that all connections of a gateway share.
pub(crate) struct Shared {
    /// The settings of the gateway.
    pub(crate) options: GatewayOptions,
    /// The TLS of new client connections; without one they are in clear.
    pub(crate) client_tls: ArcSwapOption<ServerConfig>,
    /// The gateways before the nodes of the cluster.
    pub(crate) ring: Arc<Ring>,
    /// The meanings of prepared statements.
    pub(crate) prepared: Arc<PreparedStatements>,
    /// The definitions of vector indexes.
    pub(crate) catalog: Arc<Catalog>,
    /// The state that all writes to change logs share.
    pub(crate) log: Arc<ChangeLog>,
    /// The open connections of clients.
    pub(crate) clients: Arc<Clients>,
    /// The counters that metrics show.
    pub(crate) metrics: Arc<Metrics>,
    /// Answers that many clients ask for.
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

/// Accepts connections until the gateway stops.
pub(crate) async fn accept(socket: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(
        shared.options.connections_max.min(Semaphore::MAX_PERMITS),
    ));
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = shared.stop.cancelled() => return,
        };
        let client = match accepted {
            Ok((client, _)) => client,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::warn!("too many connections: one refused");
            continue;
        };
        if let Err(error) = prepare(&client) {
            tracing::debug!(%error, "a connection was gone before it was served");
            continue;
        }
        let shared = shared.clone();
        let reactors = shared.options.reactors.clone();
        let tracked = shared.tasks.token();
        let served = reactors.serve(client, move |client| async move {
            connection::serve(client, shared).await;
            drop((place, tracked));
        });
        if let Err(error) = served {
            tracing::debug!(%error, "a connection was gone before it was served");
        }
    }
}

/// Sets the options of a socket: small frames are sent at once, and keepalive finds a peer that is
/// gone.
pub(crate) fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

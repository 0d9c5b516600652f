//! The listener: taking connections and bounding their number.

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
use crate::options::GatewayOptions;
use crate::prepared::PreparedStatements;
use crate::ring::Ring;
use crate::seldom::Seldom;
use crate::writes::ChangeLog;

/// When the kernel asks a silent peer whether it still lives, and how often until it gives up.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// How long to wait after a failed accept, which is mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the connections of a gateway share.
pub(crate) struct Shared {
    pub(crate) options: GatewayOptions,
    /// What new connections of clients are proved with; none: they are in clear.
    pub(crate) client_tls: ArcSwapOption<ServerConfig>,
    pub(crate) ring: Arc<Ring>,
    pub(crate) prepared: Arc<PreparedStatements>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) log: Arc<ChangeLog>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) kept_answers: Arc<KeptAnswers>,
    /// Bytes that the rows of searches may hold.
    pub(crate) answer_memory: AnswerMemory,
    /// No more connections, no more requests.
    pub(crate) stop: CancellationToken,
    /// No more waiting for answers.
    pub(crate) kill: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Clients that were refused, as the cluster is away.
    pub(crate) refused: Seldom,
}

/// Takes connections until the gateway stops.
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

/// Sets a socket up: small frames go out at once, and a peer that vanished is noticed.
pub(crate) fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

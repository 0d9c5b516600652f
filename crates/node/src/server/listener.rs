//! Listeners: taking connections, bounding their number, and closing down in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::{Admission, semaphore};
use super::connection;
use super::counters::{CounterValues, Counters};
use super::options::ListenerOptions;
use super::service::Service;

/// When the kernel asks a silent client whether it still lives, and how often until it gives up.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// How long to wait after a failed accept, which is mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the connections of a listener share.
pub(super) struct Shared<S> {
    pub service: Arc<S>,
    pub options: ListenerOptions,
    pub admission: Admission,
    pub counters: Counters,
    pub shutdown: Shutdown,
}

/// How the tasks of a node learn that it stops, and how it learns that they have.
#[derive(Clone, Default)]
pub(super) struct Shutdown {
    /// No more connections, no more requests.
    pub stop: CancellationToken,
    /// No more waiting for clients to take their answers.
    pub kill: CancellationToken,
    /// Connections and requests.
    pub tasks: TaskTracker,
}

/// An address could not be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// What the system said.
    pub source: io::Error,
}

/// A socket that listens, before anything is served from it.
pub struct BoundListener {
    socket: TcpListener,
    address: SocketAddr,
    options: ListenerOptions,
}

impl BoundListener {
    /// Begins to listen: clients may connect, and are served once [`serve`] is called.
    ///
    /// # Errors
    /// If the address is in use or not this machine's.
    pub async fn bind(options: ListenerOptions) -> Result<BoundListener, BindError> {
        let bound = async {
            let socket = TcpListener::bind(options.address).await?;
            let address = socket.local_addr()?;
            Ok((socket, address))
        };
        match bound.await {
            Ok((socket, address)) => Ok(BoundListener {
                socket,
                address,
                options,
            }),
            Err(source) => Err(BindError {
                address: options.address,
                source,
            }),
        }
    }

    /// Where it listens, the port that was free included.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Listeners being served by one service.
pub struct Server<S> {
    listeners: Vec<(SocketAddr, Arc<Shared<S>>)>,
    shutdown: Shutdown,
}

/// Serves listeners. Must be called within a Tokio runtime.
pub fn serve<S: Service>(listeners: Vec<BoundListener>, service: Arc<S>) -> Server<S> {
    let shutdown = Shutdown::default();
    let listeners = listeners
        .into_iter()
        .map(|listener| {
            let shared = Arc::new(Shared {
                service: service.clone(),
                admission: Admission::new(listener.options.requests_max),
                counters: Counters::default(),
                shutdown: shutdown.clone(),
                options: listener.options,
            });
            let accepting = accept(listener.socket, shared.clone());
            shutdown.tasks.spawn(accepting);
            (listener.address, shared)
        })
        .collect();
    Server {
        listeners,
        shutdown,
    }
}

impl<S: Service> Server<S> {
    /// The listeners' addresses, in the order given.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|(address, _)| *address).collect()
    }

    /// The listeners' names with what they counted.
    pub fn counters(&self) -> Vec<(&'static str, CounterValues)> {
        self.listeners
            .iter()
            .map(|(_, shared)| (shared.options.name, shared.counters.values()))
            .collect()
    }

    /// Stops listening and reading requests, waits for those in flight for as long as `grace`, then closes what
    /// is left. True if nothing was left.
    pub async fn stop(&self, grace: Duration) -> bool {
        self.shutdown.stop.cancel();
        self.shutdown.tasks.close();
        let in_time = tokio::time::timeout(grace, self.shutdown.tasks.wait())
            .await
            .is_ok();
        self.shutdown.kill.cancel();
        in_time
    }
}

async fn accept<S: Service>(socket: TcpListener, shared: Arc<Shared<S>>) {
    let places = semaphore(shared.options.connections_max);
    let stop = shared.shutdown.stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, listener = shared.options.name, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            shared.counters.connections_refused.add(1);
            tracing::warn!(
                listener = shared.options.name,
                "too many connections: one refused"
            );
            continue;
        };
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%error, "a connection was gone before it was served");
            continue;
        }
        let shared = shared.clone();
        let tasks = shared.shutdown.tasks.clone();
        tasks.spawn(async move {
            shared.counters.connections_accepted.add(1);
            shared.counters.connections_open.add(1);
            connection::serve(stream, shared.clone()).await;
            shared.counters.connections_open.subtract(1);
            drop(place);
        });
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

//! Listeners: they accept connections, bound their number and stop in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::sockets::prepare;
use tokio::net::TcpListener;

use super::admission::{Admission, semaphore};
use super::connection;
use super::counters::{CounterValues, Counters};
use super::options::ListenerOptions;
use super::service::Service;
use super::shared::{Shared, Shutdown};

/// The pause after a failed accept, whose cause is mostly a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The error of an address that could not be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The system's error.
    pub source: io::Error,
}

/// A socket that listens but is not served yet.
pub struct BoundListener {
    socket: TcpListener,
    address: SocketAddr,
    options: ListenerOptions,
}

impl BoundListener {
    /// Begins to listen. Clients can connect from now on, and are served once [`serve`] is called.
    ///
    /// # Errors
    /// If the address is in use or is not this machine's.
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

    /// The address of the socket. If the options say port 0, it has the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Listeners that one service serves.
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
    /// The addresses of the listeners, in the order in which they were given.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|(address, _)| *address).collect()
    }

    /// The counters of the listeners, with the listeners' names.
    pub fn counters(&self) -> Vec<(&'static str, CounterValues)> {
        self.listeners
            .iter()
            .map(|(_, shared)| (shared.options.name, shared.counters.values()))
            .collect()
    }

    /// Stops accepting connections and reading requests, waits up to `grace` for the requests in
    /// flight, then closes the remaining connections. Returns whether all ended in time.
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

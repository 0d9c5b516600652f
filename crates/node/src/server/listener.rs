//! Listeners: they accept connections, bound their number and stop in order.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use client_memory::FLOOR_BYTES;
use net::listener::{AcceptLimits, BindError, ConnectionPermit, Listener};
use net::stream::TLS_BYTES;
use rustls::ServerConfig;

use super::admission::RequestLimiter;
use super::connection;
use super::counters::{CounterValues, LiveCounters};
use super::options::CqlListenerOptions;
use super::service::CqlService;
use super::shared::{HandshakeLogLimits, ListenerState, StopSignals};

/// A socket that listens but is not served yet.
pub struct BoundListener {
    listener: Listener,
    options: CqlListenerOptions,
}

impl BoundListener {
    /// Begins to listen. Clients can connect from now on, and are served once [`serve`] is called.
    ///
    /// # Errors
    /// If the address is in use or is not this machine's.
    pub async fn bind(options: CqlListenerOptions) -> Result<BoundListener, BindError> {
        Ok(BoundListener {
            listener: Listener::bind(options.address).await?,
            options,
        })
    }

    /// The address of the socket. If the options say port 0, it has the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }
}

/// Listeners that one service serves.
pub struct CqlServer<S> {
    listeners: Vec<(SocketAddr, Arc<ListenerState<S>>)>,
    shutdown: StopSignals,
}

/// Serves listeners. Must be called within a Tokio runtime.
pub fn serve<S: CqlService>(listeners: Vec<BoundListener>, service: Arc<S>) -> CqlServer<S> {
    let shutdown = StopSignals::default();
    let listeners = listeners
        .into_iter()
        .map(|listener| {
            let address = listener.address();
            let shared = Arc::new(ListenerState {
                service: service.clone(),
                admission: RequestLimiter::new(listener.options.requests_max),
                counters: Arc::default(),
                shutdown: shutdown.clone(),
                tls: ArcSwapOption::new(listener.options.tls.clone()),
                connections: ArcSwap::from_pointee(shutdown.stop.child_token()),
                seldom: HandshakeLogLimits::default(),
                options: listener.options,
            });
            let accepting = accept(listener.listener, shared.clone());
            shutdown.tasks.spawn(accepting);
            (address, shared)
        })
        .collect();
    CqlServer {
        listeners,
        shutdown,
    }
}

impl<S: CqlService> CqlServer<S> {
    /// The addresses of the listeners, in the order in which they were given.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|(address, _)| *address).collect()
    }

    /// The counters of the listeners, with the listeners' names.
    pub fn counters(&self) -> Vec<(&'static str, CounterValues)> {
        self.live_counters().values()
    }

    /// The counters of the listeners, to be read at any time.
    pub fn live_counters(&self) -> LiveCounters {
        let listeners = self.listeners.iter();
        let counters = listeners.map(|(_, shared)| (shared.options.name, shared.counters.clone()));
        LiveCounters(counters.collect())
    }

    /// Uses another certificate for clients that connect from now on, at the listeners that have
    /// one. If there are `other_rules` for certificates of clients, present connections end once
    /// their requests in flight are answered. Else they go on.
    pub fn renew_tls(&self, tls: &Arc<ServerConfig>, other_rules: bool) {
        for (_, shared) in &self.listeners {
            if shared.tls.load().is_none() {
                continue;
            }
            shared.tls.store(Some(tls.clone()));
            if other_rules {
                let from_now_on = Arc::new(shared.shutdown.stop.child_token());
                shared.connections.swap(from_now_on).cancel();
            }
        }
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

async fn accept<S: CqlService>(listener: Listener, shared: Arc<ListenerState<S>>) {
    let stop = shared.shutdown.stop.clone();
    let refused = || shared.counters.connections_refused.add(1);
    let serve = |stream, place: ConnectionPermit| {
        let shared = shared.clone();
        let tasks = shared.shutdown.tasks.clone();
        tasks.spawn(async move {
            shared.counters.connections_accepted.add(1);
            shared.counters.connections_open.add(1);
            {
                let guest = place.admission();
                let serving = pin!(connection::serve(stream, shared.clone(), guest.clone()));
                if guest.run(serving).await {
                    shared.counters.connections_given_way.add(1);
                }
            }
            shared.counters.connections_open.subtract(1);
            drop(place);
        });
    };
    let accepting = listener.accept_up_to(limits(&shared.options), stop, refused, serve);
    accepting.await;
}

/// The limits of a listener. Connections that have not begun take half of the memory at most.
fn limits(options: &CqlListenerOptions) -> AcceptLimits {
    let of_connection = match options.tls {
        Some(_) => FLOOR_BYTES + TLS_BYTES,
        None => FLOOR_BYTES,
    };
    AcceptLimits {
        connections: options.connections_max,
        unauthenticated: options.memory.bytes_max() / 2 / of_connection,
    }
}

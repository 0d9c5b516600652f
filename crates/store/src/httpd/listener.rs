//! A listening socket of the HTTP API. Certificates and names can change while it is served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use net::tls::{ServerTls, TlsClients, TlsOptions};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{self, Entrance};
use super::crowd::{Crowd, Guest};
use super::front::Front;
use super::guard::Guard;
use super::table::{Channel, routes_by};
use super::{Api, Shared};
use crate::options::ListenerOptions;
use crate::start_error::StartError;

/// At the limit of connections, another silent one is ended at this interval until there is a
/// place.
const ROOM_EVERY: Duration = Duration::from_millis(100);

/// A socket that is bound but not yet served.
pub struct Bound {
    listener: net::listener::Listener,
    tls: Option<ServerTls>,
    options: ListenerOptions,
}

impl Bound {
    /// Binds the socket. Fails if the certificates can't be used or the address can't be bound.
    pub async fn bind(options: ListenerOptions) -> Result<Bound, StartError> {
        let tls = server_tls(options.tls.as_ref())?;
        let listener = net::listener::Listener::bind(options.address).await;
        let listener = listener.map_err(|error| StartError::Listen {
            address: error.address,
            source: error.source,
        })?;
        Ok(Bound {
            listener,
            tls,
            options,
        })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves the API until the returned listener is stopped.
    pub fn serve(self, api: Api) -> Listening {
        let stop = CancellationToken::new();
        let address = self.address();
        let shared = super::Listener::new(api, address, &self.options, stop.clone());
        let shared = Arc::new(shared);
        let guard = Arc::new(Guard::new(address, &self.options.names));
        let entrance = entrance(&shared, self.tls, &self.options, &guard);
        let listening = Listening {
            address,
            entrance: Arc::new(ArcSwap::from_pointee(entrance)),
            shared,
            guard,
            options: self.options,
            connections: Arc::new(ArcSwap::from_pointee(stop.child_token())),
            stop,
            tasks: TaskTracker::new(),
        };
        listening.tasks.spawn(accept(
            self.listener,
            listening.entrance.clone(),
            Arc::new(Semaphore::new(listening.options.connections_max)),
            listening.stop.clone(),
            listening.connections.clone(),
            listening.tasks.clone(),
        ));
        listening
    }
}

/// A socket that is served. Dropping it stops it without waiting.
pub struct Listening {
    address: SocketAddr,
    options: ListenerOptions,
    shared: Shared,
    guard: Arc<Guard>,
    entrance: Arc<ArcSwap<Entrance>>,
    stop: CancellationToken,
    /// Cancelled to end the present connections, not those to come.
    connections: Arc<ArcSwap<CancellationToken>>,
    tasks: TaskTracker,
}

impl Listening {
    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the options name the address at which it listens.
    pub fn is_at(&self, options: &ListenerOptions) -> bool {
        self.options.address == options.address
    }

    /// Whether the listener has a certificate.
    pub fn has_tls(&self) -> bool {
        self.options.tls.is_some()
    }

    /// Replaces the certificates, or removes them (`None`). If the rules for clients change,
    /// present connections are ended once their requests are answered.
    pub fn set_tls(&mut self, tls: Option<ServerTls>) {
        let options = tls.as_ref().map(|tls| tls.options.clone());
        if options == self.options.tls {
            return;
        }
        let other_rules = clients(&self.options) != options.as_ref().map(|tls| &tls.clients);
        self.options.tls = options;
        self.entrance.store(Arc::new(entrance(
            &self.shared,
            tls,
            &self.options,
            &self.guard,
        )));
        if other_rules {
            let from_now_on = Arc::new(self.stop.child_token());
            self.connections.swap(from_now_on).cancel();
        }
    }

    /// Replaces the configured host names that it answers to.
    pub fn set_names(&mut self, names: &[String]) {
        self.guard.set_names(names);
        self.options.names = names.to_vec();
    }

    /// Closes the socket at once, and connections when their requests are answered.
    pub fn stop(&self) {
        self.tasks.close();
        self.stop.cancel();
    }

    /// Waits until the last connection has ended.
    pub async fn stopped(&self) {
        self.tasks.wait().await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Loads the certificates of a listener. Fails if they can't be used.
pub fn server_tls(options: Option<&TlsOptions>) -> Result<Option<ServerTls>, StartError> {
    const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
    let tls = options.map(|options| ServerTls::new(options.clone(), &PROTOCOLS));
    tls.transpose().map_err(StartError::Certificates)
}

fn clients(options: &ListenerOptions) -> Option<&TlsClients> {
    options.tls.as_ref().map(|tls| &tls.clients)
}

fn entrance(
    shared: &Shared,
    tls: Option<ServerTls>,
    options: &ListenerOptions,
    guard: &Arc<Guard>,
) -> Entrance {
    let answers = &shared.answers;
    let open = Front::new(
        routes_by(shared.clone(), Channel::AsConfigured),
        answers.clone(),
        guard.clone(),
    );
    let open = Arc::new(open);
    let guarded = |channel| {
        let routes = routes_by(shared.clone(), channel);
        Arc::new(Front::new(routes, answers.clone(), guard.clone()))
    };
    let in_clear = match clients(options) {
        None => Some(open.clone()),
        Some(_) if options.tls_alone => Some(guarded(Channel::Refused)),
        Some(TlsClients::Anyone) => Some(guarded(Channel::InClear)),
        Some(TlsClients::SignedBy(_)) => None,
    };
    Entrance {
        tls: tls.map(|tls| tls.config),
        in_clear,
        in_tls: open,
        mute_max: options.mute_max,
    }
}

async fn accept(
    listener: net::listener::Listener,
    entrance: Arc<ArcSwap<Entrance>>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
    connections: Arc<ArcSwap<CancellationToken>>,
    tasks: TaskTracker,
) {
    let crowd = Arc::new(Crowd::default());
    let accept_all = async {
        loop {
            let stream = listener.accept().await;
            let place = loop {
                if let Ok(place) = places.clone().try_acquire_owned() {
                    break place;
                }
                crowd.make_room();
                let place = tokio::time::timeout(ROOM_EVERY, places.clone().acquire_owned());
                match place.await {
                    Ok(Ok(place)) => break place,
                    Ok(Err(_)) => return,
                    Err(_) => {}
                }
            };
            // The token is loaded before the entrance. If the rules change in between, this
            // connection gets the new ones or is ended, but never keeps the old ones.
            let guest = Guest::new(connections.load().child_token());
            crowd.enter(guest.clone());
            let crowd = crowd.clone();
            let entrance = Entrance::clone(&entrance.load());
            tasks.spawn(async move {
                connection::serve(stream, entrance, guest.clone()).await;
                crowd.leave(&guest);
                drop(place);
            });
        }
    };
    stop.run_until_cancelled(accept_all).await;
}

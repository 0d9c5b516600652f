//! A listening socket of the HTTP API. Certificates and names can change while it is served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use net::tls::{ServerTls, TlsClients, TlsOptions};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::answer_budget::AnswerBudget;
use super::connection::{self, Entrance};
use super::crowd::{Crowd, Guest};
use super::front::Front;
use super::guard::Guard;
use super::table::{Channel, routes_before_start, routes_by};
use super::{Api, Shared};
use crate::options::ListenerOptions;
use crate::start_error::StartError;

/// At the limit of connections, another silent one is ended at this interval until there is a
/// place.
const ROOM_EVERY: Duration = Duration::from_millis(100);

/// A socket that is bound, and whose service has not started yet. Dropping it closes it.
pub struct Bound {
    address: SocketAddr,
    /// `None` once connections are accepted.
    listener: Option<net::listener::Listener>,
    options: ListenerOptions,
    guard: Arc<Guard>,
    answers: AnswerBudget,
    entrance: Arc<ArcSwap<Entrance>>,
    /// The fronts of the entrance, each with the channel of its requests.
    fronts: Vec<(Channel, Arc<Front>)>,
    stop: DropGuard,
    connections: Arc<ArcSwap<CancellationToken>>,
    tasks: TaskTracker,
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
        let address = listener.address();
        let guard = Arc::new(Guard::new(address, &options.names));
        let answers = AnswerBudget::new(options.answer_bytes_max);
        let mut fronts = Vec::new();
        let entrance = entrance(tls, &options, &mut |channel| {
            let routes = routes_before_start(channel);
            let front = Arc::new(Front::new(routes, answers.clone(), guard.clone()));
            fronts.push((channel, front.clone()));
            front
        });
        let stop = CancellationToken::new();
        Ok(Bound {
            address,
            listener: Some(listener),
            options,
            guard,
            answers,
            entrance: Arc::new(ArcSwap::from_pointee(entrance)),
            fronts,
            connections: Arc::new(ArcSwap::from_pointee(stop.child_token())),
            stop: stop.drop_guard(),
            tasks: TaskTracker::new(),
        })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts connections from now on. Until [`Bound::serve`] only the routes of health are
    /// answered.
    pub fn answer_health(&mut self) {
        if let Some(listener) = self.listener.take() {
            self.tasks.spawn(accept(
                listener,
                self.entrance.clone(),
                Arc::new(Semaphore::new(self.options.connections_max)),
                self.stop.token().clone(),
                self.connections.clone(),
                self.tasks.clone(),
            ));
        }
    }

    /// Serves the API until the returned listener is stopped.
    pub fn serve(mut self, api: Api) -> Listening {
        let stop = self.stop.token().clone();
        let answers = self.answers.clone();
        let shared = super::Listener::new(api, self.address, &self.options, answers, stop);
        let shared = Arc::new(shared);
        for (channel, front) in &self.fronts {
            front.start(routes_by(shared.clone(), *channel));
        }
        self.answer_health();
        Listening {
            address: self.address,
            entrance: self.entrance,
            shared,
            guard: self.guard,
            options: self.options,
            connections: self.connections,
            stop: self.stop.disarm(),
            tasks: self.tasks,
        }
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
        let entrance = entrance(tls, &self.options, &mut |channel| {
            let routes = routes_by(self.shared.clone(), channel);
            let answers = self.shared.answers.clone();
            Arc::new(Front::new(routes, answers, self.guard.clone()))
        });
        self.entrance.store(Arc::new(entrance));
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

/// The settings for new connections; `front` makes the front for the requests of a channel.
fn entrance(
    tls: Option<ServerTls>,
    options: &ListenerOptions,
    front: &mut dyn FnMut(Channel) -> Arc<Front>,
) -> Entrance {
    let open = front(Channel::AsConfigured);
    let in_clear = match clients(options) {
        None => Some(open.clone()),
        Some(_) if options.tls_alone => Some(front(Channel::Refused)),
        Some(TlsClients::Anyone) => Some(front(Channel::InClear)),
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

//! A listening socket of HTTP. Its certificate and its names can change while it is served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use net::listener::{BindError, Listener};
use net::tls::{CertificateError, ServerTls, TlsClients, TlsOptions};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::access::Authorizer;
use crate::access_check::AccessCheck;
use crate::answer_budget::AnswerBudget;
use crate::browser_sessions::BrowserSessions;
use crate::connection::{self, AcceptConfig};
use crate::connections::{ConnectionSet, HttpConnection};
use crate::front::RequestFront;
use crate::host_rules::HostRules;
use crate::options::{HttpListenerOptions, OverflowPolicy};
use crate::routes::{DirectRoute, NoDirectRoute, RequestChannel, RouteTable};
use crate::traffic::HttpTraffic;

/// At the limit of connections, another silent one is ended at this interval until there is a
/// place.
const ROOM_EVERY: Duration = Duration::from_millis(100);

/// A socket that is bound, and whose program has not started yet. Dropping it closes it.
pub struct BoundHttpListener<D: DirectRoute = NoDirectRoute> {
    address: SocketAddr,
    /// `None` once connections are accepted.
    listener: Option<Listener>,
    options: HttpListenerOptions,
    tls: Option<TlsOptions>,
    rules: Arc<HostRules>,
    sessions: Arc<BrowserSessions>,
    answers: AnswerBudget,
    entrance: Arc<ArcSwap<AcceptConfig<D>>>,
    /// The fronts of the entrance, each with the channel of its requests.
    fronts: Vec<(RequestChannel, Arc<RequestFront<D>>)>,
    stop: DropGuard,
    connections: Arc<ArcSwap<CancellationToken>>,
    tasks: TaskTracker,
}

impl<D: DirectRoute> BoundHttpListener<D> {
    /// Binds the socket. Until [`BoundHttpListener::serve`] its requests go by the table `before`,
    /// without logins.
    ///
    /// # Errors
    /// If the address can't be bound.
    pub async fn bind(
        options: HttpListenerOptions,
        tls: Option<ServerTls>,
        before: RouteTable<D>,
    ) -> Result<BoundHttpListener<D>, BindError> {
        let listener = Listener::bind(options.address).await?;
        let address = listener.address();
        let rules = Arc::new(HostRules::new(address, &options.names));
        let answers = AnswerBudget::new(options.answer_bytes_max);
        let sessions = Arc::new(BrowserSessions::new(address.port()));
        sessions.set_secure(tls.is_some());
        let check = AccessCheck {
            authorizer: None,
            listener: address.ip(),
            sessions: sessions.clone(),
        };
        let of_tls = tls.as_ref().map(|tls| tls.options.clone());
        let mut fronts = Vec::new();
        let entrance = entrance(tls, &options, &mut |channel| {
            let routes = before.routes(channel, &check);
            let front = RequestFront::new(routes, answers.clone(), rules.clone());
            let front = Arc::new(front);
            fronts.push((channel, front.clone()));
            front
        });
        let stop = CancellationToken::new();
        Ok(BoundHttpListener {
            address,
            listener: Some(listener),
            options,
            tls: of_tls,
            rules,
            sessions,
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

    /// Cancelled when the listener stops. A request that waits for something is answered then.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.token().clone()
    }

    /// Accepts connections from now on. Until [`BoundHttpListener::serve`] requests go by the table
    /// for that time.
    pub fn answer_before_start(&mut self) {
        if let Some(listener) = self.listener.take() {
            let accepting = AcceptLoop {
                listener,
                entrance: self.entrance.clone(),
                places: Arc::new(Semaphore::new(self.options.connections_max)),
                when_full: self.options.when_full,
                set: Arc::new(ConnectionSet::default()),
                connections: self.connections.clone(),
                tasks: self.tasks.clone(),
            };
            let stop = self.stop.token().clone();
            self.tasks.spawn(async move {
                stop.run_until_cancelled(accepting.accept_all()).await;
            });
        }
    }

    /// Serves these routes until the returned listener is stopped. `authorizer` checks the requests
    /// of routes that need a right; `None` lets all in.
    pub fn serve(
        mut self,
        routes: RouteTable<D>,
        authorizer: Option<Arc<dyn Authorizer>>,
    ) -> ServedHttpListener<D> {
        let check = AccessCheck {
            authorizer,
            listener: self.address.ip(),
            sessions: self.sessions.clone(),
        };
        for (channel, front) in &self.fronts {
            front.start(routes.routes(*channel, &check));
        }
        self.answer_before_start();
        ServedHttpListener {
            address: self.address,
            options: self.options,
            tls: self.tls,
            routes,
            check,
            rules: self.rules,
            answers: self.answers,
            entrance: self.entrance,
            stop: self.stop.disarm(),
            connections: self.connections,
            tasks: self.tasks,
        }
    }
}

/// A socket that is served. Dropping it stops it without waiting.
pub struct ServedHttpListener<D: DirectRoute = NoDirectRoute> {
    address: SocketAddr,
    options: HttpListenerOptions,
    tls: Option<TlsOptions>,
    routes: RouteTable<D>,
    check: AccessCheck,
    rules: Arc<HostRules>,
    answers: AnswerBudget,
    entrance: Arc<ArcSwap<AcceptConfig<D>>>,
    stop: CancellationToken,
    /// Cancelled to end the present connections, not those to come.
    connections: Arc<ArcSwap<CancellationToken>>,
    tasks: TaskTracker,
}

impl<D: DirectRoute> ServedHttpListener<D> {
    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that its options name. Its port is 0 if the system has chosen one.
    pub fn configured_address(&self) -> SocketAddr {
        self.options.address
    }

    /// Whether the listener has a certificate.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Replaces the certificates, or removes them (`None`). If the rules for clients change,
    /// present connections are ended once their requests are answered.
    pub fn set_tls(&mut self, tls: Option<ServerTls>) {
        let options = tls.as_ref().map(|tls| tls.options.clone());
        if options == self.tls {
            return;
        }
        let before = self.tls.as_ref().map(|tls| &tls.clients);
        let other_rules = before != options.as_ref().map(|tls| &tls.clients);
        self.tls = options;
        self.check.sessions.set_secure(self.tls.is_some());
        let entrance = entrance(tls, &self.options, &mut |channel| {
            let routes = self.routes.routes(channel, &self.check);
            let (answers, rules) = (self.answers.clone(), self.rules.clone());
            Arc::new(RequestFront::new(routes, answers, rules))
        });
        self.entrance.store(Arc::new(entrance));
        if other_rules {
            let from_now_on = Arc::new(self.stop.child_token());
            self.connections.swap(from_now_on).cancel();
        }
    }

    /// Replaces the configured host names that it answers to.
    pub fn set_names(&mut self, names: &[String]) {
        self.rules.set_names(names);
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

impl<D: DirectRoute> Drop for ServedHttpListener<D> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Loads the certificates of a listener.
///
/// # Errors
/// If they can't be used.
pub fn server_tls(options: Option<&TlsOptions>) -> Result<Option<ServerTls>, CertificateError> {
    const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
    let tls = options.map(|options| ServerTls::new(options.clone(), &PROTOCOLS));
    tls.transpose()
}

/// The settings for new connections; `front` makes the front for the requests of a channel.
fn entrance<D>(
    tls: Option<ServerTls>,
    options: &HttpListenerOptions,
    front: &mut dyn FnMut(RequestChannel) -> Arc<RequestFront<D>>,
) -> AcceptConfig<D> {
    let open = front(RequestChannel::AsConfigured);
    let in_clear = match tls.as_ref().map(|tls| &tls.options.clients) {
        None => Some(open.clone()),
        Some(_) if options.tls_alone => Some(front(RequestChannel::Refused)),
        Some(TlsClients::Anyone) => Some(front(RequestChannel::InClear)),
        Some(TlsClients::SignedBy(_)) => None,
    };
    AcceptConfig {
        tls: tls.map(|tls| tls.config),
        in_clear,
        in_tls: open,
        limits: options.connection,
    }
}

/// Accepts the connections of a listener.
struct AcceptLoop<D> {
    listener: Listener,
    entrance: Arc<ArcSwap<AcceptConfig<D>>>,
    places: Arc<Semaphore>,
    when_full: OverflowPolicy,
    set: Arc<ConnectionSet>,
    connections: Arc<ArcSwap<CancellationToken>>,
    tasks: TaskTracker,
}

impl<D: DirectRoute> AcceptLoop<D> {
    async fn accept_all(self) {
        while let Some((stream, place)) = self.next().await {
            // The token is loaded before the entrance. If the rules change in between, this
            // connection gets the new ones or is ended, but never keeps the old ones.
            let connection = HttpConnection::new(self.connections.load().child_token());
            self.set.enter(connection.clone());
            let set = self.set.clone();
            let entrance = AcceptConfig::<D>::clone(&self.entrance.load());
            let counted = HttpTraffic::of_process().connection_opened();
            self.tasks.spawn(async move {
                connection::serve(stream, entrance, connection.clone()).await;
                drop(counted);
                set.leave(&connection);
                drop(place);
            });
        }
    }

    /// The next connection with its place. `None` only if there are no more places ever.
    async fn next(&self) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        match self.when_full {
            OverflowPolicy::Waits => {
                let place = self.places.clone().acquire_owned().await.ok()?;
                Some((self.listener.accept().await, place))
            }
            OverflowPolicy::SilentGivesWay => {
                let stream = self.listener.accept().await;
                loop {
                    if let Ok(place) = self.places.clone().try_acquire_owned() {
                        return Some((stream, place));
                    }
                    self.set.make_room();
                    let place = self.places.clone().acquire_owned();
                    match tokio::time::timeout(ROOM_EVERY, place).await {
                        Ok(Ok(place)) => return Some((stream, place)),
                        Ok(Err(_)) => return None,
                        Err(_) => {}
                    }
                }
            }
        }
    }
}

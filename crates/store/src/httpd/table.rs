//! The table of routes: path, method, whether a request in clear is refused, and the handler.
//!
//! Nearly all requests are searches, and each pays for every step on its way to the index. So the
//! table marks their route as direct, and such a request goes past the router ([`Direct`]).

use axum::Router;
use axum::handler::Handler;
use axum::http::Request;
use axum::middleware::from_fn_with_state;
use axum::response::Json;
use axum::routing::{MethodFilter, MethodRouter, get, on};
use http_server::RequiredRight;
use store_api::types::NodeStatus;

use super::entry;
use super::error::ApiError;
use super::{Shared, health, internals, openapi, repair, routes, scrub, tasks};
use crate::identity::IndexName;

/// How a request came to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// By TLS, or to a listener without a certificate.
    AsConfigured,
    /// In clear, to a listener with a certificate.
    InClear,
    /// In clear, to a listener that answers under TLS alone.
    Refused,
}

/// A row of the table.
struct Route {
    path: &'static str,
    method: MethodFilter,
    /// A private route tells of rows or changes something, and is refused in clear.
    is_private: bool,
    /// An internal route exists only if such routes are switched on.
    is_internal: bool,
    /// Requests of a direct route go past the router to [`super::ann::answer`].
    is_direct: bool,
    /// The right that it needs where clients log in.
    need: RequiredRight,
    handler: MethodRouter<Shared>,
}

fn route<H, T>(method: MethodFilter, path: &'static str, handler: H) -> Route
where
    H: Handler<T, Shared>,
    T: 'static,
{
    Route {
        path,
        method,
        is_private: false,
        is_internal: false,
        is_direct: false,
        need: RequiredRight::See,
        handler: on(method, handler),
    }
}

fn search<H, T>(path: &'static str, handler: H) -> Route
where
    H: Handler<T, Shared>,
    T: 'static,
{
    let route = route(MethodFilter::POST, path, handler);
    route.private().needs(RequiredRight::Search)
}

/// A route that changes an index.
fn changes<H, T>(method: MethodFilter, path: &'static str, handler: H) -> Route
where
    H: Handler<T, Shared>,
    T: 'static,
{
    route(method, path, handler)
        .private()
        .needs(RequiredRight::Change)
}

/// A route that changes something of the service as a whole.
fn operates<H, T>(method: MethodFilter, path: &'static str, handler: H) -> Route
where
    H: Handler<T, Shared>,
    T: 'static,
{
    route(method, path, handler)
        .private()
        .needs(RequiredRight::Operate)
}

impl Route {
    fn private(self) -> Route {
        Route {
            is_private: true,
            ..self
        }
    }

    fn internal(self) -> Route {
        Route {
            is_internal: true,
            ..self
        }
    }

    fn needs(self, need: RequiredRight) -> Route {
        Route { need, ..self }
    }

    fn direct(self) -> Route {
        Route {
            is_direct: true,
            ..self
        }
    }
}

/// The path of the service's state.
const STATUS_PATH: &str = "/api/v1/status";

fn table() -> [Route; 27] {
    const GET: MethodFilter = MethodFilter::GET;
    const POST: MethodFilter = MethodFilter::POST;
    const PUT: MethodFilter = MethodFilter::PUT;
    const PATCH: MethodFilter = MethodFilter::PATCH;
    const DELETE: MethodFilter = MethodFilter::DELETE;
    const INDEX: &str = "/api/v1/indexes/{keyspace}/{index}";
    const STATUS: &str = "/api/v1/indexes/{keyspace}/{index}/status";
    const ANN: &str = "/api/v1/indexes/{keyspace}/{index}/ann";
    const BM25: &str = "/api/v1/indexes/{keyspace}/{index}/bm25";
    const HIGHLIGHT: &str = "/api/v1/indexes/{keyspace}/{index}/highlight";
    const REPAIR: &str = "/api/v1/indexes/{keyspace}/{index}/repair";
    const SCHEDULE: &str = "/api/v1/indexes/{keyspace}/{index}/repair/schedule";
    const COUNTERS: &str = "/api/internals/counters";
    const COUNTER: &str = "/api/internals/counters/{id}";
    const SESSION_COUNTERS: &str = "/api/internals/session-counters";
    [
        route(GET, health::LIVE, health::live).needs(RequiredRight::Nothing),
        route(GET, health::READY, health::ready).needs(RequiredRight::Nothing),
        route(GET, STATUS_PATH, routes::status).needs(RequiredRight::Nothing),
        route(GET, "/api/v1/info", routes::info),
        route(GET, "/api/v1/clock", routes::clock),
        route(GET, "/api/v1/indexes", routes::indexes),
        route(GET, INDEX, routes::index),
        route(GET, STATUS, routes::index_status).needs(RequiredRight::SeeState),
        search(ANN, super::ann::ann).direct(),
        search(BM25, routes::no_text_index),
        search(HIGHLIGHT, routes::no_text_index),
        route(GET, REPAIR, repair::status),
        changes(POST, REPAIR, repair::start),
        changes(PATCH, REPAIR, repair::control),
        changes(PUT, SCHEDULE, repair::update),
        operates(POST, "/api/v1/scrub", scrub::start),
        route(GET, "/api/v1/tasks", tasks::list),
        route(GET, "/api/v1/tasks/{id}", tasks::status),
        operates(DELETE, "/api/v1/tasks/{id}", tasks::abort),
        route(GET, "/api/v1/tasks/{id}/tree", tasks::tree),
        route(GET, "/api/v1/tasks/{id}/wait", tasks::wait),
        route(GET, "/metrics", routes::metrics),
        route(GET, "/api-docs/openapi.json", openapi::document),
        route(GET, COUNTERS, internals::counters).internal(),
        operates(DELETE, COUNTERS, internals::clear).internal(),
        operates(PUT, COUNTER, internals::start).internal(),
        route(GET, SESSION_COUNTERS, internals::session_counters).internal(),
    ]
}

/// The routes of a listener for requests that come by one channel.
pub struct Routes {
    /// The routes of all requests.
    pub router: Router,
    /// The route past the router, and the listener for its handler. `None` where it is refused,
    /// which the router does.
    pub direct: Option<(Direct, Shared)>,
}

/// The route of searches, past the router. A path that has to be decoded first goes through the
/// router, which finds the handler of the same row.
pub struct Direct {
    method: MethodFilter,
    /// The right that it needs where clients log in.
    pub need: RequiredRight,
    /// The parts of the path before the keyspace, and behind the index.
    around: (&'static str, &'static str),
}

impl Direct {
    fn of(route: &Route) -> Option<Direct> {
        let around = route.path.split_once("{keyspace}/{index}")?;
        let (method, need) = (route.method, route.need);
        route.is_direct.then_some(Direct {
            method,
            need,
            around,
        })
    }

    /// The index that a request searches, if the path names it without escapes. `None` for any
    /// other request.
    pub fn index_of<B>(&self, request: &Request<B>) -> Option<IndexName> {
        let method = MethodFilter::try_from(request.method().clone());
        method.ok().filter(|method| *method == self.method)?;
        let (before, behind) = self.around;
        let name = request.uri().path().strip_prefix(before)?;
        let (keyspace, index) = name.strip_suffix(behind)?.split_once('/')?;
        let plain = |segment: &str| !segment.is_empty() && !segment.contains(['/', '%']);
        (plain(keyspace) && plain(index)).then(|| IndexName {
            keyspace: keyspace.to_owned(),
            index: index.to_owned(),
        })
    }
}

/// The routes of a listener whose service has not started, for requests that come by this channel.
pub fn routes_before_start(channel: Channel) -> Routes {
    let starting = || async { Json(NodeStatus::Initializing) };
    let not_ready = || async { health::readiness(NodeStatus::Initializing) };
    let router = match channel {
        Channel::Refused => Router::new().fallback(routes::without_tls),
        Channel::AsConfigured | Channel::InClear => Router::new()
            .route(health::LIVE, get(health::live))
            .route(health::READY, get(not_ready))
            .route(STATUS_PATH, get(starting))
            .fallback(|| async { ApiError::Starting }),
    };
    Routes {
        router,
        direct: None,
    }
}

/// The routes of a listener for requests that come by this channel.
pub fn routes_by(shared: Shared, channel: Channel) -> Routes {
    if channel == Channel::Refused {
        return Routes {
            router: Router::new().fallback(routes::without_tls),
            direct: None,
        };
    }
    let mut router = Router::new();
    let mut direct = None;
    let has_internals = shared.api.internals;
    let table = table().into_iter();
    for route in table.filter(|route| has_internals || !route.is_internal) {
        let is_refused = route.is_private && channel == Channel::InClear;
        let handler = match is_refused {
            true => on(route.method, routes::in_clear),
            false => {
                direct = direct.or(Direct::of(&route));
                match shared.api.authorizer {
                    None => route.handler,
                    Some(_) => {
                        let state = (shared.clone(), route.need);
                        let check = from_fn_with_state(state, entry::admit_routed);
                        route.handler.route_layer(check)
                    }
                }
            }
        };
        router = router.route(route.path, handler);
    }
    Routes {
        direct: direct.map(|direct| (direct, shared.clone())),
        router: router.with_state(shared),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;

    fn wanted(method: Method, uri: &str) -> Option<String> {
        let request = Request::builder().method(method).uri(uri).body(());
        let direct = table().iter().find_map(Direct::of).expect("a direct route");
        let index = direct.index_of(&request.unwrap());
        index.map(|name| name.to_string())
    }

    #[test]
    fn no_get_changes_anything_and_every_other_route_has_a_right_of_its_own() {
        for route in table() {
            let (path, method) = (route.path, route.method);
            let is_read = [MethodFilter::GET, MethodFilter::HEAD].contains(&method);
            match route.need {
                RequiredRight::Change | RequiredRight::Operate => {
                    assert!(!is_read && route.is_private, "{path}")
                }
                RequiredRight::Search => {
                    assert!(method == MethodFilter::POST && route.is_private, "{path}")
                }
                RequiredRight::Nothing | RequiredRight::See | RequiredRight::SeeState => {
                    assert!(is_read, "{path}")
                }
            }
        }
        let changing = table();
        let changing = changing
            .iter()
            .filter(|route| matches!(route.need, RequiredRight::Change | RequiredRight::Operate));
        assert!(changing.count() >= 7);
    }

    #[test]
    fn searches_are_known_by_method_and_path() {
        let search = |uri| wanted(Method::POST, uri);
        assert_eq!(search("/api/v1/indexes/ks/i/ann"), Some("ks.i".to_owned()));
        assert_eq!(
            search("http://h:1/api/v1/indexes/K-s/I/ann?limit=3"),
            Some("K-s.I".to_owned())
        );
        for other in [
            "/api/v1/indexes/ks/i",
            "/api/v1/indexes/ks/i/bm25",
            "/api/v1/indexes/ks/i/ann/",
            "/api/v1/indexes/ks/i/x/ann",
            "/api/v1/indexes//i/ann",
            "/api/v1/indexes/ks//ann",
            "/api/v1/indexes/ks/ann",
            "/api/v1/indexes/k%20s/i/ann",
        ] {
            assert_eq!(search(other), None, "{other}");
        }
        assert_eq!(wanted(Method::GET, "/api/v1/indexes/ks/i/ann"), None);
    }
}

//! One table of routes: path, method, the right that a request needs, whether it is refused in
//! clear, and the handler.
//!
//! Each part of a program adds rows with the state that their handlers read. Where nearly all
//! requests go to one route, each pays for every step on its way. So a row may be marked as direct,
//! and such a request goes past the router ([`DirectRoute`]).

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::Request;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, any, on};
use hyper::body::Incoming;

use crate::access::RequiredRight;
use crate::access_check::{AccessCheck, RouteCheck, admit_routed, admit_unrouted};
use crate::refusal::{RefusalAnswer, RequestRefusal};
use crate::session_routes::{SESSION, SessionFacts, SessionRoutes, log_in, log_out, show};

/// The part of a path that names an index.
const INDEX: &str = "{keyspace}/{index}";

/// The way by which a request came to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestChannel {
    /// By TLS, or to a listener without a certificate.
    AsConfigured,
    /// In clear, to a listener with a certificate.
    InClear,
    /// In clear, to a listener that answers only under TLS.
    Refused,
}

/// A row of the table. Its handler reads a state of the type `S`.
#[derive(Clone)]
pub struct RouteRow<S = ()> {
    path: &'static str,
    method: MethodFilter,
    right: RequiredRight,
    is_private: bool,
    is_direct: bool,
    handler: MethodRouter<S>,
}

impl<S> RouteRow<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// A row for requests of this method to paths of this form. `{name}` is any part of a path.
    /// Where clients log in, it needs the right to see states.
    pub fn new<H, T>(method: MethodFilter, path: &'static str, handler: H) -> RouteRow<S>
    where
        H: Handler<T, S>,
        T: 'static,
    {
        RouteRow {
            path,
            method,
            right: RequiredRight::See,
            is_private: false,
            is_direct: false,
            handler: on(method, handler),
        }
    }

    /// The row with another right that is needed where clients log in.
    #[must_use]
    pub fn needs(self, right: RequiredRight) -> RouteRow<S> {
        RouteRow { right, ..self }
    }

    /// The row of a private route: one that reveals rows or changes something. It is refused in
    /// clear where it could be encrypted.
    #[must_use]
    pub fn private(self) -> RouteRow<S> {
        RouteRow {
            is_private: true,
            ..self
        }
    }

    /// The row of the direct route. Its path has to name an index.
    #[must_use]
    pub fn direct(self) -> RouteRow<S> {
        RouteRow {
            is_direct: true,
            ..self
        }
    }

    /// The path.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// The method.
    pub fn method(&self) -> MethodFilter {
        self.method
    }

    /// The right that is needed where clients log in.
    pub fn right(&self) -> RequiredRight {
        self.right
    }

    /// Whether the route is refused in clear where it could be encrypted.
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// The row with the state that its handler reads.
    pub fn with_state(self, state: S) -> RouteRow {
        RouteRow {
            path: self.path,
            method: self.method,
            right: self.right,
            is_private: self.is_private,
            is_direct: self.is_direct,
            handler: self.handler.with_state(state),
        }
    }
}

/// Rows that a part of a program adds to the table of another.
#[derive(Clone)]
pub struct AddedRoutes {
    /// The rows.
    pub rows: Vec<RouteRow>,
    /// A document of OpenAPI that describes them, as JSON. Its paths and schemas are added to those
    /// of the table.
    pub description: &'static str,
}

/// A handler of requests that go past the router.
pub trait DirectRoute: Send + Sync + 'static {
    /// Answers a request that was let in. Its path names this keyspace and this index.
    fn answer(
        self: Arc<Self>,
        keyspace: String,
        index: String,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response> + Send;
}

/// The direct route of a table that has none.
pub struct NoDirectRoute;

impl DirectRoute for NoDirectRoute {
    fn answer(
        self: Arc<Self>,
        _keyspace: String,
        _index: String,
        _request: Request<Incoming>,
    ) -> impl Future<Output = Response> + Send {
        let refusal = RequestRefusal::Internal("bug: there is no direct route".to_owned());
        std::future::ready(refusal.into_response())
    }
}

/// The table of routes of a listener. `D` handles the requests of the direct route.
pub struct RouteTable<D = NoDirectRoute> {
    rows: Vec<RouteRow>,
    direct: Option<Arc<D>>,
    other_paths: Option<OtherRequests>,
    other_methods: Option<OtherRequests>,
    session: Option<Arc<SessionFacts>>,
    refused: RefusalAnswer,
}

/// The handler of requests that no row is for.
#[derive(Clone)]
struct OtherRequests {
    right: RequiredRight,
    handler: MethodRouter,
}

impl OtherRequests {
    fn new<H, T>(right: RequiredRight, handler: H) -> OtherRequests
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        OtherRequests {
            right,
            handler: any(handler),
        }
    }
}

impl<D> Default for RouteTable<D> {
    fn default() -> RouteTable<D> {
        RouteTable {
            rows: Vec::new(),
            direct: None,
            other_paths: None,
            other_methods: None,
            session: None,
            refused: RequestRefusal::into_response,
        }
    }
}

impl<D> Clone for RouteTable<D> {
    fn clone(&self) -> RouteTable<D> {
        RouteTable {
            rows: self.rows.clone(),
            direct: self.direct.clone(),
            other_paths: self.other_paths.clone(),
            other_methods: self.other_methods.clone(),
            session: self.session.clone(),
            refused: self.refused,
        }
    }
}

impl<D> RouteTable<D> {
    /// The table with more rows, whose handlers read this state.
    #[must_use]
    pub fn with_rows<S>(
        mut self,
        rows: impl IntoIterator<Item = RouteRow<S>>,
        state: &S,
    ) -> RouteTable<D>
    where
        S: Clone + Send + Sync + 'static,
    {
        let rows = rows.into_iter();
        self.rows
            .extend(rows.map(|row| row.with_state(state.clone())));
        self
    }

    /// The table whose direct row is handled by this value.
    #[must_use]
    pub fn with_direct(self, direct: Arc<D>) -> RouteTable<D> {
        RouteTable {
            direct: Some(direct),
            ..self
        }
    }

    /// The table with a handler of requests to other paths. They are answered 404 without one.
    #[must_use]
    pub fn with_other_paths<H, T>(self, right: RequiredRight, handler: H) -> RouteTable<D>
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        RouteTable {
            other_paths: Some(OtherRequests::new(right, handler)),
            ..self
        }
    }

    /// The table with a handler of requests of other methods to its paths. They are answered 405
    /// without one.
    #[must_use]
    pub fn with_other_methods<H, T>(self, right: RequiredRight, handler: H) -> RouteTable<D>
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        RouteTable {
            other_methods: Some(OtherRequests::new(right, handler)),
            ..self
        }
    }

    /// The table with the routes by which browsers log in, of a server with these facts.
    #[must_use]
    pub fn with_session(self, facts: SessionFacts) -> RouteTable<D> {
        RouteTable {
            session: Some(Arc::new(facts)),
            ..self
        }
    }

    /// The table whose refusals are worded by this function.
    #[must_use]
    pub fn with_refusals(self, refused: RefusalAnswer) -> RouteTable<D> {
        RouteTable { refused, ..self }
    }

    /// The routes for requests that come by this channel.
    pub(crate) fn routes(&self, channel: RequestChannel, check: &AccessCheck) -> ChannelRoutes<D> {
        let refused = self.refused;
        if channel == RequestChannel::Refused {
            return ChannelRoutes {
                router: refusing_router(refused),
                direct: None,
                refused,
                check: check.clone(),
            };
        }
        let checked = |right| RouteCheck {
            check: check.clone(),
            right,
            refused,
        };
        let mut router = Router::new();
        let mut direct = None;
        let of_sessions = self.session.iter().flat_map(|facts| {
            session_rows(SessionRoutes {
                check: check.clone(),
                facts: facts.clone(),
            })
        });
        for row in self.rows.iter().cloned().chain(of_sessions) {
            let is_refused = row.is_private && channel == RequestChannel::InClear;
            let handler = match is_refused {
                true => on(row.method, move || async move {
                    refused(RequestRefusal::InClear)
                }),
                false => {
                    let handler = self.direct.clone();
                    direct = direct.or(DirectPath::of(&row).zip(handler));
                    match check.authorizer {
                        None => row.handler,
                        Some(_) => {
                            let check = from_fn_with_state(checked(row.right), admit_routed);
                            row.handler.route_layer(check)
                        }
                    }
                }
            };
            router = router.route(row.path, handler);
        }
        let others = |others: &OtherRequests| -> MethodRouter {
            let check = from_fn_with_state(checked(others.right), admit_unrouted);
            others.handler.clone().layer(check)
        };
        if let Some(other_paths) = &self.other_paths {
            router = router.fallback::<_, ()>(others(other_paths));
        }
        if let Some(other_methods) = &self.other_methods {
            router = router.method_not_allowed_fallback::<_, ()>(others(other_methods));
        }
        ChannelRoutes {
            router,
            direct,
            refused,
            check: check.clone(),
        }
    }
}

/// The rows by which browsers log in.
fn session_rows(state: SessionRoutes) -> [RouteRow; 3] {
    let rows: [RouteRow<SessionRoutes>; 3] = [
        RouteRow::new(MethodFilter::GET, SESSION, show).needs(RequiredRight::Nothing),
        // Passwords pass here. The login is checked before the handler.
        RouteRow::new(MethodFilter::POST, SESSION, log_in).private(),
        RouteRow::new(MethodFilter::DELETE, SESSION, log_out)
            .private()
            .needs(RequiredRight::Nothing),
    ];
    rows.map(|row| row.with_state(state.clone()))
}

/// The routes of requests that are all refused, as they came in clear.
fn refusing_router(refused: RefusalAnswer) -> Router {
    Router::new().fallback(move || async move { refused(RequestRefusal::WithoutTls) })
}

/// The routes of a listener for requests that come by one channel.
pub(crate) struct ChannelRoutes<D> {
    /// The routes of all requests.
    pub(crate) router: Router,
    /// The route past the router, and its handler. `None` where it is refused, which the router
    /// does.
    pub(crate) direct: Option<(DirectPath, Arc<D>)>,
    /// Words the refusals.
    pub(crate) refused: RefusalAnswer,
    /// The check of requests past the router.
    pub(crate) check: AccessCheck,
}

/// The path of the direct route. A path that has to be decoded first goes through the router, which
/// finds the handler of the same row.
pub(crate) struct DirectPath {
    method: MethodFilter,
    /// The right that it needs where clients log in.
    pub(crate) right: RequiredRight,
    /// The parts of the path before the keyspace, and after the index.
    around: (&'static str, &'static str),
}

impl DirectPath {
    fn of<S>(row: &RouteRow<S>) -> Option<DirectPath> {
        let around = row.path.split_once(INDEX)?;
        let (method, right) = (row.method, row.right);
        row.is_direct.then_some(DirectPath {
            method,
            right,
            around,
        })
    }

    /// The keyspace and the index that a request names, if the path names them without escapes.
    /// `None` for any other request.
    pub(crate) fn index_of<B>(&self, request: &Request<B>) -> Option<(String, String)> {
        let method = MethodFilter::try_from(request.method().clone());
        method.ok().filter(|method| *method == self.method)?;
        let (before, after) = self.around;
        let name = request.uri().path().strip_prefix(before)?;
        let (keyspace, index) = name.strip_suffix(after)?.split_once('/')?;
        let plain = |segment: &str| !segment.is_empty() && !segment.contains(['/', '%']);
        (plain(keyspace) && plain(index)).then(|| (keyspace.to_owned(), index.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;

    fn wanted(method: Method, uri: &str) -> Option<(String, String)> {
        let request = Request::builder().method(method).uri(uri).body(());
        let path = "/api/v1/indexes/{keyspace}/{index}/ann";
        let row = RouteRow::<()>::new(MethodFilter::POST, path, || async {});
        let direct = DirectPath::of(&row.direct()).expect("a direct route");
        direct.index_of(&request.unwrap())
    }

    #[test]
    fn requests_of_the_direct_route_are_known_by_method_and_path() {
        let found = |keyspace: &str, index: &str| Some((keyspace.to_owned(), index.to_owned()));
        let search = |uri| wanted(Method::POST, uri);
        assert_eq!(search("/api/v1/indexes/ks/i/ann"), found("ks", "i"));
        assert_eq!(
            search("http://h:1/api/v1/indexes/K-s/I/ann?limit=3"),
            found("K-s", "I")
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

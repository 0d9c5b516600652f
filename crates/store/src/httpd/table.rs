//! The table of routes.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::{Shared, ann, openapi, repair, routes, scrub, tasks};

/// How a request came to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// By TLS, or to a listener without a certificate.
    AsConfigured,
    /// In clear, to a listener with a certificate.
    InClear,
}

/// A row of the table.
struct Route {
    path: &'static str,
    method: MethodFilter,
    /// A private route tells of rows or changes something, and is refused in clear.
    is_private: bool,
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
        handler: on(method, handler),
    }
}

impl Route {
    fn private(self) -> Route {
        Route {
            is_private: true,
            ..self
        }
    }
}

fn table() -> [Route; 21] {
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
    [
        route(GET, "/api/v1/status", routes::status),
        route(GET, "/api/v1/info", routes::info),
        route(GET, "/api/v1/clock", routes::clock),
        route(GET, "/api/v1/indexes", routes::indexes),
        route(GET, INDEX, routes::index),
        route(GET, STATUS, routes::index_status),
        // Searches take a shorter way where they can (`front`).
        route(POST, ANN, ann::ann).private(),
        route(POST, BM25, routes::no_text_index).private(),
        route(POST, HIGHLIGHT, routes::no_text_index).private(),
        route(GET, REPAIR, repair::status),
        route(POST, REPAIR, repair::start).private(),
        route(PATCH, REPAIR, repair::control).private(),
        route(PUT, SCHEDULE, repair::update).private(),
        route(POST, "/api/v1/scrub", scrub::start).private(),
        route(GET, "/api/v1/tasks", tasks::list),
        route(GET, "/api/v1/tasks/{id}", tasks::status),
        route(DELETE, "/api/v1/tasks/{id}", tasks::abort).private(),
        route(GET, "/api/v1/tasks/{id}/tree", tasks::tree),
        route(GET, "/api/v1/tasks/{id}/wait", tasks::wait),
        route(GET, "/metrics", routes::metrics),
        route(GET, "/api-docs/openapi.json", openapi::document),
    ]
}

/// The routes of a listener for requests that come by this channel.
pub fn router(shared: Shared, channel: Channel) -> Router {
    let mut router = Router::new();
    for route in table() {
        let is_refused = route.is_private && channel == Channel::InClear;
        let handler = match is_refused {
            true => on(route.method, routes::in_clear),
            false => route.handler,
        };
        router = router.route(route.path, handler);
    }
    router.with_state(shared)
}

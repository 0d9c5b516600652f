//! The rows of the index service in the table of routes: path, method, the right that a request
//! needs, and the handler.

use axum::handler::Handler;
use axum::response::Json;
use axum::routing::MethodFilter;
use http_server::health::{LIVE, READY};
use http_server::{RequestRefusal, RequiredRight, RouteRow, RouteTable};
use store_api::types::NodeStatus;

use super::tasks::TaskRoutes;
use super::{
    ListenerContext, Shared, documentation, health, internals, maintenance, map, no_tables,
    openapi, recall, repair, scrub, state, tasks,
};

const GET: MethodFilter = MethodFilter::GET;
const POST: MethodFilter = MethodFilter::POST;
const PUT: MethodFilter = MethodFilter::PUT;
const PATCH: MethodFilter = MethodFilter::PATCH;
const DELETE: MethodFilter = MethodFilter::DELETE;

/// A search.
fn search<H, T>(path: &'static str, handler: H) -> RouteRow<Shared>
where
    H: Handler<T, Shared>,
    T: 'static,
{
    let row = RouteRow::new(POST, path, handler);
    row.private().needs(RequiredRight::Search)
}

/// A route that shows many rows at once.
fn samples_rows<H, T>(method: MethodFilter, path: &'static str, handler: H) -> RouteRow<Shared>
where
    H: Handler<T, Shared>,
    T: 'static,
{
    let row = RouteRow::new(method, path, handler);
    row.private().needs(RequiredRight::SampleRows)
}

/// A route that changes an index.
fn changes<H, T>(method: MethodFilter, path: &'static str, handler: H) -> RouteRow<Shared>
where
    H: Handler<T, Shared>,
    T: 'static,
{
    let row = RouteRow::new(method, path, handler);
    row.private().needs(RequiredRight::Change)
}

/// A route that changes something of the service as a whole.
fn operates<S, H, T>(method: MethodFilter, path: &'static str, handler: H) -> RouteRow<S>
where
    S: Clone + Send + Sync + 'static,
    H: Handler<T, S>,
    T: 'static,
{
    let row = RouteRow::new(method, path, handler);
    row.private().needs(RequiredRight::Operate)
}

/// The path of the service's state.
const STATUS_PATH: &str = "/api/v1/status";

/// The rows of every listener.
fn rows() -> [RouteRow<Shared>; 30] {
    const INDEX: &str = "/api/v1/indexes/{keyspace}/{index}";
    const STATUS: &str = "/api/v1/indexes/{keyspace}/{index}/status";
    const ANN: &str = "/api/v1/indexes/{keyspace}/{index}/ann";
    const BM25: &str = "/api/v1/indexes/{keyspace}/{index}/bm25";
    const HIGHLIGHT: &str = "/api/v1/indexes/{keyspace}/{index}/highlight";
    const MATCHES: &str = "/api/v1/indexes/{keyspace}/{index}/matches";
    const SCORES: &str = "/api/v1/indexes/{keyspace}/{index}/scores";
    const RECALL: &str = "/api/v1/indexes/{keyspace}/{index}/recall";
    const MAP: &str = "/api/v1/indexes/{keyspace}/{index}/map";
    const REPAIR: &str = "/api/v1/indexes/{keyspace}/{index}/repair";
    const MAINTENANCE: &str = "/api/v1/maintenance";
    const SCHEDULE: &str = "/api/v1/indexes/{keyspace}/{index}/repair/schedule";
    [
        RouteRow::new(GET, LIVE, health::live).needs(RequiredRight::Nothing),
        RouteRow::new(GET, READY, health::ready).needs(RequiredRight::Nothing),
        RouteRow::new(GET, STATUS_PATH, state::status).needs(RequiredRight::Nothing),
        RouteRow::new(GET, "/api/v1/info", state::info),
        RouteRow::new(GET, "/api/v1/clock", state::clock),
        RouteRow::new(GET, "/api/v1/tables", state::tables),
        RouteRow::new(GET, "/api/v1/indexes", state::indexes),
        RouteRow::new(GET, INDEX, state::index),
        RouteRow::new(GET, STATUS, state::index_status).needs(RequiredRight::SeeState),
        search(ANN, super::ann::ann).direct(),
        search(BM25, super::words::bm25),
        search(HIGHLIGHT, super::words::highlight),
        search(MATCHES, super::words::matches),
        search(SCORES, super::words::scores),
        changes(POST, RECALL, recall::measure),
        samples_rows(POST, MAP, map::start),
        samples_rows(GET, MAP, map::last),
        RouteRow::new(GET, REPAIR, repair::status),
        changes(POST, REPAIR, repair::start),
        changes(PATCH, REPAIR, repair::control),
        changes(PUT, SCHEDULE, repair::update),
        operates(POST, "/api/v1/scrub", scrub::start),
        RouteRow::new(GET, MAINTENANCE, maintenance::status).needs(RequiredRight::SeeState),
        operates(PUT, MAINTENANCE, maintenance::set),
        RouteRow::new(GET, "/metrics", state::metrics),
        RouteRow::new(GET, "/api/v1/metrics/history", state::metrics_history),
        RouteRow::new(GET, "/api-docs/openapi.json", openapi::document),
        RouteRow::new(GET, "/docs", documentation::page).needs(RequiredRight::Nothing),
        RouteRow::new(GET, "/docs/page.js", documentation::script).needs(RequiredRight::Nothing),
        RouteRow::new(GET, "/docs/page.css", documentation::style).needs(RequiredRight::Nothing),
    ]
}

/// The rows for long work, of every listener.
fn task_rows() -> [RouteRow<TaskRoutes>; 5] {
    const TASK: &str = "/api/v1/tasks/{id}";
    [
        RouteRow::new(GET, "/api/v1/tasks", tasks::list),
        RouteRow::new(GET, TASK, tasks::status),
        operates(DELETE, TASK, tasks::abort),
        RouteRow::new(GET, "/api/v1/tasks/{id}/tree", tasks::tree),
        RouteRow::new(GET, "/api/v1/tasks/{id}/wait", tasks::wait),
    ]
}

/// The rows that exist only if internal routes are switched on.
fn internal_rows() -> [RouteRow<Shared>; 4] {
    const COUNTERS: &str = "/api/internals/counters";
    const COUNTER: &str = "/api/internals/counters/{id}";
    const SESSION_COUNTERS: &str = "/api/internals/session-counters";
    [
        RouteRow::new(GET, COUNTERS, internals::counters),
        operates(DELETE, COUNTERS, internals::clear),
        operates(PUT, COUNTER, internals::start),
        RouteRow::new(GET, SESSION_COUNTERS, internals::session_counters),
    ]
}

/// The paths that a database in the same process has routes for, and their answer without one.
fn rows_without_tables() -> [RouteRow; 5] {
    const ANY: MethodFilter = GET.or(POST).or(PUT).or(PATCH).or(DELETE);
    let row = |path| RouteRow::new(ANY, path, no_tables::reason).needs(RequiredRight::Nothing);
    [
        row("/api/v1/tables/{*rest}"),
        row("/api/v1/keyspaces/{*rest}"),
        row("/api/v1/batch"),
        row("/api/v1/cql"),
        row("/api/v1/schema"),
    ]
}

/// The routes of a listener.
pub(super) fn routes(shared: Shared, of_tasks: &TaskRoutes) -> RouteTable<ListenerContext> {
    let mut table = RouteTable::default()
        .with_rows(web_console::pages(), &())
        .with_rows(rows(), &shared)
        .with_rows(task_rows(), of_tasks);
    if shared.api.internals {
        table = table.with_rows(internal_rows(), &shared);
    }
    table = match &shared.api.of_database {
        Some(added) => table.with_rows(added.rows.iter().cloned(), &()),
        None => table.with_rows(rows_without_tables(), &()),
    };
    for added in &shared.api.of_process {
        table = table.with_rows(added.rows.iter().cloned(), &());
    }
    if let Some(facts) = &shared.api.session {
        table = table.with_session(facts.clone());
    }
    table.with_direct(shared)
}

/// The routes of a listener whose service has not started.
pub(super) fn routes_before_start() -> RouteTable<ListenerContext> {
    let starting = || async { Json(NodeStatus::Initializing) };
    let not_ready = || async { health::readiness(NodeStatus::Initializing) };
    let rows = [
        RouteRow::new(GET, LIVE, health::live),
        RouteRow::new(GET, READY, not_ready),
        RouteRow::new(GET, STATUS_PATH, starting),
    ];
    let refused = || async { RequestRefusal::Starting };
    let table = RouteTable::default()
        .with_rows(web_console::pages(), &())
        .with_rows(rows, &());
    table.with_other_paths(RequiredRight::Nothing, refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks rows, and counts those that change something.
    fn changing<S>(rows: impl IntoIterator<Item = RouteRow<S>>) -> usize
    where
        S: Clone + Send + Sync + 'static,
    {
        let mut changing = 0;
        for row in rows {
            let (path, method) = (row.path(), row.method());
            let is_read = [MethodFilter::GET, MethodFilter::HEAD].contains(&method);
            match row.right() {
                RequiredRight::Change | RequiredRight::Operate => {
                    assert!(!is_read && row.is_private(), "{path}");
                    changing += 1;
                }
                RequiredRight::Search => {
                    // It has a body.
                    let is_post = method == MethodFilter::POST;
                    assert!(is_post && row.is_private(), "{path}");
                }
                RequiredRight::SampleRows => {
                    assert!(path.ends_with("/map") && row.is_private(), "{path}");
                }
                RequiredRight::Nothing
                | RequiredRight::See
                | RequiredRight::SeeSettings
                | RequiredRight::SeeState => {
                    assert!(is_read, "{path}");
                }
            }
        }
        changing
    }

    #[test]
    fn no_get_changes_anything_and_every_other_route_has_a_right_of_its_own() {
        let of_service = changing(rows()) + changing(internal_rows());
        assert!(of_service >= 6, "{of_service} rows");
        assert_eq!(changing(task_rows()), 1);
    }
}

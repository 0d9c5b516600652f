//! The rows of a gateway in the table of routes: its metrics, whether it lives and serves clients,
//! maintenance, and the console with its settings. The listener is closed unless an address for it
//! is set.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use http_server::health::{LIVE, READY};
use http_server::{
    BodyLimits, BoundHttpListener, ConnectionLimits, HttpListenerOptions, HttpTraffic,
    OverflowPolicy, RequestRefusal, RequiredRight, RouteFailure, RouteRow, RouteTable,
    ServedFeatures, ServedHttpListener, SessionFacts,
};
use net::listener::BindError;
use store_api::SearchCounts;
use store_api::types::{MaintenanceRequest, MaintenanceStatus};

use crate::metrics::{RequestFamilies, older_names};
use crate::shared::ServingState;

/// Connections that are served at once; more wait.
const CONNECTIONS_MAX: usize = 16;

/// The time that a connection has to send the head of a request.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// The time that a connection may be open in all.
const OPEN_MAX: Duration = Duration::from_secs(600);

/// The bytes of answers that clients have not taken yet: far more than a text of metrics for each
/// connection.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The most bytes of the body of a request: far more than the one route with a body needs.
const BODY_BYTES_MAX: usize = 4 << 10;

/// The path of the metrics.
const METRICS: &str = "/metrics";

/// The path of the values that metrics had in the last hours.
const HISTORY: &str = "/api/v1/metrics/history";

/// The path of maintenance.
const MAINTENANCE: &str = "/api/v1/maintenance";

/// The path of backups, which an index service and a database have.
const BACKUPS: &str = "/api/v1/backups";

/// The reason why a gateway has none.
const NOTHING_TO_BACK_UP: &str = "a gateway has nothing of its own to back up: the definitions of its indexes and the \
     change logs are tables of the cluster (--index-keyspace, and <table>_scylla_cdc_log), so a backup of all its \
     keyspaces by its own means holds them (nodetool snapshot, Medusa); for the snapshots of indexes, name the HTTP \
     address of the index service";

/// The state that the handlers read.
#[derive(Clone)]
struct RouteState {
    shared: Arc<ServingState>,
    /// The bounds of bodies.
    bodies: Arc<BodyLimits>,
}

/// Binds the listener.
pub(crate) async fn bind(address: SocketAddr) -> Result<BoundHttpListener, BindError> {
    let options = HttpListenerOptions {
        address,
        names: Vec::new(),
        tls_alone: false,
        answer_bytes_max: ANSWER_BYTES_MAX,
        connections_max: CONNECTIONS_MAX,
        when_full: OverflowPolicy::Waits,
        connection: ConnectionLimits {
            mute_max: REQUEST_WITHIN,
            idle_max: REQUEST_WITHIN,
            open_max: Some(OPEN_MAX),
            has_http2: false,
        },
    };
    BoundHttpListener::bind(options, None, RouteTable::default()).await
}

/// Serves the routes until the result is stopped or dropped. `cql` is the address for drivers.
pub(crate) fn serve(
    bound: BoundHttpListener,
    shared: &Arc<ServingState>,
    cql: SocketAddr,
) -> ServedHttpListener {
    show_requests(shared);
    let budget = CONNECTIONS_MAX * BODY_BYTES_MAX;
    let bodies = BodyLimits::new(budget, BODY_BYTES_MAX, REQUEST_WITHIN);
    let state = RouteState {
        shared: shared.clone(),
        bodies: Arc::new(bodies),
    };
    let facts = SessionFacts {
        program: "gateway",
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cql: Some(cql),
        features: ServedFeatures {
            metrics: true,
            settings: true,
            ..ServedFeatures::default()
        },
    };
    let table = RouteTable::default()
        .with_rows(rows(), &state)
        .with_rows(rows_without_tables(), &())
        .with_rows(web_console::pages(), &())
        .with_rows(shared.options.settings.routes().rows, &())
        .with_session(facts)
        .with_other_paths(RequiredRight::See, other)
        .with_other_methods(RequiredRight::See, other)
        .with_refusals(refused);
    bound.serve(table, Some(shared.options.tokens.clone()))
}

/// Puts the families of the gateway into its registry.
fn show_requests(shared: &Arc<ServingState>) {
    let registry = &shared.registry;
    registry.show_older_names(&older_names());
    // The state has the registry, so the families must not keep the state.
    let of = Arc::downgrade(shared);
    let gauges = move || of.upgrade().map(|of| of.gauges()).unwrap_or_default();
    let registered = RequestFamilies::new(shared.metrics.clone(), gauges)
        .and_then(|families| registry.register(Box::new(families)));
    if let Err(error) = registered {
        tracing::error!(%error, "bug: the metrics are not shown");
    }
    for families in SearchCounts::of_process().families() {
        if let Err(error) = registry.register(families) {
            tracing::error!(%error, "bug: the counts of searches are not shown");
        }
    }
    HttpTraffic::of_process().show(registry);
    shared.options.maintenance.show(registry);
}

fn rows() -> [RouteRow<RouteState>; 8] {
    const GET_OR_POST: MethodFilter = MethodFilter::GET.or(MethodFilter::POST);
    [
        RouteRow::new(MethodFilter::GET, LIVE, live).needs(RequiredRight::Nothing),
        RouteRow::new(MethodFilter::GET, READY, ready).needs(RequiredRight::Nothing),
        RouteRow::new(MethodFilter::GET, METRICS, metrics),
        RouteRow::new(MethodFilter::GET, HISTORY, metrics_history),
        RouteRow::new(MethodFilter::GET, MAINTENANCE, maintenance).needs(RequiredRight::SeeState),
        RouteRow::new(MethodFilter::PUT, MAINTENANCE, set_maintenance)
            .private()
            .needs(RequiredRight::Operate),
        RouteRow::new(MethodFilter::HEAD, METRICS, other),
        RouteRow::new(GET_OR_POST, BACKUPS, nothing_to_back_up),
    ]
}

/// The paths of routes for tables, which a gateway does not have.
fn rows_without_tables() -> [RouteRow; 5] {
    const READS: MethodFilter = MethodFilter::GET.or(MethodFilter::POST);
    const ANY: MethodFilter = READS.or(MethodFilter::PUT).or(MethodFilter::DELETE);
    let row = |path| RouteRow::new(ANY, path, no_tables).needs(RequiredRight::Nothing);
    [
        row("/api/v1/tables/{*rest}"),
        row("/api/v1/keyspaces/{*rest}"),
        row("/api/v1/batch"),
        row("/api/v1/cql"),
        row("/api/v1/schema"),
    ]
}

/// Says where tables are.
async fn no_tables() -> RouteFailure {
    RouteFailure::new(
        StatusCode::NOT_FOUND,
        "a gateway has no tables over HTTP",
        "send statements to its CQL port; searches of indexes are at the HTTP port of an index service",
    )
}

/// Says that the process answers.
async fn live() -> Response {
    answer(StatusCode::OK, "live".to_owned())
}

/// Says whether clients are served. The CQL port is open for as long as this one.
async fn ready(State(state): State<RouteState>) -> Response {
    let ServingState {
        catalog, options, ..
    } = &*state.shared;
    let (status, body) = match (options.maintenance.is_on(), catalog.is_ready()) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "\"MAINTENANCE\""),
        (false, true) => (StatusCode::OK, "\"SERVING\""),
        (false, false) => (StatusCode::SERVICE_UNAVAILABLE, "\"CONNECTING_TO_DB\""),
    };
    answer(status, body.to_owned())
}

/// Says whether the gateway is in maintenance, and how many requests it still works on.
async fn maintenance(State(state): State<RouteState>) -> Json<MaintenanceStatus> {
    let mode = &state.shared.options.maintenance;
    Json(MaintenanceStatus {
        maintenance: mode.is_on(),
        requests_in_progress: mode.in_progress(),
    })
}

/// Begins or ends maintenance: new statements are refused, and those that have begun go on.
async fn set_maintenance(
    State(state): State<RouteState>,
    request: Request,
) -> Result<Response, RequestRefusal> {
    let received = state.bodies.read(request.into_body()).await?;
    match serde_json::from_slice(&received.bytes) {
        Ok(MaintenanceRequest { maintenance: is_on }) => {
            state.shared.options.maintenance.set(is_on);
            Ok(maintenance(State(state)).await.into_response())
        }
        Err(error) => Ok(line(
            StatusCode::BAD_REQUEST,
            &format!("{error}: send {{\"maintenance\": true}}, or false to end it"),
        )),
    }
}

/// Returns metrics in the text format of Prometheus.
async fn metrics(State(state): State<RouteState>) -> Result<Response, RequestRefusal> {
    state.shared.registry.answer()
}

/// Returns the values that a metric had in the last hours.
async fn metrics_history(State(state): State<RouteState>, uri: Uri) -> Response {
    state.shared.history.answer(&uri)
}

/// Says what holds the state of a gateway.
async fn nothing_to_back_up() -> Response {
    line(StatusCode::NOT_FOUND, NOTHING_TO_BACK_UP)
}

/// Answers requests that no route is for.
async fn other(method: Method, uri: Uri) -> Response {
    match (method, uri.path()) {
        (Method::GET, _) => line(StatusCode::NOT_FOUND, "ask for /metrics"),
        (_, MAINTENANCE) => line(
            StatusCode::METHOD_NOT_ALLOWED,
            "ask with GET, or begin and end maintenance with PUT",
        ),
        _ => line(StatusCode::METHOD_NOT_ALLOWED, "ask with GET"),
    }
}

/// The answer that refuses a request.
fn refused(refusal: RequestRefusal) -> Response {
    match refusal {
        RequestRefusal::ForeignHost(_) => line(
            StatusCode::FORBIDDEN,
            "this listener is on a loopback address and answers to loopback names alone",
        ),
        RequestRefusal::NoToken(text) | RequestRefusal::NoLogin(text) => {
            let mut response = line(StatusCode::UNAUTHORIZED, &text);
            let challenge = HeaderValue::from_static("Bearer realm=\"annulus\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            response
        }
        RequestRefusal::NoRight(text) => line(StatusCode::FORBIDDEN, &text),
        RequestRefusal::LoginsWait(text) => line(StatusCode::SERVICE_UNAVAILABLE, &text),
        refusal => refusal.into_response(),
    }
}

fn line(status: StatusCode, why: &str) -> Response {
    answer(status, format!("{why}\n"))
}

fn answer(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_how_to_get_in() {
        let missing = refused(RequestRefusal::NoToken("no token".to_owned()));
        assert_eq!(missing.status(), 401);
        assert_eq!(
            missing.headers()[WWW_AUTHENTICATE],
            "Bearer realm=\"annulus\""
        );
        for (refusal, status) in [
            (RequestRefusal::NoRight("no token".to_owned()), 403),
            (RequestRefusal::ForeignHost("evil".to_owned()), 403),
            (RequestRefusal::LoginsWait("later".to_owned()), 503),
        ] {
            let response = refused(refusal);
            assert_eq!(response.status(), status);
            assert!(!response.headers().contains_key(WWW_AUTHENTICATE));
        }
    }
}

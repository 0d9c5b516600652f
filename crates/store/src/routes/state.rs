//! The routes for the state of the service and of its indexes.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use store_api::types::{
    ClockStatus, IndexInfo, IndexState, IndexStatus, Info, NodeStatus, TableSize,
};

use super::Shared;
use super::error::ApiError;
use super::index_path::IndexPath;
use super::no_tables;
use crate::identity::IndexName;
use crate::indexes::{IndexEngine, NoRoute};
use crate::search::SearchError;

/// Returns the state of the service.
#[utoipa::path(
    get,
    path = "/api/v1/status",
    responses((status = 200, description = "The state, as a JSON string", body = NodeStatus)),
)]
pub(super) async fn status(State(shared): State<Shared>) -> Json<NodeStatus> {
    Json(shared.api.engine.status())
}

/// Returns the difference between the database's clock and the machine's.
#[utoipa::path(
    get,
    path = "/api/v1/clock",
    responses((status = 200, description = "The time by which the database's clock is ahead of the machine's", body = ClockStatus)),
)]
pub(super) async fn clock(State(shared): State<Shared>) -> Json<ClockStatus> {
    let lead = shared.api.engine.clock_lead().unwrap_or_default();
    Json(ClockStatus {
        lead_ms: u64::try_from(lead.as_millis()).unwrap_or(u64::MAX),
    })
}

/// Returns the tables of the database in the same process with their sizes, and the names of their
/// indexes.
#[utoipa::path(
    get,
    path = "/api/v1/tables",
    responses(
        (status = 200, description = "Every table of users", body = Vec<TableSize>),
        (status = 404, description = "The service has no database in its process", body = String),
    ),
)]
pub(super) async fn tables(State(shared): State<Shared>) -> Response {
    match shared.api.engine.table_sizes() {
        Some(sizes) => Json(sizes).into_response(),
        None => no_tables::reason().await,
    }
}

/// Returns the name and the version of the service.
#[utoipa::path(
    get,
    path = "/api/v1/info",
    responses((status = 200, description = "Name and version", body = Info)),
)]
pub(super) async fn info(State(shared): State<Shared>) -> Json<Info> {
    Json(Info::clone(&shared.api.info))
}

/// Returns every index, in any state, with its state and its lag.
#[utoipa::path(
    get,
    path = "/api/v1/indexes",
    responses((status = 200, description = "Every index", body = Vec<IndexInfo>)),
)]
pub(super) async fn indexes(State(shared): State<Shared>) -> Json<Vec<IndexInfo>> {
    let engine = &shared.api.engine;
    let (indexes, now) = (engine.indexes(), engine.now());
    Json(indexes.iter().map(|index| index.info(now)).collect())
}

/// Returns one index, with its state and its lag.
#[utoipa::path(
    get,
    path = "/api/v1/indexes/{keyspace}/{index}",
    params(IndexPath),
    responses(
        (status = 200, description = "The index", body = IndexInfo),
        (status = 404, description = "No such index", body = String),
    ),
)]
pub(super) async fn index(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
) -> Result<Json<IndexInfo>, ApiError> {
    let name = IndexName::from(path);
    let engine = &shared.api.engine;
    match engine.find(&name) {
        Ok(index) => Ok(Json(index.info(engine.now()))),
        Err(no_route) => Err(SearchError::no_route(name, &no_route).into()),
    }
}

/// Returns the state of an index, its number of rows and the progress of its build.
#[utoipa::path(
    get,
    path = "/api/v1/indexes/{keyspace}/{index}/status",
    params(IndexPath),
    responses(
        (status = 200, description = "State, number of rows and progress", body = IndexStatus),
        (status = 404, description = "No such index", body = String),
    ),
)]
pub(super) async fn index_status(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
) -> Result<Json<IndexStatus>, ApiError> {
    let name = IndexName::from(path);
    let engine = &shared.api.engine;
    match engine.find(&name) {
        Ok(index) => Ok(Json(index.full_status(engine.now()))),
        Err(NoRoute::Missing) => Err(SearchError::MissingIndex(name).into()),
        Err(_) => Ok(Json(IndexStatus {
            status: IndexState::Initializing,
            count: 0,
            build_progress: 0.0,
            rows_without_room: 0,
            changes_waiting: 0,
            lag_seconds: None,
            recall: None,
            tending: false,
            version: None,
            memory: None,
            dead_entries: 0,
            maintenance_debt: 0,
        })),
    }
}

/// Returns metrics in the text format of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "Metrics, text format 0.0.4", body = String)),
)]
pub(super) async fn metrics(State(shared): State<Shared>) -> Result<Response, ApiError> {
    let engine = &shared.api.engine;
    refresh_gauges(engine);
    engine.metrics().registry().answer().map_err(ApiError::from)
}

/// Returns the values that a metric had in the last hours, or the names of those that have a
/// history.
#[utoipa::path(
    get,
    path = "/api/v1/metrics/history",
    params(
        ("name" = Option<String>, Query, description = "The name of the metric; the names are listed without it"),
        ("seconds" = Option<i64>, Query, description = "How far the values go back; as far as there are any by default", minimum = 1),
    ),
    responses(
        (status = 200, description = "`name`, `step_seconds`, and `series` with `labels` and `points`, pairs of a time and a value"),
        (status = 400, description = "`seconds` is no whole number above 0"),
        (status = 404, description = "The metric has no history"),
    ),
)]
pub(super) async fn metrics_history(State(shared): State<Shared>, uri: Uri) -> Response {
    shared.api.history.answer(&uri)
}

/// Sets the gauges that are only read when somebody looks.
pub(crate) fn refresh_gauges(engine: &IndexEngine) {
    for index in engine.indexes() {
        index.refresh_gauges(engine.now());
    }
    if let Some(lead) = engine.clock_lead() {
        engine.metrics().set_clock_lead(lead);
    }
}

//! The routes under `/api/internals`: test hooks that exist only if they were switched on.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};

use super::Shared;
use super::error::ApiError;

/// Returns the counters that were started.
pub(super) async fn counters(State(shared): State<Shared>) -> Json<BTreeMap<String, u64>> {
    Json(shared.api.engine.metrics().counters().values())
}

/// Removes all counters.
pub(super) async fn clear(State(shared): State<Shared>) {
    shared.api.engine.metrics().counters().clear();
}

/// Starts a counter.
pub(super) async fn start(
    State(shared): State<Shared>,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    let started = shared.api.engine.metrics().counters().start(id);
    started.map_err(|error| ApiError::BadRequest(error.to_string()))
}

/// Returns what is known of the sessions to the database.
pub(super) async fn session_counters(State(shared): State<Shared>) -> Json<BTreeMap<String, u64>> {
    Json(shared.api.engine.session_counters())
}

//! The routes that repair an index: `/api/v1/indexes/{keyspace}/{index}/repair`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use store_api::types::{
    RepairRequest, RepairSchedule, RepairScheduleUpdate, RepairSpeed, RepairStatus, TaskStatus,
};

use super::Shared;
use super::error::ApiError;
use super::index_path::IndexPath;
use super::request::AdmittedJson;
use super::tasks::shown;
use crate::identity::IndexName;
use crate::indexes::IndexHandle;
use crate::options;
use crate::repair::{
    ComparisonSpeed, IndexCreation, PeriodicRepairUpdate, RepairError, ScheduleError,
};
use crate::search::SearchError;

/// Begins to compare an index with its table, and to mend the index.
#[utoipa::path(
    post,
    path = "/api/v1/indexes/{keyspace}/{index}/repair",
    params(IndexPath),
    request_body = RepairRequest,
    responses(
        (status = 200, description = "The repair has begun; its task", body = TaskStatus),
        (status = 404, description = "No such index", body = String),
        (status = 409, description = "The index is not built yet, or a repair of it runs", body = String),
    ),
)]
pub(super) async fn start(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: AdmittedJson<RepairRequest>,
) -> Result<Json<TaskStatus>, ApiError> {
    let name = repairable(&shared, path)?;
    let RepairRequest {
        parallel,
        intensity,
        grace_s,
    } = request.body;
    let speed = ComparisonSpeed {
        parallel,
        intensity,
    };
    let grace = grace_s.map(Duration::from_secs);
    let started = shared.api.repairs.start(&name, speed, grace);
    let task = started.map_err(conflict)?;
    match shared.api.work.status(task) {
        Some(status) => Ok(Json(shown(status))),
        None => Err(ApiError::MissingTask(task.to_string())),
    }
}

/// Changes the speed of the repair that runs. Later repairs are not affected.
#[utoipa::path(
    patch,
    path = "/api/v1/indexes/{keyspace}/{index}/repair",
    params(IndexPath),
    request_body = RepairSpeed,
    responses(
        (status = 200, description = "The speed from now on", body = RepairSpeed),
        (status = 404, description = "No such index", body = String),
        (status = 409, description = "No repair of the index runs, or it is a secondary one, whose repairs have one speed", body = String),
    ),
)]
pub(super) async fn control(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: AdmittedJson<RepairSpeed>,
) -> Result<Json<RepairSpeed>, ApiError> {
    let index = known(&shared, path, ApiError::Conflict)?;
    let RepairSpeed {
        parallel,
        intensity,
    } = request.body;
    let name = &index.identity.name;
    let controlled = shared.api.repairs.control(name, parallel, intensity);
    let speed = controlled.map_err(conflict)?;
    Ok(Json(RepairSpeed {
        parallel: Some(speed.parallel),
        intensity: Some(speed.intensity),
    }))
}

/// Returns the last repair of an index, and its schedule.
#[utoipa::path(
    get,
    path = "/api/v1/indexes/{keyspace}/{index}/repair",
    params(IndexPath),
    responses(
        (status = 200, description = "The last repair and the schedule", body = RepairStatus),
        (status = 404, description = "No such index", body = String),
    ),
)]
pub(super) async fn status(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
) -> Result<Json<RepairStatus>, ApiError> {
    let name = repairable(&shared, path)?;
    let last = shared.api.repairs.last(&name);
    let index = shared.api.engine.index(&name);
    let schedule = index.and_then(|index| {
        let creation = IndexCreation::of(&index.identity);
        shared.api.schedules.of(&creation)
    });
    Ok(Json(RepairStatus {
        last: last.map(shown),
        schedule: schedule.map(shown_schedule),
    }))
}

/// Changes the schedule of an index permanently. A repair that runs goes on as it is.
#[utoipa::path(
    put,
    path = "/api/v1/indexes/{keyspace}/{index}/repair/schedule",
    params(IndexPath),
    request_body = RepairScheduleUpdate,
    responses(
        (status = 200, description = "The schedule; null: the index is never repaired without a request", body = Option<RepairSchedule>),
        (status = 400, description = "The index has no schedule, and no interval is given; or both an interval and never are given; or it is a secondary one, which is repaired upon a request only", body = String),
        (status = 404, description = "No such index", body = String),
        (status = 500, description = "The schedule can't be written to the disk", body = String),
    ),
)]
pub(super) async fn update(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: AdmittedJson<RepairScheduleUpdate>,
) -> Result<Json<Option<RepairSchedule>>, ApiError> {
    let index = known(&shared, path, ApiError::BadRequest)?;
    let asked = request.body;
    let interval = match (asked.never, asked.interval_s) {
        (true, None) => Some(None),
        (true, Some(_)) => {
            let text = "a schedule has an interval or is never; both were given";
            return Err(ApiError::BadRequest(text.to_owned()));
        }
        (false, interval_s) => interval_s.map(|interval_s| Some(Duration::from_secs(interval_s))),
    };
    let update = PeriodicRepairUpdate {
        interval,
        parallel: asked.parallel,
        intensity: asked.intensity,
    };
    let schedules = shared.api.schedules.clone();
    let of = IndexCreation::of(&index.identity);
    let updated = tokio::task::spawn_blocking(move || schedules.update(&of, update)).await;
    let updated = updated.map_err(|error| ApiError::Internal(error.to_string()))?;
    match updated {
        Ok(schedule) => Ok(Json(schedule.map(shown_schedule))),
        Err(error @ ScheduleError::NoInterval(_)) => Err(ApiError::BadRequest(error.to_string())),
        Err(error @ ScheduleError::File { .. }) => Err(ApiError::Internal(error.to_string())),
    }
}

/// Finds an index whose repairs have a speed and a schedule, or fails with
/// [`SearchError::MissingIndex`]; with another error if the database keeps the index itself.
fn known(
    shared: &Shared,
    path: IndexPath,
    own: fn(String) -> ApiError,
) -> Result<Arc<IndexHandle>, ApiError> {
    let name = IndexName::from(path);
    match shared.api.engine.index(&name) {
        Some(index) => Ok(index),
        None if shared.api.repairs.is_own(&name) => Err(own(format!(
            "index {name} is a secondary one: its repairs have neither a speed nor a schedule"
        ))),
        None => Err(SearchError::MissingIndex(name).into()),
    }
}

/// The name of an index that can be repaired, or [`SearchError::MissingIndex`].
fn repairable(shared: &Shared, path: IndexPath) -> Result<IndexName, ApiError> {
    let name = IndexName::from(path);
    match shared.api.engine.index(&name).is_some() || shared.api.repairs.is_own(&name) {
        true => Ok(name),
        false => Err(SearchError::MissingIndex(name).into()),
    }
}

fn conflict(error: RepairError) -> ApiError {
    ApiError::Conflict(error.to_string())
}

fn shown_schedule(schedule: options::PeriodicRepair) -> RepairSchedule {
    RepairSchedule {
        interval_s: schedule.interval.as_secs(),
        parallel: schedule.parallel,
        intensity: schedule.intensity,
    }
}

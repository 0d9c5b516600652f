//! The route that checks all files: `/api/v1/scrub`.

use axum::Json;
use axum::extract::State;
use store_api::types::{ScrubRequest, TaskStatus};

use super::Shared;
use super::error::ApiError;
use super::request::AdmittedJson;
use super::tasks::shown;

const MIB: u64 = 1 << 20;

/// Begins to read all files and to check their checksums.
#[utoipa::path(
    post,
    path = "/api/v1/scrub",
    request_body = ScrubRequest,
    responses(
        (status = 200, description = "The check has begun; its task", body = TaskStatus),
        (status = 409, description = "A check runs already", body = String),
    ),
)]
pub(super) async fn start(
    State(shared): State<Shared>,
    request: AdmittedJson<ScrubRequest>,
) -> Result<Json<TaskStatus>, ApiError> {
    let rate = request.body.mib_per_second;
    let rate = rate.map(|mib| mib.max(1).saturating_mul(MIB));
    let started = shared.api.scrubs.start(rate);
    let task = started.map_err(|busy| ApiError::Conflict(busy.to_string()))?;
    match shared.api.work.status(task) {
        Some(status) => Ok(Json(shown(status))),
        None => Err(ApiError::MissingTask(task.to_string())),
    }
}

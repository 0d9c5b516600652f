//! The routes of maintenance: `/api/v1/maintenance`.

use axum::Json;
use axum::extract::State;
use store_api::types::{MaintenanceRequest, MaintenanceStatus};

use super::Shared;
use super::request::AdmittedJson;

/// Says whether the service is in maintenance, and how many requests it still works on.
#[utoipa::path(
    get,
    path = "/api/v1/maintenance",
    responses((status = 200, description = "Whether the service is in maintenance", body = MaintenanceStatus)),
)]
pub(super) async fn status(State(shared): State<Shared>) -> Json<MaintenanceStatus> {
    Json(now(&shared))
}

/// Begins or ends maintenance: the service takes no new searches and statements, and
/// `/health/ready` answers 503. Requests that have begun go on.
#[utoipa::path(
    put,
    path = "/api/v1/maintenance",
    request_body = MaintenanceRequest,
    responses((status = 200, description = "The state from now on", body = MaintenanceStatus)),
)]
pub(super) async fn set(
    State(shared): State<Shared>,
    request: AdmittedJson<MaintenanceRequest>,
) -> Json<MaintenanceStatus> {
    shared.api.maintenance.set(request.body.maintenance);
    Json(now(&shared))
}

fn now(shared: &Shared) -> MaintenanceStatus {
    let mode = &shared.api.maintenance;
    MaintenanceStatus {
        maintenance: mode.is_on(),
        requests_in_progress: mode.in_progress(),
    }
}

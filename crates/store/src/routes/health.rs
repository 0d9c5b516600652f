//! Whether the process answers, and whether it serves, for those who start and balance services.
//!
//! A listener answers these routes ([`http_server::health`]) from the moment at which it is bound,
//! without a login. The service itself may start long after that, as a database in the same process
//! first reads its journals. Until then all other routes are refused.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Json;
use store_api::types::NodeStatus;

use super::Shared;

/// Says that the process answers.
#[utoipa::path(
    get,
    path = "/health/live",
    responses((status = 200, description = "The process answers", body = String)),
)]
pub(super) async fn live() -> &'static str {
    "live"
}

/// Says whether the service serves.
#[utoipa::path(
    get,
    path = "/health/ready",
    responses(
        (status = 200, description = "The service serves", body = NodeStatus),
        (status = 503, description = "The service does not serve yet", body = NodeStatus),
    ),
)]
pub(super) async fn ready(State(shared): State<Shared>) -> (StatusCode, Json<NodeStatus>) {
    readiness(shared.api.engine.status())
}

/// The answer of [`ready`] in this state.
pub(super) fn readiness(status: NodeStatus) -> (StatusCode, Json<NodeStatus>) {
    let code = match status {
        NodeStatus::Serving => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(status))
}

//! Whether the process answers, and whether it serves, for those who start and balance services.
//!
//! A listener answers these routes ([`http_server::health`]) from the moment at which it is bound,
//! without a login. The service itself may start long after that, as a database in the same process
//! first reads its journals. Until then all other routes are refused.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use store_api::types::NodeStatus;

use super::Shared;

/// The answer of a service in maintenance. It is no state of the contract, which only knows how a
/// service starts.
const MAINTENANCE: &str = "MAINTENANCE";

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
        (status = 503, description = "The service does not serve yet, or is in maintenance (`\"MAINTENANCE\"`)", body = NodeStatus),
    ),
)]
pub(super) async fn ready(State(shared): State<Shared>) -> Response {
    match shared.api.maintenance.is_on() {
        true => (StatusCode::SERVICE_UNAVAILABLE, Json(MAINTENANCE)).into_response(),
        false => readiness(shared.api.engine.status()).into_response(),
    }
}

/// The answer of [`ready`] in this state.
pub(super) fn readiness(status: NodeStatus) -> (StatusCode, Json<NodeStatus>) {
    let code = match status {
        NodeStatus::Serving => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(status))
}

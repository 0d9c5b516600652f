//! The answer of an index service that has no database in its process to requests for tables.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use serde_json::json;

/// 404 with the reason.
pub(super) async fn reason() -> Response {
    let body = json!({
        "error": "this is an index service, which has no tables",
        "hint": "send it to the HTTP port of annulus serve, or use CQL with the database; searches of \
                 indexes are under /api/v1/indexes",
    });
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

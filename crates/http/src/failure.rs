//! The answers to requests that fail, as JSON: `{"error", "hint"}`.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// The reason why a request to a route failed, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteFailure {
    /// The status of the answer.
    pub status: StatusCode,
    /// The reason.
    pub error: String,
    /// The remedy.
    pub hint: String,
}

impl RouteFailure {
    /// A failure with this status.
    pub fn new(
        status: StatusCode,
        error: impl Into<String>,
        hint: impl Into<String>,
    ) -> RouteFailure {
        RouteFailure {
            status,
            error: error.into(),
            hint: hint.into(),
        }
    }
}

impl IntoResponse for RouteFailure {
    fn into_response(self) -> Response {
        let body = Json(json!({"error": self.error, "hint": self.hint}));
        let mut response = (self.status, body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

//! The answers other than success (contract, sections 1.4 and 1.13).

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use http_server::{InMaintenance, RequestRefusal};
use store_api::types::{Unavailable, UnavailableReason};

use crate::identity::IndexName;
use crate::search::SearchError;

/// The reason why a request fails.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum ApiError {
    /// A search has no answer, or there is no such index.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// There is no such task, or no longer.
    #[error("missing task: {0}")]
    MissingTask(String),
    /// No map of the index was made, or it is not held any more.
    #[error("index {0} has no map: POST to this path makes one")]
    NoMap(IndexName),
    /// The task can't be stopped.
    #[error("{0}")]
    Conflict(String),
    /// The request can't be served by any index.
    #[error("{0}")]
    BadRequest(String),
    /// A search whose content type is not known.
    #[error(
        "Expected request with `Content-Type: application/json`, or `application/octet-stream` for a vector of \
         32-bit floats alone"
    )]
    UnknownForm,
    /// A limit or a filter that can't be parsed.
    #[error("{0}")]
    Unprocessable(String),
    /// The server refuses the request or its body.
    #[error(transparent)]
    Refused(#[from] RequestRefusal),
    /// The service takes no new requests.
    #[error(transparent)]
    Maintenance(#[from] InMaintenance),
    /// A fault of the service.
    #[error("{0}")]
    Internal(String),
}

/// The status of the answer that says why a search failed.
pub(super) fn status_of(error: &SearchError) -> StatusCode {
    match error {
        SearchError::MissingIndex(_) => StatusCode::NOT_FOUND,
        SearchError::Unsuitable(_) | SearchError::TooManyValues { .. } => StatusCode::BAD_REQUEST,
        SearchError::NodeBootstrapping
        | SearchError::IndexBuilding { .. }
        | SearchError::Overloaded
        | SearchError::Behind(_)
        | SearchError::BehindTime { .. }
        | SearchError::Short(_) => StatusCode::SERVICE_UNAVAILABLE,
        SearchError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let text = self.to_string();
        match self {
            ApiError::Search(error) => no_answer(&error, text),
            ApiError::MissingTask(_) | ApiError::NoMap(_) => {
                (StatusCode::NOT_FOUND, text).into_response()
            }
            ApiError::Conflict(_) => (StatusCode::CONFLICT, text).into_response(),
            ApiError::BadRequest(_) => (StatusCode::BAD_REQUEST, text).into_response(),
            ApiError::UnknownForm => (StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response(),
            ApiError::Unprocessable(_) => (StatusCode::UNPROCESSABLE_ENTITY, text).into_response(),
            ApiError::Refused(refusal) => refusal.into_response(),
            // A database sends its searches to another service then.
            ApiError::Maintenance(_) => unavailable(Unavailable {
                reason: UnavailableReason::NodeBootstrapping,
                message: Some(text),
                behind_us: None,
            }),
            ApiError::Internal(_) => failed(text),
        }
    }
}

/// The answer to a search that has none.
fn no_answer(error: &SearchError, text: String) -> Response {
    match error {
        SearchError::NodeBootstrapping => unavailable(Unavailable {
            reason: UnavailableReason::NodeBootstrapping,
            message: None,
            behind_us: None,
        }),
        SearchError::IndexBuilding { .. } => unavailable(Unavailable {
            reason: UnavailableReason::IndexBuilding,
            message: Some(text),
            behind_us: None,
        }),
        // A database sends no times, so it does not meet this reason.
        SearchError::BehindTime { lag, .. } => unavailable(Unavailable {
            reason: UnavailableReason::IndexBehind,
            message: Some(text),
            behind_us: lag.behind_us,
        }),
        SearchError::Overloaded | SearchError::Behind(_) => overloaded(text),
        // A database passes the text on. A reason would have it query other services instead.
        SearchError::Short(_) => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
        SearchError::Internal(_) => failed(text),
        SearchError::MissingIndex(_)
        | SearchError::Unsuitable(_)
        | SearchError::TooManyValues { .. } => (status_of(error), text).into_response(),
    }
}

fn failed(text: String) -> Response {
    tracing::error!(text, "a request failed");
    (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
}

/// The answer is plain text. A reason of a name that it doesn't know would make a database fail
/// over, which moves the load.
fn overloaded(text: String) -> Response {
    let retry_after = [(RETRY_AFTER, HeaderValue::from_static("1"))];
    (StatusCode::SERVICE_UNAVAILABLE, retry_after, text).into_response()
}

fn unavailable(why: Unavailable) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, Json(why)).into_response()
}

//! Taking a search in.

use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use super::error::ApiError;

/// A JSON body that was admitted: one of the listener's places is taken until this is dropped.
///
/// A place is asked for when the body is there but not yet parsed: a slow client takes none, and
/// parsing is work that an overloaded service spares itself.
pub struct Admitted<T> {
    /// The body.
    pub body: T,
    /// The place.
    pub permit: OwnedSemaphorePermit,
    /// When an answer would be of no use any more.
    pub deadline: Instant,
}

/// A header of a request: how many milliseconds the caller waits for the answer.
pub const TIMEOUT_HEADER: &str = "x-request-timeout-ms";

impl<T: DeserializeOwned> FromRequest<Shared> for Admitted<T> {
    type Rejection = Response;

    async fn from_request(request: Request, shared: &Shared) -> Result<Admitted<T>, Response> {
        if !is_json(request.headers()) {
            let text = "Expected request with `Content-Type: application/json`";
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response());
        }
        let callers_deadline = callers_deadline(request.headers(), Instant::now())
            .map_err(IntoResponse::into_response)?;
        let bytes = Bytes::from_request(request, shared);
        let bytes = tokio::time::timeout(shared.body_timeout, bytes)
            .await
            .map_err(|_| ApiError::SlowBody.into_response())?
            .map_err(IntoResponse::into_response)?;
        let permit = shared.admissions.clone().try_acquire_owned().map_err(|_| {
            shared.api.engine.metrics().search_refused("admission");
            ApiError::Overloaded.into_response()
        })?;
        let Json(body) = Json::<T>::from_bytes(&bytes).map_err(IntoResponse::into_response)?;
        let ours = Instant::now() + shared.search_wait_max;
        Ok(Admitted {
            body,
            permit,
            deadline: callers_deadline.map_or(ours, |theirs| theirs.min(ours)),
        })
    }
}

/// Until when the caller waits, if it says so.
fn callers_deadline(headers: &HeaderMap, now: Instant) -> Result<Option<Instant>, ApiError> {
    let Some(value) = headers.get(TIMEOUT_HEADER) else {
        return Ok(None);
    };
    let milliseconds = value.to_str().ok().and_then(|text| text.parse().ok());
    let milliseconds = milliseconds.ok_or_else(|| {
        ApiError::BadRequest(format!("{TIMEOUT_HEADER} is not a number of milliseconds"))
    })?;
    // One beyond what a clock can say is none.
    Ok(now.checked_add(Duration::from_millis(milliseconds)))
}

/// `application/json` or `application/<anything>+json`, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence
        .strip_prefix("application/")
        .is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

//! Taking a search in.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use store_api::types::AnnRequest;
use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use super::error::ApiError;
use super::form::{self, Form};

/// A search that was admitted: one of the listener's places is taken until this is dropped.
///
/// A place is asked for when the body is there but not yet parsed: a slow client takes none, and
/// parsing is work that an overloaded service spares itself.
pub struct Admitted {
    /// What to search.
    pub search: AnnRequest,
    /// How to answer.
    pub answer: Form,
    /// The place.
    pub permit: OwnedSemaphorePermit,
    /// When an answer would be of no use any more.
    pub deadline: Instant,
}

/// A header of a request: how many milliseconds the caller waits for the answer.
pub const TIMEOUT_HEADER: &str = "x-request-timeout-ms";

impl FromRequest<Shared> for Admitted {
    type Rejection = Response;

    async fn from_request(request: Request, shared: &Shared) -> Result<Admitted, Response> {
        let form = form::of_search(request.headers())
            .ok_or_else(|| ApiError::UnknownForm.into_response())?;
        let answer = form::of_answer(request.headers());
        let uri = request.uri().clone();
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
        let search = match form {
            Form::Json => form::read_json(&bytes).map_err(IntoResponse::into_response)?,
            Form::Binary => form::read_binary(&bytes, uri.query().unwrap_or_default())
                .map_err(IntoResponse::into_response)?,
        };
        let ours = Instant::now() + shared.search_wait_max;
        Ok(Admitted {
            search,
            answer,
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

//! Admits searches and requests for changes, and reads their bodies.

use std::time::Duration;

use axum::BoxError;
use axum::Json;
use axum::body::{Bytes, HttpBody};
use axum::extract::FromRequest;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use http_server::WorkInProgress;
use serde::de::DeserializeOwned;
use store_api::types::AnnRequest;
use tokio::time::Instant;

use super::error::ApiError;
use super::filter_values::JsonScope;
use super::form::{self, BodyFormat};
use super::{ListenerContext, Shared};
use crate::search::ConcurrencyPermit;

/// A body that was admitted. The place is taken when the whole body has arrived but is not yet
/// parsed. So a slow client takes no place, and an overloaded service does no parsing.
struct AdmittedBody {
    bytes: Bytes,
    admission: ConcurrencyPermit,
}

/// A search that was admitted; see [`AdmittedBody`].
pub(super) struct AdmittedSearch {
    /// The search.
    pub search: AnnRequest,
    /// The form of the answer.
    pub answer: BodyFormat,
    /// The place of the search.
    pub admission: ConcurrencyPermit,
    /// The search counts as work of the service.
    pub work: WorkInProgress,
}

/// A request other than a search, in JSON, that was admitted; see [`AdmittedBody`].
pub(super) struct AdmittedJson<T> {
    /// The parsed body.
    pub body: T,
    /// The place of the request.
    _admission: ConcurrencyPermit,
}

/// The header that says how many milliseconds the caller waits for the answer.
pub(super) const TIMEOUT_HEADER: &str = "x-request-timeout-ms";

impl AdmittedBody {
    async fn take<B>(
        request: Request<B>,
        shared: &ListenerContext,
    ) -> Result<AdmittedBody, ApiError>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
    {
        AdmittedBody::take_up_to(None, request, shared).await
    }

    /// Takes a body that may have `bytes_max` bytes, if that is more than others.
    async fn take_up_to<B>(
        bytes_max: Option<usize>,
        request: Request<B>,
        shared: &ListenerContext,
    ) -> Result<AdmittedBody, ApiError>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
    {
        let callers_deadline = callers_deadline(request.headers(), Instant::now())?;
        let body = request.into_body();
        let received = match bytes_max {
            Some(bytes_max) => shared.bodies.read_up_to(bytes_max, body).await?,
            None => shared.bodies.read(body).await?,
        };
        let metrics = shared.api.engine.metrics();
        let admission = shared.admissions.take(callers_deadline, metrics)?;
        // From here on the body is bounded by the admissions.
        drop(received.charge);
        Ok(AdmittedBody {
            bytes: received.bytes,
            admission,
        })
    }
}

impl AdmittedSearch {
    /// Reads and admits a search. An error is the answer that refuses it.
    pub(super) async fn take<B>(
        request: Request<B>,
        shared: &ListenerContext,
    ) -> Result<AdmittedSearch, Response>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
    {
        let work = begin(shared).map_err(IntoResponse::into_response)?;
        let form = form::of_search(request.headers())
            .ok_or_else(|| ApiError::UnknownForm.into_response())?;
        let answer = form::of_answer(request.headers());
        let uri = request.uri().clone();
        let body = AdmittedBody::take(request, shared)
            .await
            .map_err(IntoResponse::into_response)?;
        let values_max = shared.api.searches.filter_values_max();
        let query = uri.query().unwrap_or_default();
        let (search, unknown) = match form {
            BodyFormat::Json => {
                form::bound_values(&body.bytes, JsonScope::Search, values_max)
                    .map_err(IntoResponse::into_response)?;
                let (search, unknown) = form::read_json(&body.bytes);
                (search.map_err(IntoResponse::into_response), unknown)
            }
            BodyFormat::Binary => {
                let read = form::read_binary(&body.bytes, query, values_max);
                let (search, unknown) = read.map_err(IntoResponse::into_response)?;
                (Ok(search), unknown)
            }
        };
        // An unknown key says more than that a known one is missing.
        let keys = shared.keys.take(&unknown, shared.api.engine.metrics());
        keys.map_err(IntoResponse::into_response)?;
        Ok(AdmittedSearch {
            search: search?,
            answer,
            admission: body.admission,
            work,
        })
    }
}

/// A request on texts that was admitted; see [`AdmittedBody`].
pub(super) struct AdmittedTexts<T> {
    /// The request.
    pub request: T,
    /// The form of the answer.
    pub answer: BodyFormat,
    /// The place of the request.
    pub admission: ConcurrencyPermit,
    /// The request counts as work of the service.
    pub work: WorkInProgress,
}

impl<T: DeserializeOwned> AdmittedTexts<T> {
    /// Reads and admits a request in JSON. `bytes_max` is the most that its body may have, if that
    /// is more than other bodies. An error is the answer that refuses it.
    pub(super) async fn take(
        request: Request<axum::body::Body>,
        shared: &ListenerContext,
        of: JsonScope,
        bytes_max: Option<usize>,
    ) -> Result<AdmittedTexts<T>, Response> {
        let work = begin(shared).map_err(IntoResponse::into_response)?;
        if form::of_search(request.headers()) != Some(BodyFormat::Json) {
            return Err(not_json());
        }
        let answer = form::of_answer(request.headers());
        let body = AdmittedBody::take_up_to(bytes_max, request, shared).await;
        let body = body.map_err(IntoResponse::into_response)?;
        let values_max = shared.api.searches.filter_values_max();
        form::bound_values(&body.bytes, of, values_max).map_err(IntoResponse::into_response)?;
        let (read, unknown) = form::read_other(&body.bytes, of);
        // An unknown key says more than that a known one is missing.
        let keys = shared.keys.take(&unknown, shared.api.engine.metrics());
        keys.map_err(IntoResponse::into_response)?;
        Ok(AdmittedTexts {
            request: read.map_err(IntoResponse::into_response)?,
            answer,
            admission: body.admission,
            work,
        })
    }
}

/// Takes a search on, unless the service is in maintenance.
fn begin(shared: &ListenerContext) -> Result<WorkInProgress, ApiError> {
    Ok(shared.api.maintenance.begin()?)
}

fn not_json() -> Response {
    let text = "Expected request with `Content-Type: application/json`";
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response()
}

impl<T: DeserializeOwned> FromRequest<Shared> for AdmittedJson<T> {
    type Rejection = Response;

    async fn from_request(
        request: Request<axum::body::Body>,
        shared: &Shared,
    ) -> Result<AdmittedJson<T>, Response> {
        if form::of_search(request.headers()) != Some(BodyFormat::Json) {
            return Err(not_json());
        }
        let body = AdmittedBody::take(request, shared).await;
        let AdmittedBody { bytes, admission } = body.map_err(IntoResponse::into_response)?;
        let Json(body) = Json::from_bytes(&bytes).map_err(IntoResponse::into_response)?;
        Ok(AdmittedJson {
            body,
            _admission: admission,
        })
    }
}

/// The time until which the caller waits. `None` if the request doesn't say.
fn callers_deadline(headers: &HeaderMap, now: Instant) -> Result<Option<Instant>, ApiError> {
    let Some(value) = headers.get(TIMEOUT_HEADER) else {
        return Ok(None);
    };
    let milliseconds = value.to_str().ok().and_then(|text| text.parse().ok());
    let milliseconds = milliseconds.ok_or_else(|| {
        ApiError::BadRequest(format!("{TIMEOUT_HEADER} is not a number of milliseconds"))
    })?;
    // A time that is too far away for the clock is no deadline.
    Ok(now.checked_add(Duration::from_millis(milliseconds)))
}

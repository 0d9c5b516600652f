//! Taking a search in.

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
}

impl<T: DeserializeOwned> FromRequest<Shared> for Admitted<T> {
    type Rejection = Response;

    async fn from_request(request: Request, shared: &Shared) -> Result<Admitted<T>, Response> {
        if !is_json(request.headers()) {
            let text = "Expected request with `Content-Type: application/json`";
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response());
        }
        let bytes = Bytes::from_request(request, shared)
            .await
            .map_err(IntoResponse::into_response)?;
        let permit = shared
            .admissions
            .clone()
            .try_acquire_owned()
            .map_err(|_| ApiError::Overloaded.into_response())?;
        let Json(body) = Json::<T>::from_bytes(&bytes).map_err(IntoResponse::into_response)?;
        Ok(Admitted { body, permit })
    }
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

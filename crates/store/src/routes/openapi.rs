//! The OpenAPI document.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Vector Store",
        description = "Nearest neighbours of a CQL table's vectors, and the texts that words find.",
    ),
    paths(
        super::health::live,
        super::health::ready,
        super::state::status,
        super::state::info,
        super::state::clock,
        super::state::indexes,
        super::state::index,
        super::state::index_status,
        super::state::metrics,
        super::ann::ann,
        super::words::bm25,
        super::words::highlight,
        super::words::matches,
        super::words::scores,
        super::recall::measure,
        super::repair::start,
        super::repair::control,
        super::repair::status,
        super::repair::update,
        super::scrub::start,
        super::tasks::list,
        super::tasks::status,
        super::tasks::tree,
        super::tasks::wait,
        super::tasks::abort,
    )
)]
struct ApiDescription;

/// The document as JSON text.
pub(super) fn text() -> String {
    ApiDescription::openapi()
        .to_json()
        .expect("a description made of names and types serialises")
}

/// `GET /api-docs/openapi.json`.
pub(super) async fn document() -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, json)], text()).into_response()
}

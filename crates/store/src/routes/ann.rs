//! The route that searches an index: `POST /api/v1/indexes/{keyspace}/{index}/ann`.

use std::sync::Arc;
use std::time::Instant;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Request};
use axum::response::{IntoResponse, Response};
use http_server::DirectRoute;
use hyper::body::Incoming;
use store_api::binary::ANSWER_MEDIA_TYPE;
use store_api::types::{AnnRequest, AnnResponse, EXACT_HEADER, SHORT_HEADER, Unavailable};
use store_api::{CountedSearch, SearchCounts};

use super::error::ApiError;
use super::form::BodyFormat;
use super::index_path::IndexPath;
use super::request::AdmittedSearch;
use super::{ListenerContext, Shared};
use crate::identity::IndexName;
use crate::indexes::RankedRows;
use crate::search::{MissingRowsPolicy, SearchError};

/// Finds the rows whose vectors are nearest: as many as the limit says, 100,000 at most.
///
/// Search and answer have a binary form each, which takes less processor time on both sides. A body
/// of the type `application/octet-stream` is only the vector, 32-bit floats in little-endian order.
/// Limit and filter are then in the query string.
///
/// A client that accepts `application/vnd.annulus.neighbours.v1` gets the answer in that form. It
/// has the number of rows (u32), the number of columns (u16) and two zero bytes. Then come the
/// distances and the similarity scores (f32). For each column of the primary key there follow its
/// CQL type (u16), the length of its name (u16), the name, the lengths of its values (u32), and the
/// values as CQL serialises them. All numbers but those in the values are little-endian.
#[utoipa::path(
    post,
    path = "/api/v1/indexes/{keyspace}/{index}/ann",
    params(
        IndexPath,
        ("limit" = Option<usize>, Query, description = "The most rows to answer, if the body is a vector alone; 1 by default", minimum = 1),
        ("filter" = Option<String>, Query, description = "The condition on the rows, if the body is a vector alone: `Filter` as JSON"),
        ("routing" = Option<bool>, Query, description = "`routing` of the request, if the body is a vector alone"),
        ("return_columns" = Option<String>, Query, description = "`return_columns` of the request as JSON, if the body is a vector alone"),
        ("min_time_us" = Option<i64>, Query, description = "`min_time_us` of the request, if the body is a vector alone"),
        ("exact" = Option<bool>, Query, description = "`exact` of the request, if the body is a vector alone"),
        ("debug" = Option<bool>, Query, description = "`debug` of the request, if the body is a vector alone"),
        ("accept" = Option<String>, Header, description = "`application/vnd.annulus.neighbours.v1` for a binary answer"),
        ("x-request-timeout-ms" = Option<u64>, Header, description = "Milliseconds that the caller waits; a search that can't begin by then is refused with 503"),
    ),
    request_body(content(
        (AnnRequest = "application/json"),
        (Vec<u8> = "application/octet-stream"),
    )),
    responses(
        (status = 200, description = "The nearest rows", headers(
            ("x-annulus-exact" = bool, description = "`true` if the request has `exact`"),
            ("x-annulus-short" = bool, description = "`true` if rows may be missing, as `short` in JSON"),
        ), content(
            (AnnResponse = "application/json"),
            (Vec<u8> = "application/vnd.annulus.neighbours.v1"),
        )),
        (status = 400, description = "The vector or the filter doesn't suit the index", body = String),
        (status = 403, description = "The search came in clear, and the service speaks TLS", body = String),
        (status = 404, description = "No such index", body = String),
        (status = 408, description = "The body did not arrive in time", body = String),
        (status = 413, description = "The body is too large", body = String),
        (status = 415, description = "The content type is neither JSON nor that of a vector", body = String),
        (status = 422, description = "The body, the limit or the filter has another shape", body = String),
        (status = 500, description = "A fault of the service", body = String),
        (status = 503, description = "The service or the index isn't ready, or overloaded", body = Unavailable),
    ),
)]
pub(super) async fn ann(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: Request<Body>,
) -> Result<Response, Response> {
    answer(&shared, path.into(), request).await
}

/// Nearly all requests are searches, so their route is the direct one.
impl DirectRoute for ListenerContext {
    async fn answer(
        self: Arc<ListenerContext>,
        keyspace: String,
        index: String,
        request: Request<Incoming>,
    ) -> Response {
        let name = IndexName { keyspace, index };
        answer(&self, name, request).await.into_response()
    }
}

/// Answers a search of the index `name`. An error is the answer that gives the client the reason.
async fn answer<B>(
    shared: &ListenerContext,
    name: IndexName,
    request: Request<B>,
) -> Result<Response, Response>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
{
    let began = Instant::now();
    let request = AdmittedSearch::take(request, shared).await?;
    let answer = search(shared, name, request).await;
    SearchCounts::of_process().answered(CountedSearch::Vector, began.elapsed(), answer.is_err());
    answer.map_err(|error| ApiError::from(error).into_response())
}

async fn search(
    shared: &ListenerContext,
    name: IndexName,
    request: AdmittedSearch,
) -> Result<Response, SearchError> {
    let AdmittedSearch {
        search,
        answer,
        admission,
        work: _work,
    } = request;
    let write = move |rows: RankedRows<'_>| match answer {
        BodyFormat::Json => serde_json::to_vec(&rows)
            .map(Bytes::from)
            .map_err(|error| error.to_string()),
        BodyFormat::Binary => Ok(rows.binary()),
    };
    let is_exact = search.exact;
    let searches = &shared.api.searches;
    let lacking = MissingRowsPolicy::ReadFromTable;
    let found = searches
        .search(name, search.into(), admission, lacking, write)
        .await?;
    if found.is_short {
        SearchCounts::of_process().was_short(CountedSearch::Vector);
    }
    let media_type = HeaderValue::from_static(match answer {
        BodyFormat::Json => "application/json",
        BodyFormat::Binary => ANSWER_MEDIA_TYPE,
    });
    let mut response = ([(CONTENT_TYPE, media_type)], found.answer).into_response();
    for (name, is_so) in [(EXACT_HEADER, is_exact), (SHORT_HEADER, found.is_short)] {
        if is_so {
            let headers = response.headers_mut();
            headers.insert(name, HeaderValue::from_static("true"));
        }
    }
    Ok(response)
}

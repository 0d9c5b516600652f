//! The routes of full-text indexes: `bm25`, `highlight` and two of our own, `matches` and `scores`
//! (contract, sections 1.2 to 1.4).
//!
//! A query that can't be parsed is answered with 400 and its place on all of them, where the
//! contract has 500 for `bm25`. The index of a name is missing for them if it is one of vectors.

use std::time::Instant;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Request};
use axum::response::{IntoResponse, Response};
use index::full_text::words_as_they_are;
use store_api::binary::ANSWER_MEDIA_TYPE;
use store_api::hex;
use store_api::types::{
    Bm25Request, Bm25Response, HighlightRequest, HighlightResponse, MatchesRequest,
    MatchesResponse, SHORT_HEADER, ScoresRequest, ScoresResponse, Unavailable,
};
use store_api::{CountedSearch, SearchCounts};

use super::error::ApiError;
use super::filter_values::JsonScope;
use super::form::BodyFormat;
use super::index_path::IndexPath;
use super::request::AdmittedTexts;
use super::{ListenerContext, Shared};
use crate::identity::IndexName;
use crate::indexes::{JsonPage, JsonScoredRows, RankedRows};
use crate::search::{
    IndexAnswer, MissingRowsPolicy, ReceivedSearch, SearchError, SearchSubject, TextsQuestion,
};

/// The most bytes of a body with texts: a database sends those of all rows of an answer in one.
const TEXTS_BYTES_MAX: usize = 32 << 20;

/// Finds the rows whose texts match a query best: as many as the limit says, 100,000 at most.
///
/// A client that accepts `application/vnd.annulus.neighbours.v1` gets the answer in the binary form
/// of `ann`, with the scores as similarity scores.
#[utoipa::path(
    post,
    path = "/api/v1/indexes/{keyspace}/{index}/bm25",
    params(
        IndexPath,
        ("accept" = Option<String>, Header, description = "`application/vnd.annulus.neighbours.v1` for a binary answer"),
        ("x-request-timeout-ms" = Option<u64>, Header, description = "Milliseconds that the caller waits; a search that can't begin by then is refused with 503"),
    ),
    request_body = Bm25Request,
    responses(
        (status = 200, description = "The best rows", headers(
            ("x-annulus-short" = bool, description = "`true` if rows may be missing, as `short` in JSON"),
        ), content(
            (Bm25Response = "application/json"),
            (Vec<u8> = "application/vnd.annulus.neighbours.v1"),
        )),
        (status = 400, description = "The query is malformed, or the filter doesn't suit the index", body = String),
        (status = 403, description = "The search came in clear, and the service speaks TLS", body = String),
        (status = 404, description = "No such full-text index", body = String),
        (status = 408, description = "The body did not arrive in time", body = String),
        (status = 413, description = "The body is too large", body = String),
        (status = 415, description = "The content type is not JSON", body = String),
        (status = 422, description = "The body has another shape", body = String),
        (status = 500, description = "A fault of the service", body = String),
        (status = 503, description = "The service or the index isn't ready, or overloaded", body = Unavailable),
    ),
)]
pub(super) async fn bm25(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: Request<Body>,
) -> Result<Response, Response> {
    let admitted = AdmittedTexts::take(request, &shared, JsonScope::Words, None).await?;
    let AdmittedTexts {
        request,
        answer,
        admission,
        work: _work,
    } = admitted;
    let Bm25Request {
        query,
        words,
        limit,
        filter,
        routing,
        return_columns,
        min_time_us,
        debug,
    } = request;
    let subject =
        SearchSubject::Words(query_of(query, words).map_err(IntoResponse::into_response)?);
    let search = ReceivedSearch {
        filter,
        routing,
        return_columns,
        min_time_us,
        debug,
        ..ReceivedSearch::new(subject, limit)
    };
    let write = move |rows: RankedRows<'_>| match answer {
        BodyFormat::Json => json_of(&JsonScoredRows(&rows)),
        BodyFormat::Binary => Ok(rows.binary()),
    };
    let lacking = MissingRowsPolicy::ReadFromTable;
    let (searches, began) = (&shared.api.searches, Instant::now());
    let found = searches
        .search(path.into(), search, admission, lacking, write)
        .await;
    let counts = SearchCounts::of_process();
    counts.answered(CountedSearch::Text, began.elapsed(), found.is_err());
    if found.as_ref().is_ok_and(|found| found.is_short) {
        counts.was_short(CountedSearch::Text);
    }
    Ok(answered(found.map_err(refused)?, answer))
}

/// Finds all rows whose texts match a query, page by page, in an order of the index's own.
#[utoipa::path(
    post,
    path = "/api/v1/indexes/{keyspace}/{index}/matches",
    params(IndexPath),
    request_body = MatchesRequest,
    responses(
        (status = 200, description = "A page of rows", body = MatchesResponse),
        (status = 400, description = "The query is malformed, the filter doesn't suit the index, or the page before is of another state of it", body = String),
        (status = 403, description = "The search came in clear, and the service speaks TLS", body = String),
        (status = 404, description = "No such full-text index", body = String),
        (status = 413, description = "The body is too large", body = String),
        (status = 415, description = "The content type is not JSON", body = String),
        (status = 422, description = "The body has another shape", body = String),
        (status = 500, description = "A fault of the service", body = String),
        (status = 503, description = "The service or the index isn't ready, or overloaded", body = Unavailable),
    ),
)]
pub(super) async fn matches(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: Request<Body>,
) -> Result<Response, Response> {
    let admitted = AdmittedTexts::take(request, &shared, JsonScope::Matches, None).await?;
    let AdmittedTexts {
        request, admission, ..
    } = admitted;
    let search = received_matches(request).map_err(IntoResponse::into_response)?;
    let write = |rows: RankedRows<'_>| json_of(&JsonPage(&rows));
    // Rows that are read have no place in the order of the index.
    let lacking = MissingRowsPolicy::Reported;
    let searches = &shared.api.searches;
    let found = searches
        .search(path.into(), search, admission, lacking, write)
        .await;
    Ok(answered(found.map_err(refused)?, BodyFormat::Json))
}

fn received_matches(request: MatchesRequest) -> Result<ReceivedSearch, ApiError> {
    let MatchesRequest {
        query,
        words,
        limit,
        filter,
        after,
        min_time_us,
    } = request;
    let after = after.map(|after| {
        let read = hex::read(&after);
        read.ok_or_else(|| ApiError::BadRequest("after: no end of a page".to_owned()))
    });
    let subject = SearchSubject::Matches {
        query: query_of(query, words)?,
        after: after.transpose()?,
    };
    Ok(ReceivedSearch {
        filter,
        min_time_us,
        ..ReceivedSearch::new(subject, limit)
    })
}

/// Makes excerpts of texts, with the words of a query marked. They are escaped for HTML.
#[utoipa::path(
    post,
    path = "/api/v1/indexes/{keyspace}/{index}/highlight",
    params(IndexPath),
    request_body = HighlightRequest,
    responses(
        (status = 200, description = "An excerpt of each text", body = HighlightResponse),
        (status = 400, description = "The query is malformed", body = String),
        (status = 403, description = "The request came in clear, and the service speaks TLS", body = String),
        (status = 404, description = "No such full-text index", body = String),
        (status = 413, description = "The body is too large", body = String),
        (status = 415, description = "The content type is not JSON", body = String),
        (status = 422, description = "The body has another shape", body = String),
        (status = 500, description = "A fault of the service", body = String),
        (status = 503, description = "The service or the index isn't ready, or overloaded", body = Unavailable),
    ),
)]
pub(super) async fn highlight(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: Request<Body>,
) -> Result<Json<HighlightResponse>, Response> {
    let bytes_max = Some(texts_bytes_max(&shared));
    let admitted = AdmittedTexts::take(request, &shared, JsonScope::Highlight, bytes_max).await?;
    let AdmittedTexts {
        request, admission, ..
    } = admitted;
    let HighlightRequest {
        query,
        words,
        documents,
        options,
    } = request;
    let asked = TextsQuestion {
        query: query_of(query, words).map_err(IntoResponse::into_response)?,
        filter: None,
        tenant: Vec::new(),
        texts: bytes_of(documents),
    };
    let form = options.unwrap_or_default();
    let searches = &shared.api.searches;
    let name = IndexName::from(path);
    let highlights = searches.highlight(name, asked, form, admission).await;
    let highlights = highlights.map_err(refused)?;
    Ok(Json(HighlightResponse { highlights }))
}

/// Scores texts for a query by the statistics of an index, whether or not it has them.
#[utoipa::path(
    post,
    path = "/api/v1/indexes/{keyspace}/{index}/scores",
    params(IndexPath),
    request_body = ScoresRequest,
    responses(
        (status = 200, description = "The score of each text", body = ScoresResponse),
        (status = 400, description = "The query is malformed, or the filter doesn't suit the index", body = String),
        (status = 403, description = "The request came in clear, and the service speaks TLS", body = String),
        (status = 404, description = "No such full-text index", body = String),
        (status = 413, description = "The body is too large", body = String),
        (status = 415, description = "The content type is not JSON", body = String),
        (status = 422, description = "The body has another shape", body = String),
        (status = 500, description = "A fault of the service", body = String),
        (status = 503, description = "The service or the index isn't ready, or overloaded", body = Unavailable),
    ),
)]
pub(super) async fn scores(
    State(shared): State<Shared>,
    Path(path): Path<IndexPath>,
    request: Request<Body>,
) -> Result<Json<ScoresResponse>, Response> {
    let bytes_max = Some(texts_bytes_max(&shared));
    let admitted = AdmittedTexts::take(request, &shared, JsonScope::Scores, bytes_max).await?;
    let AdmittedTexts {
        request, admission, ..
    } = admitted;
    let ScoresRequest {
        query,
        words,
        texts,
        filter,
    } = request;
    let asked = TextsQuestion {
        query: query_of(query, words).map_err(IntoResponse::into_response)?,
        filter,
        tenant: Vec::new(),
        texts: bytes_of(texts),
    };
    let searches = &shared.api.searches;
    let scores = searches.score_texts(path.into(), asked, admission).await;
    let scores = scores.map_err(refused)?;
    Ok(Json(ScoresResponse { scores }))
}

/// The most bytes of a body with texts.
fn texts_bytes_max(shared: &ListenerContext) -> usize {
    TEXTS_BYTES_MAX.max(shared.body_bytes_max)
}

/// The query of a request, which has it as it is, or as words without operators.
fn query_of(query: Option<String>, words: Option<String>) -> Result<String, ApiError> {
    match (query, words) {
        (Some(query), None) => Ok(query),
        (None, Some(words)) => Ok(words_as_they_are(&words)),
        (None, None) => Err(ApiError::Unprocessable("missing field `query`".to_owned())),
        (Some(_), Some(_)) => Err(ApiError::Unprocessable(
            "`query` and `words` are two queries: give one of them".to_owned(),
        )),
    }
}

fn bytes_of(texts: Vec<Option<String>>) -> Vec<Option<Bytes>> {
    let texts = texts.into_iter();
    texts.map(|text| text.map(Bytes::from)).collect()
}

fn json_of(rows: &impl serde::Serialize) -> Result<Bytes, String> {
    let json = serde_json::to_vec(rows).map(Bytes::from);
    json.map_err(|error| error.to_string())
}

fn answered(found: IndexAnswer<Bytes>, form: BodyFormat) -> Response {
    let media_type = HeaderValue::from_static(match form {
        BodyFormat::Json => "application/json",
        BodyFormat::Binary => ANSWER_MEDIA_TYPE,
    });
    let mut response = ([(CONTENT_TYPE, media_type)], found.answer).into_response();
    if found.is_short {
        let headers = response.headers_mut();
        headers.insert(SHORT_HEADER, HeaderValue::from_static("true"));
    }
    response
}

fn refused(error: SearchError) -> Response {
    ApiError::from(error).into_response()
}

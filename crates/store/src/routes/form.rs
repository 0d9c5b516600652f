//! Finds the form of a search and of its answer, JSON or binary, and reads searches.
//!
//! The binary forms are those of [`store_api::binary`].

use std::num::NonZeroUsize;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use serde::de::DeserializeOwned;
use store_api::binary::{self, ANSWER_MEDIA_TYPE, SEARCH_MEDIA_TYPE};
use store_api::types::AnnRequest;

use super::error::ApiError;
use super::filter_values::{self, JsonScope};
use super::quick_json;
use super::unknown_keys::{self, UnknownKey};
use crate::search::SearchError;

/// The form of a search or of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFormat {
    /// JSON, as in ScyllaDB's Vector Store.
    Json,
    /// The binary form of [`store_api::binary`].
    Binary,
}

/// The form of a search by its content type. JSON is `application/json` or
/// `application/<anything>+json` with any parameters. `None` for any other type than JSON and that
/// of a bare vector.
pub(super) fn of_search(headers: &HeaderMap) -> Option<BodyFormat> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = essence(content_type);
    if essence.eq_ignore_ascii_case(SEARCH_MEDIA_TYPE) {
        return Some(BodyFormat::Binary);
    }
    let essence = essence.to_ascii_lowercase();
    let subtype = essence.strip_prefix("application/")?;
    (subtype == "json" || subtype.ends_with("+json")).then_some(BodyFormat::Json)
}

/// The form of the answer: binary if the client accepts it by name, whatever else it accepts.
pub(super) fn of_answer(headers: &HeaderMap) -> BodyFormat {
    let accepted = headers.get_all(ACCEPT).iter();
    let mut accepted = accepted.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    match accepted.any(|range| essence(range).eq_ignore_ascii_case(ANSWER_MEDIA_TYPE)) {
        true => BodyFormat::Binary,
        false => BodyFormat::Json,
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Reads a search in JSON, and its unknown keys. An error names the field and the position.
pub(super) fn read_json(body: &[u8]) -> (Result<AnnRequest, JsonRejection>, Vec<UnknownKey>) {
    if let Some(quick_json::ParsedSearch { search, unknown }) = quick_json::read(body) {
        let unknown = unknown.iter().map(|name| UnknownKey::of_search(name));
        return (Ok(search), unknown.collect());
    }
    read_other(body, JsonScope::Search)
}

/// Reads a request in JSON that is no search of vectors, and its unknown keys.
pub(super) fn read_other<T: DeserializeOwned>(
    body: &[u8],
    of: JsonScope,
) -> (Result<T, JsonRejection>, Vec<UnknownKey>) {
    let unknown = unknown_keys::find(body, of);
    (Json::from_bytes(body).map(|Json(request)| request), unknown)
}

/// Refuses a filter with more than `max` values, which has not been read yet.
pub(super) fn bound_values(json: &[u8], of: JsonScope, max: usize) -> Result<(), ApiError> {
    match filter_values::exceed(max, json, of) {
        true => Err(SearchError::TooManyValues { max }.into()),
        false => Ok(()),
    }
}

/// Reads a search in the binary form, and its unknown keys: the body is the vector, the query
/// string the rest. Its filter may have so many values.
pub(super) fn read_binary(
    body: &[u8],
    query: &str,
    filter_values_max: usize,
) -> Result<(AnnRequest, Vec<UnknownKey>), ApiError> {
    let mut unknown = Vec::new();
    let vector = binary::elements(body).ok_or_else(|| {
        ApiError::BadRequest(format!(
            "The body has {} bytes, which is no whole number of 32-bit floats",
            body.len()
        ))
    })?;
    let mut search = AnnRequest::new(vector, 1);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "limit" => search.limit = limit(&value)?,
            "filter" => {
                bound_values(value.as_bytes(), JsonScope::Filter, filter_values_max)?;
                let of_filter = unknown_keys::find(value.as_bytes(), JsonScope::Filter);
                // An unknown key says more than that a known one is missing.
                if of_filter.is_empty() {
                    search.filter = Some(json("filter", &value)?);
                }
                unknown.extend(of_filter);
            }
            "routing" => search.routing = json("routing", &value)?,
            "return_columns" => search.return_columns = Some(json("return_columns", &value)?),
            "min_time_us" => search.min_time_us = Some(json("min_time_us", &value)?),
            "exact" => search.exact = json("exact", &value)?,
            "debug" => search.debug = json("debug", &value)?,
            name => unknown.push(UnknownKey::of_search(name)),
        }
    }
    Ok((search, unknown))
}

fn limit(text: &str) -> Result<NonZeroUsize, ApiError> {
    text.parse().map_err(|_| {
        ApiError::Unprocessable(format!(
            "limit: expected a whole number above 0, got {text:?}"
        ))
    })
}

fn json<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|error| ApiError::Unprocessable(format!("{name}: {error}")))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::HeaderName;

    use super::*;

    fn headers(name: HeaderName, values: &[&'static str]) -> HeaderMap {
        let values = values.iter().map(|value| HeaderValue::from_static(value));
        values.map(|value| (name.clone(), value)).collect()
    }

    #[test]
    fn searches_by_their_content_type() {
        for (content_type, form) in [
            ("application/json", Some(BodyFormat::Json)),
            ("Application/JSON; charset=utf-8", Some(BodyFormat::Json)),
            ("application/ld+json", Some(BodyFormat::Json)),
            ("application/octet-stream", Some(BodyFormat::Binary)),
            ("Application/Octet-Stream;x=y", Some(BodyFormat::Binary)),
            ("application/xml", None),
            ("text/json", None),
            ("", None),
        ] {
            let headers = headers(CONTENT_TYPE, &[content_type]);
            assert_eq!(of_search(&headers), form, "{content_type}");
        }
        assert_eq!(of_search(&HeaderMap::new()), None);
    }

    #[test]
    fn answers_by_what_is_accepted() {
        for (accept, form) in [
            (&["*/*"][..], BodyFormat::Json),
            (&["application/json"], BodyFormat::Json),
            (&["application/vnd.annulus.neighbours.v2"], BodyFormat::Json),
            (
                &["application/vnd.annulus.neighbours.v1"],
                BodyFormat::Binary,
            ),
            (
                &["a/b, Application/vnd.annulus.neighbours.V1;q=1, */*"],
                BodyFormat::Binary,
            ),
            (
                &["a/b", "application/vnd.annulus.neighbours.v1"],
                BodyFormat::Binary,
            ),
        ] {
            assert_eq!(of_answer(&headers(ACCEPT, accept)), form, "{accept:?}");
        }
    }

    #[test]
    fn the_rest_of_a_search_is_in_the_query() {
        let body = binary::vector(&[1.0, -2.5]);
        let (plain, unknown) = read_binary(&body, "", 9).unwrap();
        assert_eq!(unknown, []);
        assert_eq!(plain.vector, [1.0, -2.5]);
        assert_eq!((plain.limit.get(), &plain.filter), (1, &None));
        let query =
            "more=1&limit=20&filter=%7B%22restrictions%22%3A+%5B%5D,%22allow_filtering%22:true%7D";
        let (full, unknown) = read_binary(&body, query, 9).unwrap();
        assert_eq!(unknown, [UnknownKey::of_search("more")]);
        assert_eq!(full.limit.get(), 20);
        assert!(full.filter.unwrap().allow_filtering);
        assert!(!full.exact);
        let (search, _) = read_binary(&body, "limit=3&exact=true", 9).unwrap();
        assert!(search.exact);
        let filter = r#"filter={"restrictions":[{"type":"IN","lhs":"a","rhs":[1,2,3]}]}"#;
        assert!(read_binary(&body, filter, 3).is_ok());
        let error = read_binary(&body, filter, 2).unwrap_err();
        assert_eq!(error, SearchError::TooManyValues { max: 2 }.into());
        for (query, named) in [
            ("limit=0", "limit"),
            ("limit=-1", "limit"),
            ("limit=1.5", "limit"),
            ("limit=", "limit"),
            ("filter=%7B", "filter"),
            ("routing=no", "routing"),
            ("return_columns=a", "return_columns"),
            ("min_time_us=x", "min_time_us"),
            ("exact=yes", "exact"),
            ("debug=1", "debug"),
            ("filter=%7B%22restrictions%22%3A1%7D", "filter"),
        ] {
            let error = read_binary(&body, query, 9).unwrap_err();
            assert!(
                matches!(&error, ApiError::Unprocessable(text) if text.starts_with(named)),
                "{query}"
            );
        }
    }
}

//! `GET /` and `GET /console/...`: the page and its files. They need no login, as they say nothing
//! of the server, and are answered before the service has started. They are not answered in clear
//! where they could be encrypted, as the page sends a login on the way that it came by.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use http_server::{RequiredRight, RouteFailure, RouteRow};
use xxhash_rust::xxh3::xxh3_64;

use crate::files::{FILES, content_type};

/// The page.
const INDEX: &str = "index.html";

/// The page may load from its own server only, and be shown in no other page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// A file with its headers.
struct ServedFile {
    bytes: &'static [u8],
    headers: HeaderMap,
}

/// The files by their names.
static SERVED: LazyLock<HashMap<&'static str, ServedFile>> = LazyLock::new(|| {
    let files = FILES.iter().map(|file| {
        let headers = headers(content_type(file.name), file.bytes);
        let bytes = file.bytes;
        (file.name, ServedFile { bytes, headers })
    });
    files.collect()
});

/// The rows of the table of routes.
pub fn pages() -> [RouteRow; 2] {
    let rows: [RouteRow; 2] = [
        RouteRow::new(MethodFilter::GET, "/", index),
        RouteRow::new(MethodFilter::GET, "/console/{*name}", file),
    ];
    rows.map(|row| row.needs(RequiredRight::Nothing).private())
}

/// Returns the page.
async fn index(request: HeaderMap) -> Response {
    answer(INDEX, &request)
}

/// Returns a file of the page.
async fn file(Path(name): Path<String>, request: HeaderMap) -> Response {
    answer(&name, &request)
}

/// The headers of a file. A browser may keep it, and checks by the tag whether it still counts: the
/// next version of the program has other files under the same names.
fn headers(content_type: Option<&'static str>, bytes: &[u8]) -> HeaderMap {
    let fixed = [
        (
            CONTENT_TYPE,
            content_type.unwrap_or("application/octet-stream"),
        ),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    let fixed = fixed.map(|(name, value): (HeaderName, _)| (name, HeaderValue::from_static(value)));
    let mut headers: HeaderMap = fixed.into_iter().collect();
    if let Ok(tag) = HeaderValue::try_from(format!("\"{:016x}\"", xxh3_64(bytes))) {
        headers.insert(ETAG, tag);
    }
    headers
}

/// The answer to a request for a file.
fn answer(name: &str, request: &HeaderMap) -> Response {
    let Some(file) = SERVED.get(name) else {
        return RouteFailure::new(
            StatusCode::NOT_FOUND,
            format!("the console has no file {name}"),
            "its page is at /",
        )
        .into_response();
    };
    let (status, body) = match is_known(&file.headers, request) {
        true => (StatusCode::NOT_MODIFIED, Body::empty()),
        false => (StatusCode::OK, Body::from(Bytes::from_static(file.bytes))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = file.headers.clone();
    response
}

/// Whether a request names the tag of a file that its browser has.
fn is_known(file: &HeaderMap, request: &HeaderMap) -> bool {
    let Some(tag) = file.get(ETAG) else {
        return false;
    };
    let lists = request.get_all(IF_NONE_MATCH).iter();
    let mut tags = lists.flat_map(|list| list.to_str().unwrap_or_default().split(','));
    tags.any(|known| {
        let known = known.trim();
        let known = known.strip_prefix("W/").unwrap_or(known);
        known == "*" || known.as_bytes() == tag.as_bytes()
    })
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn header<'a>(response: &'a Response, name: &str) -> &'a str {
        let value = response.headers().get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    async fn body(response: Response) -> Bytes {
        response.into_body().collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn the_page_is_served_with_a_strict_policy() {
        let response = index(HeaderMap::new()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            header(&response, "content-type"),
            "text/html; charset=utf-8"
        );
        assert_eq!(header(&response, "x-content-type-options"), "nosniff");
        assert_eq!(header(&response, "referrer-policy"), "no-referrer");
        let policy = header(&response, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(body(response).await.starts_with(b"<!doctype html>"));
        let again = file(Path(INDEX.to_owned()), HeaderMap::new()).await;
        assert_eq!(again.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_file_that_the_browser_has_is_not_sent_again() {
        let first = index(HeaderMap::new()).await;
        let tag = header(&first, "etag").to_owned();
        assert!(tag.starts_with('"') && tag.len() == 18, "{tag}");
        for (known, status) in [
            (tag.clone(), StatusCode::NOT_MODIFIED),
            (format!("\"other\", W/{tag}"), StatusCode::NOT_MODIFIED),
            ("*".to_owned(), StatusCode::NOT_MODIFIED),
            ("\"other\"".to_owned(), StatusCode::OK),
        ] {
            let mut request = HeaderMap::new();
            request.insert(IF_NONE_MATCH, HeaderValue::try_from(&known).unwrap());
            let response = index(request).await;
            assert_eq!(response.status(), status, "{known}");
            assert_eq!(header(&response, "etag"), tag);
            let is_empty = body(response).await.is_empty();
            assert_eq!(is_empty, status == StatusCode::NOT_MODIFIED);
        }
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_is_named() {
        for name in ["nothing.js", "../Cargo.toml", "", "web/index.html"] {
            let response = file(Path(name.to_owned()), HeaderMap::new()).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{name}");
            let text = body(response).await;
            assert!(text.starts_with(b"{\"error\":"), "{text:?}");
        }
    }
}

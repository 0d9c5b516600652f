//! `GET /docs`: a page that shows the OpenAPI document. The program has all parts of it, and it may
//! load nothing from elsewhere.

use axum::http::HeaderValue;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};

/// The page may load from its own server only, and be shown in no other page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page.
pub(super) async fn page() -> Response {
    served(
        "text/html; charset=utf-8",
        include_str!("documentation/page.html"),
    )
}

/// Its script.
pub(super) async fn script() -> Response {
    served(
        "text/javascript; charset=utf-8",
        include_str!("documentation/page.js"),
    )
}

/// Its style.
pub(super) async fn style() -> Response {
    served(
        "text/css; charset=utf-8",
        include_str!("documentation/page.css"),
    )
}

fn served(content_type: &'static str, text: &'static str) -> Response {
    let header = |name: HeaderName, value| (name, HeaderValue::from_static(value));
    let headers = [
        header(CONTENT_TYPE, content_type),
        header(CONTENT_SECURITY_POLICY, POLICY),
        header(X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}

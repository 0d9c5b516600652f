//! The headers of requests that pages of other origins can't send.
//!
//! A browser sends a login that it knows with any page's request, but lets a page of another origin
//! add these headers only if the server agrees, which this one never does. Any client sends the one
//! of the guard with requests that may change something. The other one is the console's alone.

use axum::http::{HeaderMap, HeaderName, StatusCode};

use crate::failure::RouteFailure;

/// The header of the guard.
const GUARD: HeaderName = HeaderName::from_static("x-requested-with");

/// Its value.
const GUARD_VALUE: &str = "annulus";

/// The header of the console's page.
const CONSOLE: HeaderName = HeaderName::from_static("x-annulus-console");

/// Whether a request is one of the console's page. It has the login of its session or none, and a
/// refusal of it has no challenge, for which a browser would show a dialog of its own.
pub(crate) fn is_of_console(headers: &HeaderMap) -> bool {
    headers.contains_key(CONSOLE)
}

/// Whether a request has the header of the guard.
pub fn is_guarded(headers: &HeaderMap) -> bool {
    let value = headers.get(GUARD);
    value.is_some_and(|value| {
        value
            .as_bytes()
            .eq_ignore_ascii_case(GUARD_VALUE.as_bytes())
    })
}

/// Checks that a request that may change something has the header.
///
/// # Errors
/// 403 if it has not.
pub fn check_guard(headers: &HeaderMap) -> Result<(), RouteFailure> {
    match is_guarded(headers) {
        true => Ok(()),
        false => Err(RouteFailure::new(
            StatusCode::FORBIDDEN,
            "requests that may change something need the header X-Requested-With: annulus",
            "add the header; pages of other origins can't, so they change nothing here",
        )),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(value: &str) -> HeaderMap {
        let header = (GUARD, HeaderValue::from_str(value).unwrap());
        [header].into_iter().collect()
    }

    #[test]
    fn the_header_of_the_guard_has_one_value() {
        assert!(is_guarded(&headers("annulus")));
        assert!(is_guarded(&headers("Annulus")));
        assert!(!is_guarded(&headers("XMLHttpRequest")));
        assert!(!is_guarded(&HeaderMap::new()));
        assert!(check_guard(&headers("annulus")).is_ok());
        let refused = check_guard(&HeaderMap::new()).unwrap_err();
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }

    #[test]
    fn a_guarded_request_need_not_be_the_consoles() {
        assert!(!is_of_console(&headers("annulus")));
        let header = (CONSOLE, HeaderValue::from_static("1"));
        assert!(is_of_console(&[header].into_iter().collect()));
    }
}

//! The answers to requests that fail: `{"error", "hint"}`.

use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use cql::error::{CqlError, ErrorKind};
use http_server::{AuthorizationRefusal, RequestRefusal, RouteFailure};
use serde_json::json;
use value::ValueError;

/// The challenge of an answer without a login.
const CHALLENGE: &str = "Basic realm=\"annulus\", charset=\"UTF-8\"";

/// The reason why a request failed, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpFailure {
    pub status: StatusCode,
    pub error: String,
    pub hint: String,
}

impl HttpFailure {
    /// A failure with this status.
    pub fn new(
        status: StatusCode,
        error: impl Into<String>,
        hint: impl Into<String>,
    ) -> HttpFailure {
        HttpFailure {
            status,
            error: error.into(),
            hint: hint.into(),
        }
    }

    /// A request that makes no sense: 400.
    pub fn bad_request(error: impl Into<String>, hint: impl Into<String>) -> HttpFailure {
        HttpFailure::new(StatusCode::BAD_REQUEST, error, hint)
    }

    /// A thing that is not there: 404.
    pub fn missing(error: impl Into<String>) -> HttpFailure {
        let hint = "GET /api/v1/schema shows keyspaces, tables, columns and indexes";
        HttpFailure::new(StatusCode::NOT_FOUND, error, hint)
    }

    /// A body that can't be read: 400.
    pub fn of_body(error: &serde_json::Error) -> HttpFailure {
        HttpFailure::bad_request(
            format!("the body: {error}"),
            "/docs shows the fields of each request, with examples",
        )
    }

    /// A value that is none of its type: 400.
    pub fn of_value(place: &str, error: &ValueError) -> HttpFailure {
        HttpFailure::bad_request(
            format!("{place}: {}", error.0),
            "values are spelt as SELECT JSON spells them",
        )
    }

    /// This failure, at a place in the request.
    #[must_use]
    pub fn at(self, place: &str) -> HttpFailure {
        HttpFailure {
            error: format!("{place}: {}", self.error),
            ..self
        }
    }
}

impl From<CqlError> for HttpFailure {
    fn from(CqlError { kind, message }: CqlError) -> HttpFailure {
        let (status, hint) = match kind {
            ErrorKind::SyntaxError
            | ErrorKind::Invalid
            | ErrorKind::ConfigError
            | ErrorKind::ProtocolError => (
                StatusCode::BAD_REQUEST,
                "GET /api/v1/schema shows tables, columns and types; /docs has examples",
            ),
            ErrorKind::BadCredentials => (
                StatusCode::UNAUTHORIZED,
                "send HTTP Basic with the name and the password of a role",
            ),
            ErrorKind::Unauthorized => (
                StatusCode::FORBIDDEN,
                "have the right granted to the role (GRANT ... TO ...), or log in as another",
            ),
            ErrorKind::AlreadyExists { .. } => (
                StatusCode::CONFLICT,
                "send \"if_not_exists\": true if that is fine",
            ),
            ErrorKind::Overloaded | ErrorKind::IsBootstrapping | ErrorKind::Unavailable { .. } => (
                StatusCode::SERVICE_UNAVAILABLE,
                "send it again in a second, or request less at a time",
            ),
            ErrorKind::ReadTimeout { .. }
            | ErrorKind::WriteTimeout { .. }
            | ErrorKind::TruncateError
            | ErrorKind::CasWriteUnknown { .. } => (
                StatusCode::GATEWAY_TIMEOUT,
                "request less at a time; a write may have been carried out",
            ),
            ErrorKind::Unprepared { .. } => (
                StatusCode::CONFLICT,
                "the schema changed meanwhile: send the request again",
            ),
            ErrorKind::ServerError
            | ErrorKind::ReadFailure { .. }
            | ErrorKind::WriteFailure { .. }
            | ErrorKind::FunctionFailure { .. } => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the log of the server may say more",
            ),
        };
        HttpFailure::new(status, message, hint)
    }
}

impl From<AuthorizationRefusal> for HttpFailure {
    fn from(refusal: AuthorizationRefusal) -> HttpFailure {
        let of = |kind, message| HttpFailure::from(CqlError::new(kind, message));
        match refusal {
            AuthorizationRefusal::Login(text) | AuthorizationRefusal::Token(text) => {
                of(ErrorKind::BadCredentials, text)
            }
            AuthorizationRefusal::Right(text) => of(ErrorKind::Unauthorized, text),
            AuthorizationRefusal::Busy(text) => of(ErrorKind::Overloaded, text),
        }
    }
}

impl From<RouteFailure> for HttpFailure {
    fn from(failure: RouteFailure) -> HttpFailure {
        let RouteFailure {
            status,
            error,
            hint,
        } = failure;
        HttpFailure::new(status, error, hint)
    }
}

impl From<RequestRefusal> for HttpFailure {
    fn from(refusal: RequestRefusal) -> HttpFailure {
        let (status, hint) = match &refusal {
            RequestRefusal::LongBody { .. } => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "send fewer rows in a request",
            ),
            RequestRefusal::SlowBody => (StatusCode::REQUEST_TIMEOUT, "send it again"),
            RequestRefusal::BrokenBody(_) => (StatusCode::BAD_REQUEST, "send it again"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "send it again in a second"),
        };
        HttpFailure::new(status, refusal.to_string(), hint)
    }
}

impl IntoResponse for HttpFailure {
    fn into_response(self) -> Response {
        let HttpFailure {
            status,
            error,
            hint,
        } = self;
        let body = Json(json!({"error": error, "hint": hint}));
        let mut response = (status, body).into_response();
        let (name, value) = match status {
            StatusCode::UNAUTHORIZED => (WWW_AUTHENTICATE, CHALLENGE),
            StatusCode::SERVICE_UNAVAILABLE => (RETRY_AFTER, "1"),
            // The rest of the body may still come, so the connection can't be used again.
            StatusCode::REQUEST_TIMEOUT => (CONNECTION, "close"),
            _ => return response,
        };
        let headers = response.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
        response
    }
}

//! The answers of the server itself: to requests that reach no handler, and to bodies that can't be
//! taken.

use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// Makes the answer that refuses a request.
pub type RefusalAnswer = fn(RequestRefusal) -> Response;

/// The reason why the server refuses a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// The page of the console, a search or a change in clear on a listener with a certificate.
    #[error(
        "the console, searches and changes are answered over HTTPS only: use https:// on this port"
    )]
    InClear,
    /// A request in clear on a listener that answers only under TLS.
    #[error("requests are answered over HTTPS only: use https:// on this port")]
    WithoutTls,
    /// The request names a host that this listener doesn't answer to.
    #[error(
        "this is not '{0}': ask by a loopback name or address, or start the service with --http-host and the name"
    )]
    ForeignHost(String),
    /// The request comes from a web page of another origin.
    #[error("requests of pages from elsewhere ({0}) are refused")]
    ForeignOrigin(String),
    /// No one has logged in, or the login was wrong.
    #[error("{0}")]
    NoLogin(String),
    /// The request bears no token, or a wrong one.
    #[error("{0}")]
    NoToken(String),
    /// The client may not do this.
    #[error("{0}")]
    NoRight(String),
    /// The login can't be checked now.
    #[error("{0}")]
    LoginsWait(String),
    /// The body ended before its end.
    #[error("the request body broke off: {0}")]
    BrokenBody(String),
    /// The body is longer than the listener's limit.
    #[error("the request body is longer than {bytes_max} bytes, the most that is taken")]
    LongBody {
        /// The most bytes that a body may have.
        bytes_max: usize,
    },
    /// The body did not arrive in time.
    #[error("the request body did not arrive in time")]
    SlowBody,
    /// There is no room for the answer, as clients don't take theirs.
    #[error(
        "answers that their clients have not yet taken fill this listener's room for them; try again later"
    )]
    AnswersWait,
    /// There is no room for the body, as others are on their way.
    #[error(
        "bodies of requests that are still on their way fill this listener's room for them; try again later"
    )]
    BodiesWait,
    /// The program that the listener belongs to has not started.
    #[error("the service is starting; /health/ready says when it serves")]
    Starting,
    /// A fault of the server.
    #[error("{0}")]
    Internal(String),
}

impl IntoResponse for RequestRefusal {
    fn into_response(self) -> Response {
        let text = self.to_string();
        match self {
            RequestRefusal::BrokenBody(_) => (StatusCode::BAD_REQUEST, text).into_response(),
            RequestRefusal::LongBody { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, text).into_response()
            }
            RequestRefusal::InClear
            | RequestRefusal::WithoutTls
            | RequestRefusal::NoRight(_)
            | RequestRefusal::ForeignHost(_)
            | RequestRefusal::ForeignOrigin(_) => (StatusCode::FORBIDDEN, text).into_response(),
            // The rest of the body may still come, so the connection can't be used again.
            RequestRefusal::SlowBody => {
                let close = [(CONNECTION, HeaderValue::from_static("close"))];
                (StatusCode::REQUEST_TIMEOUT, close, text).into_response()
            }
            RequestRefusal::BodiesWait => {
                let headers = [
                    (CONNECTION, HeaderValue::from_static("close")),
                    (RETRY_AFTER, HeaderValue::from_static("1")),
                ];
                (StatusCode::SERVICE_UNAVAILABLE, headers, text).into_response()
            }
            RequestRefusal::NoLogin(_) => {
                unauthorized("Basic realm=\"annulus\", charset=\"UTF-8\"", text)
            }
            RequestRefusal::NoToken(_) => unauthorized("Bearer realm=\"annulus\"", text),
            RequestRefusal::AnswersWait
            | RequestRefusal::LoginsWait(_)
            | RequestRefusal::Starting => {
                let retry_after = [(RETRY_AFTER, HeaderValue::from_static("1"))];
                (StatusCode::SERVICE_UNAVAILABLE, retry_after, text).into_response()
            }
            RequestRefusal::Internal(_) => {
                tracing::error!(text, "a request failed");
                (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
            }
        }
    }
}

fn unauthorized(challenge: &'static str, text: String) -> Response {
    let challenge = HeaderValue::from_static(challenge);
    let headers = [(WWW_AUTHENTICATE, challenge)];
    (StatusCode::UNAUTHORIZED, headers, text).into_response()
}

//! What can go wrong on the asking side.

use hyper::StatusCode;

/// Why there is no answer; `Display` is the text that the CQL user sees (contract, section 2.3).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// No index service is configured.
    #[error("Vector Store is disabled")]
    Disabled,
    /// The request took longer than its timeout.
    #[error("Vector Store request was aborted")]
    Aborted,
    /// The services' names have no addresses.
    #[error("Vector Store service address could not be fetched from DNS")]
    NoAddress,
    /// No service could be reached, or each is still starting.
    #[error("Vector Store service is unavailable")]
    Unavailable,
    /// A service answered with something else than success.
    #[error("Vector Store error: HTTP status {status}, message: {message}")]
    Status {
        /// Code and reason, as `404 Not Found`.
        status: String,
        /// The answer's body: a JSON string, the `message` of a JSON object, or any other text.
        message: String,
    },
    /// A service has more to do than it can: 503, and not for an index that is being built. The text is that of the status.
    #[error("Vector Store error: HTTP status {status}, message: {message}")]
    Overloaded {
        /// Code and reason.
        status: String,
        /// The answer's body.
        message: String,
    },
    /// A successful answer that isn't what the API promises.
    #[error("Vector Store returned an invalid JSON")]
    InvalidJson,
    /// The same of an answer in the binary form.
    #[error("Vector Store returned an invalid binary answer")]
    InvalidBinary,
}

impl ClientError {
    /// Whether a service says that it knows no such index.
    pub fn is_missing(&self) -> bool {
        matches!(self, ClientError::Status { status, .. } if status.starts_with("404"))
    }

    /// Another answer than success.
    pub fn of_answer(status: StatusCode, message: String) -> ClientError {
        ClientError::Status {
            status: shown(status),
            message,
        }
    }

    /// The answer of a service that is overloaded.
    pub fn overloaded(message: String) -> ClientError {
        ClientError::Overloaded {
            status: shown(StatusCode::SERVICE_UNAVAILABLE),
            message,
        }
    }
}

fn shown(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// A base URI that the client can't use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{uri}` is not the URI of an index service: {reason} (expected http://host:port or https://host:port)"
)]
pub struct InvalidUri {
    /// As configured.
    pub uri: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Why there is no client of one service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOneService {
    /// The URI can't be used.
    #[error(transparent)]
    Invalid(#[from] InvalidUri),
    /// More than one service is named.
    #[error("{names} names several services ({services}): name one")]
    Several {
        /// What names them.
        names: String,
        /// Their addresses or URIs.
        services: String,
    },
}

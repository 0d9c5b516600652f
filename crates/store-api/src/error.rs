//! The errors of a client of the index service.

use hyper::StatusCode;

/// The reason why there is no answer. `Display` is the text that the CQL user sees (contract,
/// section 2.3).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// No index service is configured.
    #[error("Vector Store is disabled")]
    Disabled,
    /// The request took longer than its timeout.
    #[error("Vector Store request was aborted")]
    Aborted,
    /// The names of the services have no addresses.
    #[error("Vector Store service address could not be fetched from DNS")]
    NoAddress,
    /// Every service is unreachable or still starting.
    #[error("Vector Store service is unavailable")]
    Unavailable,
    /// A service answered with another status than 200.
    #[error("Vector Store error: HTTP status {status}, message: {message}")]
    Status {
        /// Code and reason of the status, as in `404 Not Found`.
        status: String,
        /// The text of the answer's body: a JSON string, the `message` of a JSON object, or any
        /// other text.
        message: String,
    },
    /// A service has more to do than it can: it answers 503 without a reason, as it gives one while
    /// it or an index is being built. The error text is that of `Status`.
    #[error("Vector Store error: HTTP status {status}, message: {message}")]
    Overloaded {
        /// Code and reason of the status.
        status: String,
        /// The text of the answer's body.
        message: String,
    },
    /// An index lacks writes that the search requires by its `min_time_us`.
    #[error("Vector Store error: {message}")]
    Behind {
        /// The text of the answer.
        message: String,
        /// The microseconds before that time of which the index may lack writes; `None` if the
        /// service does not know.
        behind_us: Option<u64>,
    },
    /// An exact search was answered by a service that knows no such searches.
    #[error(
        "Vector Store does not know exact searches: upgrade the index service, or leave 'exact' out"
    )]
    NotExact,
    /// A successful answer whose body isn't the JSON that the API promises.
    #[error("Vector Store returned an invalid JSON")]
    InvalidJson,
    /// A successful answer whose body isn't in the promised binary form.
    #[error("Vector Store returned an invalid binary answer")]
    InvalidBinary,
}

impl ClientError {
    /// Whether a service answered that it knows no such index.
    pub fn is_missing(&self) -> bool {
        matches!(self, ClientError::Status { status, .. } if status.starts_with("404"))
    }

    /// The error for an answer with another status than 200.
    pub fn of_answer(status: StatusCode, message: String) -> ClientError {
        ClientError::Status {
            status: shown(status),
            message,
        }
    }

    /// The error for the answer of an overloaded service.
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
    /// The URI as configured.
    pub uri: String,
    /// The reason why it can't be used.
    pub reason: String,
}

/// The reason why there is no client of one service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOneService {
    /// The URI can't be used.
    #[error(transparent)]
    Invalid(#[from] InvalidUri),
    /// More than one service is named.
    #[error("{names} names several services ({services}): name one")]
    Several {
        /// The URI, or the configuration, that names them.
        names: String,
        /// Their addresses or URIs.
        services: String,
    },
}

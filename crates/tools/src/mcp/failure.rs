//! Errors as a model reads them: what is wrong, and what to do about it.

use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use serde_json::json;

use crate::ToolError;

/// A call that failed. Its form is that of the HTTP API: `{"error", "hint"}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// The thing that is wrong.
    pub error: String,
    /// The remedy.
    pub hint: String,
}

impl CallFailure {
    /// A failure of these words.
    pub fn new(error: impl Into<String>, hint: impl Into<String>) -> CallFailure {
        CallFailure {
            error: error.into(),
            hint: hint.into(),
        }
    }

    /// The failure as JSON.
    pub fn text(&self) -> String {
        json!({"error": self.error, "hint": self.hint}).to_string()
    }

    /// A failure of the driver's that is no answer of the server.
    fn of_connection(error: &dyn std::error::Error) -> CallFailure {
        CallFailure::new(
            format!("the CQL server did not answer: {error}"),
            "is it running? The driver connects again by itself: repeat the call in a moment",
        )
    }

    /// A message that can't be read.
    pub fn unreadable(error: &dyn std::error::Error) -> CallFailure {
        CallFailure::new(
            format!("the answer can't be read: {error}"),
            "select fewer columns, to find the one whose type is not known here",
        )
    }
}

impl From<ToolError> for CallFailure {
    fn from(error: ToolError) -> CallFailure {
        CallFailure::new(
            error.to_string(),
            "the settings of the MCP client have the command line of `annulus mcp`; `annulus mcp --help` lists its flags",
        )
    }
}

impl From<PrepareError> for CallFailure {
    fn from(error: PrepareError) -> CallFailure {
        match error {
            PrepareError::AllAttemptsFailed { first_attempt } => first_attempt.into(),
            other => CallFailure::of_connection(&other),
        }
    }
}

impl From<RequestAttemptError> for CallFailure {
    fn from(error: RequestAttemptError) -> CallFailure {
        match error {
            RequestAttemptError::DbError(kind, message) => {
                let hint = remedy(&kind, &message);
                CallFailure::new(message, hint)
            }
            RequestAttemptError::SerializationError(error) => CallFailure::new(
                format!("a value has another type than its column: {error}"),
                "describe shows the types of the columns",
            ),
            other => CallFailure::of_connection(&other),
        }
    }
}

impl From<ExecutionError> for CallFailure {
    fn from(error: ExecutionError) -> CallFailure {
        match error {
            ExecutionError::LastAttemptError(error) => error.into(),
            ExecutionError::PrepareError(error) => error.into(),
            ExecutionError::BadQuery(error) => CallFailure::new(
                format!("the statement's values can't be sent: {error}"),
                "describe shows the types of the columns; `parameters` has one value for each ?",
            ),
            other => CallFailure::of_connection(&other),
        }
    }
}

/// The remedy that a model has for an error of the server. Servers give the same error other
/// words, so only their kind and the words that all share decide.
fn remedy(kind: &DbError, message: &str) -> &'static str {
    if message.contains("ALLOW FILTERING") {
        return "restrict the primary key or columns of an index (list_indexes); or have the rows checked one by one: \
                `allow_filtering` of search, ALLOW FILTERING at the end of a SELECT";
    }
    match kind {
        DbError::SyntaxError => {
            "a call takes one statement of CQL, which has no JOIN, no OR in WHERE and no subquery"
        }
        DbError::Unauthorized => {
            "the role that `annulus mcp --user` names lacks this permission: a superuser can GRANT it"
        }
        DbError::Overloaded | DbError::Unavailable { .. } | DbError::IsBootstrapping => {
            "repeat the call in a moment"
        }
        DbError::ReadTimeout { .. } | DbError::WriteTimeout { .. } => {
            "restrict the partition key or columns of an index, or take a smaller LIMIT"
        }
        DbError::Invalid => {
            "list_tables, list_indexes and describe show names and types; names with capitals need double quotes in CQL"
        }
        _ => "the message names the cause",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: DbError, message: &str) -> CallFailure {
        RequestAttemptError::DbError(kind, message.to_owned()).into()
    }

    #[test]
    fn an_error_of_the_server_keeps_its_words_and_gets_a_remedy() {
        let failure = of(DbError::Invalid, "table shop.product does not exist");
        assert_eq!(failure.error, "table shop.product does not exist");
        assert!(failure.hint.contains("list_tables"), "{failure:?}");
        let failure = of(DbError::Invalid, "use ALLOW FILTERING");
        assert!(failure.hint.contains("list_indexes"), "{failure:?}");
        let failure = of(DbError::Unauthorized, "no");
        assert!(failure.hint.contains("GRANT"), "{failure:?}");
    }

    #[test]
    fn the_text_of_a_failure_is_json_of_two_fields() {
        let text = CallFailure::new("a \"b\"", "c").text();
        assert_eq!(text, r#"{"error":"a \"b\"","hint":"c"}"#);
    }
}

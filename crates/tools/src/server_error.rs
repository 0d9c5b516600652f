//! Errors of the driver in a user's words.

use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};

use crate::ToolError;

/// The server's own words, without those that the driver puts around them.
pub fn message(error: &ExecutionError) -> String {
    match error {
        ExecutionError::LastAttemptError(attempt) => of_attempt(attempt),
        ExecutionError::PrepareError(error) => of_preparation(error),
        other => other.to_string(),
    }
}

/// As [`message`], of a statement that could not be prepared.
pub fn of_preparation(error: &PrepareError) -> String {
    match error {
        PrepareError::AllAttemptsFailed { first_attempt } => of_attempt(first_attempt),
        other => other.to_string(),
    }
}

fn of_attempt(attempt: &RequestAttemptError) -> String {
    match attempt {
        RequestAttemptError::DbError(_, message) if !message.is_empty() => message.clone(),
        other => other.to_string(),
    }
}

/// An error of a statement that the user did not write, so that it is named.
pub fn of_statement(statement: &str, error: &ExecutionError) -> ToolError {
    ToolError::Statement(format!("{statement}: {}", message(error)))
}

/// How a write failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteFailure {
    /// The server refuses this row, whenever it is sent.
    Refused(String),
    /// The server is busy or can't be reached, which may pass.
    Passing(String),
    /// No row can be written.
    Final(String),
}

impl WriteFailure {
    /// The kind of failure that an error of the driver is.
    pub fn of(error: &ExecutionError) -> WriteFailure {
        let said = message(error);
        match error {
            ExecutionError::BadQuery(_) => WriteFailure::Refused(said),
            ExecutionError::LastAttemptError(RequestAttemptError::DbError(of_server, _)) => {
                match of_server {
                    DbError::Invalid | DbError::SyntaxError | DbError::ConfigError => {
                        WriteFailure::Refused(said)
                    }
                    DbError::Overloaded
                    | DbError::IsBootstrapping
                    | DbError::TruncateError
                    | DbError::ServerError
                    | DbError::Unavailable { .. }
                    | DbError::WriteTimeout { .. }
                    | DbError::WriteFailure { .. }
                    | DbError::ReadTimeout { .. }
                    | DbError::RateLimitReached { .. } => WriteFailure::Passing(said),
                    _ => WriteFailure::Final(said),
                }
            }
            ExecutionError::LastAttemptError(_)
            | ExecutionError::ConnectionPoolError(_)
            | ExecutionError::RequestTimeout(_)
            | ExecutionError::EmptyPlan => WriteFailure::Passing(said),
            _ => WriteFailure::Final(said),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_of_the_row_or_pass_or_are_final() {
        let of = |of_server: DbError| {
            let attempt = RequestAttemptError::DbError(of_server, "why".to_owned());
            WriteFailure::of(&ExecutionError::LastAttemptError(attempt))
        };
        let why = || "why".to_owned();
        assert_eq!(of(DbError::Invalid), WriteFailure::Refused(why()));
        assert_eq!(of(DbError::Overloaded), WriteFailure::Passing(why()));
        assert_eq!(of(DbError::Unauthorized), WriteFailure::Final(why()));
        let busy = WriteFailure::of(&ExecutionError::EmptyPlan);
        assert!(matches!(busy, WriteFailure::Passing(_)));
    }
}

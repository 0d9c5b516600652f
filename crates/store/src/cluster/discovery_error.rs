//! How a look at the schema fails.

/// The reason why a look failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DiscoveryError {
    /// The database doesn't answer.
    #[error("{0}")]
    Unreachable(String),
    /// The database answers with an error.
    #[error("{0}")]
    Refused(String),
    /// The database's answer has an unexpected form.
    #[error("{0}")]
    Malformed(String),
}

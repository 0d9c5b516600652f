//! Exit codes, by which scripts can tell why the process ended.

use std::process::ExitCode;

use credentials::FileError;
use storage::StorageError;
use tools::ToolError;

/// A failure whose cause has an exit code of its own.
#[derive(Debug, thiserror::Error)]
pub enum ProcessFailure {
    /// The command line or the configuration can't be used.
    #[error("{0}")]
    Configuration(String),
    /// An address is in use.
    #[error("{0}")]
    AddressInUse(String),
    /// The time was up before the awaited event. The code is that of `timeout(1)`.
    #[error("{0}")]
    TimedOut(String),
}

impl From<FileError> for ProcessFailure {
    fn from(error: FileError) -> ProcessFailure {
        ProcessFailure::Configuration(error.to_string())
    }
}

/// The error for two settings that need each other, of which only one is set.
pub fn lacks(given: &str, missing: &str) -> ProcessFailure {
    ProcessFailure::Configuration(format!("{given} is set, but {missing} is not: set both"))
}

/// The exit code of a failure (listed in `annulus --help`).
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<ProcessFailure>() {
            return match failure {
                ProcessFailure::Configuration(_) => 2.into(),
                ProcessFailure::AddressInUse(_) => 3.into(),
                ProcessFailure::TimedOut(_) => 124.into(),
            };
        }
        if let Some(failure) = cause.downcast_ref::<ToolError>() {
            return tools::exit_code(failure).into();
        }
        if cause.is::<FileError>() {
            return 2.into();
        }
        if let Some(failure) = cause.downcast_ref::<StorageError>() {
            return match failure {
                StorageError::Locked(_) => 4.into(),
                StorageError::NewerFormat(_) | StorageError::Corrupt(_) => 5.into(),
                _ => 1.into(),
            };
        }
    }
    1.into()
}

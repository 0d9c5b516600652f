//! Errors that a server answers, with the error codes of the native protocol.

use std::net::IpAddr;

use bytes::Bytes;

/// An error as the client of the native protocol sees it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CqlError {
    /// The error code, with the fields that the protocol carries for it.
    pub kind: ErrorKind,
    /// A sentence for the user.
    pub message: String,
}

/// The error codes of native protocol v5, section 9, each with the fields that it carries in
/// addition to the message.
#[expect(
    missing_docs,
    reason = "the variants and their fields are named as in the specification"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    ServerError,
    ProtocolError,
    BadCredentials,
    Unavailable {
        consistency: u16,
        required: i32,
        alive: i32,
    },
    Overloaded,
    IsBootstrapping,
    TruncateError,
    WriteTimeout {
        consistency: u16,
        received: i32,
        block_for: i32,
        write_type: &'static str,
        /// The number of other proposals that a conditional write met. Version 4 leaves it out.
        contentions: Option<u16>,
    },
    ReadTimeout {
        consistency: u16,
        received: i32,
        block_for: i32,
        data_present: bool,
    },
    ReadFailure {
        consistency: u16,
        received: i32,
        block_for: i32,
        failures: ReplicaFailures,
        data_present: bool,
    },
    WriteFailure {
        consistency: u16,
        received: i32,
        block_for: i32,
        failures: ReplicaFailures,
        write_type: &'static str,
    },
    CasWriteUnknown {
        consistency: u16,
        received: i32,
        block_for: i32,
    },
    FunctionFailure {
        keyspace: String,
        function: String,
        argument_types: Vec<String>,
    },
    SyntaxError,
    Unauthorized,
    Invalid,
    ConfigError,
    AlreadyExists {
        keyspace: String,
        /// The table that exists already; empty if it is the keyspace that does.
        table: String,
    },
    Unprepared {
        id: Bytes,
    },
}

/// The replicas that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaFailures {
    /// Only their number, as version 4 sends it.
    Count(i32),
    /// Each with the code of its reason, as version 5 sends it. Code 0 is an unknown reason, and 1
    /// is a read of too many tombstones.
    Reasons(Vec<(IpAddr, u16)>),
}

impl ReplicaFailures {
    /// The number of replicas that failed.
    pub fn count(&self) -> i32 {
        match self {
            ReplicaFailures::Count(count) => *count,
            ReplicaFailures::Reasons(reasons) => i32::try_from(reasons.len()).unwrap_or(i32::MAX),
        }
    }
}

impl ErrorKind {
    /// The name, as it is written here.
    pub fn name(&self) -> &'static str {
        match self {
            ErrorKind::ServerError => "ServerError",
            ErrorKind::ProtocolError => "ProtocolError",
            ErrorKind::BadCredentials => "BadCredentials",
            ErrorKind::Unavailable { .. } => "Unavailable",
            ErrorKind::Overloaded => "Overloaded",
            ErrorKind::IsBootstrapping => "IsBootstrapping",
            ErrorKind::TruncateError => "TruncateError",
            ErrorKind::WriteTimeout { .. } => "WriteTimeout",
            ErrorKind::ReadTimeout { .. } => "ReadTimeout",
            ErrorKind::ReadFailure { .. } => "ReadFailure",
            ErrorKind::FunctionFailure { .. } => "FunctionFailure",
            ErrorKind::WriteFailure { .. } => "WriteFailure",
            ErrorKind::CasWriteUnknown { .. } => "CasWriteUnknown",
            ErrorKind::SyntaxError => "SyntaxError",
            ErrorKind::Unauthorized => "Unauthorized",
            ErrorKind::Invalid => "Invalid",
            ErrorKind::ConfigError => "ConfigError",
            ErrorKind::AlreadyExists { .. } => "AlreadyExists",
            ErrorKind::Unprepared { .. } => "Unprepared",
        }
    }

    /// The code on the wire.
    pub fn code(&self) -> i32 {
        match self {
            ErrorKind::ServerError => 0x0000,
            ErrorKind::ProtocolError => 0x000A,
            ErrorKind::BadCredentials => 0x0100,
            ErrorKind::Unavailable { .. } => 0x1000,
            ErrorKind::Overloaded => 0x1001,
            ErrorKind::IsBootstrapping => 0x1002,
            ErrorKind::TruncateError => 0x1003,
            ErrorKind::WriteTimeout { .. } => 0x1100,
            ErrorKind::ReadTimeout { .. } => 0x1200,
            ErrorKind::ReadFailure { .. } => 0x1300,
            ErrorKind::FunctionFailure { .. } => 0x1400,
            ErrorKind::WriteFailure { .. } => 0x1500,
            ErrorKind::CasWriteUnknown { .. } => 0x1700,
            ErrorKind::SyntaxError => 0x2000,
            ErrorKind::Unauthorized => 0x2100,
            ErrorKind::Invalid => 0x2200,
            ErrorKind::ConfigError => 0x2300,
            ErrorKind::AlreadyExists { .. } => 0x2400,
            ErrorKind::Unprepared { .. } => 0x2500,
        }
    }
}

impl CqlError {
    /// Makes an error of any kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        CqlError {
            kind,
            message: message.into(),
        }
    }

    /// Makes an `Invalid` error: the statement cannot be carried out, because of wrong types,
    /// unknown names or bad values.
    pub fn invalid(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::Invalid, message)
    }

    /// Makes a `SyntaxError`: the text is no statement.
    pub fn syntax(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::SyntaxError, message)
    }

    /// Makes a `ProtocolError`: the frame breaks the rules of the protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::ProtocolError, message)
    }

    /// Makes a `ConfigError`: the statement is well-formed, but the configuration doesn't allow it.
    pub fn config(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::ConfigError, message)
    }

    /// Makes a `ServerError`: the fault is the server's, not the statement's.
    pub fn server(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::ServerError, message)
    }
}

//! The database's own error codes, as the native protocol carries them.

use bytes::Bytes;

/// An error as the client of the native protocol sees it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CqlError {
    /// Its code, and what the protocol carries with that code.
    pub kind: ErrorKind,
    /// A sentence for the user.
    pub message: String,
}

/// The error codes of native protocol v4, section 9, with what each carries beside its message.
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
    },
    ReadTimeout {
        consistency: u16,
        received: i32,
        block_for: i32,
        data_present: bool,
    },
    SyntaxError,
    Unauthorized,
    Invalid,
    ConfigError,
    AlreadyExists {
        keyspace: String,
        /// Empty if it is the keyspace that exists.
        table: String,
    },
    Unprepared {
        id: Bytes,
    },
}

impl ErrorKind {
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
    /// An error of any kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        CqlError {
            kind,
            message: message.into(),
        }
    }

    /// The statement cannot be carried out as it is: wrong types, unknown names, bad values.
    pub fn invalid(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::Invalid, message)
    }

    /// The text is no statement.
    pub fn syntax(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::SyntaxError, message)
    }

    /// The frame breaks the rules of the protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::ProtocolError, message)
    }

    /// The statement is well-formed, but the configuration doesn't allow it.
    pub fn config(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::ConfigError, message)
    }

    /// A fault of the server, not of the statement.
    pub fn server(message: impl Into<String>) -> Self {
        CqlError::new(ErrorKind::ServerError, message)
    }
}

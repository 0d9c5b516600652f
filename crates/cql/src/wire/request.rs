//! Requests, which a client sends. The module `request_codec` reads and writes them.

use bytes::Bytes;

use super::bound_value::BoundValue;
use super::compression::Compression;
use super::consistency::Consistency;
use super::event::EventKind;
use super::header::{Opcode, ProtocolVersion};
use super::reader::DecodeError;
use crate::error::CqlError;
use crate::secret::Secret;

/// A request. Version 4 has no place for fields that are said to be of version 5.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Opens the connection: STARTUP.
    Startup(Startup),
    /// Requests the options that the server supports.
    Options,
    /// Executes a statement given as text.
    Query {
        /// The CQL text.
        statement: String,
        /// The values and options of the execution.
        parameters: QueryParameters,
    },
    /// Prepares a statement for [`Request::Execute`].
    Prepare {
        /// The CQL text.
        statement: String,
        /// The keyspace of names without one, in place of the connection's. Version 5.
        keyspace: Option<String>,
    },
    /// Executes a prepared statement.
    Execute {
        /// The id that the answer to PREPARE gave.
        id: Bytes,
        /// The id of the columns that the client expects in the answer. Version 5 always has one.
        result_metadata_id: Option<Bytes>,
        /// The values and options of the execution.
        parameters: QueryParameters,
    },
    /// Executes several INSERTs, UPDATEs and DELETEs as one.
    Batch(BatchRequest),
    /// Requests events on this connection.
    Register {
        /// The requested kinds.
        events: Vec<EventKind>,
    },
    /// Answers the server in a step of authentication.
    AuthResponse {
        /// The client's token, which may hold a password.
        token: Secret<Option<Bytes>>,
    },
}

/// The options of STARTUP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Startup {
    /// The options as sent, by name: `CQL_VERSION`, `COMPRESSION`, `DRIVER_NAME`, ...
    pub options: Vec<(String, String)>,
}

impl Startup {
    /// The value of an option. Its name is found in upper or lower case.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The compression that the client chose, if any.
    ///
    /// # Errors
    /// If the client chose an algorithm that is not supported, or not in this version.
    pub fn compression(
        &self,
        version: ProtocolVersion,
    ) -> Result<Option<Compression>, DecodeError> {
        let name = match self.option("COMPRESSION") {
            None | Some("") => return Ok(None),
            Some(name) => name,
        };
        match (Compression::from_name(name), version) {
            (Some(Compression::Snappy), ProtocolVersion::V5) => Err(DecodeError::invalid(
                "Snappy compression is not supported in protocol V5",
            )),
            (Some(algorithm), _) => Ok(Some(algorithm)),
            (None, _) => Err(DecodeError::Invalid(format!(
                "Unknown compression algorithm: {name}"
            ))),
        }
    }
}

/// The values and options of a QUERY or EXECUTE.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryParameters {
    /// The consistency level.
    pub consistency: Consistency,
    /// The values of the bind markers.
    pub values: MarkerValues,
    /// Whether the result comes without metadata. The client has it from PREPARE already.
    pub skip_metadata: bool,
    /// The number of rows in a page, at least 1; `None` for a result without pages.
    pub page_size: Option<u32>,
    /// The paging state of the page before; `None` for the first page.
    pub paging_state: Option<Bytes>,
    /// The consistency level of the serial phase of a conditional write.
    pub serial_consistency: Option<Consistency>,
    /// The write timestamp for statements without one of their own. Microseconds.
    pub timestamp: Option<i64>,
    /// The keyspace of names without one, in place of the connection's. Version 5.
    pub keyspace: Option<String>,
    /// The present by which values expire, in seconds since the epoch. Version 5.
    pub now_in_seconds: Option<u32>,
}

impl Default for QueryParameters {
    fn default() -> Self {
        QueryParameters {
            consistency: Consistency::One,
            values: MarkerValues::Positional(Vec::new()),
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        }
    }
}

/// The values of bind markers.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkerValues {
    /// Values in the order of the markers.
    Positional(Vec<BoundValue>),
    /// Values with the names of their markers, in any order.
    Named(Vec<(String, BoundValue)>),
}

impl MarkerValues {
    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            MarkerValues::Positional(values) => values.len(),
            MarkerValues::Named(values) => values.len(),
        }
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts the values in the order of a statement's bind markers. `markers` is the number of
    /// markers, and `name` gives the name of each by its position.
    ///
    /// # Errors
    /// If there are more or fewer positional values than markers, or if a marker's name has no
    /// value.
    pub fn in_order<'n>(
        self,
        markers: usize,
        name: impl Fn(usize) -> Option<&'n str>,
    ) -> Result<Vec<BoundValue>, CqlError> {
        match self {
            MarkerValues::Positional(values) if values.len() == markers => Ok(values),
            MarkerValues::Positional(values) => Err(CqlError::invalid(format!(
                "Invalid amount of bind variables: the statement has {markers}, the request gives {}",
                values.len()
            ))),
            MarkerValues::Named(named) => (0..markers)
                .map(|position| {
                    let name = name(position).unwrap_or_default();
                    let value = named.iter().find(|(given, _)| given == name);
                    value.map(|(_, value)| value.clone()).ok_or_else(|| {
                        CqlError::invalid(format!(
                            "Invalid amount of bind variables: no value for '{name}'"
                        ))
                    })
                })
                .collect(),
        }
    }
}

/// The kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// A logged batch: in the end all of its writes are made, or none.
    Logged,
    /// An unlogged batch, without that guarantee.
    Unlogged,
    /// A batch of counter updates.
    Counter,
}

/// A BATCH request.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchRequest {
    /// The kind.
    pub kind: BatchKind,
    /// The statements, in order.
    pub statements: Vec<BatchStatement>,
    /// The consistency level.
    pub consistency: Consistency,
    /// The consistency level of the serial phase of a conditional batch.
    pub serial_consistency: Option<Consistency>,
    /// The write timestamp for statements without one of their own. Microseconds.
    pub timestamp: Option<i64>,
    /// The keyspace of names without one, in place of the connection's. Version 5.
    pub keyspace: Option<String>,
    /// The present by which values expire, in seconds since the epoch. Version 5.
    pub now_in_seconds: Option<u32>,
}

/// One statement of a batch, with its values in the order of its markers.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchStatement {
    /// The statement.
    pub statement: BatchedStatement,
    /// The values of the statement's bind markers.
    pub values: Vec<BoundValue>,
}

/// A statement of a batch, as a text or as the id of a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchedStatement {
    /// The text of the statement.
    Text(String),
    /// The id of a prepared statement.
    Prepared(Bytes),
}

impl Request {
    /// The opcode of the request's frame.
    pub fn opcode(&self) -> Opcode {
        match self {
            Request::Startup(_) => Opcode::Startup,
            Request::Options => Opcode::Options,
            Request::Query { .. } => Opcode::Query,
            Request::Prepare { .. } => Opcode::Prepare,
            Request::Execute { .. } => Opcode::Execute,
            Request::Batch(_) => Opcode::Batch,
            Request::Register { .. } => Opcode::Register,
            Request::AuthResponse { .. } => Opcode::AuthResponse,
        }
    }
}

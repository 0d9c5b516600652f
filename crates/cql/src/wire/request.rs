//! Requests: what a client asks. How they lie in a frame is in the module `request_codec`.

use bytes::Bytes;

use super::compression::Compression;
use super::consistency::Consistency;
use super::event::EventKind;
use super::header::Opcode;
use super::reader::DecodeError;
use crate::error::CqlError;
use crate::secret::Secret;

/// A request of protocol v4.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Opens the connection.
    Startup(Startup),
    /// Asks what the server supports.
    Options,
    /// Executes a statement given as text.
    Query {
        /// The CQL text.
        statement: String,
        /// How to execute it.
        parameters: QueryParameters,
    },
    /// Prepares a statement for [`Request::Execute`].
    Prepare {
        /// The CQL text.
        statement: String,
    },
    /// Executes a prepared statement.
    Execute {
        /// The id that the answer to PREPARE gave.
        id: Bytes,
        /// How to execute it.
        parameters: QueryParameters,
    },
    /// Executes several modifications as one.
    Batch(Batch),
    /// Asks for events on this connection.
    Register {
        /// The kinds asked for.
        events: Vec<EventKind>,
    },
    /// A step of authentication.
    AuthResponse {
        /// The client's token, which may hold its password.
        token: Secret<Option<Bytes>>,
    },
}

/// The options of STARTUP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Startup {
    /// Names and values as sent: `CQL_VERSION`, `COMPRESSION`, `DRIVER_NAME`, ...
    pub options: Vec<(String, String)>,
}

impl Startup {
    /// The value of an option; names are compared in any case.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The compression that the client chose, if any.
    ///
    /// # Errors
    /// If it chose one that is unknown here.
    pub fn compression(&self) -> Result<Option<Compression>, DecodeError> {
        match self.option("COMPRESSION") {
            None | Some("") => Ok(None),
            Some(name) => Compression::from_name(name).map(Some).ok_or_else(|| {
                DecodeError::Invalid(format!("Unknown compression algorithm: {name}"))
            }),
        }
    }
}

/// How a QUERY or EXECUTE is to be executed.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryParameters {
    /// The consistency level.
    pub consistency: Consistency,
    /// The values of the bind markers.
    pub values: Values,
    /// The client has the result's metadata from PREPARE and does not want it again.
    pub skip_metadata: bool,
    /// Rows a page, at least 1; `None` for a result in one piece.
    pub page_size: Option<u32>,
    /// Where the last page ended.
    pub paging_state: Option<Bytes>,
    /// The level of the serial phase of a conditional write.
    pub serial_consistency: Option<Consistency>,
    /// The write timestamp in microseconds, for statements that state none.
    pub timestamp: Option<i64>,
}

impl Default for QueryParameters {
    fn default() -> Self {
        QueryParameters {
            consistency: Consistency::One,
            values: Values::Positional(Vec::new()),
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            serial_consistency: None,
            timestamp: None,
        }
    }
}

/// Values for bind markers.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// In the order of the markers.
    Positional(Vec<BoundValue>),
    /// By the names of the markers, in any order.
    Named(Vec<(String, BoundValue)>),
}

impl Values {
    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Values::Positional(values) => values.len(),
            Values::Named(values) => values.len(),
        }
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values in the order of a statement's bind markers, of which there are `markers`; `name` gives the name of
    /// each by its position.
    ///
    /// # Errors
    /// If there are more or fewer values than markers, or a name without a value.
    pub fn in_order<'n>(
        self,
        markers: usize,
        name: impl Fn(usize) -> Option<&'n str>,
    ) -> Result<Vec<BoundValue>, CqlError> {
        match self {
            Values::Positional(values) if values.len() == markers => Ok(values),
            Values::Positional(values) => Err(CqlError::invalid(format!(
                "Invalid amount of bind variables: the statement has {markers}, the request gives {}",
                values.len()
            ))),
            Values::Named(named) => (0..markers)
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

/// The value of one bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundValue {
    /// Null.
    Null,
    /// Not set: what the marker stands for is left as it is.
    Unset,
    /// A serialised value, sharing the frame's memory.
    Value(Bytes),
}

/// The kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// All or nothing.
    Logged,
    /// Grouped only.
    Unlogged,
    /// Of counter updates.
    Counter,
}

/// A BATCH request.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The kind.
    pub kind: BatchKind,
    /// The statements, in order.
    pub statements: Vec<BatchStatement>,
    /// The consistency level.
    pub consistency: Consistency,
    /// The level of the serial phase of a conditional batch.
    pub serial_consistency: Option<Consistency>,
    /// The write timestamp in microseconds, for statements that state none.
    pub timestamp: Option<i64>,
}

/// One statement of a batch, with its values in the order of its markers.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchStatement {
    /// The statement.
    pub statement: BatchedStatement,
    /// The values of its bind markers.
    pub values: Vec<BoundValue>,
}

/// How a batch names a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchedStatement {
    /// By its text.
    Text(String),
    /// By the id of its preparation.
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

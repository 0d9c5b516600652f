//! Responses, which a server sends. The module `response_codec` reads and writes them.

use bytes::Bytes;
use uuid::Uuid;

use super::event::{SchemaChange, ServerEvent};
use super::header::{Opcode, ProtocolVersion};
use super::metadata::PreparedResponse;
use super::rows::EncodedRows;
use crate::error::CqlError;
use crate::secret::Secret;

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// The request failed.
    Error(CqlError),
    /// The connection is ready for requests.
    Ready,
    /// The client must authenticate before other requests.
    Authenticate {
        /// The Java class name of the authenticator.
        authenticator: String,
    },
    /// The server requires another step of authentication.
    AuthChallenge {
        /// The server's token.
        token: Secret<Option<Bytes>>,
    },
    /// The client is authenticated.
    AuthSuccess {
        /// The server's last token.
        token: Secret<Option<Bytes>>,
    },
    /// The options that the server supports: names with their possible values.
    Supported(Vec<(String, Vec<String>)>),
    /// The request succeeded and returns nothing.
    Void,
    /// A result set.
    Rows(EncodedRows),
    /// USE succeeded. The string is the keyspace.
    SetKeyspace(String),
    /// The statement is prepared.
    Prepared(PreparedResponse),
    /// The schema was changed by the request.
    SchemaChange(SchemaChange),
    /// An event that the client registered for. It comes on stream -1.
    Event(ServerEvent),
}

/// The fields of a response's frame in addition to the response itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseContext {
    /// The version of the protocol, which is that of the request.
    pub version: ProtocolVersion,
    /// The stream of the request that is answered; -1 for an event.
    pub stream: i16,
    /// The id of the request's trace, if it was traced.
    pub tracing_id: Option<Uuid>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// The custom payload: named bytes for the client.
    pub custom_payload: Vec<(String, Option<Bytes>)>,
}

impl ResponseContext {
    /// A context in version 4 with the stream of a request and nothing else.
    pub fn new(stream: i16) -> Self {
        ResponseContext {
            stream,
            ..ResponseContext::default()
        }
    }

    /// This context in a version.
    #[must_use]
    pub fn at(self, version: ProtocolVersion) -> Self {
        ResponseContext { version, ..self }
    }
}

/// The stream of events.
pub const EVENT_STREAM: i16 = -1;

impl Response {
    /// The opcode of the response's frame.
    pub fn opcode(&self) -> Opcode {
        match self {
            Response::Error(_) => Opcode::Error,
            Response::Ready => Opcode::Ready,
            Response::Authenticate { .. } => Opcode::Authenticate,
            Response::AuthChallenge { .. } => Opcode::AuthChallenge,
            Response::AuthSuccess { .. } => Opcode::AuthSuccess,
            Response::Supported(_) => Opcode::Supported,
            Response::Void
            | Response::Rows(_)
            | Response::SetKeyspace(_)
            | Response::Prepared(_)
            | Response::SchemaChange(_) => Opcode::Result,
            Response::Event(_) => Opcode::Event,
        }
    }
}

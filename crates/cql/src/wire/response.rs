//! Responses: what a server answers. How they lie in a frame is in the module `response_codec`.

use bytes::Bytes;
use uuid::Uuid;

use super::event::{Event, SchemaChange};
use super::header::Opcode;
use super::metadata::Prepared;
use super::rows::Rows;
use crate::error::CqlError;
use crate::secret::Secret;

/// A response of protocol v4.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// The request failed.
    Error(CqlError),
    /// The connection is open.
    Ready,
    /// The connection opens once the client has said who it is.
    Authenticate {
        /// The Java class name of the authenticator.
        authenticator: String,
    },
    /// Another step of authentication is needed.
    AuthChallenge {
        /// The server's token.
        token: Secret<Option<Bytes>>,
    },
    /// The client is who it says.
    AuthSuccess {
        /// The server's last token.
        token: Secret<Option<Bytes>>,
    },
    /// What the server supports: names with their possible values.
    Supported(Vec<(String, Vec<String>)>),
    /// The request succeeded without anything to say.
    Void,
    /// A result set.
    Rows(Rows),
    /// USE succeeded.
    SetKeyspace(String),
    /// A statement is prepared.
    Prepared(Prepared),
    /// The schema was changed by the request.
    SchemaChange(SchemaChange),
    /// Something happened; always on stream -1.
    Event(Event),
}

/// What a response's frame carries around the response itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseContext {
    /// The stream of the request that is answered; -1 for an event.
    pub stream: i16,
    /// The id of the request's trace, if it was traced.
    pub tracing_id: Option<Uuid>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Named bytes for the client.
    pub custom_payload: Vec<(String, Option<Bytes>)>,
}

impl ResponseContext {
    /// The plain answer to the request of a stream.
    pub fn new(stream: i16) -> Self {
        ResponseContext {
            stream,
            ..ResponseContext::default()
        }
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

//! Responses: what a server answers.

use bytes::{Bytes, BytesMut};
use uuid::Uuid;

use super::compression::Compression;
use super::event::{Event, SchemaChange};
use super::frame::Frame;
use super::metadata::Prepared;
use super::primitives::DecodeError;
use super::rows::Rows;
use crate::error::CqlError;

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
        token: Option<Bytes>,
    },
    /// The client is who it says.
    AuthSuccess {
        /// The server's last token.
        token: Option<Bytes>,
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
    /// Appends the response as a frame, compressed with what STARTUP agreed on.
    ///
    /// A response whose body would exceed the protocol's limit of 256 MiB becomes an error response that says so.
    pub fn encode(
        &self,
        context: &ResponseContext,
        compression: Option<Compression>,
        out: &mut BytesMut,
    ) {
        let _ = (context, compression, out);
        todo!()
    }

    /// As [`Response::encode`], but leaves the bulk of an uncompressed result set where it is: what is returned must
    /// be sent right after what was appended to `out`. It is empty for every small response.
    #[must_use = "the frame is incomplete without these bytes"]
    pub fn encode_parts(
        &self,
        context: &ResponseContext,
        compression: Option<Compression>,
        out: &mut BytesMut,
    ) -> Bytes {
        let _ = (context, compression, out);
        todo!()
    }

    /// Reads the response that a frame holds, as a client does.
    ///
    /// # Errors
    /// If the body is malformed or would be longer than `body_limit` bytes when decompressed.
    pub fn decode(
        frame: &Frame,
        compression: Option<Compression>,
        body_limit: usize,
    ) -> Result<(ResponseContext, Response), DecodeError> {
        let _ = (frame, compression, body_limit);
        todo!()
    }
}

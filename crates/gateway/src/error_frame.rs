//! The frame of an error by which the gateway itself answers.

use bytes::{Bytes, BytesMut};
use cql::error::CqlError;
use cql::wire::{ProtocolVersion, Response, ResponseContext};

/// Encodes an error response, never compressed: the client may not know yet which compression was
/// agreed on.
pub(crate) fn error_frame(version: ProtocolVersion, stream: i16, error: CqlError) -> Bytes {
    let mut frame = BytesMut::new();
    let context = ResponseContext::new(stream).at(version);
    Response::Error(error).encode(&context, None, &mut frame);
    frame.freeze()
}

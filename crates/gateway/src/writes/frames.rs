//! Frames of errands.

use bytes::{Bytes, BytesMut};
use cql::error::CqlError;
use cql::wire::{Compression, Flags, HEADER_LENGTH, Request, Response, ResponseContext};

/// How Cassandra's warning of a batch beyond `batch_size_warn_threshold` begins.
const SIZE_WARNING: &str = "Batch for [";

/// A request as a frame with these flags and a custom payload as it came.
pub(super) fn encode(request: &Request, stream: i16, flags: Flags, payload: &[u8]) -> Bytes {
    const FLAGS_AT: usize = 1;
    const LENGTH_AT: usize = 5;
    let mut plain = BytesMut::new();
    request.encode(stream, None, &mut plain);
    let mut frame = BytesMut::with_capacity(plain.len() + payload.len());
    frame.extend_from_slice(&plain[..HEADER_LENGTH]);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&plain[HEADER_LENGTH..]);
    let length = u32::try_from(frame.len() - HEADER_LENGTH).expect("bug: a frame beyond 4 GiB");
    frame[FLAGS_AT] = flags.0;
    frame[LENGTH_AT..HEADER_LENGTH].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}

/// The answer to a statement that went as a batch, without the warning that it would not have had alone; `None` if it has none.
pub(super) fn without_size_warning(
    mut context: ResponseContext,
    response: &Response,
    compression: Option<Compression>,
) -> Option<Bytes> {
    let given = context.warnings.len();
    context
        .warnings
        .retain(|warning| !warning.starts_with(SIZE_WARNING));
    if context.warnings.len() == given {
        return None;
    }
    let mut frame = BytesMut::new();
    response.encode(&context, compression, &mut frame);
    Some(frame.freeze())
}

/// An error as a frame.
pub(super) fn error_frame(stream: i16, error: CqlError) -> Bytes {
    let mut frame = BytesMut::new();
    Response::Error(error).encode(&ResponseContext::new(stream), None, &mut frame);
    frame.freeze()
}

//! Encoding of the frames that executions send.

use bytes::{Bytes, BytesMut};
use cql::wire::{
    Compression, FrameFlags, HEADER_LENGTH, ProtocolVersion, Request, Response, ResponseContext,
};

/// The beginning of Cassandra's warning of a batch beyond `batch_size_warn_threshold`.
const SIZE_WARNING: &str = "Batch for [";

/// Encodes a request with these flags and this custom payload, which comes in its encoded form.
pub(super) fn encode(
    request: &Request,
    version: ProtocolVersion,
    stream: i16,
    flags: FrameFlags,
    payload: &[u8],
) -> Bytes {
    const FLAGS_AT: usize = 1;
    const LENGTH_AT: usize = 5;
    let mut plain = BytesMut::new();
    request.encode_in(version, stream, None, &mut plain);
    let mut frame = BytesMut::with_capacity(plain.len() + payload.len());
    frame.extend_from_slice(&plain[..HEADER_LENGTH]);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&plain[HEADER_LENGTH..]);
    let length = u32::try_from(frame.len() - HEADER_LENGTH).expect("bug: a frame beyond 4 GiB");
    frame[FLAGS_AT] = flags.0;
    frame[LENGTH_AT..HEADER_LENGTH].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}

/// The answer to a statement that went as a batch, without the warning of the batch's size, which
/// the statement by itself would not have caused. `None` if the answer has no such warning.
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

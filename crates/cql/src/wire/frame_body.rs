//! The bodies of frames: compression, and the length in the header.

use bytes::{Bytes, BytesMut};

use super::compression::Compression;
use super::frame::Frame;
use super::header::{FrameFlags, FrameHeader, HEADER_LENGTH, Opcode, ProtocolVersion};
use super::reader::DecodeError;

/// The shortest body that is compressed, in bytes. For shorter ones it costs more than it saves.
const COMPRESSED_BODY_MIN: usize = 512;

/// The plain body of a frame: decompressed if the header says that it is compressed. Those of
/// version 5 never are.
pub(super) fn plain_body(
    frame: &Frame,
    compression: Option<Compression>,
    body_limit: usize,
) -> Result<Bytes, DecodeError> {
    let may_be_compressed = frame.header.version == ProtocolVersion::V4;
    if !may_be_compressed || !frame.header.flags.contains(FrameFlags::COMPRESSION) {
        return Ok(frame.body.clone());
    }
    match compression {
        Some(algorithm) => algorithm.decompress(&frame.body, body_limit),
        None => Err(DecodeError::invalid(
            "the frame is compressed, but STARTUP agreed on no compression",
        )),
    }
}

/// A frame that is being written. It begins with room for its header; the bytes appended after that
/// are its body.
#[must_use]
pub(super) struct FrameStart {
    version: ProtocolVersion,
    opcode: Opcode,
    stream: i16,
    /// The offset of the frame in the buffer.
    at: usize,
}

impl FrameStart {
    /// Begins a frame at the end of `out`.
    pub(super) fn new(
        version: ProtocolVersion,
        opcode: Opcode,
        stream: i16,
        out: &mut BytesMut,
    ) -> Self {
        let at = out.len();
        out.resize(at + HEADER_LENGTH, 0);
        FrameStart {
            version,
            opcode,
            stream,
            at,
        }
    }

    /// The length of the body so far, in bytes.
    pub(super) fn body_length(&self, out: &BytesMut) -> usize {
        out.len() - self.at - HEADER_LENGTH
    }

    /// Removes the whole frame from the buffer.
    pub(super) fn abandon(self, out: &mut BytesMut) {
        out.truncate(self.at);
    }

    /// Ends the frame. Compresses its body if that makes it shorter and the version allows it.
    pub(super) fn finish(
        self,
        mut flags: FrameFlags,
        compression: Option<Compression>,
        out: &mut BytesMut,
    ) {
        if let Some(algorithm) = compression
            && self.version == ProtocolVersion::V4
            && self.body_length(out) >= COMPRESSED_BODY_MIN
        {
            let body_at = self.at + HEADER_LENGTH;
            let compressed = algorithm.compress(&out[body_at..]);
            if compressed.len() < out.len() - body_at {
                out.truncate(body_at);
                out.extend_from_slice(&compressed);
                flags = flags.with(FrameFlags::COMPRESSION);
            }
        }
        self.finish_parts(flags, 0, out);
    }

    /// Ends the frame without compression. `more` bytes of its body are not in `out` and will be
    /// sent after it.
    pub(super) fn finish_parts(self, flags: FrameFlags, more: usize, out: &mut BytesMut) {
        let length = self.body_length(out) + more;
        let header = FrameHeader {
            version: self.version,
            flags,
            stream: self.stream,
            opcode: self.opcode,
            length: u32::try_from(length).expect("bug: a frame beyond 4 GiB"),
        };
        out[self.at..self.at + HEADER_LENGTH].copy_from_slice(&header.to_bytes());
    }
}

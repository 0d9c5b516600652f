//! What is between a frame and the message in it: the length in the header, and compression.

use bytes::{Bytes, BytesMut};

use super::compression::Compression;
use super::frame::Frame;
use super::header::{Flags, FrameHeader, HEADER_LENGTH, Opcode};
use super::reader::DecodeError;

/// Shorter bodies are sent as they are: compressing them costs more than it saves.
const COMPRESSED_BODY_MIN: usize = 512;

/// The body of a frame, decompressed if its header says that it is compressed.
pub(super) fn plain_body(
    frame: &Frame,
    compression: Option<Compression>,
    body_limit: usize,
) -> Result<Bytes, DecodeError> {
    if !frame.header.flags.contains(Flags::COMPRESSION) {
        return Ok(frame.body.clone());
    }
    match compression {
        Some(algorithm) => algorithm.decompress(&frame.body, body_limit),
        None => Err(DecodeError::invalid(
            "the frame is compressed, but STARTUP agreed on no compression",
        )),
    }
}

/// A frame that is being written: room for its header, then whatever is appended until it is finished.
#[must_use]
pub(super) struct FrameStart {
    opcode: Opcode,
    stream: i16,
    at: usize,
}

impl FrameStart {
    /// Begins a frame at the end of `out`.
    pub(super) fn new(opcode: Opcode, stream: i16, out: &mut BytesMut) -> Self {
        let at = out.len();
        out.resize(at + HEADER_LENGTH, 0);
        FrameStart { opcode, stream, at }
    }

    /// Bytes of the body so far.
    pub(super) fn body_length(&self, out: &BytesMut) -> usize {
        out.len() - self.at - HEADER_LENGTH
    }

    /// Takes back the whole frame.
    pub(super) fn abandon(self, out: &mut BytesMut) {
        out.truncate(self.at);
    }

    /// Ends the frame; the body is compressed if that makes it shorter.
    pub(super) fn finish(
        self,
        mut flags: Flags,
        compression: Option<Compression>,
        out: &mut BytesMut,
    ) {
        if let Some(algorithm) = compression
            && self.body_length(out) >= COMPRESSED_BODY_MIN
        {
            let body_at = self.at + HEADER_LENGTH;
            let compressed = algorithm.compress(&out[body_at..]);
            if compressed.len() < out.len() - body_at {
                out.truncate(body_at);
                out.extend_from_slice(&compressed);
                flags = flags.with(Flags::COMPRESSION);
            }
        }
        self.finish_parts(flags, 0, out);
    }

    /// Ends the frame as it is, with `more` bytes of its body to be sent after `out`.
    pub(super) fn finish_parts(self, flags: Flags, more: usize, out: &mut BytesMut) {
        let length = self.body_length(out) + more;
        let header = FrameHeader {
            flags,
            stream: self.stream,
            opcode: self.opcode,
            length: u32::try_from(length).expect("bug: a frame beyond 4 GiB"),
        };
        out[self.at..self.at + HEADER_LENGTH].copy_from_slice(&header.to_bytes());
    }
}

//! Cutting a byte stream into frames.
//!
//! [`FrameDecoder`] holds the little state that lies between two reads of a socket, so it works under
//! any runtime: append what was read to a buffer, then call [`FrameDecoder::decode`] until it asks for more.

use bytes::{Bytes, BytesMut};

use super::header::{Direction, FrameHeader};
use crate::error::CqlError;

/// The default limit of a frame's body, sent or decompressed, in bytes: the protocol's own.
pub const DEFAULT_BODY_LIMIT: usize = 256 << 20;

/// A frame as it came, its body still compressed if [`super::Flags::COMPRESSION`] is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The header.
    pub header: FrameHeader,
    /// As many bytes as the header says.
    pub body: Bytes,
}

/// Why the next frame cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Another protocol version. Drivers read "unsupported protocol version" in this sentence, and go down to the
    /// greatest version that it names.
    #[error(
        "Invalid or unsupported protocol version ({version}); the lowest supported version is 4 and the greatest is 4"
    )]
    UnsupportedVersion {
        /// The version asked for.
        version: u8,
        /// The stream to answer on.
        stream: i16,
    },
    /// A response came where a request must come, or the other way round.
    #[error(
        "Wrong protocol direction for opcode {opcode:#04x} in a frame of version byte {version_byte:#04x}"
    )]
    WrongDirection {
        /// The first byte of the frame.
        version_byte: u8,
        /// The opcode, known or not.
        opcode: u8,
        /// The stream to answer on.
        stream: i16,
    },
    /// The protocol has no such opcode.
    #[error("Unknown opcode {opcode:#04x}")]
    UnknownOpcode {
        /// The opcode that came.
        opcode: u8,
        /// The stream to answer on.
        stream: i16,
    },
    /// The length has its sign bit set, so where the next frame begins is unknown.
    #[error("Invalid frame body length {length}")]
    NegativeLength {
        /// The length that came.
        length: i32,
        /// The stream to answer on.
        stream: i16,
    },
    /// The body is longer than this server takes.
    #[error("Request is too big: length {length} exceeds maximum allowed length {limit}")]
    TooLarge {
        /// Bytes of the body.
        length: u32,
        /// The limit in bytes.
        limit: usize,
        /// The stream to answer on.
        stream: i16,
    },
}

impl FrameError {
    /// The stream id that the answer must carry.
    pub fn stream(&self) -> i16 {
        match self {
            FrameError::UnsupportedVersion { stream, .. }
            | FrameError::WrongDirection { stream, .. }
            | FrameError::UnknownOpcode { stream, .. }
            | FrameError::NegativeLength { stream, .. }
            | FrameError::TooLarge { stream, .. } => *stream,
        }
    }

    /// Whether the connection must be closed once the error is sent. If not, the decoder skips the frame.
    pub fn is_fatal(&self) -> bool {
        match self {
            FrameError::UnsupportedVersion { .. }
            | FrameError::WrongDirection { .. }
            | FrameError::NegativeLength { .. } => true,
            FrameError::UnknownOpcode { .. } | FrameError::TooLarge { .. } => false,
        }
    }
}

impl From<FrameError> for CqlError {
    /// The error to send: a frame too large is the request's fault, all else the protocol's.
    fn from(error: FrameError) -> CqlError {
        match error {
            FrameError::TooLarge { .. } => CqlError::invalid(error.to_string()),
            _ => CqlError::protocol(error.to_string()),
        }
    }
}

/// Cuts the bytes of one direction of a connection into frames.
#[derive(Debug)]
pub struct FrameDecoder {
    direction: Direction,
    body_limit: usize,
}

impl FrameDecoder {
    /// A decoder of the frames that come in `direction` ([`Direction::Request`] in a server), which
    /// refuses bodies above `body_limit` bytes.
    pub fn new(direction: Direction, body_limit: usize) -> Self {
        FrameDecoder {
            direction,
            body_limit,
        }
    }

    /// Takes the next frame off the front of `input`; `None` if more bytes are needed.
    ///
    /// # Errors
    /// After an error that is not fatal ([`FrameError::is_fatal`]) the bad frame's body is skipped as it
    /// comes, without being kept, and decoding goes on; after a fatal one every call gives that error again.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let _ = (input, self.direction, self.body_limit);
        todo!()
    }
}

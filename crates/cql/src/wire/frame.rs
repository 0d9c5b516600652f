//! Cutting a byte stream into frames.
//!
//! [`FrameDecoder`] does no I/O, so it works under any runtime: append the bytes read from a socket
//! to a buffer, then call [`FrameDecoder::decode`] until it returns `None`.

use bytes::{Buf, Bytes, BytesMut};

use super::buffer::BufferMemory;
use super::header::{
    FrameDirection, FrameFlags, FrameHeader, HEADER_LENGTH, Opcode, ProtocolVersion, RESPONSE_BIT,
    VERSION_BITS,
};
use crate::error::CqlError;
use crate::secret;

/// The default limit of a frame's body in bytes, both as sent and decompressed. It is the limit of
/// the protocol.
pub const DEFAULT_BODY_LIMIT: usize = 256 << 20;

/// A frame as it came. Its body is still compressed if [`super::FrameFlags::COMPRESSION`] is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The header.
    pub header: FrameHeader,
    /// The body, which has the length that the header gives.
    pub body: Bytes,
}

/// The reason why a frame is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame is of another protocol version. Drivers look for "unsupported protocol version" in
    /// the message and go down to the greatest version that it names.
    ///
    /// The answer goes on stream 0. The request's own stream is unknown, as other versions of the
    /// protocol may keep it elsewhere in the header. Apache's gocql 2 goes down only if the answer
    /// comes on stream 0, and no driver minds it.
    #[error(
        "Invalid or unsupported protocol version ({version}); the lowest supported version is 4 and the greatest is 5"
    )]
    UnsupportedVersion {
        /// The version of the frame.
        version: u8,
    },
    /// The frame is of another version than those before it on the connection.
    #[error(
        "Invalid message version. Got {got} but previous messages on this connection had version {agreed}"
    )]
    MixedVersions {
        /// The version of the frame.
        got: ProtocolVersion,
        /// The version of the connection.
        agreed: ProtocolVersion,
        /// The stream to answer on.
        stream: i16,
    },
    /// A response came where a request was expected, or the other way round.
    #[error(
        "Wrong protocol direction for opcode {opcode:#04x} in a frame of version byte {version_byte:#04x}"
    )]
    WrongDirection {
        /// The first byte of the frame.
        version_byte: u8,
        /// The opcode, which may be unknown.
        opcode: u8,
        /// The stream to answer on.
        stream: i16,
    },
    /// The protocol has no such opcode, or not for this direction.
    #[error("Unknown opcode {opcode:#04x}")]
    UnknownOpcode {
        /// The opcode of the frame.
        opcode: u8,
        /// The stream to answer on.
        stream: i16,
    },
    /// The length of the body is negative, so the beginning of the next frame is unknown.
    #[error("Invalid frame body length {length}")]
    NegativeLength {
        /// The length in the header.
        length: i32,
        /// The stream to answer on.
        stream: i16,
    },
    /// The body is longer than this server takes.
    #[error("Request is too big: length {length} exceeds maximum allowed length {limit}")]
    TooLarge {
        /// The length of the body in bytes.
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
            FrameError::UnsupportedVersion { .. } => 0,
            FrameError::WrongDirection { stream, .. }
            | FrameError::MixedVersions { stream, .. }
            | FrameError::UnknownOpcode { stream, .. }
            | FrameError::NegativeLength { stream, .. }
            | FrameError::TooLarge { stream, .. } => *stream,
        }
    }

    /// Whether the connection must be closed once the error is sent. After an error that is not
    /// fatal, the decoder skips the frame.
    pub fn is_fatal(&self) -> bool {
        match self {
            FrameError::UnsupportedVersion { .. }
            | FrameError::MixedVersions { .. }
            | FrameError::WrongDirection { .. }
            | FrameError::NegativeLength { .. } => true,
            FrameError::UnknownOpcode { .. } | FrameError::TooLarge { .. } => false,
        }
    }
}

impl From<FrameError> for CqlError {
    /// The error to send: an invalid request if the frame is too large, else a protocol error.
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
    direction: FrameDirection,
    /// The longest body that is taken, in bytes.
    body_limit: usize,
    /// The version of the connection, once there is agreement on one.
    agreed: Option<ProtocolVersion>,
    /// The version in which the frame before is answered.
    answered_in: ProtocolVersion,
    /// The memory of the input.
    memory: BufferMemory,
    /// The bytes of a refused frame's body that are still to be skipped.
    to_skip: usize,
    /// The fatal error, if there was one. The bytes after it can't be read.
    failure: Option<FrameError>,
}

/// The bytes of room that are made at once while a large body comes in. It is enough for few reads,
/// and little to waste on a peer that announces a body and doesn't send it.
const READ_AHEAD: usize = 64 << 10;

/// The room after a frame whose end is in sight, so that a reader need not make more.
const SPARE: usize = 4 << 10;

/// Makes room for `more` bytes, and a little. A large buffer that grows by itself would take twice
/// its size, which may be all that a client can have.
fn make_room(input: &mut BytesMut, more: usize) {
    if input.capacity() - input.len() >= more {
        return;
    }
    if input.len() <= READ_AHEAD {
        input.reserve(more);
        return;
    }
    let mut grown = BytesMut::with_capacity(input.len() + more + SPARE);
    grown.extend_from_slice(input);
    *input = grown;
}

/// Buffers up to this many bytes may stay in memory by any frame within them.
pub(super) const SHARED_MAX: usize = 32 << 10;

impl FrameDecoder {
    /// Makes a decoder of the frames that come in `direction` ([`FrameDirection::Request`] in a
    /// server). It refuses bodies of more than `body_limit` bytes.
    pub fn new(direction: FrameDirection, body_limit: usize) -> Self {
        FrameDecoder {
            direction,
            body_limit,
            agreed: None,
            answered_in: ProtocolVersion::V4,
            memory: BufferMemory::new(SHARED_MAX),
            to_skip: 0,
            failure: None,
        }
    }

    /// Sets the limit of bodies in bytes, from the next header on.
    pub fn set_body_limit(&mut self, bytes: usize) {
        self.body_limit = bytes;
    }

    /// Refuses frames of other versions from the next header on.
    pub fn agree_on(&mut self, version: ProtocolVersion) {
        self.agreed = Some(version);
    }

    /// The version in which the frame before is answered, whether it was taken or refused: that of
    /// the connection. Before there is agreement on one it is the frame's own, or a supported one
    /// if its own is not.
    pub fn answered_in(&self) -> ProtocolVersion {
        self.answered_in
    }

    /// Whether the front of the input is within a refused frame's body.
    pub fn is_skipping(&self) -> bool {
        self.to_skip > 0
    }

    /// Takes the next frame off the front of `input`; `None` if more bytes are needed. The frame
    /// may share the memory of `input`, but neither keeps much more of it than its own bytes.
    ///
    /// # Errors
    /// If the frame is refused. After an error that is not fatal ([`FrameError::is_fatal`]) the
    /// next calls skip the body of the frame, without keeping it, and go on. After a fatal error
    /// every call returns that error.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.to_skip > 0 {
            let skipped = self.to_skip.min(input.len());
            self.memory.advance(input, skipped);
            self.to_skip -= skipped;
            if self.to_skip > 0 {
                return Ok(None);
            }
        }
        if let Some(byte) = input.first() {
            let number = byte & VERSION_BITS;
            self.answered_in = self.agreed.unwrap_or_else(|| {
                ProtocolVersion::from_number(number)
                    .unwrap_or_else(|| ProtocolVersion::nearest(number))
            });
        }
        let read = FrameHeader::read(input, self.direction, self.body_limit);
        let header = match read.and_then(|header| self.check_version(header)) {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(None),
            Err(refusal) => {
                match refusal.body_length {
                    Some(length) => {
                        input.advance(HEADER_LENGTH);
                        self.to_skip = length;
                    }
                    None => self.failure = Some(refusal.error.clone()),
                }
                return Err(refusal.error);
            }
        };
        let length = header.length as usize;
        let available = input.len() - HEADER_LENGTH;
        if available < length {
            make_room(input, (length - available).min(READ_AHEAD.max(available)));
            return Ok(None);
        }
        input.advance(HEADER_LENGTH);
        let mut body = self.memory.split_to(input, length);
        let body = match header.opcode {
            // It has a password, of which nothing stays in the buffer.
            Opcode::AuthResponse => secret::take_out(&mut body),
            _ => body.freeze(),
        };
        Ok(Some(Frame { header, body }))
    }

    /// Refuses a header of another version than the connection's.
    fn check_version(
        &self,
        header: Option<FrameHeader>,
    ) -> Result<Option<FrameHeader>, HeaderRefusal> {
        match (header, self.agreed) {
            (Some(header), Some(agreed)) if header.version != agreed => {
                Err(HeaderRefusal::fatal(FrameError::MixedVersions {
                    got: header.version,
                    agreed,
                    stream: header.stream,
                }))
            }
            (header, _) => Ok(header),
        }
    }
}

/// The refusal of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRefusal {
    /// The reason.
    pub error: FrameError,
    /// The length of the body in bytes, for skipping the frame. `None` if the error is fatal.
    pub body_length: Option<usize>,
}

impl HeaderRefusal {
    fn fatal(error: FrameError) -> Self {
        HeaderRefusal {
            error,
            body_length: None,
        }
    }
}

impl FrameHeader {
    /// Reads the header at the front of `input`; `None` if more bytes are needed. Takes nothing out
    /// of `input`, so a frame can be passed on from the memory that it came in.
    ///
    /// # Errors
    /// If the frame is refused. The caller skips it, or closes the connection if the error is
    /// fatal.
    pub fn read(
        input: &[u8],
        direction: FrameDirection,
        body_limit: usize,
    ) -> Result<Option<FrameHeader>, HeaderRefusal> {
        let Some(&version_byte) = input.first() else {
            return Ok(None);
        };
        let number = version_byte & VERSION_BITS;
        let Some(version) = ProtocolVersion::from_number(number) else {
            return Err(HeaderRefusal::fatal(FrameError::UnsupportedVersion {
                version: number,
            }));
        };
        let Some(header) = input.first_chunk::<HEADER_LENGTH>() else {
            return Ok(None);
        };
        let &[_, flags, s0, s1, code, l0, l1, l2, l3] = header;
        let stream = i16::from_be_bytes([s0, s1]);
        let came = match version_byte & RESPONSE_BIT {
            0 => FrameDirection::Request,
            _ => FrameDirection::Response,
        };
        if came != direction {
            return Err(HeaderRefusal::fatal(FrameError::WrongDirection {
                version_byte,
                opcode: code,
                stream,
            }));
        }
        let length = i32::from_be_bytes([l0, l1, l2, l3]);
        let Ok(length) = u32::try_from(length) else {
            return Err(HeaderRefusal::fatal(FrameError::NegativeLength {
                length,
                stream,
            }));
        };
        let skippable = |error| HeaderRefusal {
            error,
            body_length: Some(length as usize),
        };
        let opcode = Opcode::from_code(code)
            .filter(|opcode| opcode.direction() == direction)
            .ok_or_else(|| {
                skippable(FrameError::UnknownOpcode {
                    opcode: code,
                    stream,
                })
            })?;
        if length as usize > body_limit {
            return Err(skippable(FrameError::TooLarge {
                length,
                limit: body_limit,
                stream,
            }));
        }
        Ok(Some(FrameHeader {
            version,
            flags: FrameFlags(flags),
            stream,
            opcode,
            length,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_body_takes_little_more_than_its_length() {
        const LENGTH: usize = (4 << 20) + 1_000;
        let mut decoder = FrameDecoder::new(FrameDirection::Request, DEFAULT_BODY_LIMIT);
        let mut input = BytesMut::from(&[4, 0, 0, 1, 7][..]);
        input.extend_from_slice(&(LENGTH as u32).to_be_bytes());
        let mut left = LENGTH;
        let body = loop {
            if let Some(frame) = decoder.decode(&mut input).unwrap() {
                break frame.body;
            }
            assert!(
                input.capacity() <= LENGTH + 2 * SPARE,
                "{}",
                input.capacity()
            );
            // A reader makes room by itself where there is less.
            assert!(input.capacity() - input.len() >= SPARE.min(left), "{left}");
            let read = left.min(input.capacity() - input.len()).min(10_000);
            input.resize(input.len() + read, 7);
            left -= read;
        };
        assert_eq!(body.len(), LENGTH);
    }

    fn decoder() -> FrameDecoder {
        FrameDecoder::new(FrameDirection::Request, 100)
    }

    fn frame(opcode: u8, body: &[u8]) -> BytesMut {
        let mut bytes = BytesMut::from(&[4, 0, 0x12, 0x34, opcode, 0, 0, 0][..]);
        bytes.extend_from_slice(&[body.len() as u8]);
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn frames_come_out_whole_however_the_bytes_come_in() {
        let mut stream = frame(7, b"query");
        stream.extend_from_slice(&frame(5, b""));
        for step in 1..=stream.len() {
            let mut decoder = decoder();
            let mut input = BytesMut::new();
            let mut frames = Vec::new();
            for part in stream.chunks(step) {
                input.extend_from_slice(part);
                while let Some(frame) = decoder.decode(&mut input).unwrap() {
                    frames.push(frame);
                }
            }
            assert_eq!(frames.len(), 2);
            assert_eq!(frames[0].body, "query");
            assert_eq!(frames[0].header.stream, 0x1234);
            assert_eq!(frames[1].header.opcode, Opcode::Options);
            assert!(input.is_empty());
        }
    }

    #[test]
    fn another_version_is_answered_so_that_drivers_go_down() {
        let mut input = BytesMut::from(&[0x06, 0, 0, 7, 5, 0, 0, 0, 0][..]);
        let mut decoder = decoder();
        let error = decoder.decode(&mut input).unwrap_err();
        assert_eq!(error.stream(), 0);
        assert_eq!(decoder.answered_in(), ProtocolVersion::V5);
        assert!(error.is_fatal());
        assert_eq!(
            CqlError::from(error.clone()),
            CqlError::protocol(
                "Invalid or unsupported protocol version (6); the lowest supported version is 4 and the greatest is 5"
            )
        );
        assert_eq!(decoder.decode(&mut input), Err(error));
    }

    #[test]
    fn the_short_header_of_version_2_is_answered_too() {
        let mut input = BytesMut::from(&[0x02, 0, 9, 5, 0, 0, 0, 0][..]);
        let mut decoder = decoder();
        let error = decoder.decode(&mut input).unwrap_err();
        assert_eq!(error, FrameError::UnsupportedVersion { version: 2 });
        assert_eq!(error.stream(), 0);
        assert_eq!(decoder.answered_in(), ProtocolVersion::V4);
    }

    #[test]
    fn a_connection_keeps_the_version_that_it_began_with() {
        let mut four = frame(7, b"");
        let mut five = frame(7, b"");
        five[0] = 5;
        let mut decoder = decoder();
        for (input, version) in [
            (&mut five.clone(), ProtocolVersion::V5),
            (&mut four, ProtocolVersion::V4),
        ] {
            let taken = decoder.decode(input).unwrap().unwrap();
            assert_eq!(taken.header.version, version);
            assert_eq!(decoder.answered_in(), version);
        }
        decoder.agree_on(ProtocolVersion::V4);
        let error = decoder.decode(&mut five).unwrap_err();
        assert!(error.is_fatal());
        assert_eq!(error.stream(), 0x1234);
        assert_eq!(decoder.answered_in(), ProtocolVersion::V4);
        assert_eq!(
            error.to_string(),
            "Invalid message version. Got 5/v5 but previous messages on this connection had version 4/v4"
        );
    }

    #[test]
    fn an_unsupported_version_is_answered_in_that_of_the_connection() {
        let mut three = frame(7, b"");
        three[0] = 3;
        let mut decoder = decoder();
        decoder.agree_on(ProtocolVersion::V5);
        let error = decoder.decode(&mut three).unwrap_err();
        assert_eq!(error, FrameError::UnsupportedVersion { version: 3 });
        assert_eq!(decoder.answered_in(), ProtocolVersion::V5);
    }

    #[test]
    fn a_refused_frame_is_skipped_and_the_next_one_taken() {
        for bad in [
            frame(0x7F, b"abc"),
            frame(2, b"READY, from a client"),
            frame(7, &[0; 101]),
        ] {
            let mut stream = bad.clone();
            stream.extend_from_slice(&frame(7, b"good"));
            let mut decoder = decoder();
            let mut input = BytesMut::new();
            let mut seen = Vec::new();
            for byte in stream {
                input.extend_from_slice(&[byte]);
                match decoder.decode(&mut input) {
                    Ok(None) => {}
                    Ok(Some(frame)) => seen.push(Ok(frame.body)),
                    Err(error) => {
                        assert!(!error.is_fatal());
                        seen.push(Err(error.stream()));
                    }
                }
                assert!(input.len() < 20, "a refused body is kept");
            }
            assert_eq!(seen, vec![Err(0x1234), Ok(Bytes::from_static(b"good"))]);
        }
    }

    #[test]
    fn a_response_or_a_negative_length_ends_the_connection() {
        let mut response = frame(7, b"");
        response[0] = 0x84;
        let error = decoder().decode(&mut response).unwrap_err();
        assert!(error.is_fatal(), "{error}");

        let mut negative = frame(7, b"");
        negative[5] = 0x80;
        let error = decoder().decode(&mut negative).unwrap_err();
        assert!(error.is_fatal(), "{error}");
    }

    #[test]
    fn an_announced_body_takes_no_memory_before_it_comes() {
        let mut decoder = FrameDecoder::new(FrameDirection::Request, DEFAULT_BODY_LIMIT);
        let mut input = BytesMut::from(&[4, 0, 0, 1, 7, 0x0F, 0xFF, 0xFF, 0xFF][..]);
        assert_eq!(decoder.decode(&mut input), Ok(None));
        assert!(input.capacity() <= 2 * READ_AHEAD);
    }
}

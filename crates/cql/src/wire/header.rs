//! The header of a frame: the nine bytes before its body.
//!
//! ```text
//!  0         8        16                32       40                                 72
//!  | version | flags  | stream (signed) | opcode | length of the body, big-endian   |
//! ```
//!
//! The top bit of the version byte is set in responses. In version 5 a frame is called an envelope,
//! and after the handshake it comes within segments ([`super::SegmentDecoder`]).

use std::fmt;

/// A supported version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ProtocolVersion {
    /// Version 4. Each frame is compressed by itself.
    #[default]
    V4 = 4,
    /// Version 5. Frames come within segments, which have checksums and are compressed as a whole.
    V5 = 5,
}

impl ProtocolVersion {
    /// Every supported version, the lowest first.
    pub const EVERY: [ProtocolVersion; 2] = [ProtocolVersion::V4, ProtocolVersion::V5];

    /// The number on the wire.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Finds a version by its number; `None` if it is not supported.
    pub fn from_number(number: u8) -> Option<ProtocolVersion> {
        ProtocolVersion::EVERY
            .into_iter()
            .find(|version| version.number() == number)
    }

    /// The version in which to tell a client that it requested an unsupported one.
    pub fn nearest(number: u8) -> ProtocolVersion {
        match number > ProtocolVersion::V5.number() {
            true => ProtocolVersion::V5,
            false => ProtocolVersion::V4,
        }
    }
}

/// The form in `PROTOCOL_VERSIONS` of SUPPORTED, such as `5/v5`.
impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{0}/v{0}", self.number())
    }
}

/// The length of a frame header, in bytes.
pub const HEADER_LENGTH: usize = 9;

/// The bit of the version byte that is set in responses.
pub(super) const RESPONSE_BIT: u8 = 0x80;

/// The bits of the version byte that hold the version.
pub(super) const VERSION_BITS: u8 = 0x7F;

/// The direction in which a frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDirection {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Response,
}

/// The flags of a frame. Bits that the protocol does not define are preserved and mean nothing.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameFlags(pub u8);

impl FrameFlags {
    /// The body is compressed. In version 5 it means nothing, as segments are compressed instead.
    pub const COMPRESSION: FrameFlags = FrameFlags(0x01);
    /// A request enables tracing. The body of a response begins with the id of the trace.
    pub const TRACING: FrameFlags = FrameFlags(0x02);
    /// The body has a custom payload, a map of names to bytes, before its content.
    pub const CUSTOM_PAYLOAD: FrameFlags = FrameFlags(0x04);
    /// The body of a response has warnings before its content.
    pub const WARNING: FrameFlags = FrameFlags(0x08);
    /// The client agrees to a beta version of the protocol.
    pub const USE_BETA: FrameFlags = FrameFlags(0x10);

    /// Whether every bit of `other` is set.
    pub fn contains(self, other: FrameFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these flags with the bits of `other` set too.
    #[must_use]
    pub fn with(self, other: FrameFlags) -> FrameFlags {
        FrameFlags(self.0 | other.0)
    }
}

impl fmt::Debug for FrameFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags({:#04x})", self.0)
    }
}

/// The kind of message that a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(
    missing_docs,
    reason = "each variant is one message, which `Request` or `Response` documents"
)]
pub enum Opcode {
    Error = 0x00,
    Startup = 0x01,
    Ready = 0x02,
    Authenticate = 0x03,
    Options = 0x05,
    Supported = 0x06,
    Query = 0x07,
    Result = 0x08,
    Prepare = 0x09,
    Execute = 0x0A,
    Register = 0x0B,
    Event = 0x0C,
    Batch = 0x0D,
    AuthChallenge = 0x0E,
    AuthResponse = 0x0F,
    AuthSuccess = 0x10,
}

impl Opcode {
    /// The code on the wire.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Finds an opcode by its code; `None` if the code is unknown.
    pub fn from_code(code: u8) -> Option<Opcode> {
        Some(match code {
            0x00 => Opcode::Error,
            0x01 => Opcode::Startup,
            0x02 => Opcode::Ready,
            0x03 => Opcode::Authenticate,
            0x05 => Opcode::Options,
            0x06 => Opcode::Supported,
            0x07 => Opcode::Query,
            0x08 => Opcode::Result,
            0x09 => Opcode::Prepare,
            0x0A => Opcode::Execute,
            0x0B => Opcode::Register,
            0x0C => Opcode::Event,
            0x0D => Opcode::Batch,
            0x0E => Opcode::AuthChallenge,
            0x0F => Opcode::AuthResponse,
            0x10 => Opcode::AuthSuccess,
            _ => return None,
        })
    }

    /// The direction in which frames of this opcode are sent.
    pub fn direction(self) -> FrameDirection {
        match self {
            Opcode::Startup
            | Opcode::Options
            | Opcode::Query
            | Opcode::Prepare
            | Opcode::Execute
            | Opcode::Register
            | Opcode::Batch
            | Opcode::AuthResponse => FrameDirection::Request,
            Opcode::Error
            | Opcode::Ready
            | Opcode::Authenticate
            | Opcode::Supported
            | Opcode::Result
            | Opcode::Event
            | Opcode::AuthChallenge
            | Opcode::AuthSuccess => FrameDirection::Response,
        }
    }
}

/// A frame header. The direction is the opcode's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The version of the protocol that the message is written in.
    pub version: ProtocolVersion,
    /// The flags of the frame.
    pub flags: FrameFlags,
    /// The stream, which a response has in common with its request; -1 in an event.
    pub stream: i16,
    /// The kind of message in the body.
    pub opcode: Opcode,
    /// The length of the body as sent, in bytes: of the compressed body if it is compressed.
    pub length: u32,
}

impl FrameHeader {
    /// Writes the header's nine bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_LENGTH] {
        let direction = match self.opcode.direction() {
            FrameDirection::Request => 0,
            FrameDirection::Response => RESPONSE_BIT,
        };
        let [s0, s1] = self.stream.to_be_bytes();
        let [l0, l1, l2, l3] = self.length.to_be_bytes();
        [
            self.version.number() | direction,
            self.flags.0,
            s0,
            s1,
            self.opcode.code(),
            l0,
            l1,
            l2,
            l3,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_lead_back() {
        let known = (0..=u8::MAX).filter_map(|code| Some((code, Opcode::from_code(code)?)));
        assert!(known.clone().all(|(code, opcode)| opcode.code() == code));
        assert_eq!(known.count(), 16);
    }

    #[test]
    fn versions_lead_back() {
        for version in ProtocolVersion::EVERY {
            assert_eq!(
                ProtocolVersion::from_number(version.number()),
                Some(version)
            );
        }
        assert_eq!(ProtocolVersion::from_number(3), None);
        assert_eq!(ProtocolVersion::from_number(6), None);
        assert_eq!(ProtocolVersion::V5.to_string(), "5/v5");
    }

    #[test]
    fn the_direction_is_the_top_bit() {
        let mut header = FrameHeader {
            version: ProtocolVersion::V4,
            flags: FrameFlags::COMPRESSION.with(FrameFlags::WARNING),
            stream: -2,
            opcode: Opcode::Result,
            length: 0x0102_0304,
        };
        assert_eq!(
            header.to_bytes(),
            [0x84, 0x09, 0xFF, 0xFE, 0x08, 1, 2, 3, 4]
        );
        header.opcode = Opcode::Query;
        assert_eq!(header.to_bytes()[0], 0x04);
        header.version = ProtocolVersion::V5;
        assert_eq!(header.to_bytes()[0], 0x05);
    }
}

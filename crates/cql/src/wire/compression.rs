//! Compression of frame bodies.
//!
//! - LZ4: the length of the plain body in four big-endian bytes, then one raw LZ4 block.
//! - Snappy: one raw Snappy block, which begins with its own length.
//!
//! Both state the plain length first, so a few bytes could ask for gigabytes: the stated length is held
//! against the limit and against what the format can express before anything is allocated.

use bytes::Bytes;

use super::primitives::DecodeError;

/// A compression algorithm that both sides know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `lz4` in STARTUP.
    Lz4,
    /// `snappy` in STARTUP.
    Snappy,
}

impl Compression {
    /// Every algorithm, the preferred first.
    pub const EVERY: [Compression; 2] = [Compression::Lz4, Compression::Snappy];

    /// The name in STARTUP and SUPPORTED.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Lz4 => "lz4",
            Compression::Snappy => "snappy",
        }
    }

    /// The algorithm of a name, in any case.
    pub fn from_name(name: &str) -> Option<Compression> {
        Compression::EVERY
            .into_iter()
            .find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }

    /// The compressed form of a body.
    pub fn compress(self, plain: &[u8]) -> Bytes {
        let _ = plain;
        todo!()
    }

    /// The plain form of a compressed body.
    ///
    /// # Errors
    /// If the plain form would be longer than `limit` bytes, or `compressed` is no such block.
    pub fn decompress(self, compressed: &[u8], limit: usize) -> Result<Bytes, DecodeError> {
        let _ = (compressed, limit);
        todo!()
    }
}

//! Compression of frame bodies.
//!
//! - LZ4: the length of the plain body in four big-endian bytes, then one raw LZ4 block.
//! - Snappy: one raw Snappy block, which begins with its own length.
//!
//! Both state the plain length first, so a few bytes could request gigabytes. Before anything is
//! allocated, the stated length is checked against the limit, and against the most that a block of
//! the size can hold.

use bytes::Bytes;

use super::reader::DecodeError;

/// The bytes of the stated length before an LZ4 block.
const LZ4_PREFIX: usize = 4;

/// The most plain bytes for one byte of an LZ4 block: one byte of a match's length means up to 255
/// bytes.
const LZ4_RATIO_MAX: usize = 255;

/// The most plain bytes for one byte of a Snappy block, rounded up: a copy of 64 bytes takes 3
/// bytes.
const SNAPPY_RATIO_MAX: usize = 22;

/// A compression algorithm of the protocol.
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

    /// Finds an algorithm by its name, in upper or lower case.
    pub fn from_name(name: &str) -> Option<Compression> {
        Compression::EVERY
            .into_iter()
            .find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }

    /// Compresses a body.
    pub fn compress(self, plain: &[u8]) -> Vec<u8> {
        match self {
            Compression::Lz4 => {
                let room = lz4_flex::block::get_maximum_output_size(plain.len());
                let mut out = vec![0; LZ4_PREFIX + room];
                // A body is below 2 GiB: a longer one is refused before.
                let stated = u32::try_from(plain.len()).unwrap_or(u32::MAX);
                out[..LZ4_PREFIX].copy_from_slice(&stated.to_be_bytes());
                let written = lz4_flex::block::compress_into(plain, &mut out[LZ4_PREFIX..])
                    .expect("bug: an LZ4 block larger than the largest");
                out.truncate(LZ4_PREFIX + written);
                out
            }
            Compression::Snappy => snap::raw::Encoder::new()
                .compress_vec(plain)
                .expect("bug: a body too large for Snappy, whose blocks go to 4 GiB"),
        }
    }

    /// Decompresses a body.
    ///
    /// # Errors
    /// If the plain body would be longer than `limit` bytes, or `compressed` is malformed.
    pub fn decompress(self, compressed: &[u8], limit: usize) -> Result<Bytes, DecodeError> {
        match self {
            Compression::Lz4 => {
                let Some((stated, block)) = compressed.split_first_chunk::<LZ4_PREFIX>() else {
                    return Err(DecodeError::Truncated("the length of an LZ4 block"));
                };
                let stated = u32::from_be_bytes(*stated) as usize;
                self.check_stated(stated, block.len(), LZ4_RATIO_MAX, limit)?;
                if stated == 0 {
                    return Ok(Bytes::new());
                }
                let plain = lz4_flex::block::decompress(block, stated)
                    .map_err(|error| self.malformed(error))?;
                self.finish(plain, stated)
            }
            Compression::Snappy => {
                let stated =
                    snap::raw::decompress_len(compressed).map_err(|error| self.malformed(error))?;
                self.check_stated(stated, compressed.len(), SNAPPY_RATIO_MAX, limit)?;
                let plain = snap::raw::Decoder::new()
                    .decompress_vec(compressed)
                    .map_err(|error| self.malformed(error))?;
                self.finish(plain, stated)
            }
        }
    }

    /// Refuses a stated length that is above `limit`, or more than `compressed` bytes can hold.
    fn check_stated(
        self,
        stated: usize,
        compressed: usize,
        ratio_max: usize,
        limit: usize,
    ) -> Result<(), DecodeError> {
        if stated > limit {
            return Err(DecodeError::TooLarge {
                length: stated,
                limit,
            });
        }
        if stated > compressed.saturating_mul(ratio_max) {
            return Err(self.malformed(format_args!(
                "{compressed} bytes cannot hold {stated} bytes"
            )));
        }
        Ok(())
    }

    fn finish(self, plain: Vec<u8>, stated: usize) -> Result<Bytes, DecodeError> {
        if plain.len() == stated {
            Ok(Bytes::from(plain))
        } else {
            Err(self.malformed(format_args!(
                "it holds {} bytes instead of {stated}",
                plain.len()
            )))
        }
    }

    fn malformed(self, why: impl std::fmt::Display) -> DecodeError {
        DecodeError::Invalid(format!("malformed {} body: {why}", self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_lead_back() {
        let bodies = [
            Vec::new(),
            b"a".to_vec(),
            b"abcabcabcabcabcabcabcabcabcabc".to_vec(),
            vec![7; 1 << 20],
            (0..100_000u32)
                .flat_map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes())
                .collect(),
        ];
        for algorithm in Compression::EVERY {
            for body in &bodies {
                let compressed = algorithm.compress(body);
                assert_eq!(
                    algorithm.decompress(&compressed, body.len()).as_deref(),
                    Ok(&body[..]),
                    "{algorithm:?} {}",
                    body.len()
                );
            }
        }
    }

    #[test]
    fn the_best_ratio_of_each_format_is_within_the_bound() {
        let zeros = vec![0; 16 << 20];
        for algorithm in Compression::EVERY {
            let compressed = algorithm.compress(&zeros);
            assert!(algorithm.decompress(&compressed, zeros.len()).is_ok());
            assert!(algorithm.decompress(&compressed, zeros.len() - 1).is_err());
        }
    }

    #[test]
    fn a_lying_length_is_refused() {
        let mut lz4 = Compression::Lz4.compress(b"hello, hello, hello");
        for lie in [0u32, 18, 20, 4_000, 1 << 27, u32::MAX] {
            lz4[..4].copy_from_slice(&lie.to_be_bytes());
            let answer = Compression::Lz4.decompress(&lz4, 256 << 20);
            match lie {
                0 => assert_eq!(answer.as_deref(), Ok(&[][..])),
                _ => assert!(answer.is_err(), "{lie}"),
            }
        }
        for lie in [&[0xFF, 0xFF, 0xFF, 0x7F][..], &[0xFF; 5], &[0xFF; 10], &[]] {
            assert!(Compression::Snappy.decompress(lie, 256 << 20).is_err());
        }
    }

    #[test]
    fn names_are_known_in_any_case() {
        assert_eq!(Compression::from_name("LZ4"), Some(Compression::Lz4));
        assert_eq!(Compression::from_name("snappy"), Some(Compression::Snappy));
        assert_eq!(Compression::from_name("zstd"), None);
    }
}

//! Bytes of objects: a header, and the content, compressed or not, encrypted or not.
//!
//! ```text
//! "ANLC"  4 bytes
//! format  1 byte, 1
//! flags   1 byte, 1 for Zstandard, 2 for AES-256-GCM
//! zeros   2 bytes
//! length  8 bytes, of the plain content, little endian
//! nonce   12 bytes, if encrypted; else the first 8 bytes of SHA-256 of all other bytes
//! content with the tag of 16 bytes, if encrypted
//! ```
//!
//! An encrypted content is bound to the header and to the object's name.

use aws_lc_rs::aead::NONCE_LEN;

use crate::error::BackupError;
use crate::key::{ChunkDigest, VaultKey, sha256};
use crate::location::ChunkCompression;

/// Bytes of files in one chunk at most. Eight chunks in flight bound the memory of a transfer.
pub const CHUNK_BYTES: u64 = 8 << 20;

const MAGIC: [u8; 4] = *b"ANLC";
const FORMAT: u8 = 1;
const FLAG_ZSTD: u8 = 1;
const FLAG_ENCRYPTED: u8 = 2;
const HEADER_BYTES: usize = 16;
const CHECK_BYTES: usize = 8;

/// Bytes of the shortest object with a header.
pub const OBJECT_BYTES_MIN: u64 = (HEADER_BYTES + CHECK_BYTES) as u64;

/// Bytes that an object has besides its content, at most: compression makes none longer.
const OVERHEAD_BYTES: u64 = (HEADER_BYTES + NONCE_LEN) as u64 + 16;

/// Bytes of the longest object with so many bytes of content.
pub fn object_bytes_max(content: u64) -> u64 {
    content.saturating_add(OVERHEAD_BYTES)
}

/// The level of Zstandard: the least work, as the machine serves queries meanwhile.
const LEVEL: i32 = 1;

/// Makes objects of contents and reads them back, as the options of a location say.
#[derive(Debug)]
pub struct ChunkCodec {
    key: Option<VaultKey>,
    compression: ChunkCompression,
}

impl ChunkCodec {
    /// Contents are encrypted if there is a key.
    pub fn new(key: Option<VaultKey>, compression: ChunkCompression) -> ChunkCodec {
        ChunkCodec { key, compression }
    }

    /// The key.
    pub fn key(&self) -> Option<&VaultKey> {
        self.key.as_ref()
    }

    /// The digest that a content is named by.
    pub fn digest(&self, content: &[u8]) -> ChunkDigest {
        match &self.key {
            Some(key) => key.digest(content),
            None => sha256(content),
        }
    }

    /// Makes the bytes of the object with such a name.
    pub fn encode(&self, name: &str, content: Vec<u8>) -> Result<Vec<u8>, BackupError> {
        let length = content.len() as u64;
        let mut flags = 0;
        let mut body = content;
        if self.compression == ChunkCompression::Zstd
            && let Ok(smaller) = zstd::bulk::compress(&body, LEVEL)
            && smaller.len() < body.len()
        {
            flags |= FLAG_ZSTD;
            body = smaller;
        }
        if self.key.is_some() {
            flags |= FLAG_ENCRYPTED;
        }
        let header = header(flags, length);
        let mut object = Vec::with_capacity(HEADER_BYTES + NONCE_LEN + body.len() + 16);
        object.extend_from_slice(&header);
        match &self.key {
            Some(key) => object.extend_from_slice(&key.seal(&bound(&header, name), &mut body)?),
            None => object.extend_from_slice(&check(&header, &body)),
        }
        object.extend_from_slice(&body);
        Ok(object)
    }

    /// Reads the content of an object. `length_max` bounds the plain content.
    ///
    /// The error says in words how the object is damaged.
    pub fn decode(&self, name: &str, object: &[u8], length_max: u64) -> Result<Vec<u8>, String> {
        let Some((header, rest)) = object.split_first_chunk::<HEADER_BYTES>() else {
            return Err(format!("it has only {} bytes", object.len()));
        };
        let (flags, length) = read_header(header)?;
        if length > length_max {
            return Err(format!(
                "its length of {length} bytes is not that of the manifest"
            ));
        }
        let is_encrypted = flags & FLAG_ENCRYPTED != 0;
        let mut body = match (&self.key, is_encrypted) {
            (Some(key), true) => opened(key, header, name, rest)?,
            (None, false) => checked(header, rest)?,
            (None, true) => return Err("it is encrypted".to_owned()),
            (Some(_), false) => return Err("it is not encrypted".to_owned()),
        };
        if flags & FLAG_ZSTD != 0 {
            let capacity = usize::try_from(length).map_err(|error| error.to_string())?;
            body = zstd::bulk::decompress(&body, capacity)
                .map_err(|error| format!("it can't be decompressed: {error}"))?;
        }
        if body.len() as u64 != length {
            return Err(format!("it has {} bytes instead of {length}", body.len()));
        }
        Ok(body)
    }
}

fn header(flags: u8, length: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&MAGIC);
    header[4] = FORMAT;
    header[5] = flags;
    header[8..].copy_from_slice(&length.to_le_bytes());
    header
}

/// The flags and the length of a header.
fn read_header(header: &[u8; HEADER_BYTES]) -> Result<(u8, u64), String> {
    if header[..4] != MAGIC {
        return Err("it does not begin as an object of a backup does".to_owned());
    }
    if header[4] != FORMAT {
        return Err(format!(
            "its format {} is not known to this version",
            header[4]
        ));
    }
    let flags = header[5];
    if flags & !(FLAG_ZSTD | FLAG_ENCRYPTED) != 0 || header[6..8] != [0, 0] {
        return Err("its header is not one of this format".to_owned());
    }
    let mut length = [0; 8];
    length.copy_from_slice(&header[8..]);
    Ok((flags, u64::from_le_bytes(length)))
}

fn bound(header: &[u8], name: &str) -> Vec<u8> {
    [header, name.as_bytes()].concat()
}

fn check(header: &[u8], body: &[u8]) -> [u8; CHECK_BYTES] {
    let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    context.update(header);
    context.update(body);
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&context.finish().as_ref()[..CHECK_BYTES]);
    check
}

fn checked(header: &[u8], rest: &[u8]) -> Result<Vec<u8>, String> {
    match rest.split_first_chunk::<CHECK_BYTES>() {
        Some((expected, body)) if check(header, body) == *expected => Ok(body.to_vec()),
        Some(_) => Err("its checksum is wrong".to_owned()),
        None => Err("it is cut off".to_owned()),
    }
}

fn opened(key: &VaultKey, header: &[u8], name: &str, rest: &[u8]) -> Result<Vec<u8>, String> {
    let Some((nonce, sealed)) = rest.split_first_chunk::<NONCE_LEN>() else {
        return Err("it is cut off".to_owned());
    };
    let mut sealed = sealed.to_vec();
    let opened = key.open(nonce, &bound(header, name), &mut sealed);
    let length = opened.map(<[u8]>::len);
    let length = length.ok_or("it can't be decrypted: it is damaged, or has another key")?;
    sealed.truncate(length);
    Ok(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codecs() -> Vec<ChunkCodec> {
        let key = || Some(VaultKey::of_secret(&[1; 32]).unwrap());
        let mut codecs = Vec::new();
        for compression in [ChunkCompression::None, ChunkCompression::Zstd] {
            codecs.push(ChunkCodec::new(None, compression));
            codecs.push(ChunkCodec::new(key(), compression));
        }
        codecs
    }

    #[test]
    fn contents_come_back() {
        for codec in codecs() {
            for content in [Vec::new(), vec![1; 5_000], (0..=255).collect()] {
                let length = content.len() as u64;
                let object = codec.encode("name", content.clone()).unwrap();
                assert!(object.len() as u64 <= object_bytes_max(length));
                assert_eq!(codec.decode("name", &object, 5_000).unwrap(), content);
            }
        }
    }

    #[test]
    fn compression_makes_objects_smaller_where_it_can() {
        let codec = ChunkCodec::new(None, ChunkCompression::Zstd);
        assert!(codec.encode("name", vec![1; 5_000]).unwrap().len() < 200);
        let short = codec.encode("name", vec![1]).unwrap();
        assert_eq!(short.len() as u64, OBJECT_BYTES_MIN + 1);
    }

    #[test]
    fn any_flipped_bit_is_damage() {
        for codec in codecs() {
            let object = codec.encode("name", b"some content".repeat(3)).unwrap();
            for at in 0..object.len() {
                for bit in 0..8 {
                    let mut flipped = object.clone();
                    flipped[at] ^= 1 << bit;
                    assert!(codec.decode("name", &flipped, 1_000).is_err(), "{at}.{bit}");
                }
            }
            for length in 0..object.len() {
                assert!(codec.decode("name", &object[..length], 1_000).is_err());
            }
        }
    }

    #[test]
    fn objects_of_another_key_name_or_length_are_refused() {
        let key = VaultKey::of_secret(&[1; 32]).unwrap();
        let codec = ChunkCodec::new(Some(key), ChunkCompression::None);
        let object = codec.encode("name", vec![1; 100]).unwrap();
        assert!(codec.decode("other", &object, 100).is_err());
        assert!(codec.decode("name", &object, 99).is_err());
        let plain = ChunkCodec::new(None, ChunkCompression::None);
        assert!(plain.decode("name", &object, 100).is_err());
        let other = VaultKey::of_secret(&[2; 32]).unwrap();
        let other = ChunkCodec::new(Some(other), ChunkCompression::None);
        assert!(other.decode("name", &object, 100).is_err());
    }
}

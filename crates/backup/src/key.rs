//! Digests of contents, and the key of a location.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, hkdf, hmac, rand};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::BackupError;
use crate::files;
use crate::location::LocationTextError;

/// Bytes of a key, and of a digest.
const KEY_BYTES: usize = 32;

/// Bytes of a key's public id.
const ID_BYTES: usize = 8;

/// The longest file of a key that is read.
const KEY_FILE_MAX: u64 = 4 << 10;

/// Writes bytes as hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap_or_default();
    }
    text
}

/// Reads hex digits.
fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let pairs = text.chunks_exact(2);
    let bytes = pairs.map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok());
    bytes.collect()
}

/// The digest of a content: SHA-256, or HMAC-SHA-256 by a key made of the location's, so that names
/// of encrypted chunks reveal nothing. As text it has 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChunkDigest([u8; KEY_BYTES]);

impl ChunkDigest {
    fn of(bytes: &[u8]) -> ChunkDigest {
        let mut digest = [0; KEY_BYTES];
        digest.copy_from_slice(bytes);
        ChunkDigest(digest)
    }
}

impl fmt::Display for ChunkDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for ChunkDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for ChunkDigest {
    type Err = LocationTextError;

    fn from_str(text: &str) -> Result<ChunkDigest, LocationTextError> {
        let bytes = from_hex(text.as_bytes()).filter(|bytes| bytes.len() == KEY_BYTES);
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        match bytes {
            Some(bytes) if is_lower => Ok(ChunkDigest::of(&bytes)),
            _ => Err(LocationTextError::new(text, "a digest has 64 hex digits")),
        }
    }
}

impl TryFrom<String> for ChunkDigest {
    type Error = LocationTextError;

    fn try_from(text: String) -> Result<ChunkDigest, LocationTextError> {
        text.parse()
    }
}

impl From<ChunkDigest> for String {
    fn from(digest: ChunkDigest) -> String {
        digest.to_string()
    }
}

/// The SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> ChunkDigest {
    ChunkDigest::of(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// The key of a location: what is made of the secret in a file.
pub struct VaultKey {
    cipher: LessSafeKey,
    names: hmac::Key,
    /// Hex digits that are the same for the same secret, and don't reveal it.
    pub id: String,
}

impl fmt::Debug for VaultKey {
    /// Leaves the keys out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VaultKey").field(&self.id).finish()
    }
}

impl VaultKey {
    /// Reads the file of a key: 64 hex digits, or 32 bytes.
    pub fn read(file: &Path) -> Result<VaultKey, BackupError> {
        let wrong = |problem: String| BackupError::OptionFile {
            file: file.to_owned(),
            problem,
        };
        let form = "a key is 64 hex digits, as of `openssl rand -hex 32`, or 32 bytes";
        let text = Zeroizing::new(files::read_option(file, KEY_FILE_MAX)?);
        let secret = from_hex(text.trim_ascii()).filter(|secret| secret.len() == KEY_BYTES);
        let secret = match secret {
            Some(secret) => Zeroizing::new(secret),
            None if text.len() == KEY_BYTES => text,
            None => return Err(wrong(form.to_owned())),
        };
        VaultKey::of_secret(&secret)
    }

    /// Makes a key of a secret of 32 bytes.
    pub fn of_secret(secret: &[u8]) -> Result<VaultKey, BackupError> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"annulus-backup");
        let root = salt.extract(secret);
        let derived = |purpose: &[u8]| {
            let mut key = Zeroizing::new([0_u8; KEY_BYTES]);
            let purposes = [purpose];
            let made = root.expand(&purposes, hkdf::HKDF_SHA256);
            let filled = made.and_then(|made| made.fill(&mut key[..]));
            filled.map_err(|_| BackupError::Cryptography)?;
            Ok::<_, BackupError>(key)
        };
        let cipher = UnboundKey::new(&AES_256_GCM, &derived(b"cipher")?[..]);
        Ok(VaultKey {
            cipher: LessSafeKey::new(cipher.map_err(|_| BackupError::Cryptography)?),
            names: hmac::Key::new(hmac::HMAC_SHA256, &derived(b"names")?[..]),
            id: hex(&derived(b"id")?[..ID_BYTES]),
        })
    }

    /// The digest of a content.
    pub fn digest(&self, content: &[u8]) -> ChunkDigest {
        ChunkDigest::of(hmac::sign(&self.names, content).as_ref())
    }

    /// Encrypts a content in its place, and appends the tag. Returns the nonce. `bound` is what the
    /// content is decrypted with only.
    pub fn seal(
        &self,
        bound: &[u8],
        content: &mut Vec<u8>,
    ) -> Result<[u8; NONCE_LEN], BackupError> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).map_err(|_| BackupError::Cryptography)?;
        let once = Nonce::assume_unique_for_key(nonce);
        self.cipher
            .seal_in_place_append_tag(once, Aad::from(bound), content)
            .map_err(|_| BackupError::Cryptography)?;
        Ok(nonce)
    }

    /// Decrypts a content with its tag in its place. `None` if the key, the content or `bound` is
    /// another than at [`seal`](Self::seal).
    pub fn open<'a>(&self, nonce: &[u8], bound: &[u8], sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self.cipher.open_in_place(nonce, Aad::from(bound), sealed);
        opened.ok().map(|opened| &*opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_they_are_read() {
        let digest = sha256(b"abc");
        let text = digest.to_string();
        assert!(text.starts_with("ba7816bf8f01cfea"), "{text}");
        assert_eq!(text.parse::<ChunkDigest>().unwrap(), digest);
        for wrong in ["", "ba78", &text.to_uppercase(), &text.replace('b', "x")] {
            assert!(wrong.parse::<ChunkDigest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_read_as_digits_or_as_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, [7; 32]).unwrap();
        let of_bytes = VaultKey::read(&file).unwrap();
        std::fs::write(&file, "07".repeat(32) + "\n").unwrap();
        let of_digits = VaultKey::read(&file).unwrap();
        assert_eq!(of_bytes.id, of_digits.id);
        assert_eq!(of_bytes.digest(b"abc"), of_digits.digest(b"abc"));
        assert_ne!(of_bytes.digest(b"abc"), sha256(b"abc"));
        for wrong in ["", "secret", &"07".repeat(31)] {
            std::fs::write(&file, wrong).unwrap();
            let error = VaultKey::read(&file).unwrap_err();
            assert!(
                error.to_string().contains("openssl rand -hex 32"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_content_opens_by_its_own_key_and_bound_alone() {
        let key = VaultKey::of_secret(&[1; 32]).unwrap();
        let mut sealed = b"content".to_vec();
        let nonce = key.seal(b"bound", &mut sealed).unwrap();
        let opened = |key: &VaultKey, bound: &[u8]| {
            let mut sealed = sealed.clone();
            key.open(&nonce, bound, &mut sealed).map(<[u8]>::to_vec)
        };
        assert_eq!(opened(&key, b"bound").unwrap(), b"content");
        assert_eq!(opened(&key, b"other"), None);
        let other = VaultKey::of_secret(&[2; 32]).unwrap();
        assert_eq!(opened(&other, b"bound"), None);
    }
}

//! The hash of a serialised value, by the names of algorithms that Java knows.

use bytes::Bytes;
use cql::error::CqlError;
use md5::Md5;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

/// Hashes a value. Names of algorithms are taken in capitals or not; `None` is SHA-256.
///
/// # Errors
/// An unknown algorithm. MD2 is not there.
pub(super) fn hash(value: &[u8], algorithm: Option<&str>) -> Result<Bytes, CqlError> {
    let mut hasher = match algorithm {
        None => Box::<Sha256>::default(),
        Some(name) => by_name(name).ok_or_else(|| unknown(name))?,
    };
    hasher.update(value);
    Ok(hasher.finalize().into_vec().into())
}

/// Checks the name of an algorithm.
///
/// # Errors
/// As [`hash`].
pub(super) fn check(name: &str) -> Result<(), CqlError> {
    by_name(name).map(drop).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> CqlError {
    CqlError::invalid(format!("Hash algorithm not found: {name}"))
}

fn by_name(name: &str) -> Option<Box<dyn DynDigest>> {
    Some(match name.to_ascii_uppercase().as_str() {
        "MD5" => Box::<Md5>::default(),
        "SHA" | "SHA1" | "SHA-1" => Box::<Sha1>::default(),
        "SHA-224" | "SHA224" => Box::<Sha224>::default(),
        "SHA-256" | "SHA256" => Box::<Sha256>::default(),
        "SHA-384" | "SHA384" => Box::<Sha384>::default(),
        "SHA-512" | "SHA512" => Box::<Sha512>::default(),
        "SHA-512/224" | "SHA512/224" => Box::<Sha512_224>::default(),
        "SHA-512/256" | "SHA512/256" => Box::<Sha512_256>::default(),
        "SHA3-224" => Box::<Sha3_224>::default(),
        "SHA3-256" => Box::<Sha3_256>::default(),
        "SHA3-384" => Box::<Sha3_384>::default(),
        "SHA3-512" => Box::<Sha3_512>::default(),
        _ => return None,
    })
}

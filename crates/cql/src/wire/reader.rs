//! Reading the notations of the protocol (section 3) with bounds.
//!
//! A length or count is believed only as far as there are bytes for it, so a peer can't have memory
//! allocated by announcing a lot. Byte strings share the memory that they are read from.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, Bytes};
use uuid::Uuid;

use super::bound_value::BoundValue;
use super::consistency::Consistency;
use crate::error::CqlError;

/// The reason why the body of a frame can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body ends too early, within the part that the string names.
    #[error("the frame ends within {0}")]
    Truncated(&'static str),
    /// The body holds something that the protocol does not allow. The string is a sentence for the
    /// user.
    #[error("{0}")]
    Invalid(String),
    /// The body is too large when decompressed, though not as it came.
    #[error(
        "Request is too big: length {length} exceeds maximum allowed length {limit} when decompressed"
    )]
    TooLarge {
        /// The length of the plain body in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl DecodeError {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        DecodeError::Invalid(message.into())
    }
}

impl From<DecodeError> for CqlError {
    /// The error to send: an invalid request if the body is too large, else a protocol error. The
    /// connection can go on after either.
    fn from(error: DecodeError) -> CqlError {
        match error {
            DecodeError::TooLarge { .. } => CqlError::invalid(error.to_string()),
            DecodeError::Truncated(_) | DecodeError::Invalid(_) => {
                CqlError::protocol(error.to_string())
            }
        }
    }
}

/// Reads a body from its front. In all methods `what` names the part that is read, for the error if
/// the body ends within it.
#[derive(Debug)]
pub(super) struct BodyReader {
    rest: Bytes,
}

impl BodyReader {
    pub(super) fn new(body: Bytes) -> Self {
        BodyReader { rest: body }
    }

    /// The bytes that are not read yet.
    pub(super) fn into_rest(self) -> Bytes {
        self.rest
    }

    /// The number of items to make room for. `announced` items are to come, each of at least
    /// `bytes_each` bytes, and no more than fit into the rest of the body get room.
    pub(super) fn capacity(&self, announced: usize, bytes_each: usize) -> usize {
        announced.min(self.rest.len() / bytes_each)
    }

    /// Whether all bytes are read.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes the next `length` bytes.
    pub(super) fn take(&mut self, length: usize, what: &'static str) -> Result<Bytes, DecodeError> {
        if self.rest.len() < length {
            return Err(DecodeError::Truncated(what));
        }
        Ok(self.rest.split_to(length))
    }

    /// Reads a `[byte]`.
    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.rest
            .try_get_u8()
            .map_err(|_| DecodeError::Truncated(what))
    }

    /// Reads a `[short]`, which is unsigned.
    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.rest
            .try_get_u16()
            .map_err(|_| DecodeError::Truncated(what))
    }

    /// Reads an `[int]` that is no number but a set of bits or a time, without a sign.
    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.rest
            .try_get_u32()
            .map_err(|_| DecodeError::Truncated(what))
    }

    /// Reads an `[int]`.
    pub(super) fn i32(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        self.rest
            .try_get_i32()
            .map_err(|_| DecodeError::Truncated(what))
    }

    /// Reads a `[long]`.
    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        self.rest
            .try_get_i64()
            .map_err(|_| DecodeError::Truncated(what))
    }

    /// Reads an `[int]` that is a count.
    pub(super) fn count(&mut self, what: &'static str) -> Result<usize, DecodeError> {
        let count = self.i32(what)?;
        usize::try_from(count)
            .map_err(|_| DecodeError::Invalid(format!("negative count {count} of {what}")))
    }

    /// Reads a `[string]`.
    pub(super) fn string(&mut self, what: &'static str) -> Result<String, DecodeError> {
        let length = self.u16(what)?;
        self.utf8(usize::from(length), what)
    }

    /// Reads a `[long string]`.
    pub(super) fn long_string(&mut self, what: &'static str) -> Result<String, DecodeError> {
        let length = self.count(what)?;
        self.utf8(length, what)
    }

    fn utf8(&mut self, length: usize, what: &'static str) -> Result<String, DecodeError> {
        let bytes = self.take(length, what)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(DecodeError::Invalid(format!(
                "{what} is not UTF-8 at byte {}",
                error.valid_up_to()
            ))),
        }
    }

    /// Reads a `[bytes]`. Any negative length is null.
    pub(super) fn bytes(&mut self, what: &'static str) -> Result<Option<Bytes>, DecodeError> {
        match usize::try_from(self.i32(what)?) {
            Ok(length) => self.take(length, what).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reads a `[short bytes]`.
    pub(super) fn short_bytes(&mut self, what: &'static str) -> Result<Bytes, DecodeError> {
        let length = self.u16(what)?;
        self.take(usize::from(length), what)
    }

    /// Reads a `[value]`. The length -1 is null, -2 is not set, and any other negative length is an
    /// error.
    pub(super) fn bound_value(&mut self) -> Result<BoundValue, DecodeError> {
        const WHAT: &str = "a bound value";
        match self.i32(WHAT)? {
            -1 => Ok(BoundValue::Null),
            -2 => Ok(BoundValue::Unset),
            length => {
                let length = usize::try_from(length).map_err(|_| {
                    DecodeError::Invalid(format!("invalid length {length} of {WHAT}"))
                })?;
                self.take(length, WHAT).map(BoundValue::Value)
            }
        }
    }

    /// Reads a `[string list]`.
    pub(super) fn string_list(&mut self, what: &'static str) -> Result<Vec<String>, DecodeError> {
        let count = usize::from(self.u16(what)?);
        let mut list = Vec::with_capacity(self.capacity(count, 2));
        for _ in 0..count {
            list.push(self.string(what)?);
        }
        Ok(list)
    }

    /// Reads a `[bytes map]`.
    pub(super) fn bytes_map(
        &mut self,
        what: &'static str,
    ) -> Result<Vec<(String, Option<Bytes>)>, DecodeError> {
        let count = usize::from(self.u16(what)?);
        let mut map = Vec::with_capacity(self.capacity(count, 6));
        for _ in 0..count {
            map.push((self.string(what)?, self.bytes(what)?));
        }
        Ok(map)
    }

    /// Skips a `[bytes map]`.
    pub(super) fn skip_bytes_map(&mut self, what: &'static str) -> Result<(), DecodeError> {
        for _ in 0..self.u16(what)? {
            self.short_bytes(what)?;
            self.bytes(what)?;
        }
        Ok(())
    }

    /// Reads a `[consistency]`.
    pub(super) fn consistency(&mut self) -> Result<Consistency, DecodeError> {
        let code = self.u16("the consistency level")?;
        Consistency::from_code(code).ok_or_else(|| {
            DecodeError::Invalid(format!("Unknown code {code} for a consistency level"))
        })
    }

    /// Reads a `[uuid]`.
    pub(super) fn uuid(&mut self, what: &'static str) -> Result<Uuid, DecodeError> {
        let bytes = self.take(16, what)?;
        Uuid::from_slice(&bytes).map_err(|_| DecodeError::Truncated(what))
    }

    /// Reads an `[inet]`: an address and a port.
    pub(super) fn inet(&mut self, what: &'static str) -> Result<SocketAddr, DecodeError> {
        let address = self.address(what)?;
        let port = self.i32(what)?;
        let port = u16::try_from(port)
            .map_err(|_| DecodeError::Invalid(format!("port {port} in {what}")))?;
        Ok(SocketAddr::new(address, port))
    }

    /// Reads an `[inetaddr]`: an address without a port.
    pub(super) fn address(&mut self, what: &'static str) -> Result<IpAddr, DecodeError> {
        let length = self.u8(what)?;
        let bytes = self.take(usize::from(length), what)?;
        if let Ok(octets) = <[u8; 4]>::try_from(&bytes[..]) {
            Ok(IpAddr::from(octets))
        } else if let Ok(octets) = <[u8; 16]>::try_from(&bytes[..]) {
            Ok(IpAddr::from(octets))
        } else {
            Err(DecodeError::Invalid(format!(
                "an address of {length} bytes in {what}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &'static [u8]) -> BodyReader {
        BodyReader::new(Bytes::from_static(bytes))
    }

    #[test]
    fn a_negative_length_is_null_in_bytes_but_has_two_meanings_in_a_value() {
        assert_eq!(reader(&[0xFF; 4]).bytes("x"), Ok(None));
        assert_eq!(reader(&[0x80, 0, 0, 0]).bytes("x"), Ok(None));
        assert_eq!(reader(&[0xFF; 4]).bound_value(), Ok(BoundValue::Null));
        assert_eq!(
            reader(&[0xFF, 0xFF, 0xFF, 0xFE]).bound_value(),
            Ok(BoundValue::Unset)
        );
        assert!(matches!(
            reader(&[0xFF, 0xFF, 0xFF, 0xFD]).bound_value(),
            Err(DecodeError::Invalid(_))
        ));
        assert_eq!(
            reader(&[0, 0, 0, 0]).bound_value(),
            Ok(BoundValue::Value(Bytes::new()))
        );
    }

    #[test]
    fn a_count_reserves_no_more_than_the_bytes_can_hold() {
        let reader = reader(&[0; 60]);
        assert_eq!(reader.capacity(usize::MAX, 6), 10);
        assert_eq!(reader.capacity(3, 6), 3);
    }

    #[test]
    fn text_must_be_utf8() {
        assert_eq!(reader(b"\0\x02\xC3\xA9").string("x"), Ok("é".to_owned()));
        assert_eq!(
            reader(b"\0\x03a\xC3a").string("the name"),
            Err(DecodeError::Invalid(
                "the name is not UTF-8 at byte 1".to_owned()
            ))
        );
        assert_eq!(
            reader(b"\0\x03a").string("the name"),
            Err(DecodeError::Truncated("the name"))
        );
        assert!(reader(&[0xFF; 4]).long_string("x").is_err());
    }

    #[test]
    fn an_address_has_four_or_sixteen_bytes() {
        assert_eq!(
            reader(&[4, 127, 0, 0, 1, 0, 0, 0x23, 0x52]).inet("x"),
            Ok("127.0.0.1:9042".parse().unwrap())
        );
        assert!(
            reader(&[5, 127, 0, 0, 1, 0, 0, 0, 0x23, 0x52])
                .inet("x")
                .is_err()
        );
        assert!(reader(&[4, 127, 0, 0, 1, 0, 1, 0, 0]).inet("x").is_err());
    }
}

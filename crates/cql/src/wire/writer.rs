//! Writing the notations of the protocol (section 3).

use std::net::{IpAddr, SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};

use super::bound_value::BoundValue;
use super::consistency::Consistency;

/// Appends the notations of the protocol to a buffer.
pub(super) trait BodyWriter {
    /// Appends a `[string]`, cut to the 65,535 bytes that it can hold. The name of a result's
    /// column is the text of its selector, so one with a long literal can be longer.
    fn put_string(&mut self, text: &str);
    /// Appends a `[long string]`.
    fn put_long_string(&mut self, text: &str);
    /// Appends a `[bytes]`.
    fn put_nullable_bytes(&mut self, bytes: Option<&[u8]>);
    /// Appends a `[short bytes]`. These are ids, far shorter than the 65,535 bytes allowed.
    fn put_short_bytes(&mut self, bytes: &[u8]);
    /// Appends a `[value]`.
    fn put_bound_value(&mut self, value: &BoundValue);
    /// Appends a count of 16 bits.
    fn put_short_count(&mut self, count: usize);
    /// Appends a `[string list]`.
    fn put_string_list(&mut self, list: &[String]);
    /// Appends a `[bytes map]`.
    fn put_bytes_map(&mut self, map: &[(String, Option<Bytes>)]);
    /// Appends a `[consistency]`.
    fn put_consistency(&mut self, consistency: Consistency);
    /// Appends an `[inet]`: an address and a port.
    fn put_inet(&mut self, address: SocketAddr);
    /// Appends an `[inetaddr]`: an address without a port.
    fn put_address(&mut self, address: IpAddr);
}

/// The length of the longest prefix of `text` that a `[string]` can hold without cutting a
/// character.
fn string_length(text: &str) -> usize {
    text.floor_char_boundary(usize::from(u16::MAX))
}

/// A length as the four bytes of the protocol. A greater one is cut to the maximum: it fits no
/// frame, so the frame is refused later, when its own length is known.
fn int_length(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

impl BodyWriter for BytesMut {
    fn put_string(&mut self, text: &str) {
        let length = string_length(text);
        self.put_short_count(length);
        self.put_slice(&text.as_bytes()[..length]);
    }

    fn put_long_string(&mut self, text: &str) {
        self.put_i32(int_length(text.len()));
        self.put_slice(text.as_bytes());
    }

    fn put_nullable_bytes(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            None => self.put_i32(-1),
            Some(bytes) => {
                self.put_i32(int_length(bytes.len()));
                self.put_slice(bytes);
            }
        }
    }

    fn put_short_bytes(&mut self, bytes: &[u8]) {
        self.put_short_count(bytes.len());
        self.put_slice(bytes);
    }

    fn put_bound_value(&mut self, value: &BoundValue) {
        match value {
            BoundValue::Null => self.put_i32(-1),
            BoundValue::Unset => self.put_i32(-2),
            BoundValue::Value(bytes) => self.put_nullable_bytes(Some(bytes)),
        }
    }

    fn put_short_count(&mut self, count: usize) {
        self.put_u16(u16::try_from(count).expect("bug: a count beyond the protocol's 65,535"));
    }

    fn put_string_list(&mut self, list: &[String]) {
        self.put_short_count(list.len());
        for text in list {
            self.put_string(text);
        }
    }

    fn put_bytes_map(&mut self, map: &[(String, Option<Bytes>)]) {
        self.put_short_count(map.len());
        for (name, value) in map {
            self.put_string(name);
            self.put_nullable_bytes(value.as_deref());
        }
    }

    fn put_consistency(&mut self, consistency: Consistency) {
        self.put_u16(consistency.code());
    }

    fn put_inet(&mut self, address: SocketAddr) {
        self.put_address(address.ip());
        self.put_i32(i32::from(address.port()));
    }

    fn put_address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(ip) => {
                self.put_u8(4);
                self.put_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                self.put_u8(16);
                self.put_slice(&ip.octets());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_string_is_cut_between_characters() {
        let text = "é".repeat(40_000);
        let mut out = BytesMut::new();
        out.put_string(&text);
        assert_eq!(&out[..2], &[0xFF, 0xFE]);
        assert_eq!(out.len(), 2 + 65_534);
        assert!(std::str::from_utf8(&out[2..]).is_ok());
    }
}

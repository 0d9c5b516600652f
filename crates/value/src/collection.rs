//! Splitting and joining collections in serialised form.

use bytes::{BufMut, Bytes, BytesMut};

use crate::elements::{CollectionElements, MapEntries};
use crate::{CqlType, ValueError, vint};

/// Splits a serialised list or set into its serialised elements.
///
/// # Errors
/// If `bytes` is no list or set. The elements themselves are not checked.
pub fn split_elements(bytes: &[u8]) -> Result<Vec<Bytes>, ValueError> {
    CollectionElements::of_list(bytes)?
        .map(|element| element.map(Bytes::copy_from_slice))
        .collect()
}

/// Splits a serialised list or set whose elements may be null, as where a `SELECT` makes it of
/// columns.
///
/// # Errors
/// If `bytes` is no list or set. The elements themselves are not checked.
pub fn split_nullable_elements(bytes: &[u8]) -> Result<Vec<Option<Bytes>>, ValueError> {
    let mut elements = CollectionElements::of_list(bytes)?;
    std::iter::from_fn(|| elements.next_or_null())
        .map(|element| element.map(|element| element.map(Bytes::copy_from_slice)))
        .collect()
}

/// Splits a serialised map into its serialised entries.
///
/// # Errors
/// If `bytes` is no map. The keys and values themselves are not checked.
pub fn split_entries(bytes: &[u8]) -> Result<Vec<(Bytes, Bytes)>, ValueError> {
    MapEntries::new(bytes)?
        .map(|entry| {
            entry.map(|(key, value)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)))
        })
        .collect()
}

/// Joins serialised elements into a list or set. The elements of a set must be in order already.
pub fn join_elements<'a>(elements: impl ExactSizeIterator<Item = &'a [u8]>) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i32(elements.len() as i32);
    for element in elements {
        put_field(&mut out, element);
    }
    out.freeze()
}

/// Joins serialised entries into a map. They must be in the order of their keys already.
pub fn join_entries<'a>(entries: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i32(entries.len() as i32);
    for (key, value) in entries {
        put_field(&mut out, key);
        put_field(&mut out, value);
    }
    out.freeze()
}

/// Joins serialised elements of a type into a vector.
pub fn join_vector<'a>(element: &CqlType, elements: impl Iterator<Item = &'a [u8]>) -> Bytes {
    let has_lengths = element.fixed_length().is_none();
    let mut out = BytesMut::new();
    for element in elements {
        if has_lengths {
            vint::put_unsigned(&mut out, element.len() as u64);
        }
        out.put_slice(element);
    }
    out.freeze()
}

/// Appends a length of 4 bytes and the bytes. No field is longer than 2 GiB, as frames are smaller.
pub(crate) fn put_field(out: &mut BytesMut, field: &[u8]) {
    out.put_i32(field.len() as i32);
    out.put_slice(field);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_survive_the_round_trip() {
        let elements = [&b"ab"[..], b"", b"c"];
        let bytes = join_elements(elements.into_iter());
        assert_eq!(bytes.as_ref(), b"\0\0\0\x03\0\0\0\x02ab\0\0\0\0\0\0\0\x01c");
        assert_eq!(split_elements(&bytes).unwrap(), elements);
    }

    #[test]
    fn entries_survive_the_round_trip() {
        let bytes = join_entries([(&b"k"[..], &b"v"[..])].into_iter());
        assert_eq!(bytes.as_ref(), b"\0\0\0\x01\0\0\0\x01k\0\0\0\x01v");
        assert_eq!(split_entries(&bytes).unwrap(), [("k".into(), "v".into())]);
    }

    #[test]
    fn malformed_collections_are_refused() {
        let refused = |bytes: &[u8]| split_elements(bytes).unwrap_err().0;
        assert_eq!(
            refused(b""),
            "a list begins with a count of 4 bytes, got 0 bytes"
        );
        assert_eq!(
            refused(b"\x7f\xff\xff\xff\0\0\0\0"),
            "the list says it has 2147483647 elements, which 4 bytes can't hold"
        );
        assert_eq!(
            refused(b"\xff\xff\xff\xff"),
            "the list says it has -1 elements, which 0 bytes can't hold"
        );
        assert_eq!(
            refused(b"\0\0\0\x01\xff\xff\xff\xff"),
            "null is not supported inside a list"
        );
        assert_eq!(refused(b"\0\0\0\x01\0\0\0\x05ab"), "the list is cut short");
        assert_eq!(
            refused(b"\0\0\0\0x"),
            "1 bytes are left over after the list"
        );
        let odd = b"\0\0\0\x01\0\0\0\x01k";
        assert!(split_entries(odd).is_err());
    }
}

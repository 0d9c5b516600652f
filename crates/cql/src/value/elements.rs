//! Walking the elements of serialised collections, tuples and vectors without copying them.
//!
//! The walks end with an error where the bytes are cut short or left over, so that a caller who
//! walks to the end has seen a well-formed outer layer.

use super::{ValueError, vint};
use crate::types::CqlType;

/// Takes a length and as many bytes; `None` inside for a null.
fn take_field<'a>(what: &str, bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, ValueError> {
    let cut_short = || ValueError(format!("the {what} is cut short"));
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut_short)?;
    *bytes = rest;
    let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
        return Ok(None);
    };
    let (field, rest) = bytes.split_at_checked(length).ok_or_else(cut_short)?;
    *bytes = rest;
    Ok(Some(field))
}

/// The elements of a list or set, or the keys and values of a map in turn.
pub(super) struct Elements<'a> {
    what: &'static str,
    rest: &'a [u8],
    remaining: usize,
}

impl<'a> Elements<'a> {
    /// `what` names the collection in errors; `fields` is 1, or 2 for a map.
    fn new(what: &'static str, fields: usize, bytes: &'a [u8]) -> Result<Self, ValueError> {
        let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| {
            ValueError(format!(
                "a {what} begins with a count of 4 bytes, got {} bytes",
                bytes.len()
            ))
        })?;
        let count = i32::from_be_bytes(*count);
        // Each field takes at least the 4 bytes of its length.
        let fits = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(fields))
            .filter(|remaining| *remaining <= rest.len() / 4);
        match fits {
            Some(remaining) => Ok(Elements {
                what,
                rest,
                remaining,
            }),
            None => Err(ValueError(format!(
                "the {what} says it has {count} elements, which {} bytes can't hold",
                rest.len()
            ))),
        }
    }

    pub(super) fn of_list(bytes: &'a [u8]) -> Result<Self, ValueError> {
        Elements::new("list", 1, bytes)
    }

    pub(super) fn of_set(bytes: &'a [u8]) -> Result<Self, ValueError> {
        Elements::new("set", 1, bytes)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a [u8], ValueError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return left_over(self.what, &mut self.rest).map(Err);
        }
        self.remaining -= 1;
        Some(match take_field(self.what, &mut self.rest) {
            Ok(Some(element)) => Ok(element),
            Ok(None) => Err(ValueError(format!(
                "null is not supported inside a {}",
                self.what
            ))),
            Err(error) => Err(error),
        })
    }
}

/// An error, once, if bytes are left after the last element.
fn left_over(what: &str, rest: &mut &[u8]) -> Option<ValueError> {
    if rest.is_empty() {
        return None;
    }
    let error = ValueError(format!(
        "{} bytes are left over after the {what}",
        rest.len()
    ));
    *rest = &[];
    Some(error)
}

/// The entries of a map.
pub(super) struct Entries<'a>(Elements<'a>);

impl<'a> Entries<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, ValueError> {
        Elements::new("map", 2, bytes).map(Entries)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), ValueError>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = match self.0.next()? {
            Ok(key) => key,
            Err(error) => return Some(Err(error)),
        };
        // The count is of whole entries, so a key is followed by a value or an error.
        self.0.next().map(|value| Ok((key, value?)))
    }
}

/// The fields of a tuple that are written; those left out at the end are not walked.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    remaining: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(fields: usize, bytes: &'a [u8]) -> Self {
        Fields {
            rest: bytes,
            remaining: fields,
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Option<&'a [u8]>, ValueError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return left_over("tuple", &mut self.rest).map(Err);
        }
        if self.rest.is_empty() {
            return None;
        }
        self.remaining -= 1;
        Some(take_field("tuple", &mut self.rest))
    }
}

/// The elements of a vector: side by side if their type has a fixed length, else each after its
/// length as an unsigned vint.
pub(super) struct VectorElements<'a> {
    rest: &'a [u8],
    remaining: usize,
    fixed_length: Option<usize>,
}

impl<'a> VectorElements<'a> {
    pub(super) fn new(element: &CqlType, dimensions: u16, bytes: &'a [u8]) -> Self {
        VectorElements {
            rest: bytes,
            remaining: usize::from(dimensions),
            fixed_length: element.fixed_length(),
        }
    }

    fn take(&mut self) -> Option<&'a [u8]> {
        let length = match self.fixed_length {
            Some(length) => length,
            None => usize::try_from(vint::take_unsigned(&mut self.rest)?).ok()?,
        };
        let (element, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(element)
    }
}

impl<'a> Iterator for VectorElements<'a> {
    type Item = Result<&'a [u8], ValueError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return left_over("vector", &mut self.rest).map(Err);
        }
        self.remaining -= 1;
        Some(self.take().ok_or_else(|| {
            ValueError(format!(
                "the vector is cut short: {} more elements were expected",
                self.remaining + 1
            ))
        }))
    }
}

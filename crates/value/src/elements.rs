//! Iterators over the elements of serialised collections, tuples and vectors. They copy nothing.
//!
//! An iterator ends with an error if bytes are missing or left over. So a caller who reaches the
//! end without an error knows that the outer layer is well-formed.

use crate::CqlType;
use crate::{ValueError, vint};

/// Takes a length and as many bytes. `Ok(None)` is a null, whose length is negative.
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

/// An iterator over the elements of a list or set, or over the keys and values of a map in turn.
pub(crate) struct CollectionElements<'a> {
    /// The kind of collection, as errors name it.
    what: &'static str,
    /// The bytes from the next element on.
    rest: &'a [u8],
    /// The number of elements still to come.
    remaining: usize,
}

impl<'a> CollectionElements<'a> {
    /// Begins to read a collection. `what` names it in errors. `fields` is the number of elements
    /// that each unit of its count means: 2 for a map, else 1.
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
            Some(remaining) => Ok(CollectionElements {
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

    pub(crate) fn of_list(bytes: &'a [u8]) -> Result<Self, ValueError> {
        CollectionElements::new("list", 1, bytes)
    }

    pub(crate) fn of_set(bytes: &'a [u8]) -> Result<Self, ValueError> {
        CollectionElements::new("set", 1, bytes)
    }

    /// The next element, which may be null; `None` after the last.
    pub(crate) fn next_or_null(&mut self) -> Option<Result<Option<&'a [u8]>, ValueError>> {
        if self.remaining == 0 {
            return left_over(self.what, &mut self.rest).map(Err);
        }
        self.remaining -= 1;
        Some(take_field(self.what, &mut self.rest))
    }
}

impl<'a> Iterator for CollectionElements<'a> {
    type Item = Result<&'a [u8], ValueError>;

    fn next(&mut self) -> Option<Self::Item> {
        let element = self.next_or_null()?;
        Some(element.and_then(|element| {
            element
                .ok_or_else(|| ValueError(format!("null is not supported inside a {}", self.what)))
        }))
    }
}

/// Returns an error if bytes are left after the last element. Drops these bytes, so that the error
/// comes once.
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

/// An iterator over the entries of a map.
pub(crate) struct MapEntries<'a>(CollectionElements<'a>);

impl<'a> MapEntries<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, ValueError> {
        CollectionElements::new("map", 2, bytes).map(MapEntries)
    }
}

impl<'a> Iterator for MapEntries<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), ValueError>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = match self.0.next()? {
            Ok(key) => key,
            Err(error) => return Some(Err(error)),
        };
        // The count is one of whole entries, so after a key comes a value or an error.
        self.0.next().map(|value| Ok((key, value?)))
    }
}

/// An iterator over the fields of a tuple. It ends early if fields are left out at the end.
pub(crate) struct TupleFields<'a> {
    /// The bytes from the next field on.
    rest: &'a [u8],
    /// The number of fields of the type that are still to come.
    remaining: usize,
}

impl<'a> TupleFields<'a> {
    pub(crate) fn new(fields: usize, bytes: &'a [u8]) -> Self {
        TupleFields {
            rest: bytes,
            remaining: fields,
        }
    }
}

impl<'a> Iterator for TupleFields<'a> {
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

/// An iterator over the elements of a vector. They are adjacent if their type has a fixed length;
/// else each follows its length as an unsigned vint.
pub(crate) struct VectorElements<'a> {
    /// The bytes from the next element on.
    rest: &'a [u8],
    /// The number of elements still to come.
    remaining: usize,
    /// The length of every element in bytes, if their type has a fixed length.
    fixed_length: Option<usize>,
}

impl<'a> VectorElements<'a> {
    pub(crate) fn new(element: &CqlType, dimensions: u16, bytes: &'a [u8]) -> Self {
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

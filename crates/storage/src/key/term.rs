//! The keys of the entries of secondary indexes.
//!
//! ```text
//! key       term: the component (see `component`) of the indexed value; of an entry of a map the
//!             component of the key, then that of the value; cut after 1,024 bytes
//!           row: the key of the record that has the value (see `key`)
//! value     length of the term, 2 bytes big-endian
//!           the time at which the value expires, 8 bytes, seconds since the epoch; nothing if it
//!             lives for ever
//! ```
//!
//! No term is a prefix of another, so entries sort by their terms and then by their rows. Values
//! with longer components share a term if they begin alike; who reads the row sees which it has.

use std::borrow::Cow;
use std::ops::Bound;

use bytes::Bytes;
use index::Analysis;
use index::secondary::term_types;
use schema::{Column, IndexedPart};
use value::CqlType;

use super::bits::NotOfType;
use super::{check_length, component, wrong_value};
use crate::StorageError;
use crate::read::IndexedValues;

/// Bytes after which a term is cut.
const TERM_BYTES_MAX: usize = 1024;
const LENGTH_BYTES: usize = 2;

/// Writes the terms of an index.
#[derive(Clone, Debug)]
pub(crate) struct TermCodec {
    /// The types of the values that make a term: two in an index on the entries of a map.
    types: Vec<CqlType>,
    analysis: Analysis,
}

/// A range of keys of entries.
pub(crate) type TermRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl TermCodec {
    /// The codec of an index on a part of a column.
    pub(crate) fn new(column: &Column, part: IndexedPart, analysis: Analysis) -> TermCodec {
        let types = term_types(&column.cql_type, part).into_iter();
        TermCodec {
            types: types.cloned().collect(),
            analysis,
        }
    }

    /// The term of the values, which are as many as the index takes.
    pub(crate) fn term<'v>(
        &self,
        values: impl IntoIterator<Item = &'v [u8]>,
    ) -> Result<Vec<u8>, StorageError> {
        let mut term = Vec::with_capacity(32);
        self.write(values, &mut term)?;
        Ok(term)
    }

    /// Writes the term of the values in the place of another one.
    pub(crate) fn write<'v>(
        &self,
        values: impl IntoIterator<Item = &'v [u8]>,
        term: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        term.clear();
        for (value, cql_type) in values.into_iter().zip(&self.types) {
            self.append(term, cql_type, value)?;
        }
        term.truncate(TERM_BYTES_MAX);
        Ok(())
    }

    /// Whether no other value than the one with this term, and its equals, has the term.
    pub(crate) fn is_of_one_value(&self, term: &[u8]) -> bool {
        self.analysis.is_plain() && term.len() < TERM_BYTES_MAX
    }

    fn append(
        &self,
        term: &mut Vec<u8>,
        cql_type: &CqlType,
        value: &[u8],
    ) -> Result<(), StorageError> {
        let analysed = match cql_type {
            CqlType::Ascii | CqlType::Text if !self.analysis.is_plain() => {
                let text = std::str::from_utf8(value).map_err(|_| wrong_value(cql_type))?;
                match self.analysis.term(text) {
                    Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                    Cow::Owned(text) => Cow::Owned(text.into_bytes()),
                }
            }
            _ => Cow::Borrowed(value),
        };
        component::encode(term, cql_type, false, &analysed)
            .map_err(|NotOfType| wrong_value(cql_type))
    }

    /// The range of the entries that may have these values. Where terms are cut it has others, too.
    /// If all its entries have one term, those of rows before `low` and from `high` on are left
    /// out.
    pub(crate) fn range(
        &self,
        values: &IndexedValues,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<TermRange, StorageError> {
        let (start, end) = self.whole_range(values)?;
        Ok(match (&values.low, &values.high, start) {
            (Bound::Included(one), Bound::Included(other), Bound::Included(term))
                if one == other =>
            {
                let end = high.map_or(end, |high| Bound::Excluded([&term, high].concat()));
                (Bound::Included([&term, low].concat()), end)
            }
            (_, _, start) => (start, end),
        })
    }

    fn whole_range(&self, values: &IndexedValues) -> Result<TermRange, StorageError> {
        let key = values.key.as_deref();
        let prefix = match (key, self.types.as_slice()) {
            (Some(key), [key_type, _]) => {
                let mut prefix = Vec::new();
                self.append(&mut prefix, key_type, key)?;
                prefix.truncate(TERM_BYTES_MAX);
                prefix
            }
            (None, [_]) => Vec::new(),
            _ => {
                return Err(StorageError::Invalid(
                    "an index on the entries of a map is read by a key, any other without one"
                        .to_owned(),
                ));
            }
        };
        let term = |value: &Bytes| self.term(key.into_iter().chain([&value[..]]));
        let low = match &values.low {
            Bound::Unbounded => Bound::Included(prefix.clone()),
            Bound::Included(value) => Bound::Included(term(value)?),
            Bound::Excluded(value) => match term(value)? {
                cut if cut.len() == TERM_BYTES_MAX => Bound::Included(cut),
                whole => after(whole).map_or(Bound::Excluded(prefix.clone()), Bound::Included),
            },
        };
        let behind = |term| after(term).map_or(Bound::Unbounded, Bound::Excluded);
        let high = match &values.high {
            Bound::Unbounded => behind(prefix),
            Bound::Included(value) => behind(term(value)?),
            Bound::Excluded(value) => match term(value)? {
                cut if cut.len() == TERM_BYTES_MAX => behind(cut),
                whole => Bound::Excluded(whole),
            },
        };
        Ok((low, high))
    }
}

/// The first bytes after all that begin with these; `None` if there are none.
fn after(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return Some(prefix);
        }
        prefix.pop();
    }
    None
}

/// The key of the entry of a term and a row. It is an error if the key is too long for the engine.
pub(crate) fn entry_key(term: &[u8], row: &[u8]) -> Result<Vec<u8>, StorageError> {
    check_length(term.len() + row.len())?;
    Ok([term, row].concat())
}

/// The value of the entry of a term that dies at a time, in seconds since the epoch.
pub(crate) fn entry_value(term: &[u8], expires_at_s: Option<i64>) -> Bytes {
    let mut value = Vec::with_capacity(LENGTH_BYTES + 8);
    // A term has up to 1,024 bytes.
    value.extend_from_slice(&(term.len() as u16).to_be_bytes());
    if let Some(at_s) = expires_at_s {
        value.extend_from_slice(&at_s.to_be_bytes());
    }
    value.into()
}

/// An entry as it is stored.
pub(crate) struct StoredEntry {
    /// Length of the term in the key.
    pub term: usize,
    /// The time at which the value expires; `None` for never. Seconds since the epoch.
    pub expires_at_s: Option<i64>,
}

impl StoredEntry {
    /// Reads the value of an entry; `None` if it is damaged.
    pub(crate) fn read(value: &[u8]) -> Option<StoredEntry> {
        let (term, rest) = value.split_first_chunk::<LENGTH_BYTES>()?;
        let expires_at_s = match rest {
            [] => None,
            at => Some(i64::from_be_bytes(at.try_into().ok()?)),
        };
        Some(StoredEntry {
            term: usize::from(u16::from_be_bytes(*term)),
            expires_at_s,
        })
    }

    /// Whether the value is dead at that second.
    pub(crate) fn is_expired(&self, now_s: i64) -> bool {
        self.expires_at_s.is_some_and(|at_s| at_s <= now_s)
    }
}

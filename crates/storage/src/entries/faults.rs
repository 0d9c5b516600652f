//! The faults of stored entries: those that a row lacks, and those of values that it does not have.
//!
//! Entries of expired values are no fault, whether they are there or not: no read looks for them.

use bytes::Bytes;

use super::terms::entries_of;
use crate::StorageError;
use crate::engine::SpaceId;
use crate::key::term::StoredEntry;
use crate::key::{HEADER, ROW};
use crate::layout::{IndexSchema, TableSchema};
use crate::record;

/// A key that is to be looked at again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SuspectKey {
    /// A row that lacks entries.
    Row(Bytes),
    /// An entry of a row that does not have its value.
    Entry(Bytes),
}

/// A fault of an index, by the key of its entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IndexFault {
    /// The entry is not there.
    Missing(Bytes, Bytes),
    /// The entry has another value than this.
    Differs(Bytes, Bytes),
    /// The entry is of a row that does not have its value.
    Stale(Bytes),
}

impl IndexFault {
    /// The change of an index's space that mends the fault.
    pub(crate) fn repair(self, space: SpaceId) -> (SpaceId, Bytes, Option<Bytes>) {
        match self {
            IndexFault::Missing(key, value) | IndexFault::Differs(key, value) => {
                (space, key, Some(value))
            }
            IndexFault::Stale(key) => (space, key, None),
        }
    }
}

/// The faults among the entries that the record under a key should have. `stored` reads an entry.
pub(crate) fn of_row(
    table: &TableSchema,
    index: &IndexSchema,
    (key, record): (&[u8], Bytes),
    now_s: i64,
    stored: impl Fn(&[u8]) -> Result<Option<Bytes>, StorageError>,
) -> Result<Vec<IndexFault>, StorageError> {
    let mut faults = Vec::new();
    for (entry, value) in wanted(table, index, key, record, now_s)? {
        match stored(&entry)? {
            None => faults.push(IndexFault::Missing(entry, value)),
            Some(other) if other != value => faults.push(IndexFault::Differs(entry, value)),
            Some(_) => {}
        }
    }
    Ok(faults)
}

/// The fault of a stored entry whose row does not have its value, or that is damaged. `row` reads
/// the record under a key.
pub(crate) fn of_entry(
    table: &TableSchema,
    index: &IndexSchema,
    (entry, value): (Bytes, &[u8]),
    now_s: i64,
    row: impl Fn(&[u8]) -> Result<Option<Bytes>, StorageError>,
) -> Result<Option<IndexFault>, StorageError> {
    let stored = StoredEntry::read(value);
    if stored.as_ref().is_some_and(|it| it.is_expired(now_s)) {
        return Ok(None);
    }
    let key = stored.and_then(|stored| entry.get(stored.term..));
    let record = key.map(&row).transpose()?.flatten();
    let is_wanted = match key.zip(record) {
        Some((key, record)) => {
            let wanted = wanted(table, index, key, record, now_s)?;
            wanted.iter().any(|(wanted, _)| *wanted == entry)
        }
        None => false,
    };
    Ok((!is_wanted).then_some(IndexFault::Stale(entry)))
}

/// The entries that the record under a key should have now.
fn wanted(
    table: &TableSchema,
    index: &IndexSchema,
    key: &[u8],
    record: Bytes,
    now_s: i64,
) -> Result<Vec<(Bytes, Bytes)>, StorageError> {
    let kind = table.keys.split(key).map(|parts| parts.kind);
    if !matches!(kind, Some(ROW | HEADER)) {
        return Ok(Vec::new());
    }
    let entries = entries_of(table, index, key, &record::decode(record)?)?;
    let is_alive = |value: &Bytes| {
        let entry = StoredEntry::read(value);
        !entry.is_some_and(|entry| entry.is_expired(now_s))
    };
    let entries = entries.into_iter();
    let entries = entries.filter_map(|(_, key, value)| Some((key, value.filter(is_alive)?)));
    Ok(entries.collect())
}

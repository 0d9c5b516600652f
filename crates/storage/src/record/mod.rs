//! A record is the value of one key: all that is known of a row, or of a partition's head.
//!
//! A row is one record, and its cells carry their timestamps. So one lookup reads the newest
//! version of a row.
//!
//! Only deletions of the partition and of ranges are kept elsewhere, in records of their own, which
//! are merged on read. A record holds tombstones and expired cells until they may be forgotten, as
//! a write with an older timestamp may still come.
//!
//! A [`Record`] is also the form of a change: a write merges a small record into the stored one.

mod codec;
mod forget;
mod live;
mod merge;

use bytes::Bytes;
use schema::ColumnId;

pub(crate) use codec::{decode, encode};
pub(crate) use live::{LiveColumns, Liveness};

use crate::read::Expiry;

/// The time up to which something lives; `None` for ever.
pub(crate) type Lifetime = Option<Expiry>;

/// A deletion, which removes everything with a timestamp at or below its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// Microseconds.
    pub timestamp: i64,
    /// The time at which the deletion was carried out here, which decides when it may be forgotten.
    /// Seconds since the epoch.
    pub local_s: i64,
}

impl Deletion {
    /// Whether this deletion wins over another one of the same thing.
    pub(crate) fn supersedes(&self, other: &Deletion) -> bool {
        (self.timestamp, self.local_s) > (other.timestamp, other.local_s)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Value {
        value: Bytes,
        lifetime: Lifetime,
    },
    /// A deleted cell, with the local time of its deletion. Seconds since the epoch.
    Tombstone {
        local_s: i64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellRecord {
    pub timestamp: i64,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnRecord {
    Simple(CellRecord),
    /// A non-frozen collection: cells by path, in the order of the paths' type.
    Elements {
        deletion: Option<Deletion>,
        cells: Vec<(Bytes, CellRecord)>,
    },
}

/// The marker that INSERT writes beside the cells: the row exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub timestamp: i64,
    pub lifetime: Lifetime,
}

/// A row, or the head of a partition. In a head, `deletion` is the partition's and `cells` are
/// static.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub marker: Option<Marker>,
    pub deletion: Option<Deletion>,
    /// The clustering values as given, if the key does not give the same bytes.
    pub clustering: Option<Vec<Bytes>>,
    /// The cells of each column, in the order of the column ids.
    pub cells: Vec<(ColumnId, ColumnRecord)>,
    /// Only in a head: whether the partition has range deletions.
    pub has_ranges: bool,
    /// Only in a head: whether none of the rows that `deletion` covers is stored any more.
    pub swept: bool,
}

impl Record {
    /// Whether the record says nothing, so that its key need not exist.
    pub(crate) fn is_empty(&self) -> bool {
        self.marker.is_none()
            && self.deletion.is_none()
            && self.cells.is_empty()
            && !self.has_ranges
    }

    /// Bytes of the values in the record, and of the paths of elements.
    pub(crate) fn bytes(&self) -> usize {
        let of_cell = |cell: &CellRecord| match &cell.content {
            Content::Value { value, .. } => value.len(),
            Content::Tombstone { .. } => 0,
        };
        let columns = self.cells.iter().map(|(_, column)| match column {
            ColumnRecord::Simple(cell) => of_cell(cell),
            ColumnRecord::Elements { cells, .. } => {
                let cells = cells.iter();
                cells.map(|(path, cell)| path.len() + of_cell(cell)).sum()
            }
        });
        columns.sum()
    }

    /// The greatest timestamp in the record; `i64::MIN` for none.
    pub(crate) fn newest(&self) -> i64 {
        let marker = self.marker.map(|marker| marker.timestamp);
        let deletion = self.deletion.map(|deletion| deletion.timestamp);
        let mut newest = marker.max(deletion);
        for (_, column) in &self.cells {
            match column {
                ColumnRecord::Simple(cell) => newest = newest.max(Some(cell.timestamp)),
                ColumnRecord::Elements { deletion, cells } => {
                    let deletion = deletion.map(|deletion| deletion.timestamp);
                    let elements = cells.iter().map(|(_, cell)| cell.timestamp).max();
                    newest = newest.max(deletion).max(elements);
                }
            }
        }
        newest.unwrap_or(i64::MIN)
    }
}

/// Whether something with this lifetime is dead.
pub(crate) fn is_expired(lifetime: &Lifetime, now_s: i64) -> bool {
    lifetime.is_some_and(|expiry| expiry.at_s <= now_s)
}

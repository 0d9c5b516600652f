//! What is kept under one key: all that is known of a row, or of a partition's head.
//!
//! A record is the whole truth of its row but for the deletions of wider reach (partition and range),
//! which are records of their own and merged on read. It holds tombstones and expired cells until
//! they may be forgotten, as a write with an older timestamp may still come.
//!
//! A [`Record`] is also the form of a change: writing is merging a small record into the stored one.

mod codec;
mod forget;
mod live;
mod merge;

use bytes::Bytes;

pub(crate) use codec::{decode, encode};
pub(crate) use live::{LiveColumns, Liveness};
pub(crate) use merge::path_type;

use crate::catalog::ColumnId;
use crate::read::Expiry;

/// Until when something lives; `None` for ever.
pub(crate) type Lifetime = Option<Expiry>;

/// Everything with a timestamp at or below this one is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// Microseconds.
    pub timestamp: i64,
    /// When it was carried out here, which decides when it may be forgotten. Seconds.
    pub local_s: i64,
}

impl Deletion {
    /// Whether it outweighs another deletion of the same thing.
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
    /// Deleted at that local time, in seconds.
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

/// What INSERT leaves beside the cells: the row exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub timestamp: i64,
    pub lifetime: Lifetime,
}

/// A row, or the head of a partition (then `deletion` is the partition's and `cells` are static).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub marker: Option<Marker>,
    pub deletion: Option<Deletion>,
    /// The clustering values as given, where the key does not tell them byte for byte.
    pub clustering: Option<Vec<Bytes>>,
    /// By column id.
    pub cells: Vec<(ColumnId, ColumnRecord)>,
    /// Of a head: whether there are range deletions in the partition.
    pub has_ranges: bool,
    /// Of a head: whether nothing of what `deletion` covers is stored any more.
    pub swept: bool,
}

impl Record {
    /// Whether nothing is known: the key need not exist.
    pub(crate) fn is_empty(&self) -> bool {
        self.marker.is_none()
            && self.deletion.is_none()
            && self.cells.is_empty()
            && !self.has_ranges
    }
}

/// Whether something that lives that long is dead.
pub(crate) fn is_expired(lifetime: &Lifetime, now_s: i64) -> bool {
    lifetime.is_some_and(|expiry| expiry.at_s <= now_s)
}

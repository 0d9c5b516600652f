//! A record is the value of one key: all that is known of a row, or of a partition's head.
//!
//! A row is one record, and its cells carry their timestamps. So one lookup reads the newest
//! version of a row.
//!
//! Only deletions of the partition and of ranges are stored elsewhere, in records of their own,
//! which are merged on read. A record holds tombstones and expired cells until they may be
//! forgotten, as a write with an older timestamp may still come.
//!
//! A [`Record`] is also the form of a change: a write merges a small record into the stored one.

mod codec;
mod element;
mod forget;
mod gather;
mod live;
mod merge;
mod packed;
pub(crate) mod work;

use bytes::Bytes;
use schema::ColumnId;

pub(crate) use codec::{decode, decode_packed, encode, pack};
pub(crate) use gather::Gathered;
pub(crate) use live::{LiveColumns, LiveElements, Liveness};
pub(crate) use packed::{Element, Packed, Walk};

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

/// A cell whose bytes are stored elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellView<'a> {
    pub timestamp: i64,
    pub content: ContentView<'a>,
}

/// The content of a [`CellView`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentView<'a> {
    Value { value: &'a [u8], lifetime: Lifetime },
    Tombstone { local_s: i64 },
}

impl CellRecord {
    pub(crate) fn view(&self) -> CellView<'_> {
        CellView {
            timestamp: self.timestamp,
            content: match &self.content {
                Content::Value { value, lifetime } => ContentView::Value {
                    value,
                    lifetime: *lifetime,
                },
                Content::Tombstone { local_s } => ContentView::Tombstone { local_s: *local_s },
            },
        }
    }

    /// Bytes of the value.
    fn bytes(&self) -> usize {
        match &self.content {
            Content::Value { value, .. } => value.len(),
            Content::Tombstone { .. } => 0,
        }
    }
}

impl CellView<'_> {
    /// The cell with a value that shares the memory of `whole`, which contains it.
    fn to_owned(self, whole: &Bytes) -> CellRecord {
        CellRecord {
            timestamp: self.timestamp,
            content: match self.content {
                ContentView::Value { value, lifetime } => Content::Value {
                    value: whole.slice_ref(value),
                    lifetime,
                },
                ContentView::Tombstone { local_s } => Content::Tombstone { local_s },
            },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnRecord {
    Simple(CellRecord),
    /// A non-frozen collection: cells by path, in the order of the paths' type.
    Elements {
        deletion: Option<Deletion>,
        cells: Vec<(Bytes, CellRecord)>,
    },
    /// A non-frozen collection in its stored bytes.
    Packed {
        deletion: Option<Deletion>,
        packed: Packed,
    },
}

/// The elements of a column.
pub(crate) enum Elements<'a> {
    Cells(std::slice::Iter<'a, (Bytes, CellRecord)>),
    Packed(Walk<'a>),
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        match self {
            Elements::Cells(cells) => {
                let (path, cell) = cells.next()?;
                Some(Element {
                    path,
                    cell: cell.view(),
                })
            }
            Elements::Packed(walk) => walk.next(),
        }
    }
}

impl ColumnRecord {
    /// The elements of a collection, in the order of their paths. A column that is one cell has
    /// none.
    pub(crate) fn elements(&self) -> Elements<'_> {
        match self {
            ColumnRecord::Simple(_) => Elements::Cells([].iter()),
            ColumnRecord::Elements { cells, .. } => {
                work::count(cells.len());
                Elements::Cells(cells.iter())
            }
            ColumnRecord::Packed { packed, .. } => Elements::Packed(packed.iter()),
        }
    }

    /// The number of elements, or 1 for one cell.
    pub(crate) fn count(&self) -> usize {
        match self {
            ColumnRecord::Simple(_) => 1,
            ColumnRecord::Elements { cells, .. } => cells.len(),
            ColumnRecord::Packed { packed, .. } => packed.len(),
        }
    }

    /// Whether this is a copy of another column that nothing has changed. `false` may come for one
    /// that is the same, too.
    pub(crate) fn is_untouched(&self, other: &ColumnRecord) -> bool {
        match (self, other) {
            (ColumnRecord::Simple(one), ColumnRecord::Simple(other)) => one == other,
            (ColumnRecord::Packed { packed, .. }, ColumnRecord::Packed { packed: other, .. }) => {
                packed.is_shared_with(other)
            }
            _ => false,
        }
    }

    /// The elements of a collection in packed form, with its deletion; `None` for one cell.
    fn to_packed(&self) -> Option<(Option<Deletion>, Packed)> {
        match self {
            ColumnRecord::Simple(_) => None,
            ColumnRecord::Elements { deletion, cells } => {
                Some((*deletion, Packed::of(Default::default(), cells)))
            }
            ColumnRecord::Packed { deletion, packed } => Some((*deletion, packed.clone())),
        }
    }

    /// Bytes of the values, and of the paths of elements.
    fn bytes(&self) -> usize {
        match self {
            ColumnRecord::Simple(cell) => cell.bytes(),
            ColumnRecord::Elements { cells, .. } => {
                let cells = cells.iter();
                cells.map(|(path, cell)| path.len() + cell.bytes()).sum()
            }
            ColumnRecord::Packed { packed, .. } => packed.bytes(),
        }
    }

    /// The greatest timestamp of a cell or of the deletion.
    fn newest(&self) -> Option<i64> {
        let of = |deletion: &Option<Deletion>| deletion.map(|deletion| deletion.timestamp);
        match self {
            ColumnRecord::Simple(cell) => Some(cell.timestamp),
            ColumnRecord::Elements { deletion, cells } => {
                let elements = cells.iter().map(|(_, cell)| cell.timestamp).max();
                of(deletion).max(elements)
            }
            ColumnRecord::Packed { deletion, packed } => {
                let elements = (packed.len() > 0).then(|| packed.newest());
                of(deletion).max(elements)
            }
        }
    }
}

/// The marker that INSERT writes in addition to the cells: the row exists.
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

    /// The column of this id.
    pub(crate) fn column(&self, id: ColumnId) -> Option<&ColumnRecord> {
        let at = self.cells.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.cells[at].1)
    }

    /// Bytes of the values in the record, and of the paths of elements.
    pub(crate) fn bytes(&self) -> usize {
        self.cells.iter().map(|(_, column)| column.bytes()).sum()
    }

    /// The greatest timestamp in the record; `i64::MIN` for none.
    pub(crate) fn newest(&self) -> i64 {
        let marker = self.marker.map(|marker| marker.timestamp);
        let deletion = self.deletion.map(|deletion| deletion.timestamp);
        let columns = self.cells.iter();
        let columns = columns.filter_map(|(_, column)| column.newest()).max();
        marker.max(deletion).max(columns).unwrap_or(i64::MIN)
    }
}

/// Whether something with this lifetime is dead.
pub(crate) fn is_expired(lifetime: &Lifetime, now_s: i64) -> bool {
    lifetime.is_some_and(|expiry| expiry.at_s <= now_s)
}

//! A record is the value of one key: all that is known of a row, or of a partition's head.
//!
//! A row is one record, and its cells carry their timestamps. So one lookup reads the newest
//! version of a row.
//!
//! Only deletions of the partition and of ranges are stored elsewhere, in records of their own,
//! which are merged on read. A record holds tombstones and expired cells until they may be
//! forgotten, as a write with an older timestamp may still come.
//!
//! A [`RowRecord`] is also the form of a change: a write merges a small record into the stored one.

mod codec;
mod element;
mod gather;
mod live;
mod merge;
mod packed;
mod purge;
pub(crate) mod work;

use bytes::Bytes;
use schema::ColumnId;

pub(crate) use codec::{decode, decode_packed, encode, pack};
pub(crate) use gather::RowRecordBuilder;
pub(crate) use live::{LiveColumns, LiveElements, Liveness};
pub(crate) use packed::{CollectionElement, EncodedElementIter, EncodedElements};

use crate::read::CellExpiry;

/// The time up to which something lives; `None` for ever.
pub(crate) type CellLifetime = Option<CellExpiry>;

/// A deletion, which removes everything with a timestamp at or below its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeletionTime {
    /// Microseconds.
    pub timestamp: i64,
    /// The time at which the deletion was carried out here, which decides when it may be forgotten.
    /// Seconds since the epoch.
    pub local_s: i64,
}

impl DeletionTime {
    /// Whether this deletion wins over another one of the same thing.
    pub(crate) fn supersedes(&self, other: &DeletionTime) -> bool {
        (self.timestamp, self.local_s) > (other.timestamp, other.local_s)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CellContent {
    Value {
        value: Bytes,
        lifetime: CellLifetime,
    },
    /// A deleted cell, with the local time of its deletion. Seconds since the epoch.
    Tombstone { local_s: i64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellRecord {
    pub timestamp: i64,
    pub content: CellContent,
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
    Value {
        value: &'a [u8],
        lifetime: CellLifetime,
    },
    Tombstone {
        local_s: i64,
    },
}

impl CellRecord {
    pub(crate) fn view(&self) -> CellView<'_> {
        CellView {
            timestamp: self.timestamp,
            content: match &self.content {
                CellContent::Value { value, lifetime } => ContentView::Value {
                    value,
                    lifetime: *lifetime,
                },
                CellContent::Tombstone { local_s } => ContentView::Tombstone { local_s: *local_s },
            },
        }
    }

    /// Bytes of the value.
    fn bytes(&self) -> usize {
        match &self.content {
            CellContent::Value { value, .. } => value.len(),
            CellContent::Tombstone { .. } => 0,
        }
    }
}

impl CellView<'_> {
    /// The cell with a value that shares the memory of `whole`, which contains it.
    fn to_owned(self, whole: &Bytes) -> CellRecord {
        CellRecord {
            timestamp: self.timestamp,
            content: match self.content {
                ContentView::Value { value, lifetime } => CellContent::Value {
                    value: whole.slice_ref(value),
                    lifetime,
                },
                ContentView::Tombstone { local_s } => CellContent::Tombstone { local_s },
            },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredColumn {
    Simple(CellRecord),
    /// A non-frozen collection: cells by path, in the order of the paths' type.
    Elements {
        deletion: Option<DeletionTime>,
        cells: Vec<(Bytes, CellRecord)>,
    },
    /// A non-frozen collection in its stored bytes.
    Packed {
        deletion: Option<DeletionTime>,
        packed: EncodedElements,
    },
}

/// The elements of a column.
pub(crate) enum ColumnElements<'a> {
    Cells(std::slice::Iter<'a, (Bytes, CellRecord)>),
    Packed(EncodedElementIter<'a>),
}

impl<'a> Iterator for ColumnElements<'a> {
    type Item = CollectionElement<'a>;

    fn next(&mut self) -> Option<CollectionElement<'a>> {
        match self {
            ColumnElements::Cells(cells) => {
                let (path, cell) = cells.next()?;
                Some(CollectionElement {
                    path,
                    cell: cell.view(),
                })
            }
            ColumnElements::Packed(walk) => walk.next(),
        }
    }
}

impl StoredColumn {
    /// The elements of a collection, in the order of their paths. A column that is one cell has
    /// none.
    pub(crate) fn elements(&self) -> ColumnElements<'_> {
        match self {
            StoredColumn::Simple(_) => ColumnElements::Cells([].iter()),
            StoredColumn::Elements { cells, .. } => {
                work::count(cells.len());
                ColumnElements::Cells(cells.iter())
            }
            StoredColumn::Packed { packed, .. } => ColumnElements::Packed(packed.iter()),
        }
    }

    /// The number of elements, or 1 for one cell.
    pub(crate) fn count(&self) -> usize {
        match self {
            StoredColumn::Simple(_) => 1,
            StoredColumn::Elements { cells, .. } => cells.len(),
            StoredColumn::Packed { packed, .. } => packed.len(),
        }
    }

    /// Whether this is a copy of another column that nothing has changed. `false` may come for one
    /// that is the same, too.
    pub(crate) fn is_untouched(&self, other: &StoredColumn) -> bool {
        match (self, other) {
            (StoredColumn::Simple(one), StoredColumn::Simple(other)) => one == other,
            (StoredColumn::Packed { packed, .. }, StoredColumn::Packed { packed: other, .. }) => {
                packed.is_shared_with(other)
            }
            _ => false,
        }
    }

    /// The elements of a collection in packed form, with its deletion; `None` for one cell.
    fn to_packed(&self) -> Option<(Option<DeletionTime>, EncodedElements)> {
        match self {
            StoredColumn::Simple(_) => None,
            StoredColumn::Elements { deletion, cells } => {
                Some((*deletion, EncodedElements::of(Default::default(), cells)))
            }
            StoredColumn::Packed { deletion, packed } => Some((*deletion, packed.clone())),
        }
    }

    /// Bytes of the values, and of the paths of elements.
    fn bytes(&self) -> usize {
        match self {
            StoredColumn::Simple(cell) => cell.bytes(),
            StoredColumn::Elements { cells, .. } => {
                let cells = cells.iter();
                cells.map(|(path, cell)| path.len() + cell.bytes()).sum()
            }
            StoredColumn::Packed { packed, .. } => packed.bytes(),
        }
    }

    /// The greatest timestamp of a cell or of the deletion.
    fn newest(&self) -> Option<i64> {
        let of = |deletion: &Option<DeletionTime>| deletion.map(|deletion| deletion.timestamp);
        match self {
            StoredColumn::Simple(cell) => Some(cell.timestamp),
            StoredColumn::Elements { deletion, cells } => {
                let elements = cells.iter().map(|(_, cell)| cell.timestamp).max();
                of(deletion).max(elements)
            }
            StoredColumn::Packed { deletion, packed } => {
                let elements = (packed.len() > 0).then(|| packed.newest());
                of(deletion).max(elements)
            }
        }
    }
}

/// The marker that INSERT writes in addition to the cells: the row exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowMarker {
    pub timestamp: i64,
    pub lifetime: CellLifetime,
}

/// A row, or the head of a partition. In a head, `deletion` is the partition's and `cells` are
/// static.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowRecord {
    pub marker: Option<RowMarker>,
    pub deletion: Option<DeletionTime>,
    /// The clustering values as given, if the key does not give the same bytes.
    pub clustering: Option<Vec<Bytes>>,
    /// The cells of each column, in the order of the column ids.
    pub cells: Vec<(ColumnId, StoredColumn)>,
    /// Only in a head: whether the partition has range deletions.
    pub has_ranges: bool,
    /// Only in a head: whether none of the rows that `deletion` covers is stored any more.
    pub swept: bool,
}

impl RowRecord {
    /// Whether the record says nothing, so that its key need not exist.
    pub(crate) fn is_empty(&self) -> bool {
        self.marker.is_none()
            && self.deletion.is_none()
            && self.cells.is_empty()
            && !self.has_ranges
    }

    /// The column of this id.
    pub(crate) fn column(&self, id: ColumnId) -> Option<&StoredColumn> {
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
pub(crate) fn is_expired(lifetime: &CellLifetime, now_s: i64) -> bool {
    lifetime.is_some_and(|expiry| expiry.at_s <= now_s)
}

//! Records as bytes.
//!
//! ```text
//! record    version (1 byte: 1), flags (1), base timestamp (8, big-endian)
//!           [flag 01 base lifetime: ttl varint, expiry varint]
//!           [flag 02 marker: stamp]
//!           [flag 04 deletion: timestamp 8, local time varint]
//!           [flag 08 clustering: count varint, for each: bytes]
//!           count of columns varint, columns
//!           flag 10: the partition has range deletions; flag 20: its deletion is swept
//! column    id varint, stamp flags (1)
//!             40 not set: a simple cell: rest of the stamp, [value: bytes]
//!             40 set: elements, [20 deletion: timestamp 8, local time varint],
//!               count varint, for each: path bytes, stamp, [value: bytes]
//! stamp     flags (1), then the parts that they name, in this order
//!             01 timestamp (8); else it is the base
//!             02 tombstone: local time varint; no value follows
//!             04 lifetime is the base
//!             08 lifetime: ttl varint, expiry varint
//! bytes     length varint, bytes
//! varint    7 bits a byte, least first, the upper bit says that more follow; signed ones zigzag
//! ```
//!
//! The base is the timestamp and lifetime of the marker, or of the first cell if there is no
//! marker. Mostly a row is written whole, and then none of its cells repeats them. A large
//! collection that was stored already gives the record its base, so that its bytes are the same
//! again ([`super::packed`]).

use bytes::Bytes;
use schema::ColumnId;

use super::element::{
    ByteCursor, DefaultStamp, put_bytes, put_cell, put_deletion, put_element, put_lifetime,
    put_stamp, put_varint, stamp_flag, stamp_flags,
};
use super::packed::EncodedElements;
use super::{CellRecord, ContentView, DeletionTime, RowMarker, RowRecord, StoredColumn};
use crate::StorageError;

const VERSION: u8 = 1;
/// The most items for which room is made at once, as a damaged count must not take all memory.
const RESERVED_MAX: usize = 1024;

mod record_flag {
    pub(super) const BASE_LIFETIME: u8 = 0x01;
    pub(super) const MARKER: u8 = 0x02;
    pub(super) const DELETION: u8 = 0x04;
    pub(super) const CLUSTERING: u8 = 0x08;
    pub(super) const HAS_RANGES: u8 = 0x10;
    pub(super) const SWEPT: u8 = 0x20;
}

/// Bytes of a stored collection from which on it gives its record the base. Smaller ones are
/// written again with the base that suits the record.
const BASE_GIVEN_BYTES_MIN: usize = 4 << 10;

/// The base that suits a record.
fn base_of(record: &RowRecord) -> DefaultStamp {
    let packed = record.cells.iter().filter_map(|(_, column)| match column {
        StoredColumn::Packed { packed, .. } => Some(packed),
        StoredColumn::Simple(_) | StoredColumn::Elements { .. } => None,
    });
    if let Some(largest) = packed.max_by_key(|packed| packed.stored().len())
        && largest.stored().len() >= BASE_GIVEN_BYTES_MIN
    {
        return largest.base();
    }
    if let Some(marker) = record.marker {
        return DefaultStamp {
            timestamp: marker.timestamp,
            lifetime: marker.lifetime,
        };
    }
    let first = record.cells.iter().find_map(|(_, column)| match column {
        StoredColumn::Simple(cell) => Some(cell.view()),
        StoredColumn::Elements { cells, .. } => cells.first().map(|(_, cell)| cell.view()),
        StoredColumn::Packed { packed, .. } => packed.iter().next().map(|first| first.cell),
    });
    DefaultStamp {
        timestamp: first.map_or(0, |cell| cell.timestamp),
        lifetime: first.and_then(|cell| match cell.content {
            ContentView::Value { lifetime, .. } => lifetime,
            ContentView::Tombstone { .. } => None,
        }),
    }
}

pub(crate) fn encode(record: &RowRecord) -> Bytes {
    let base = base_of(record);
    let mut flags = 0;
    let mut set = |flag, on| {
        if on {
            flags |= flag;
        }
    };
    set(record_flag::BASE_LIFETIME, base.lifetime.is_some());
    set(record_flag::MARKER, record.marker.is_some());
    set(record_flag::DELETION, record.deletion.is_some());
    set(record_flag::CLUSTERING, record.clustering.is_some());
    set(record_flag::HAS_RANGES, record.has_ranges);
    set(record_flag::SWEPT, record.swept);

    let mut out = Vec::with_capacity(encoded_size(record));
    out.extend_from_slice(&[VERSION, flags]);
    out.extend_from_slice(&base.timestamp.to_be_bytes());
    if let Some(expiry) = base.lifetime {
        put_lifetime(&mut out, expiry);
    }
    if let Some(marker) = record.marker {
        let (flags, lifetime) = stamp_flags(&base, marker.timestamp, marker.lifetime, false);
        out.push(flags);
        put_stamp(&mut out, flags, marker.timestamp, lifetime, 0);
    }
    if let Some(deletion) = record.deletion {
        put_deletion(&mut out, deletion);
    }
    if let Some(values) = &record.clustering {
        put_varint(&mut out, values.len() as u64);
        values.iter().for_each(|value| put_bytes(&mut out, value));
    }
    put_varint(&mut out, record.cells.len() as u64);
    for (id, column) in &record.cells {
        put_varint(&mut out, u64::from(id.0));
        match column {
            StoredColumn::Simple(cell) => put_cell(&mut out, &base, cell.view()),
            StoredColumn::Elements { deletion, cells } => {
                put_head(&mut out, *deletion, cells.len());
                for (path, cell) in cells {
                    put_element(&mut out, &base, path, cell.view());
                }
            }
            StoredColumn::Packed { deletion, packed } => {
                put_head(&mut out, *deletion, packed.len());
                if packed.base() == base {
                    out.extend_from_slice(packed.stored());
                } else {
                    for element in packed.iter() {
                        put_element(&mut out, &base, element.path, element.cell);
                    }
                }
            }
        }
    }
    out.into()
}

/// Elements from which on a collection is packed as soon as it has changed.
const PACKED_LEN_MIN: usize = 64;

/// Packs the large collections of a record, as later changes of it merge into packed ones.
pub(crate) fn pack(record: &mut RowRecord) {
    let is_large = |column: &StoredColumn| match column {
        StoredColumn::Elements { cells, .. } => cells.len() >= PACKED_LEN_MIN,
        StoredColumn::Simple(_) | StoredColumn::Packed { .. } => false,
    };
    if !record.cells.iter().any(|(_, column)| is_large(column)) {
        return;
    }
    let base = base_of(record);
    for (_, column) in record
        .cells
        .iter_mut()
        .filter(|(_, column)| is_large(column))
    {
        if let StoredColumn::Elements { deletion, cells } = column {
            *column = StoredColumn::Packed {
                deletion: *deletion,
                packed: EncodedElements::of(base, cells),
            };
        }
    }
}

/// Begins a collection of so many elements.
fn put_head(out: &mut Vec<u8>, deletion: Option<DeletionTime>, count: usize) {
    match deletion {
        Some(deletion) => {
            out.push(stamp_flag::ELEMENTS | stamp_flag::ELEMENTS_DELETION);
            put_deletion(out, deletion);
        }
        None => out.push(stamp_flag::ELEMENTS),
    }
    put_varint(out, count as u64);
}

/// The approximate size of an encoded record, so that the buffer seldom grows.
fn encoded_size(record: &RowRecord) -> usize {
    let cell = |cell: &CellRecord| match cell.view().content {
        ContentView::Value { value, .. } => value.len() + 8,
        ContentView::Tombstone { .. } => 16,
    };
    let cells: usize = record
        .cells
        .iter()
        .map(|(_, column)| match column {
            StoredColumn::Simple(one) => cell(one),
            StoredColumn::Elements { cells, .. } => {
                24 + cells
                    .iter()
                    .map(|(path, one)| path.len() + 2 + cell(one))
                    .sum::<usize>()
            }
            StoredColumn::Packed { packed, .. } => 24 + packed.stored().len(),
        })
        .sum();
    32 + cells
}

/// Reads a record; its values share the memory of `bytes`.
pub(crate) fn decode(bytes: Bytes) -> Result<RowRecord, StorageError> {
    read(&bytes, ElementEncoding::Cells)
}

/// Reads a record whose collections stay in the bytes in which they are stored
/// ([`StoredColumn::Packed`]).
pub(crate) fn decode_packed(bytes: Bytes) -> Result<RowRecord, StorageError> {
    read(&bytes, ElementEncoding::Packed)
}

/// The form in which the elements of collections are read.
#[derive(Clone, Copy)]
enum ElementEncoding {
    Cells,
    Packed,
}

fn read(bytes: &Bytes, form: ElementEncoding) -> Result<RowRecord, StorageError> {
    let mut cursor = ByteCursor::new(bytes);
    let record = record(bytes, &mut cursor, form).filter(|_| cursor.rest.is_empty());
    record.ok_or_else(|| {
        StorageError::Corrupt("a stored row can't be read: its bytes are damaged".to_owned())
    })
}

fn record(whole: &Bytes, cursor: &mut ByteCursor<'_>, form: ElementEncoding) -> Option<RowRecord> {
    if cursor.byte()? != VERSION {
        return None;
    }
    let flags = cursor.byte()?;
    let base = DefaultStamp {
        timestamp: cursor.timestamp()?,
        lifetime: match flags & record_flag::BASE_LIFETIME {
            0 => None,
            _ => Some(cursor.lifetime()?),
        },
    };
    let mut record = RowRecord {
        has_ranges: flags & record_flag::HAS_RANGES != 0,
        swept: flags & record_flag::SWEPT != 0,
        ..RowRecord::default()
    };
    if flags & record_flag::MARKER != 0 {
        let flags = cursor.byte()?;
        let (timestamp, _, lifetime) = cursor.stamp(flags, &base)?;
        record.marker = Some(RowMarker {
            timestamp,
            lifetime,
        });
    }
    if flags & record_flag::DELETION != 0 {
        record.deletion = Some(cursor.deletion()?);
    }
    if flags & record_flag::CLUSTERING != 0 {
        let count = cursor.count()?;
        let mut value = || Some(whole.slice_ref(cursor.bytes()?));
        record.clustering = Some((0..count).map(|_| value()).collect::<Option<_>>()?);
    }
    let count = cursor.count()?;
    record.cells.reserve_exact(count.min(RESERVED_MAX));
    for _ in 0..count {
        let id = ColumnId(u32::try_from(cursor.varint()?).ok()?);
        record.cells.push((id, column(whole, cursor, base, form)?));
    }
    Some(record)
}

fn column(
    whole: &Bytes,
    cursor: &mut ByteCursor<'_>,
    base: DefaultStamp,
    form: ElementEncoding,
) -> Option<StoredColumn> {
    let flags = cursor.byte()?;
    if flags & stamp_flag::ELEMENTS == 0 {
        let cell = cursor.cell(flags, &base)?;
        return Some(StoredColumn::Simple(cell.to_owned(whole)));
    }
    let deletion = match flags & stamp_flag::ELEMENTS_DELETION {
        0 => None,
        _ => Some(cursor.deletion()?),
    };
    let count = cursor.count()?;
    Some(match form {
        ElementEncoding::Packed => StoredColumn::Packed {
            deletion,
            packed: EncodedElements::read(base, whole, count, cursor)?,
        },
        ElementEncoding::Cells => {
            let mut cells = Vec::with_capacity(count.min(RESERVED_MAX));
            for _ in 0..count {
                let (path, cell) = cursor.element(&base)?;
                cells.push((whole.slice_ref(path), cell.to_owned(whole)));
            }
            StoredColumn::Elements { deletion, cells }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{CellContent, CellLifetime};
    use super::*;
    use crate::read::CellExpiry;

    fn lifetimes() -> impl Strategy<Value = CellLifetime> {
        let few = (0..2_u32, -1..2_i64);
        let any = (any::<u32>(), any::<i64>());
        prop::option::of(prop_oneof![few, any].prop_map(|(ttl_s, at_s)| CellExpiry { ttl_s, at_s }))
    }

    fn timestamps() -> impl Strategy<Value = i64> {
        prop_oneof![Just(7), any::<i64>()]
    }

    fn deletions() -> impl Strategy<Value = DeletionTime> {
        (timestamps(), any::<i64>())
            .prop_map(|(timestamp, local_s)| DeletionTime { timestamp, local_s })
    }

    fn bytes() -> impl Strategy<Value = Bytes> {
        prop_oneof![vec(any::<u8>(), 0..5), vec(any::<u8>(), 200)].prop_map(Bytes::from)
    }

    fn cells() -> impl Strategy<Value = CellRecord> {
        let content = prop_oneof![
            any::<i64>().prop_map(|local_s| CellContent::Tombstone { local_s }),
            (bytes(), lifetimes())
                .prop_map(|(value, lifetime)| CellContent::Value { value, lifetime }),
        ];
        (timestamps(), content).prop_map(|(timestamp, content)| CellRecord { timestamp, content })
    }

    fn columns() -> impl Strategy<Value = StoredColumn> {
        prop_oneof![
            cells().prop_map(StoredColumn::Simple),
            (prop::option::of(deletions()), vec((bytes(), cells()), 0..3))
                .prop_map(|(deletion, cells)| StoredColumn::Elements { deletion, cells }),
        ]
    }

    fn records() -> impl Strategy<Value = RowRecord> {
        let markers = (timestamps(), lifetimes()).prop_map(|(timestamp, lifetime)| RowMarker {
            timestamp,
            lifetime,
        });
        (
            prop::option::of(markers),
            prop::option::of(deletions()),
            prop::option::of(vec(bytes(), 0..3)),
            vec((any::<u32>().prop_map(ColumnId), columns()), 0..4),
            any::<(bool, bool)>(),
        )
            .prop_map(
                |(marker, deletion, clustering, cells, (has_ranges, swept))| RowRecord {
                    marker,
                    deletion,
                    clustering,
                    cells,
                    has_ranges,
                    swept,
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 1000,
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn a_record_comes_back_as_it_was(record in records()) {
            prop_assert_eq!(decode(encode(&record)).unwrap(), record);
        }

        #[test]
        fn a_record_whose_collections_stay_packed_is_the_same(record in records()) {
            let stored = encode(&record);
            let packed = decode_packed(stored.clone()).unwrap();
            prop_assert_eq!(packed.newest(), record.newest());
            prop_assert_eq!(packed.bytes(), record.bytes());
            prop_assert_eq!(encode(&packed), stored);
            // With another base, the bytes of the collections are written again.
            let other = RowRecord {
                marker: Some(RowMarker { timestamp: 3, lifetime: None }),
                ..packed
            };
            let expected = RowRecord { marker: other.marker, ..record };
            prop_assert_eq!(decode(encode(&other)).unwrap(), expected);
        }

        #[test]
        fn damaged_records_are_errors(
            record in records(),
            at in any::<prop::sample::Index>(),
            byte: u8,
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = encode(&record).to_vec();
            prop_assert!(decode(Bytes::copy_from_slice(&bytes[..cut.index(bytes.len())])).is_err());
            let at = at.index(bytes.len());
            bytes[at] = byte;
            // The result is another record or an error, but no panic.
            let bytes = Bytes::from(bytes);
            let read = decode(bytes.clone());
            prop_assert_eq!(decode_packed(bytes).is_ok(), read.is_ok());
        }

        #[test]
        fn garbage_is_no_panic(garbage in vec(any::<u8>(), 0..80)) {
            let _ = decode([&[VERSION][..], &garbage].concat().into());
        }
    }

    #[test]
    fn a_row_written_whole_repeats_no_timestamp() {
        let cell = || {
            StoredColumn::Simple(CellRecord {
                timestamp: 1_700_000_000_000_000,
                content: CellContent::Value {
                    value: Bytes::from_static(b"1234"),
                    lifetime: None,
                },
            })
        };
        let record = RowRecord {
            marker: Some(RowMarker {
                timestamp: 1_700_000_000_000_000,
                lifetime: None,
            }),
            cells: (0..10).map(|id| (ColumnId(id), cell())).collect(),
            ..RowRecord::default()
        };
        // The head takes 12 bytes with the marker and the count. Each cell takes id, flags, length
        // and value.
        assert_eq!(encode(&record).len(), 12 + 10 * 7);
    }
}

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
//! stamp     flags (1), then what they ask for in this order
//!             01 timestamp (8); else it is the base
//!             02 tombstone: local time varint; no value follows
//!             04 lifetime is the base
//!             08 lifetime: ttl varint, expiry varint
//! bytes     length varint, bytes
//! varint    7 bits a byte, least first, the upper bit says that more follow; signed ones zigzag
//! ```
//!
//! The base is the timestamp and lifetime of the marker, or of the first cell if there is no
//! marker. Mostly a row is written whole, and then none of its cells repeats them.

use bytes::{Buf, Bytes};
use schema::ColumnId;

use super::{CellRecord, ColumnRecord, Content, Deletion, Lifetime, Marker, Record};
use crate::StorageError;
use crate::read::Expiry;

const VERSION: u8 = 1;
/// The most items for which room is made at once, as a damaged count must not ask for all memory.
const RESERVED_MAX: usize = 1024;

mod record_flag {
    pub(super) const BASE_LIFETIME: u8 = 0x01;
    pub(super) const MARKER: u8 = 0x02;
    pub(super) const DELETION: u8 = 0x04;
    pub(super) const CLUSTERING: u8 = 0x08;
    pub(super) const HAS_RANGES: u8 = 0x10;
    pub(super) const SWEPT: u8 = 0x20;
}

mod stamp_flag {
    pub(super) const OWN_TIMESTAMP: u8 = 0x01;
    pub(super) const TOMBSTONE: u8 = 0x02;
    pub(super) const BASE_LIFETIME: u8 = 0x04;
    pub(super) const OWN_LIFETIME: u8 = 0x08;
    pub(super) const ELEMENTS_DELETION: u8 = 0x20;
    pub(super) const ELEMENTS: u8 = 0x40;
}

struct Base {
    timestamp: i64,
    lifetime: Lifetime,
}

impl Base {
    fn of(record: &Record) -> Base {
        if let Some(marker) = record.marker {
            return Base {
                timestamp: marker.timestamp,
                lifetime: marker.lifetime,
            };
        }
        let first = record.cells.iter().find_map(|(_, column)| match column {
            ColumnRecord::Simple(cell) => Some(cell),
            ColumnRecord::Elements { cells, .. } => cells.first().map(|(_, cell)| cell),
        });
        Base {
            timestamp: first.map_or(0, |cell| cell.timestamp),
            lifetime: first.and_then(|cell| match &cell.content {
                Content::Value { lifetime, .. } => *lifetime,
                Content::Tombstone { .. } => None,
            }),
        }
    }
}

pub(crate) fn encode(record: &Record) -> Bytes {
    let base = Base::of(record);
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
            ColumnRecord::Simple(cell) => put_cell(&mut out, &base, cell),
            ColumnRecord::Elements { deletion, cells } => {
                match deletion {
                    Some(deletion) => {
                        out.push(stamp_flag::ELEMENTS | stamp_flag::ELEMENTS_DELETION);
                        put_deletion(&mut out, *deletion);
                    }
                    None => out.push(stamp_flag::ELEMENTS),
                }
                put_varint(&mut out, cells.len() as u64);
                for (path, cell) in cells {
                    put_bytes(&mut out, path);
                    put_cell(&mut out, &base, cell);
                }
            }
        }
    }
    out.into()
}

/// The approximate size of an encoded record, so that the buffer seldom grows.
fn encoded_size(record: &Record) -> usize {
    let cell = |cell: &CellRecord| match &cell.content {
        Content::Value { value, .. } => value.len() + 8,
        Content::Tombstone { .. } => 16,
    };
    let cells: usize = record
        .cells
        .iter()
        .map(|(_, column)| match column {
            ColumnRecord::Simple(one) => cell(one),
            ColumnRecord::Elements { cells, .. } => {
                24 + cells
                    .iter()
                    .map(|(path, one)| path.len() + 2 + cell(one))
                    .sum::<usize>()
            }
        })
        .sum();
    32 + cells
}

fn stamp_flags(
    base: &Base,
    timestamp: i64,
    lifetime: Lifetime,
    tombstone: bool,
) -> (u8, Option<Expiry>) {
    let mut flags = 0;
    if timestamp != base.timestamp {
        flags |= stamp_flag::OWN_TIMESTAMP;
    }
    if tombstone {
        flags |= stamp_flag::TOMBSTONE;
    }
    match lifetime {
        None => (flags, None),
        same if same == base.lifetime => (flags | stamp_flag::BASE_LIFETIME, None),
        own => (flags | stamp_flag::OWN_LIFETIME, own),
    }
}

fn put_cell(out: &mut Vec<u8>, base: &Base, cell: &CellRecord) {
    match &cell.content {
        Content::Value { value, lifetime } => {
            let (flags, own) = stamp_flags(base, cell.timestamp, *lifetime, false);
            out.push(flags);
            put_stamp(out, flags, cell.timestamp, own, 0);
            put_bytes(out, value);
        }
        Content::Tombstone { local_s } => {
            let (flags, own) = stamp_flags(base, cell.timestamp, None, true);
            out.push(flags);
            put_stamp(out, flags, cell.timestamp, own, *local_s);
        }
    }
}

fn put_stamp(out: &mut Vec<u8>, flags: u8, timestamp: i64, own: Lifetime, local_s: i64) {
    if flags & stamp_flag::OWN_TIMESTAMP != 0 {
        out.extend_from_slice(&timestamp.to_be_bytes());
    }
    if flags & stamp_flag::TOMBSTONE != 0 {
        put_signed(out, local_s);
    }
    if let Some(expiry) = own {
        put_lifetime(out, expiry);
    }
}

fn put_lifetime(out: &mut Vec<u8>, expiry: Expiry) {
    put_varint(out, u64::from(expiry.ttl_s));
    put_signed(out, expiry.at_s);
}

fn put_deletion(out: &mut Vec<u8>, deletion: Deletion) {
    out.extend_from_slice(&deletion.timestamp.to_be_bytes());
    put_signed(out, deletion.local_s);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a record; its values share the memory of `bytes`.
pub(crate) fn decode(bytes: Bytes) -> Result<Record, StorageError> {
    let mut input = Input(bytes);
    input.record().ok_or_else(|| {
        StorageError::Corrupt("a stored row can't be read: its bytes are damaged".to_owned())
    })
}

struct Input(Bytes);

impl Input {
    fn record(&mut self) -> Option<Record> {
        if self.byte()? != VERSION {
            return None;
        }
        let flags = self.byte()?;
        let base = Base {
            timestamp: self.timestamp()?,
            lifetime: match flags & record_flag::BASE_LIFETIME {
                0 => None,
                _ => Some(self.lifetime()?),
            },
        };
        let mut record = Record {
            has_ranges: flags & record_flag::HAS_RANGES != 0,
            swept: flags & record_flag::SWEPT != 0,
            ..Record::default()
        };
        if flags & record_flag::MARKER != 0 {
            let flags = self.byte()?;
            let (timestamp, _, lifetime) = self.stamp(flags, &base)?;
            record.marker = Some(Marker {
                timestamp,
                lifetime,
            });
        }
        if flags & record_flag::DELETION != 0 {
            record.deletion = Some(self.deletion()?);
        }
        if flags & record_flag::CLUSTERING != 0 {
            let count = self.count()?;
            record.clustering = Some((0..count).map(|_| self.bytes()).collect::<Option<_>>()?);
        }
        let count = self.count()?;
        record.cells.reserve_exact(count.min(RESERVED_MAX));
        for _ in 0..count {
            let id = ColumnId(u32::try_from(self.varint()?).ok()?);
            let column = self.column(&base)?;
            record.cells.push((id, column));
        }
        self.0.is_empty().then_some(record)
    }

    fn column(&mut self, base: &Base) -> Option<ColumnRecord> {
        let flags = self.byte()?;
        if flags & stamp_flag::ELEMENTS == 0 {
            return self.cell(flags, base).map(ColumnRecord::Simple);
        }
        let deletion = match flags & stamp_flag::ELEMENTS_DELETION {
            0 => None,
            _ => Some(self.deletion()?),
        };
        let count = self.count()?;
        let mut cells = Vec::with_capacity(count.min(RESERVED_MAX));
        for _ in 0..count {
            let path = self.bytes()?;
            let flags = self.byte()?;
            cells.push((path, self.cell(flags, base)?));
        }
        Some(ColumnRecord::Elements { deletion, cells })
    }

    fn cell(&mut self, flags: u8, base: &Base) -> Option<CellRecord> {
        let (timestamp, local_s, lifetime) = self.stamp(flags, base)?;
        let content = match local_s {
            Some(local_s) => Content::Tombstone { local_s },
            None => Content::Value {
                value: self.bytes()?,
                lifetime,
            },
        };
        Some(CellRecord { timestamp, content })
    }

    fn stamp(&mut self, flags: u8, base: &Base) -> Option<(i64, Option<i64>, Lifetime)> {
        let timestamp = match flags & stamp_flag::OWN_TIMESTAMP {
            0 => base.timestamp,
            _ => self.timestamp()?,
        };
        let local_s = match flags & stamp_flag::TOMBSTONE {
            0 => None,
            _ => Some(self.signed()?),
        };
        let lifetime = match flags & (stamp_flag::BASE_LIFETIME | stamp_flag::OWN_LIFETIME) {
            0 => None,
            stamp_flag::BASE_LIFETIME => base.lifetime,
            _ => Some(self.lifetime()?),
        };
        Some((timestamp, local_s, lifetime))
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.0.first()?;
        self.0.advance(1);
        Some(byte)
    }

    fn timestamp(&mut self) -> Option<i64> {
        let bytes = *self.0.first_chunk::<8>()?;
        self.0.advance(8);
        Some(i64::from_be_bytes(bytes))
    }

    fn deletion(&mut self) -> Option<Deletion> {
        Some(Deletion {
            timestamp: self.timestamp()?,
            local_s: self.signed()?,
        })
    }

    fn lifetime(&mut self) -> Option<Expiry> {
        Some(Expiry {
            ttl_s: u32::try_from(self.varint()?).ok()?,
            at_s: self.signed()?,
        })
    }

    /// Reads a number of items. Each takes at least a byte, so a number above the bytes left is
    /// damage.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.varint()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    fn bytes(&mut self) -> Option<Bytes> {
        let length = self.count()?;
        Some(self.0.split_to(length))
    }

    fn signed(&mut self) -> Option<i64> {
        let raw = self.varint()?;
        Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn lifetimes() -> impl Strategy<Value = Lifetime> {
        let few = (0..2_u32, -1..2_i64);
        let any = (any::<u32>(), any::<i64>());
        prop::option::of(prop_oneof![few, any].prop_map(|(ttl_s, at_s)| Expiry { ttl_s, at_s }))
    }

    fn timestamps() -> impl Strategy<Value = i64> {
        prop_oneof![Just(7), any::<i64>()]
    }

    fn deletions() -> impl Strategy<Value = Deletion> {
        (timestamps(), any::<i64>())
            .prop_map(|(timestamp, local_s)| Deletion { timestamp, local_s })
    }

    fn bytes() -> impl Strategy<Value = Bytes> {
        prop_oneof![vec(any::<u8>(), 0..5), vec(any::<u8>(), 200)].prop_map(Bytes::from)
    }

    fn cells() -> impl Strategy<Value = CellRecord> {
        let content = prop_oneof![
            any::<i64>().prop_map(|local_s| Content::Tombstone { local_s }),
            (bytes(), lifetimes()).prop_map(|(value, lifetime)| Content::Value { value, lifetime }),
        ];
        (timestamps(), content).prop_map(|(timestamp, content)| CellRecord { timestamp, content })
    }

    fn columns() -> impl Strategy<Value = ColumnRecord> {
        prop_oneof![
            cells().prop_map(ColumnRecord::Simple),
            (prop::option::of(deletions()), vec((bytes(), cells()), 0..3))
                .prop_map(|(deletion, cells)| ColumnRecord::Elements { deletion, cells }),
        ]
    }

    fn records() -> impl Strategy<Value = Record> {
        let markers = (timestamps(), lifetimes()).prop_map(|(timestamp, lifetime)| Marker {
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
                |(marker, deletion, clustering, cells, (has_ranges, swept))| Record {
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
            let _ = decode(bytes.into());
        }

        #[test]
        fn garbage_is_no_panic(garbage in vec(any::<u8>(), 0..80)) {
            let _ = decode([&[VERSION][..], &garbage].concat().into());
        }
    }

    #[test]
    fn a_row_written_whole_repeats_no_timestamp() {
        let cell = || {
            ColumnRecord::Simple(CellRecord {
                timestamp: 1_700_000_000_000_000,
                content: Content::Value {
                    value: Bytes::from_static(b"1234"),
                    lifetime: None,
                },
            })
        };
        let record = Record {
            marker: Some(Marker {
                timestamp: 1_700_000_000_000_000,
                lifetime: None,
            }),
            cells: (0..10).map(|id| (ColumnId(id), cell())).collect(),
            ..Record::default()
        };
        // The head takes 12 bytes with the marker and the count. Each cell takes id, flags, length
        // and value.
        assert_eq!(encode(&record).len(), 12 + 10 * 7);
    }
}

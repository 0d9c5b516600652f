//! The stored bytes of a cell, of an element of a collection, and of what they are made of. The
//! format is in [`super::codec`].

use super::{CellLifetime, CellView, ContentView, DeletionTime};
use crate::read::CellExpiry;

pub(super) mod stamp_flag {
    pub(in crate::record) const OWN_TIMESTAMP: u8 = 0x01;
    pub(in crate::record) const TOMBSTONE: u8 = 0x02;
    pub(in crate::record) const BASE_LIFETIME: u8 = 0x04;
    pub(in crate::record) const OWN_LIFETIME: u8 = 0x08;
    pub(in crate::record) const ELEMENTS_DELETION: u8 = 0x20;
    pub(in crate::record) const ELEMENTS: u8 = 0x40;
}

/// The timestamp and lifetime that the stamps of a record leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DefaultStamp {
    pub(super) timestamp: i64,
    pub(super) lifetime: CellLifetime,
}

/// Appends an element of a collection.
pub(super) fn put_element(out: &mut Vec<u8>, base: &DefaultStamp, path: &[u8], cell: CellView<'_>) {
    put_bytes(out, path);
    put_cell(out, base, cell);
}

pub(super) fn stamp_flags(
    base: &DefaultStamp,
    timestamp: i64,
    lifetime: CellLifetime,
    tombstone: bool,
) -> (u8, Option<CellExpiry>) {
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

pub(super) fn put_cell(out: &mut Vec<u8>, base: &DefaultStamp, cell: CellView<'_>) {
    match cell.content {
        ContentView::Value { value, lifetime } => {
            let (flags, own) = stamp_flags(base, cell.timestamp, lifetime, false);
            out.push(flags);
            put_stamp(out, flags, cell.timestamp, own, 0);
            put_bytes(out, value);
        }
        ContentView::Tombstone { local_s } => {
            let (flags, own) = stamp_flags(base, cell.timestamp, None, true);
            out.push(flags);
            put_stamp(out, flags, cell.timestamp, own, local_s);
        }
    }
}

pub(super) fn put_stamp(
    out: &mut Vec<u8>,
    flags: u8,
    timestamp: i64,
    own: CellLifetime,
    local_s: i64,
) {
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

pub(super) fn put_lifetime(out: &mut Vec<u8>, expiry: CellExpiry) {
    put_varint(out, u64::from(expiry.ttl_s));
    put_signed(out, expiry.at_s);
}

pub(super) fn put_deletion(out: &mut Vec<u8>, deletion: DeletionTime) {
    out.extend_from_slice(&deletion.timestamp.to_be_bytes());
    put_signed(out, deletion.local_s);
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads stored bytes from their beginning on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteCursor<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> ByteCursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> ByteCursor<'a> {
        ByteCursor { rest: bytes }
    }

    /// Reads an element of a collection: its path and its cell.
    pub(super) fn element(&mut self, base: &DefaultStamp) -> Option<(&'a [u8], CellView<'a>)> {
        let path = self.bytes()?;
        let flags = self.byte()?;
        Some((path, self.cell(flags, base)?))
    }

    pub(super) fn cell(&mut self, flags: u8, base: &DefaultStamp) -> Option<CellView<'a>> {
        let (timestamp, local_s, lifetime) = self.stamp(flags, base)?;
        let content = match local_s {
            Some(local_s) => ContentView::Tombstone { local_s },
            None => ContentView::Value {
                value: self.bytes()?,
                lifetime,
            },
        };
        Some(CellView { timestamp, content })
    }

    pub(super) fn stamp(
        &mut self,
        flags: u8,
        base: &DefaultStamp,
    ) -> Option<(i64, Option<i64>, CellLifetime)> {
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

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    pub(super) fn timestamp(&mut self) -> Option<i64> {
        let (bytes, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(i64::from_be_bytes(*bytes))
    }

    pub(super) fn deletion(&mut self) -> Option<DeletionTime> {
        Some(DeletionTime {
            timestamp: self.timestamp()?,
            local_s: self.signed()?,
        })
    }

    pub(super) fn lifetime(&mut self) -> Option<CellExpiry> {
        Some(CellExpiry {
            ttl_s: u32::try_from(self.varint()?).ok()?,
            at_s: self.signed()?,
        })
    }

    /// Reads a number of items. Each takes at least a byte, so a number above the bytes left is
    /// damage.
    pub(super) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.varint()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let raw = self.varint()?;
        Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
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

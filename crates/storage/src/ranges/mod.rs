//! The range deletions of a partition: disjoint intervals of clustering suffixes.
//!
//! A new deletion cuts the intervals that it overlaps. So for each suffix only the newest deletion
//! is stored, and intervals that are wholly covered by a newer one are removed. As the intervals
//! are disjoint and sorted by their beginnings, one look backwards from a suffix finds the only one
//! that can cover it, however many there are.
//!
//! ```text
//! key       partition, kind 01, the suffix at which the interval begins
//! value     version (1 byte: 1), 01 if it is swept, else 00 (1), timestamp (8, big-endian),
//!           local time (8), the suffix at which the interval ends
//! ```

mod cursor;
mod cut;
mod stored;

use bytes::Bytes;

use crate::StorageError;
use crate::record::DeletionTime;

pub(crate) use cursor::TombstoneCursor;
pub(crate) use cut::{add, mark_swept};
pub(crate) use stored::StoredRanges;

const VERSION: u8 = 1;

/// A range deletion: the rows with `start <= suffix < end` are deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeTombstone {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    pub deletion: DeletionTime,
    /// Whether none of the rows that the interval covers is stored any more.
    pub swept: bool,
}

impl RangeTombstone {
    /// Whether an interval that does not begin after the suffix covers it.
    pub(crate) fn reaches(&self, suffix: &[u8]) -> bool {
        suffix < self.end.as_slice()
    }

    pub(crate) fn covers(&self, suffix: &[u8]) -> bool {
        self.start.as_slice() <= suffix && self.reaches(suffix)
    }

    /// The value that is stored under the interval's beginning.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(18 + self.end.len());
        out.push(VERSION);
        out.push(u8::from(self.swept));
        out.extend_from_slice(&self.deletion.timestamp.to_be_bytes());
        out.extend_from_slice(&self.deletion.local_s.to_be_bytes());
        out.extend_from_slice(&self.end);
        out.into()
    }

    fn decode(start: &[u8], value: &[u8]) -> Result<RangeTombstone, StorageError> {
        try_decode(start, value).ok_or_else(|| {
            StorageError::Corrupt(
                "a stored range deletion can't be read: its bytes are damaged".to_owned(),
            )
        })
    }
}

/// Whether a stored interval may be forgotten: it is swept, and was made at or before that second.
pub(crate) fn is_forgettable(value: &[u8], before_s: i64) -> bool {
    try_decode(&[], value)
        .is_some_and(|interval| interval.swept && interval.deletion.local_s <= before_s)
}

fn try_decode(start: &[u8], value: &[u8]) -> Option<RangeTombstone> {
    let ([version, swept], rest) = value.split_first_chunk::<2>()?;
    let (timestamp, rest) = rest.split_first_chunk::<8>()?;
    let (local_s, end) = rest.split_first_chunk::<8>()?;
    let interval = RangeTombstone {
        start: start.to_vec(),
        end: end.to_vec(),
        deletion: DeletionTime {
            timestamp: i64::from_be_bytes(*timestamp),
            local_s: i64::from_be_bytes(*local_s),
        },
        swept: *swept == 1,
    };
    (*version == VERSION).then_some(interval)
}

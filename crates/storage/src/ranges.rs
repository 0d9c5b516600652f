//! The range deletions of a partition: disjoint intervals of clustering suffixes.
//!
//! ```text
//! key       partition, kind 01, the suffix where the interval begins
//! value     version (1 byte: 1), 01 if it is swept, else 00 (1), timestamp (8, big-endian),
//!           local time (8), the suffix where it ends
//! ```

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::StorageError;
use crate::engine::{Engine, Snapshot, SpaceId};
use crate::key::{self, RANGE, ROW, SuffixRange};
use crate::record::Deletion;

const VERSION: u8 = 1;

/// Intervals by their beginning; where a new one overlaps older ones, they are cut so that for
/// each suffix the winning deletion alone stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeDeletions {
    by_start: BTreeMap<Vec<u8>, Interval>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    end: Vec<u8>,
    deletion: Deletion,
    /// Whether nothing of what it covers is stored any more.
    swept: bool,
}

impl RangeDeletions {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Reads those of a partition.
    pub(crate) fn read(
        engine: &Engine,
        snapshot: &Snapshot,
        space: SpaceId,
        partition: &[u8],
    ) -> Result<RangeDeletions, StorageError> {
        let from = key::bound(partition, RANGE, &[]);
        let prefix = from.len();
        let to = key::bound(partition, ROW, &[]);
        let mut deletions = RangeDeletions::default();
        let range = (Bound::Included(from), Bound::Excluded(to));
        for entry in engine.scan_at(snapshot, space, range)? {
            let (key, value) = entry?;
            deletions.load(&key[prefix..], &value)?;
        }
        Ok(deletions)
    }

    /// Adds an interval that is known not to overlap, as read from disk.
    pub(crate) fn load(&mut self, start: &[u8], value: &Bytes) -> Result<(), StorageError> {
        let interval = decode(value).ok_or_else(|| {
            StorageError::Corrupt(
                "a stored range deletion can't be read: its bytes are damaged".to_owned(),
            )
        })?;
        self.by_start.insert(start.to_vec(), interval);
        Ok(())
    }

    /// The deletion that covers a row.
    pub(crate) fn covering(&self, suffix: &[u8]) -> Option<Deletion> {
        let up_to = (Bound::Unbounded, Bound::Included(suffix));
        let (_, interval) = self.by_start.range::<[u8], _>(up_to).next_back()?;
        (suffix < interval.end.as_slice()).then_some(interval.deletion)
    }

    pub(crate) fn add(&mut self, range: &SuffixRange, deletion: Deletion) {
        if range.is_empty() {
            return;
        }
        let new = |end: Vec<u8>| Interval {
            end,
            deletion,
            swept: false,
        };
        let mut pieces = Vec::new();
        let mut at = range.low.clone();
        for (start, old) in self.take_overlapping(range) {
            let end = old.end.clone();
            let old_to = |end: Vec<u8>| Interval { end, ..old.clone() };
            if start < range.low {
                pieces.push((start.clone(), old_to(range.low.clone())));
            }
            let from = start.max(range.low.clone());
            if at < from {
                pieces.push((at, new(from.clone())));
            }
            let to = end.clone().min(range.high.clone());
            let winner = if deletion.supersedes(&old.deletion) {
                new(to.clone())
            } else {
                old_to(to.clone())
            };
            pieces.push((from, winner));
            if end > range.high {
                pieces.push((range.high.clone(), old_to(end)));
            }
            at = to;
        }
        if at < range.high {
            pieces.push((at, new(range.high.clone())));
        }
        self.insert_pieces(pieces);
    }

    /// Notes that nothing is stored any more of what this deletion covers in the range.
    pub(crate) fn mark_swept(&mut self, range: &SuffixRange, deletion: Deletion) {
        let mut pieces = Vec::new();
        for (start, old) in self.take_overlapping(range) {
            if old.deletion != deletion {
                pieces.push((start, old));
                continue;
            }
            let end = old.end.clone();
            let part = |end: Vec<u8>, swept| Interval {
                end,
                deletion,
                swept,
            };
            if start < range.low {
                pieces.push((start.clone(), part(range.low.clone(), old.swept)));
            }
            let from = start.max(range.low.clone());
            pieces.push((from, part(end.clone().min(range.high.clone()), true)));
            if end > range.high {
                pieces.push((range.high.clone(), part(end, old.swept)));
            }
        }
        self.insert_pieces(pieces);
    }

    /// Drops what a deletion of the whole partition covers.
    pub(crate) fn apply_wider_deletion(&mut self, timestamp: i64) {
        self.by_start
            .retain(|_, interval| interval.deletion.timestamp > timestamp);
    }

    /// What is stored for the interval that begins there.
    pub(crate) fn value_at(&self, start: &[u8]) -> Option<Bytes> {
        self.by_start.get(start).map(encode)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Vec<u8>, Bytes)> {
        self.by_start
            .iter()
            .map(|(start, interval)| (start, encode(interval)))
    }

    fn take_overlapping(&mut self, range: &SuffixRange) -> Vec<(Vec<u8>, Interval)> {
        let up_to_low = (Bound::Unbounded, Bound::Included(range.low.as_slice()));
        let within = (
            Bound::Excluded(range.low.as_slice()),
            Bound::Excluded(range.high.as_slice()),
        );
        let first = self
            .by_start
            .range::<[u8], _>(up_to_low)
            .next_back()
            .filter(|(_, interval)| interval.end > range.low);
        let starts: Vec<Vec<u8>> = first
            .into_iter()
            .chain(self.by_start.range::<[u8], _>(within))
            .map(|(start, _)| start.clone())
            .collect();
        starts
            .into_iter()
            .filter_map(|start| self.by_start.remove_entry(&start))
            .collect()
    }

    /// Pieces in order; neighbours of the same deletion become one.
    fn insert_pieces(&mut self, pieces: Vec<(Vec<u8>, Interval)>) {
        let mut merged: Vec<(Vec<u8>, Interval)> = Vec::with_capacity(pieces.len());
        for (start, piece) in pieces {
            match merged.last_mut() {
                Some((_, last))
                    if last.end == start
                        && last.deletion == piece.deletion
                        && last.swept == piece.swept =>
                {
                    last.end = piece.end;
                }
                _ => merged.push((start, piece)),
            }
        }
        self.by_start.extend(merged);
    }
}

/// Whether a stored interval covers nothing any more and was made by that second.
pub(crate) fn is_forgettable(value: &[u8], before_s: i64) -> bool {
    decode(value).is_some_and(|interval| interval.swept && interval.deletion.local_s <= before_s)
}

fn encode(interval: &Interval) -> Bytes {
    let mut out = Vec::with_capacity(18 + interval.end.len());
    out.push(VERSION);
    out.push(u8::from(interval.swept));
    out.extend_from_slice(&interval.deletion.timestamp.to_be_bytes());
    out.extend_from_slice(&interval.deletion.local_s.to_be_bytes());
    out.extend_from_slice(&interval.end);
    out.into()
}

fn decode(value: &[u8]) -> Option<Interval> {
    let ([version, swept], rest) = value.split_first_chunk::<2>()?;
    let (timestamp, rest) = rest.split_first_chunk::<8>()?;
    let (local_s, end) = rest.split_first_chunk::<8>()?;
    let interval = Interval {
        end: end.to_vec(),
        deletion: Deletion {
            timestamp: i64::from_be_bytes(*timestamp),
            local_s: i64::from_be_bytes(*local_s),
        },
        swept: *swept == 1,
    };
    (*version == VERSION).then_some(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: u8, high: u8) -> SuffixRange {
        SuffixRange {
            low: vec![low],
            high: vec![high],
        }
    }

    fn deletion(timestamp: i64) -> Deletion {
        Deletion {
            timestamp,
            local_s: 0,
        }
    }

    #[test]
    fn the_newest_of_overlapping_deletions_counts_for_each_row() {
        // Every order of a few overlapping intervals against a plain maximum.
        let intervals = [
            (2, 9, 5),
            (4, 6, 7),
            (1, 3, 6),
            (0, 20, 1),
            (5, 12, 4),
            (7, 8, 9),
        ];
        for rotation in 0..intervals.len() {
            let mut deletions = RangeDeletions::default();
            for step in 0..intervals.len() {
                let (low, high, timestamp) = intervals[(rotation + step * 5) % intervals.len()];
                deletions.add(&range(low, high), deletion(timestamp));
            }
            for row in 0..22_u8 {
                let expected = intervals
                    .iter()
                    .filter(|(low, high, _)| (*low..*high).contains(&row))
                    .map(|(_, _, timestamp)| *timestamp)
                    .max();
                let found = deletions.covering(&[row]).map(|found| found.timestamp);
                assert_eq!(found, expected, "row {row}, rotation {rotation}");
            }
            let mut loaded = RangeDeletions::default();
            for (start, value) in deletions.entries() {
                loaded.load(start, &value).unwrap();
            }
            assert_eq!(loaded, deletions);
        }
    }

    #[test]
    fn parts_of_an_interval_are_swept_one_by_one() {
        let mut deletions = RangeDeletions::default();
        deletions.add(&range(1, 5), deletion(3));
        deletions.add(&range(4, 9), deletion(3));
        deletions.add(&range(2, 3), deletion(7));
        let forgettable = |deletions: &RangeDeletions| {
            let all = deletions.entries();
            all.filter(|(_, value)| is_forgettable(value, 0)).count()
        };
        deletions.mark_swept(&range(1, 5), deletion(3));
        assert_eq!(
            forgettable(&deletions),
            2,
            "before and behind the newer one"
        );
        deletions.mark_swept(&range(4, 9), deletion(3));
        deletions.mark_swept(&range(2, 3), deletion(7));
        assert_eq!(forgettable(&deletions), deletions.entries().count());
        for row in 1..9 {
            let timestamp = if row == 2 { 7 } else { 3 };
            assert_eq!(deletions.covering(&[row]), Some(deletion(timestamp)));
        }
    }

    #[test]
    fn growing_deletions_of_one_time_stay_one_interval() {
        let mut deletions = RangeDeletions::default();
        for high in 2..9 {
            deletions.add(&range(1, high), deletion(3));
        }
        assert_eq!(deletions.entries().count(), 1);
        assert_eq!(deletions.covering(&[8]), None);
        assert_eq!(deletions.covering(&[7]), Some(deletion(3)));
    }
}

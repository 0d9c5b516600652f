//! The range deletions of a partition: disjoint intervals of clustering suffixes.
//!
//! ```text
//! key       partition, kind 01, the suffix where the interval begins
//! value     version (1 byte: 1), timestamp (8, big-endian), local time (8), the suffix where it ends
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
    by_start: BTreeMap<Vec<u8>, (Vec<u8>, Deletion)>,
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
        let (end, deletion) = decode(value)?;
        self.by_start.insert(start.to_vec(), (end, deletion));
        Ok(())
    }

    /// The deletion that covers a row.
    pub(crate) fn covering(&self, suffix: &[u8]) -> Option<Deletion> {
        let (_, (end, deletion)) = self
            .by_start
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(suffix)))
            .next_back()?;
        (suffix < end.as_slice()).then_some(*deletion)
    }

    pub(crate) fn add(&mut self, range: &SuffixRange, deletion: Deletion) {
        if range.is_empty() {
            return;
        }
        let mut pieces = Vec::new();
        let mut at = range.low.clone();
        for (start, (end, old)) in self.take_overlapping(range) {
            if start < range.low {
                pieces.push((start.clone(), range.low.clone(), old));
            }
            let from = start.max(range.low.clone());
            if at < from {
                pieces.push((at, from.clone(), deletion));
            }
            let to = end.clone().min(range.high.clone());
            let winner = if deletion.supersedes(&old) {
                deletion
            } else {
                old
            };
            pieces.push((from, to.clone(), winner));
            if end > range.high {
                pieces.push((range.high.clone(), end, old));
            }
            at = to;
        }
        if at < range.high {
            pieces.push((at, range.high.clone(), deletion));
        }
        self.insert_pieces(pieces);
    }

    /// Drops what a deletion of the whole partition covers.
    pub(crate) fn apply_wider_deletion(&mut self, timestamp: i64) {
        self.by_start
            .retain(|_, (_, deletion)| deletion.timestamp > timestamp);
    }

    /// What is stored for the interval that begins there.
    pub(crate) fn value_at(&self, start: &[u8]) -> Option<Bytes> {
        let (end, deletion) = self.by_start.get(start)?;
        Some(encode(end, *deletion))
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Vec<u8>, Bytes)> {
        self.by_start
            .iter()
            .map(|(start, (end, deletion))| (start, encode(end, *deletion)))
    }

    fn take_overlapping(&mut self, range: &SuffixRange) -> Vec<(Vec<u8>, (Vec<u8>, Deletion))> {
        let first = self
            .by_start
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(range.low.as_slice())))
            .next_back()
            .filter(|(_, (end, _))| *end > range.low)
            .map(|(start, _)| start.clone());
        let starts: Vec<Vec<u8>> = first
            .into_iter()
            .chain(
                self.by_start
                    .range(range.low.clone()..range.high.clone())
                    .map(|(start, _)| start.clone())
                    .filter(|start| *start > range.low),
            )
            .collect();
        starts
            .into_iter()
            .filter_map(|start| self.by_start.remove_entry(&start))
            .collect()
    }

    /// Pieces in order; neighbours of the same deletion become one.
    fn insert_pieces(&mut self, pieces: Vec<(Vec<u8>, Vec<u8>, Deletion)>) {
        let mut merged: Vec<(Vec<u8>, Vec<u8>, Deletion)> = Vec::with_capacity(pieces.len());
        for (start, end, deletion) in pieces {
            match merged.last_mut() {
                Some((_, last_end, last)) if *last_end == start && *last == deletion => {
                    *last_end = end;
                }
                _ => merged.push((start, end, deletion)),
            }
        }
        for (start, end, deletion) in merged {
            self.by_start.insert(start, (end, deletion));
        }
    }
}

fn encode(end: &[u8], deletion: Deletion) -> Bytes {
    let mut out = Vec::with_capacity(17 + end.len());
    out.push(VERSION);
    out.extend_from_slice(&deletion.timestamp.to_be_bytes());
    out.extend_from_slice(&deletion.local_s.to_be_bytes());
    out.extend_from_slice(end);
    out.into()
}

fn decode(value: &[u8]) -> Result<(Vec<u8>, Deletion), StorageError> {
    let read = || {
        let (version, rest) = value.split_first()?;
        let (timestamp, rest) = rest.split_first_chunk::<8>()?;
        let (local_s, end) = rest.split_first_chunk::<8>()?;
        let deletion = Deletion {
            timestamp: i64::from_be_bytes(*timestamp),
            local_s: i64::from_be_bytes(*local_s),
        };
        (*version == VERSION).then(|| (end.to_vec(), deletion))
    };
    read().ok_or_else(|| {
        StorageError::Corrupt(
            "a stored range deletion can't be read: its bytes are damaged".to_owned(),
        )
    })
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

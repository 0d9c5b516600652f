//! The change that a deletion makes to the intervals that it overlaps.

use super::RangeTombstone;
use crate::key::SuffixRange;
use crate::record::DeletionTime;

/// Adds a deletion of the range. Returns the intervals that replace `overlapped`, which are all
/// intervals that overlap the range, in order.
pub(crate) fn add(
    overlapped: &[RangeTombstone],
    range: &SuffixRange,
    deletion: DeletionTime,
) -> Vec<RangeTombstone> {
    let new = |start: &[u8], end: &[u8]| RangeTombstone {
        start: start.to_vec(),
        end: end.to_vec(),
        deletion,
        swept: false,
    };
    let mut pieces = CoalescedTombstones::default();
    let mut at = range.low.as_slice();
    for old in overlapped {
        let (before, within, behind) = old.split(range);
        pieces.extend(before);
        if at < within.start.as_slice() {
            pieces.push(new(at, &within.start));
        }
        at = old.end.as_slice().min(range.high.as_slice());
        pieces.push(if deletion.supersedes(&old.deletion) {
            new(&within.start, &within.end)
        } else {
            within
        });
        pieces.extend(behind);
    }
    if at < range.high.as_slice() {
        pieces.push(new(at, &range.high));
    }
    pieces.0
}

/// Marks a deletion as swept within the range. Arguments and result are those of [`add`].
pub(crate) fn mark_swept(
    overlapped: &[RangeTombstone],
    range: &SuffixRange,
    deletion: DeletionTime,
) -> Vec<RangeTombstone> {
    let mut pieces = CoalescedTombstones::default();
    for old in overlapped {
        if old.deletion != deletion {
            pieces.push(old.clone());
            continue;
        }
        let (before, within, behind) = old.split(range);
        pieces.extend(before);
        pieces.push(RangeTombstone {
            swept: true,
            ..within
        });
        pieces.extend(behind);
    }
    pieces.0
}

impl RangeTombstone {
    /// Splits the interval at a range that it overlaps, into the parts before, in and after the
    /// range.
    fn split(
        &self,
        range: &SuffixRange,
    ) -> (
        Option<RangeTombstone>,
        RangeTombstone,
        Option<RangeTombstone>,
    ) {
        let part = |start: &[u8], end: &[u8]| RangeTombstone {
            start: start.to_vec(),
            end: end.to_vec(),
            ..*self
        };
        let before = (self.start < range.low).then(|| part(&self.start, &range.low));
        let behind = (self.end > range.high).then(|| part(&range.high, &self.end));
        let low = self.start.as_slice().max(range.low.as_slice());
        let high = self.end.as_slice().min(range.high.as_slice());
        (before, part(low, high), behind)
    }
}

/// Intervals in order; neighbours of the same deletion become one.
#[derive(Default)]
struct CoalescedTombstones(Vec<RangeTombstone>);

impl CoalescedTombstones {
    fn push(&mut self, piece: RangeTombstone) {
        match self.0.last_mut() {
            Some(last)
                if last.end == piece.start
                    && last.deletion == piece.deletion
                    && last.swept == piece.swept =>
            {
                last.end = piece.end;
            }
            _ => self.0.push(piece),
        }
    }

    fn extend(&mut self, pieces: impl IntoIterator<Item = RangeTombstone>) {
        for piece in pieces {
            self.push(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::is_forgettable;
    use super::*;

    /// The intervals of a partition, all in memory.
    #[derive(Default)]
    struct All(Vec<RangeTombstone>);

    impl All {
        fn change(
            &mut self,
            range: &SuffixRange,
            deletion: DeletionTime,
            how: fn(&[RangeTombstone], &SuffixRange, DeletionTime) -> Vec<RangeTombstone>,
        ) {
            let overlaps = |old: &RangeTombstone| old.start < range.high && range.low < old.end;
            let (overlapped, mut kept): (Vec<_>, Vec<_>) = self.0.drain(..).partition(overlaps);
            kept.extend(how(&overlapped, range, deletion));
            kept.sort_by(|a, b| a.start.cmp(&b.start));
            assert!(kept.windows(2).all(|pair| pair[0].end <= pair[1].start));
            self.0 = kept;
        }

        fn add(&mut self, range: &SuffixRange, deletion: DeletionTime) {
            self.change(range, deletion, add);
        }

        fn covering(&self, row: u8) -> Option<DeletionTime> {
            let found = self.0.iter().find(|interval| interval.covers(&[row]))?;
            Some(found.deletion)
        }

        fn forgettable(&self) -> usize {
            let values = self.0.iter().map(RangeTombstone::encode);
            values.filter(|value| is_forgettable(value, 0)).count()
        }
    }

    fn range(low: u8, high: u8) -> SuffixRange {
        SuffixRange {
            low: vec![low],
            high: vec![high],
        }
    }

    fn deletion(timestamp: i64) -> DeletionTime {
        DeletionTime {
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
            let mut all = All::default();
            for step in 0..intervals.len() {
                let (low, high, timestamp) = intervals[(rotation + step * 5) % intervals.len()];
                all.add(&range(low, high), deletion(timestamp));
            }
            for row in 0..22_u8 {
                let expected = intervals
                    .iter()
                    .filter(|(low, high, _)| (*low..*high).contains(&row))
                    .map(|(_, _, timestamp)| *timestamp)
                    .max();
                let found = all.covering(row).map(|found| found.timestamp);
                assert_eq!(found, expected, "row {row}, rotation {rotation}");
            }
            for interval in &all.0 {
                let read = RangeTombstone::decode(&interval.start, &interval.encode()).unwrap();
                assert_eq!(&read, interval);
            }
        }
    }

    #[test]
    fn parts_of_an_interval_are_swept_one_by_one() {
        let mut all = All::default();
        all.add(&range(1, 5), deletion(3));
        all.add(&range(4, 9), deletion(3));
        all.add(&range(2, 3), deletion(7));
        all.change(&range(1, 5), deletion(3), mark_swept);
        assert_eq!(all.forgettable(), 2, "before and behind the newer one");
        all.change(&range(4, 9), deletion(3), mark_swept);
        all.change(&range(2, 3), deletion(7), mark_swept);
        assert_eq!(all.forgettable(), all.0.len());
        for row in 1..9 {
            let timestamp = if row == 2 { 7 } else { 3 };
            assert_eq!(all.covering(row), Some(deletion(timestamp)));
        }
    }

    #[test]
    fn growing_deletions_of_one_time_stay_one_interval() {
        let mut all = All::default();
        for high in 2..9 {
            all.add(&range(1, high), deletion(3));
        }
        assert_eq!(all.0.len(), 1);
        assert_eq!(all.covering(8), None);
        assert_eq!(all.covering(7), Some(deletion(3)));
    }

    #[test]
    fn intervals_that_a_newer_deletion_covers_are_removed() {
        let mut all = All::default();
        for low in 0..100 {
            all.add(&range(2 * low, 2 * low + 1), deletion(3));
        }
        assert_eq!(all.0.len(), 100);
        all.add(&range(0, 200), deletion(4));
        assert_eq!(all.0.len(), 1);
    }
}

//! The ranges of partitions in which sweeps have left no row.
//!
//! Where a window slides (`DELETE ... WHERE p = 1 AND c < k`, with a greater `k` each time), each
//! deletion covers all those before it. The rows there are removed, but their keys stay in memory
//! as deleted ones for a while, and a sweep would pass all of them again. So the committer
//! remembers what it has emptied, until a row is written there. As nothing else writes, it misses
//! none.

use std::collections::HashMap;

use crate::engine::SpaceId;
use crate::key::{ROW, SuffixRange};
use crate::layout::ResolvedSchema;
use crate::record::RowRecord;

/// Partitions that are remembered. Beyond these all are forgotten.
const PARTITIONS_MAX: usize = 1024;

/// The emptied range of each partition. A partition has one at most.
#[derive(Debug, Default)]
pub(super) struct EmptyRanges {
    ranges: HashMap<(SpaceId, Vec<u8>), SuffixRange>,
}

impl EmptyRanges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Takes what is known to be empty from the beginning of a range.
    pub(super) fn shorten(&self, space: SpaceId, partition: &[u8], range: &mut SuffixRange) {
        if let Some(known) = self.ranges.get(&(space, partition.to_vec()))
            && known.low <= range.low
            && range.low < known.high
        {
            range.low = known.high.clone().min(range.high.clone());
        }
    }

    /// Notes that no row is left in a range.
    pub(super) fn add(&mut self, space: SpaceId, partition: &[u8], emptied: SuffixRange) {
        if self.ranges.len() >= PARTITIONS_MAX {
            self.ranges.clear();
        }
        let known = self.ranges.entry((space, partition.to_vec()));
        let known = known.or_insert_with(|| emptied.clone());
        if emptied.low <= known.high && known.low <= emptied.high {
            known.low = emptied.low.min(std::mem::take(&mut known.low));
            known.high = emptied.high.max(std::mem::take(&mut known.high));
        } else {
            *known = emptied;
        }
    }

    /// Forgets the range of a partition.
    pub(super) fn forget(&mut self, space: SpaceId, partition: &[u8]) {
        self.ranges.remove(&(space, partition.to_vec()));
    }

    /// Forgets the ranges in which rows are written.
    pub(super) fn note_written<'c>(
        &mut self,
        schema: &ResolvedSchema,
        records: impl Iterator<Item = (SpaceId, &'c [u8], &'c RowRecord)>,
    ) {
        for (space, key, record) in records {
            if record.is_empty() {
                continue;
            }
            let Ok(table) = schema.table(space.table()) else {
                continue;
            };
            let Some(parts) = table.keys.split(key).filter(|parts| parts.kind == ROW) else {
                continue;
            };
            let place = (space, parts.partition.to_vec());
            let is_within = self.ranges.get(&place).is_some_and(|range| {
                range.low.as_slice() <= parts.suffix && parts.suffix < range.high.as_slice()
            });
            if is_within {
                self.ranges.remove(&place);
            }
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use schema::TableId;
    use uuid::Uuid;

    use super::*;

    fn range(low: u8, high: u8) -> SuffixRange {
        SuffixRange {
            low: vec![low],
            high: vec![high],
        }
    }

    #[test]
    fn a_range_begins_behind_what_is_empty() {
        let space = SpaceId::new(TableId(Uuid::nil()), 1);
        let mut emptied = EmptyRanges::default();
        let from = |emptied: &EmptyRanges, low, high| {
            let mut of = range(low, high);
            emptied.shorten(space, b"p", &mut of);
            of.low[0]
        };
        assert_eq!(from(&emptied, 2, 9), 2);
        emptied.add(space, b"p", range(2, 5));
        emptied.add(space, b"p", range(5, 6));
        assert_eq!(from(&emptied, 2, 9), 6);
        assert_eq!(from(&emptied, 4, 9), 6);
        assert_eq!(from(&emptied, 3, 4), 4, "not behind the end of the range");
        assert_eq!(from(&emptied, 1, 9), 1, "a row may be left before");
        assert_eq!(from(&emptied, 6, 9), 6);
        emptied.add(space, b"p", range(8, 9));
        assert_eq!(from(&emptied, 2, 9), 2, "one range is remembered");
        emptied.forget(space, b"p");
        assert_eq!(from(&emptied, 8, 9), 8);
    }
}

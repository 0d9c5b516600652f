//! Range deletions as a write sees them: those that its batch has changed so far, over those that
//! the engine holds.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::overlay::WriteOverlay;
use super::pending_ranges::TombstoneLayer;
use crate::StorageError;
use crate::key::SuffixRange;
use crate::layout::TableSchema;
use crate::ranges::{RangeTombstone, StoredRanges};

impl WriteOverlay<'_> {
    /// Puts intervals in the place of others.
    pub(super) fn replace_ranges(
        &mut self,
        table: &TableSchema,
        partition: &[u8],
        old: Vec<RangeTombstone>,
        new: Vec<RangeTombstone>,
    ) {
        let layer = self.write.ranges.layer_mut(table.space, partition);
        let mut old: BTreeMap<Vec<u8>, RangeTombstone> =
            old.into_iter().map(|it| (it.start.clone(), it)).collect();
        for interval in new {
            if old.remove(&interval.start).as_ref() != Some(&interval) {
                layer.insert(interval.start.clone(), Some(interval));
            }
        }
        layer.extend(old.into_keys().map(|start| (start, None)));
    }

    /// The interval that covers a row.
    pub(super) fn range_over(
        &self,
        table: &TableSchema,
        partition: &[u8],
        suffix: &[u8],
    ) -> Result<Option<RangeTombstone>, StorageError> {
        let last = self.last_range_up_to(table, partition, suffix)?;
        Ok(last.filter(|last| last.reaches(suffix)))
    }

    /// All intervals that overlap a range, in order.
    pub(super) fn ranges_over(
        &self,
        table: &TableSchema,
        partition: &[u8],
        range: &SuffixRange,
    ) -> Result<Vec<RangeTombstone>, StorageError> {
        let first = self.range_over(table, partition, &range.low)?;
        let bounds = (
            Bound::Excluded(range.low.as_slice()),
            Bound::Excluded(range.high.as_slice()),
        );
        let snapshot = self.engine.snapshot()?;
        let stored = StoredRanges {
            engine: self.engine,
            snapshot: &snapshot,
            space: table.space,
            partition,
        };
        let mut rest = BTreeMap::new();
        for interval in stored.beginning_in(bounds.0, bounds.1)? {
            let interval = interval?;
            rest.insert(interval.start.clone(), interval);
        }
        for layer in self.layers(table, partition).into_iter().rev().flatten() {
            for (start, interval) in layer.range::<[u8], _>(bounds) {
                match interval {
                    Some(interval) => rest.insert(start.clone(), interval.clone()),
                    None => rest.remove(start),
                };
            }
        }
        Ok(first.into_iter().chain(rest.into_values()).collect())
    }

    /// The changes of the write, then those of the batch before it.
    fn layers(&self, table: &TableSchema, partition: &[u8]) -> [Option<&TombstoneLayer>; 2] {
        let (space, write, batch) = (table.space, &self.write.ranges, &self.batch.ranges);
        [write.layer(space, partition), batch.layer(space, partition)]
    }

    fn last_range_up_to(
        &self,
        table: &TableSchema,
        partition: &[u8],
        suffix: &[u8],
    ) -> Result<Option<RangeTombstone>, StorageError> {
        let snapshot = self.engine.snapshot()?;
        let stored = StoredRanges {
            engine: self.engine,
            snapshot: &snapshot,
            space: table.space,
            partition,
        };
        let mut stored = stored.up_to(suffix)?.rev();
        let mut last_stored = stored.next().transpose()?;
        let layers = self.layers(table, partition);
        let mut end = Bound::Included(suffix);
        loop {
            let pending = layers
                .iter()
                .flatten()
                .filter_map(|layer| layer.range::<[u8], _>((Bound::Unbounded, end)).next_back())
                // Of two with the same beginning the first counts, which is the newer.
                .reduce(|newer, older| if older.0 > newer.0 { older } else { newer });
            let Some((start, interval)) = pending else {
                return Ok(last_stored);
            };
            if let Some(stored) = &last_stored
                && stored.start > *start
            {
                return Ok(last_stored);
            }
            if interval.is_some() {
                return Ok(interval.clone());
            }
            // The interval was removed, and so was the stored one with the same beginning.
            if last_stored
                .as_ref()
                .is_some_and(|stored| stored.start == *start)
            {
                last_stored = stored.next().transpose()?;
            }
            end = Bound::Excluded(start.as_slice());
        }
    }
}

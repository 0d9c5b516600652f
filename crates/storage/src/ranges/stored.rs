//! The intervals of a partition as the engine holds them.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use super::RangeTombstone;
use crate::StorageError;
use crate::engine::{Engine, EntryScan, SpaceId, SpacesSnapshot};
use crate::key::{self, RANGE, ROW};

/// Reads the intervals of a partition.
#[derive(Clone, Copy)]
pub(crate) struct StoredRanges<'a> {
    pub engine: &'a Engine,
    pub snapshot: &'a SpacesSnapshot,
    pub space: SpaceId,
    /// Token and partition key.
    pub partition: &'a [u8],
}

/// Intervals in order, to be read from either end.
pub(crate) struct RangeTombstones<'a> {
    engine: &'a Engine,
    scan: EntryScan,
    /// Bytes of a key before the suffix.
    prefix: usize,
}

impl<'a> StoredRanges<'a> {
    /// The intervals that begin between two suffixes.
    pub(crate) fn beginning_in(
        &self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<RangeTombstones<'a>, StorageError> {
        let key_of = |suffix: &[u8]| key::bound(self.partition, RANGE, suffix);
        let low = match low {
            Bound::Unbounded => Bound::Included(key_of(&[])),
            bound => bound.map(key_of),
        };
        let high = match high {
            Bound::Unbounded => Bound::Excluded(key::bound(self.partition, ROW, &[])),
            bound => bound.map(key_of),
        };
        Ok(RangeTombstones {
            engine: self.engine,
            scan: self
                .engine
                .scan_at(self.snapshot, self.space, (low, high))?,
            prefix: self.partition.len() + 1,
        })
    }

    /// The intervals that do not begin after a suffix. Only the last of them can cover it.
    pub(crate) fn up_to(&self, suffix: &[u8]) -> Result<RangeTombstones<'a>, StorageError> {
        self.beginning_in(Bound::Unbounded, Bound::Included(suffix))
    }
}

impl RangeTombstones<'_> {
    /// Only the scan, which does not borrow the engine.
    pub(super) fn into_scan(self) -> EntryScan {
        self.scan
    }
}

/// The interval of a scan's entry. Counts it in [`crate::Statistics::range_deletions_read`].
pub(super) fn interval(
    engine: &Engine,
    prefix: usize,
    entry: Option<<EntryScan as Iterator>::Item>,
) -> Result<Option<RangeTombstone>, StorageError> {
    let Some((key, value)) = entry.transpose()? else {
        return Ok(None);
    };
    engine
        .range_deletions_read()
        .fetch_add(1, Ordering::Relaxed);
    RangeTombstone::decode(&key[prefix..], &value).map(Some)
}

impl Iterator for RangeTombstones<'_> {
    type Item = Result<RangeTombstone, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        interval(self.engine, self.prefix, self.scan.next()).transpose()
    }
}

impl DoubleEndedIterator for RangeTombstones<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        interval(self.engine, self.prefix, self.scan.next_back()).transpose()
    }
}

//! Finds the range deletion that covers each of a sequence of rows.

use std::ops::Bound;

use super::RangeTombstone;
use super::stored::{StoredRanges, interval};
use crate::StorageError;
use crate::engine::EntryScan;
use crate::record::DeletionTime;

/// Intervals that are passed one by one. Beyond these a new look is quicker.
const STEPS_MAX: usize = 8;

/// Follows a read through a partition, in either direction. The first row costs one look, each
/// later row a few steps from the row before.
#[derive(Default)]
pub(crate) struct TombstoneCursor {
    /// The suffix of the row that was requested last.
    at: Option<Vec<u8>>,
    /// The last interval that does not begin after that row.
    last: Option<RangeTombstone>,
    /// The intervals before `last`, to be read backwards.
    before: Option<EntryScan>,
    /// The intervals after `last`, with the first of them apart.
    behind: Option<(EntryScan, Option<RangeTombstone>)>,
}

impl TombstoneCursor {
    /// The deletion that covers a row. `stored` must be that of the same partition and snapshot
    /// each time.
    pub(crate) fn covering(
        &mut self,
        stored: StoredRanges<'_>,
        suffix: &[u8],
    ) -> Result<Option<DeletionTime>, StorageError> {
        match &self.at {
            None => self.seek(stored, suffix)?,
            Some(at) if suffix < at.as_slice() => self.step_back(stored, suffix)?,
            Some(_) => self.step_on(stored, suffix)?,
        }
        let at = self.at.get_or_insert_default();
        at.clear();
        at.extend_from_slice(suffix);
        let last = self.last.as_ref();
        Ok(last
            .filter(|last| last.reaches(suffix))
            .map(|last| last.deletion))
    }

    fn seek(&mut self, stored: StoredRanges<'_>, suffix: &[u8]) -> Result<(), StorageError> {
        let mut before = stored.up_to(suffix)?;
        self.last = before.next_back().transpose()?;
        self.before = Some(before.into_scan());
        self.behind = None;
        Ok(())
    }

    fn step_back(&mut self, stored: StoredRanges<'_>, suffix: &[u8]) -> Result<(), StorageError> {
        let prefix = stored.partition.len() + 1;
        self.behind = None;
        for _ in 0..STEPS_MAX {
            if self
                .last
                .as_ref()
                .is_none_or(|last| last.start.as_slice() <= suffix)
            {
                return Ok(());
            }
            let Some(before) = &mut self.before else {
                break;
            };
            self.last = interval(stored.engine, prefix, before.next_back())?;
        }
        self.seek(stored, suffix)
    }

    fn step_on(&mut self, stored: StoredRanges<'_>, suffix: &[u8]) -> Result<(), StorageError> {
        if self.last.as_ref().is_some_and(|last| last.reaches(suffix)) {
            return Ok(());
        }
        let prefix = stored.partition.len() + 1;
        let (scan, next) = match &mut self.behind {
            Some(behind) => behind,
            not_yet => {
                let at = self.at.as_deref().unwrap_or_default();
                let mut behind = stored.beginning_in(Bound::Excluded(at), Bound::Unbounded)?;
                let next = behind.next().transpose()?;
                not_yet.insert((behind.into_scan(), next))
            }
        };
        for _ in 0..STEPS_MAX {
            match next.take_if(|next| next.start.as_slice() <= suffix) {
                Some(interval) => self.last = Some(interval),
                None => return Ok(()),
            }
            self.before = None;
            *next = interval(stored.engine, prefix, scan.next())?;
        }
        self.seek(stored, suffix)
    }
}

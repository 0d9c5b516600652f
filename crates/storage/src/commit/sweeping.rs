//! Sweeping removes the rows that deletions of partitions and ranges cover.
//!
//! Such a deletion is one record, however many rows it covers, and hides them from readers at once.
//! The rows are removed later, a few at a time between other work. The deletion may be forgotten
//! only when no row is left under it, or the rows would come back.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Committer;
use super::overlay::{UncommittedChanges, WriteOverlay};
use super::sweep::DeletionSweep;
use crate::StorageError;
use crate::engine::{Engine, SpaceId, SyncTarget};
use crate::key::{self, ROW, SuffixRange};
use crate::layout::TableSchema;
use crate::ranges::{self, RangeTombstone};
use crate::record;

/// Rows that are looked at between two requests. That takes well under a millisecond.
const ROWS_A_STEP: usize = 64;
/// Bytes of rows after which a step looks at no more.
const BYTES_A_STEP: usize = 1 << 20;

impl Committer {
    /// Does a step of sweeping. Returns whether there may be more to do.
    pub(super) fn sweep(&mut self) -> bool {
        if self.sweeps.is_empty() || self.shared.check_writable().is_err() {
            return false;
        }
        let Some(sweep) = self.sweeps.pop_front() else {
            return false;
        };
        let mut further = sweep.clone();
        match self.sweep_step(&mut further) {
            Ok(true) => {}
            Ok(false) => self.sweeps.push_front(further),
            Err(error) => {
                tracing::warn!(%error, "deleted rows could not be removed from the disk yet");
                self.shared.note_write_failure(&error);
                // The rows of the step are still there.
                // Sweeps are taken from the front, so the others are tried before this one.
                self.sweeps.push_back(sweep);
                return false;
            }
        }
        self.count_sweeps();
        true
    }

    pub(super) fn count_sweeps(&self) {
        let waiting = &self.shared.statistics.sweeps_waiting;
        waiting.store(self.sweeps.len() as u64, Ordering::Relaxed);
    }

    /// Does a step of a sweep. Returns whether the sweep is done.
    fn sweep_step(&mut self, sweep: &mut DeletionSweep) -> Result<bool, StorageError> {
        let shared = Arc::clone(&self.shared);
        self.emptied
            .shorten(sweep.space, &sweep.partition, &mut sweep.range);
        let from = sweep.range.low.clone();
        let engine = &shared.engine;
        let schema = shared.schema();
        let table = schema
            .table(sweep.space.table())
            .ok()
            .filter(|table| table.space == sweep.space);
        let none = UncommittedChanges::default();
        let mut overlay = WriteOverlay::new(engine, &none);
        let Step { is_done, is_empty } = match table {
            Some(table) => step(engine, table, &mut overlay, sweep)?,
            // The table was dropped or emptied meanwhile.
            None => Step {
                is_done: true,
                is_empty: false,
            },
        };
        overlay.derive_entries(&schema)?;
        let mut batch = overlay.write.into_batch()?;
        if is_done {
            batch.push((SpaceId::META, sweep.key(), None));
        }
        if !batch.is_empty() {
            // Not synced, as a step that a crash loses is done again.
            engine.commit(batch, SyncTarget::Kernel, shared.clock.now_micros())?;
        }
        let emptied = SuffixRange {
            low: from,
            high: match is_done {
                true => sweep.range.high.clone(),
                false => sweep.range.low.clone(),
            },
        };
        match is_empty {
            true => self.emptied.add(sweep.space, &sweep.partition, emptied),
            false => self.emptied.forget(sweep.space, &sweep.partition),
        }
        Ok(is_done)
    }
}

/// The outcome of a step of a sweep.
struct Step {
    is_done: bool,
    /// Whether no row is left among those that the step has looked at.
    is_empty: bool,
}

fn step(
    engine: &Engine,
    table: &TableSchema,
    overlay: &mut WriteOverlay<'_>,
    sweep: &mut DeletionSweep,
) -> Result<Step, StorageError> {
    let mut head = overlay.head(table, &sweep.partition)?;
    let bounds = (
        Bound::Included(key::bound(&sweep.partition, ROW, &sweep.range.low)),
        Bound::Excluded(key::bound(&sweep.partition, ROW, &sweep.range.high)),
    );
    let prefix = sweep.partition.len() + 1;
    let mut rows = engine.scan_at(&engine.snapshot()?, sweep.space, bounds)?;
    let mut range: Option<RangeTombstone> = None;
    let mut is_empty = true;
    let mut bytes = 0;
    for entry in rows.by_ref().take(ROWS_A_STEP) {
        let (key, value) = entry?;
        bytes += value.len();
        let suffix = &key[prefix..];
        if head.has_ranges && !range.as_ref().is_some_and(|range| range.covers(suffix)) {
            range = overlay.range_over(table, &sweep.partition, suffix)?;
        }
        let deleted_to = [head.deletion, range.as_ref().map(|range| range.deletion)]
            .into_iter()
            .flatten()
            .map(|deletion| deletion.timestamp)
            .max();
        if let Some(deleted_to) = deleted_to {
            let old = record::decode_packed(value)?;
            let mut row = old.clone();
            row.apply_wider_deletion(deleted_to);
            is_empty &= row.is_empty();
            if row != old {
                overlay.put(table.space, key.to_vec(), row);
            }
        } else {
            is_empty = false;
        }
        sweep.range.low = [suffix, &[0]].concat();
        if bytes > BYTES_A_STEP {
            break;
        }
    }
    if rows.next().is_some() {
        return Ok(Step {
            is_done: false,
            is_empty,
        });
    }
    if sweep.whole == SuffixRange::whole() && head.deletion == Some(sweep.deletion) {
        head.swept = true;
        overlay.put_head(table, &sweep.partition, head)?;
    } else if head.has_ranges {
        let old = overlay.ranges_over(table, &sweep.partition, &sweep.whole)?;
        let new = ranges::mark_swept(&old, &sweep.whole, sweep.deletion);
        overlay.replace_ranges(table, &sweep.partition, old, new);
    }
    Ok(Step {
        is_done: true,
        is_empty,
    })
}

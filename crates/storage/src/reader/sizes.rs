//! A walk over the partitions of a table that adds up how large each is.
//!
//! Nothing else knows a partition as a whole: its rows are in any number of files, and are written
//! one by one. The walk goes over all keys in their order, a number at a time, so it holds one
//! partition in memory and no snapshot for long. Values are left where they are. Only where
//! tombstones are counted are they read.

use std::ops::Bound;

use bytes::Bytes;

use super::context::{PartitionContext, ReadContext, damaged_key};
use crate::StorageError;
use crate::key::{HEADER, RANGE, ROW};
use crate::record;

/// The size of a partition, dead rows included, as long as they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionSize {
    /// Bytes of its keys and values, before they are compressed.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Deleted and expired cells, deleted rows, and deletions of ranges and of the partition; 0
    /// unless they are counted. What a deletion of a range or of the partition covers counts
    /// nothing.
    pub tombstones: u64,
}

/// A partition that a walk has passed.
#[derive(Clone, Debug, PartialEq)]
pub struct SizedPartition {
    /// The serialised values of the partition key columns.
    pub key: Vec<Bytes>,
    /// Its size.
    pub size: PartitionSize,
}

/// The outcome of one step of a walk.
#[derive(Clone, Debug, PartialEq)]
pub struct WalkStep {
    /// The number of entries that were passed: rows, and what partitions have in addition to rows.
    pub entries: u64,
    /// The number of partitions that were passed.
    pub partitions: u64,
    /// Those of them that were wanted.
    pub wanted: Vec<SizedPartition>,
    /// Whether all partitions are passed.
    pub is_done: bool,
}

/// A walk over the partitions of a table. Each step sees the table as it is then.
pub struct PartitionWalk {
    counts_tombstones: bool,
    /// The last key that was passed.
    after: Option<Bytes>,
    /// The partition that the walk is in.
    open: Option<OpenPartition>,
}

struct OpenPartition {
    /// Token and partition key.
    prefix: Bytes,
    size: PartitionSize,
    /// The state that decides which cells are dead, if tombstones are counted.
    entered: Option<PartitionContext>,
}

impl PartitionWalk {
    /// A walk that begins with the first partition. To count tombstones it has to read all values.
    pub fn new(counts_tombstones: bool) -> PartitionWalk {
        PartitionWalk {
            counts_tombstones,
            after: None,
            open: None,
        }
    }

    /// Passes the next entries, at most so many.
    pub(super) fn step(
        &mut self,
        context: &ReadContext,
        entries_max: usize,
        is_wanted: impl Fn(&PartitionSize) -> bool,
    ) -> Result<WalkStep, StorageError> {
        let mut step = WalkStep {
            entries: 0,
            partitions: 0,
            wanted: Vec::new(),
            is_done: false,
        };
        let low = match &self.after {
            Some(after) => Bound::Excluded(after.to_vec()),
            None => Bound::Unbounded,
        };
        let (engine, space) = (&context.engine, context.table.space);
        let range = (low, Bound::Unbounded);
        if self.counts_tombstones {
            let scan = engine.scan_at(&context.snapshot, space, range)?;
            for entry in scan.take(entries_max) {
                let (key, value) = entry?;
                let bytes = value.len() as u64;
                self.pass(context, key, bytes, Some(value), &mut step, &is_wanted)?;
            }
        } else {
            let sizes = engine.sizes_at(&context.snapshot, space, range)?;
            for entry in sizes.take(entries_max) {
                let (key, bytes) = entry?;
                self.pass(context, key, bytes, None, &mut step, &is_wanted)?;
            }
        }
        if step.entries < entries_max as u64 {
            self.leave(context, &mut step, &is_wanted)?;
            step.is_done = true;
        }
        Ok(step)
    }

    fn pass(
        &mut self,
        context: &ReadContext,
        key: Bytes,
        value_bytes: u64,
        value: Option<Bytes>,
        step: &mut WalkStep,
        is_wanted: impl Fn(&PartitionSize) -> bool,
    ) -> Result<(), StorageError> {
        let parts = context.table.keys.split(&key).ok_or_else(damaged_key)?;
        let (partition, kind) = (parts.partition.len(), parts.kind);
        let record = match (value, kind) {
            (Some(value), HEADER | ROW) => Some(record::decode(value)?),
            _ => None,
        };
        if (self.open.as_ref()).is_none_or(|open| open.prefix != parts.partition) {
            self.leave(context, step, is_wanted)?;
            let entered = match self.counts_tombstones {
                true => {
                    let (token, partition_key) = context.decode_partition(parts.partition)?;
                    let head = record.as_ref().filter(|_| kind == HEADER);
                    Some(context.enter(token, partition_key, head))
                }
                false => None,
            };
            self.open = Some(OpenPartition {
                prefix: key.slice(..partition),
                size: PartitionSize::default(),
                entered,
            });
        }
        step.entries += 1;
        self.after = Some(key.clone());
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        open.size.bytes += key.len() as u64 + value_bytes;
        open.size.rows += u64::from(kind == ROW);
        let Some(entered) = &mut open.entered else {
            return Ok(());
        };
        open.size.tombstones += match record {
            Some(record) if kind == ROW => {
                let before = entered.tombstones;
                context.row(entered, partition, key, record)?;
                entered.tombstones - before
            }
            Some(head) => u64::from(head.deletion.is_some()),
            None => u64::from(kind == RANGE),
        };
        Ok(())
    }

    /// Leaves the partition that the walk is in.
    fn leave(
        &mut self,
        context: &ReadContext,
        step: &mut WalkStep,
        is_wanted: impl Fn(&PartitionSize) -> bool,
    ) -> Result<(), StorageError> {
        let Some(OpenPartition { prefix, size, .. }) = self.open.take() else {
            return Ok(());
        };
        step.partitions += 1;
        if is_wanted(&size) {
            let (_, key) = context.decode_partition(&prefix)?;
            step.wanted.push(SizedPartition { key, size });
        }
        Ok(())
    }
}

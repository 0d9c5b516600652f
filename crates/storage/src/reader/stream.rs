//! Streams of live rows.
//!
//! A stream reads ahead: it holds the blocks of the disk that it is in, and the next row at least.
//! Where rows are large, that is much. So a reader that pauses calls [`RowStream::let_go`], and the
//! stream remembers the key after which it goes on. For the same reason a reader may have a stream
//! stop before it decodes a large record ([`RowStream::advance`]).

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::context::{PartitionContext, ReadContext, damaged_key};
use super::plan::{self, PartitionPlan, ReadPlan, RingPlan, RowRange};
use crate::StorageError;
use crate::engine::EntryScan;
use crate::key::{self, HEADER, ROW, SuffixRange};
use crate::read::{NextRow, ReadRequest, Row};
use crate::record;

/// A stream of live rows. It owns its snapshot of the storage and may be moved between threads.
pub struct RowStream {
    context: Arc<ReadContext>,
    state: RowStreamState,
    /// The tombstones of the read, once it has ended.
    tombstones: u64,
    /// The most tombstones that the read may pass.
    tombstones_max: u64,
}

/// The bounds of one step of a stream.
#[derive(Clone, Copy)]
struct StepLimits {
    /// The most tombstones that the read may pass.
    tombstones: u64,
    /// The most bytes of a record that is decoded.
    record_bytes: usize,
}

enum RowStreamState {
    Partition(Box<PartitionRead>),
    Ring(Box<RingRead>),
    Ended,
}

struct PartitionRead {
    plan: PartitionPlan,
    reversed: bool,
    /// The partition's state, which is read at the first row.
    entered: Option<PartitionContext>,
    /// The tombstones that were passed before the partition was entered again.
    tombstones: u64,
    /// The range that is read.
    open: Option<OpenRange>,
    /// The key and the record of a point, not decoded yet.
    put_off: Option<(Bytes, Bytes)>,
    found_rows: bool,
}

/// A range of rows that is read.
struct OpenRange {
    scan: EntryScan,
    range: SuffixRange,
    /// The key of the last entry that was taken.
    at: Option<Bytes>,
    /// The next entry, which is not decoded yet, as it is large.
    put_off: Option<(Bytes, Bytes)>,
}

struct RingRead {
    plan: RingPlan,
    /// The entries that are read; `None` once they are let go.
    scan: Option<EntryScan>,
    /// The key of the last entry that was taken.
    at: Option<Bytes>,
    current: Option<CurrentPartition>,
    /// The partition to be entered again.
    left: Option<PreviousPartition>,
    /// An entry that is not taken yet: of the next partition, read before the end of the last one
    /// was known, or a large one.
    ahead: Option<(Bytes, Bytes)>,
    /// The tombstones of the partitions that the read has left.
    tombstones: u64,
}

/// The partition that a ring read is in.
struct CurrentPartition {
    /// Token and partition key.
    prefix: Bytes,
    entered: PartitionContext,
    found_rows: bool,
}

/// A partition that a ring read has let go.
struct PreviousPartition {
    /// Token and partition key.
    prefix: Vec<u8>,
    found_rows: bool,
}

pub(super) fn open(
    context: Arc<ReadContext>,
    request: &ReadRequest,
) -> Result<RowStream, StorageError> {
    let state = match plan::plan(&context.table, request)? {
        ReadPlan::Empty => RowStreamState::Ended,
        ReadPlan::Partition(plan) => RowStreamState::Partition(Box::new(PartitionRead {
            plan,
            reversed: request.reversed,
            entered: None,
            tombstones: 0,
            open: None,
            put_off: None,
            found_rows: false,
        })),
        ReadPlan::Ring(mut plan) => {
            // Rows of the partition in which the read resumes were returned already.
            let left = plan.resumed_in.take().map(|prefix| PreviousPartition {
                prefix,
                found_rows: true,
            });
            let mut read = RingRead {
                plan,
                scan: None,
                at: None,
                current: None,
                left,
                ahead: None,
                tombstones: 0,
            };
            read.go_on(&context)?;
            RowStreamState::Ring(Box::new(read))
        }
    };
    Ok(RowStream {
        context,
        state,
        tombstones: 0,
        tombstones_max: u64::MAX,
    })
}

impl RowStream {
    /// Makes the read fail once it has passed more tombstones than this.
    pub fn stop_at_tombstones(&mut self, max: u64) {
        self.tombstones_max = max;
    }

    /// The number of tombstones that the read has passed so far: deleted and expired cells of rows,
    /// and rows that are dead as a whole.
    pub fn tombstones(&self) -> u64 {
        match &self.state {
            RowStreamState::Partition(read) => {
                let entered = read.entered.as_ref();
                read.tombstones + entered.map_or(0, |entered| entered.tombstones)
            }
            RowStreamState::Ring(read) => {
                let current = read.current.as_ref();
                read.tombstones + current.map_or(0, |current| current.entered.tombstones)
            }
            RowStreamState::Ended => self.tombstones,
        }
    }

    /// Takes the next row, unless the record that comes next is longer than `record_bytes_max`.
    /// Then the record is not decoded, and the next call looks at it again.
    pub fn advance(&mut self, record_bytes_max: usize) -> Result<NextRow, StorageError> {
        let bounds = StepLimits {
            tombstones: self.tombstones_max,
            record_bytes: record_bytes_max,
        };
        let next = match &mut self.state {
            RowStreamState::Partition(read) => read.next(&self.context, bounds),
            RowStreamState::Ring(read) => read.next(&self.context, bounds),
            RowStreamState::Ended => return Ok(NextRow::Nothing),
        };
        if matches!(next, Ok(NextRow::Nothing) | Err(_)) {
            self.end();
        }
        next
    }

    /// Lets go of what was read ahead and of what is known of the partition, which may be large.
    /// The stream goes on after the last entry that it took, and reads again what it needs.
    pub fn let_go(&mut self) {
        match &mut self.state {
            RowStreamState::Partition(read) => read.let_go(),
            RowStreamState::Ring(read) => read.let_go(),
            RowStreamState::Ended => {}
        }
    }

    fn end(&mut self) {
        self.tombstones = self.tombstones();
        self.state = RowStreamState::Ended;
    }
}

impl Iterator for RowStream {
    type Item = Result<Row, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance(usize::MAX) {
            Ok(NextRow::Row(row)) => Some(Ok(row)),
            // No record is longer than that.
            Ok(NextRow::Nothing | NextRow::Large) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// Fails above the most tombstones that a read may pass. Those of live rows count, too.
fn check_tombstones(tombstones: u64, max: u64) -> Result<(), StorageError> {
    match tombstones > max {
        true => Err(StorageError::TooManyTombstones(tombstones)),
        false => Ok(()),
    }
}

impl PartitionRead {
    fn next(&mut self, context: &ReadContext, bounds: StepLimits) -> Result<NextRow, StorageError> {
        if self.entered.is_none() && !self.enter(context, bounds)? {
            return Ok(NextRow::Large);
        }
        loop {
            if let Some(open) = &mut self.open {
                let Some((key, value)) = open.next(self.reversed)? else {
                    self.open = None;
                    continue;
                };
                if value.len() > bounds.record_bytes {
                    open.put_off = Some((key, value));
                    return Ok(NextRow::Large);
                }
                open.at = Some(key.clone());
                if let Some(row) = self.row(context, key, value, bounds)? {
                    return Ok(NextRow::Row(row));
                }
                continue;
            }
            if let Some((key, value)) = self.put_off.take() {
                if value.len() > bounds.record_bytes {
                    self.put_off = Some((key, value));
                    return Ok(NextRow::Large);
                }
                if let Some(row) = self.row(context, key, value, bounds)? {
                    return Ok(NextRow::Row(row));
                }
                continue;
            }
            match self.plan.ranges.pop_front() {
                Some(RowRange::Point(suffix)) => {
                    let key = key::bound(&self.plan.partition, ROW, &suffix);
                    let stored = context.stored(&key)?;
                    self.put_off = stored.map(|value| (key.into(), value));
                }
                Some(RowRange::Range(range)) => self.open = Some(self.open(context, range)?),
                None if self.plan.static_only && !self.found_rows => {
                    // The row comes once.
                    self.plan.static_only = false;
                    let entered = self.entered.as_ref();
                    let row = entered
                        .and_then(|entered| context.static_only(entered, &self.plan.partition));
                    return Ok(row.map_or(NextRow::Nothing, NextRow::Row));
                }
                None => return Ok(NextRow::Nothing),
            }
        }
    }

    /// Reads the partition's state. Returns whether it was, which it is not if it is too large.
    fn enter(&mut self, context: &ReadContext, bounds: StepLimits) -> Result<bool, StorageError> {
        let head = context.stored_head(&self.plan.partition)?;
        if head
            .as_ref()
            .is_some_and(|head| head.len() > bounds.record_bytes)
        {
            return Ok(false);
        }
        let head = head.map(record::decode).transpose()?;
        let key = std::mem::take(&mut self.plan.key);
        self.entered = Some(context.enter(self.plan.token, key, head.as_ref()));
        Ok(true)
    }

    fn open(&self, context: &ReadContext, range: SuffixRange) -> Result<OpenRange, StorageError> {
        let bounds = (
            Bound::Included(key::bound(&self.plan.partition, ROW, &range.low)),
            Bound::Excluded(key::bound(&self.plan.partition, ROW, &range.high)),
        );
        let space = context.table.space;
        let scan = context.engine.scan_at(&context.snapshot, space, bounds)?;
        Ok(OpenRange {
            scan,
            range,
            at: None,
            put_off: None,
        })
    }

    /// The live row of a record; `None` if it is dead.
    fn row(
        &mut self,
        context: &ReadContext,
        key: Bytes,
        value: Bytes,
        bounds: StepLimits,
    ) -> Result<Option<Row>, StorageError> {
        let Some(entered) = &mut self.entered else {
            return Ok(None);
        };
        let record = record::decode(value)?;
        let row = context.row(entered, self.plan.partition.len(), key, record)?;
        check_tombstones(self.tombstones + entered.tombstones, bounds.tombstones)?;
        self.found_rows |= row.is_some();
        Ok(row)
    }

    fn let_go(&mut self) {
        if let Some((key, _)) = self.put_off.take() {
            let suffix = key[self.plan.partition.len() + 1..].to_vec();
            self.plan.ranges.push_front(RowRange::Point(suffix));
        }
        if let Some(open) = self.open.take()
            && let Some(rest) = open.rest(self.plan.partition.len(), self.reversed)
        {
            self.plan.ranges.push_front(RowRange::Range(rest));
        }
        if let Some(entered) = self.entered.take() {
            self.tombstones += entered.tombstones;
            self.plan.key = entered.into_key();
        }
    }
}

impl OpenRange {
    fn next(&mut self, reversed: bool) -> Result<Option<(Bytes, Bytes)>, StorageError> {
        if let Some(entry) = self.put_off.take() {
            return Ok(Some(entry));
        }
        let entry = match reversed {
            true => self.scan.next_back(),
            false => self.scan.next(),
        };
        entry.transpose()
    }

    /// The range after the last entry that was taken, in the direction of reading; `None` if
    /// nothing is there. The first `partition` bytes of keys are token and partition key.
    fn rest(self, partition: usize, reversed: bool) -> Option<SuffixRange> {
        let mut range = self.range;
        if let Some(at) = &self.at {
            let suffix = &at[partition + 1..];
            match reversed {
                true => range.high = suffix.to_vec(),
                // The first suffix after the row.
                false => range.low = [suffix, &[0]].concat(),
            }
        }
        (!range.is_empty()).then_some(range)
    }
}

impl CurrentPartition {
    /// Enters a partition again.
    fn again(
        context: &ReadContext,
        left: &PreviousPartition,
    ) -> Result<CurrentPartition, StorageError> {
        let head = context.head(&left.prefix)?;
        let (token, key) = context.decode_partition(&left.prefix)?;
        Ok(CurrentPartition {
            prefix: Bytes::copy_from_slice(&left.prefix),
            entered: context.enter(token, key, head.as_ref()),
            found_rows: left.found_rows,
        })
    }
}

impl RingRead {
    /// Opens what was let go.
    fn go_on(&mut self, context: &ReadContext) -> Result<(), StorageError> {
        if let Some(left) = self.left.take() {
            self.current = Some(CurrentPartition::again(context, &left)?);
        }
        if self.scan.is_none() {
            let range = self.plan.range.clone();
            let space = context.table.space;
            self.scan = Some(context.engine.scan_at(&context.snapshot, space, range)?);
        }
        Ok(())
    }

    fn let_go(&mut self) {
        if let Some(at) = self.at.take() {
            self.plan.range.0 = Bound::Excluded(at.to_vec());
        }
        self.scan = None;
        self.ahead = None;
        if let Some(current) = self.current.take() {
            self.tombstones += current.entered.tombstones;
            self.left = Some(PreviousPartition {
                prefix: current.prefix.to_vec(),
                found_rows: current.found_rows,
            });
        }
    }

    fn entry(&mut self) -> Result<Option<(Bytes, Bytes)>, StorageError> {
        if let Some(entry) = self.ahead.take() {
            return Ok(Some(entry));
        }
        match &mut self.scan {
            Some(scan) => scan.next().transpose(),
            None => Ok(None),
        }
    }

    fn next(&mut self, context: &ReadContext, bounds: StepLimits) -> Result<NextRow, StorageError> {
        self.go_on(context)?;
        loop {
            let Some((key, value)) = self.entry()? else {
                return Ok(self.leave(context).map_or(NextRow::Nothing, NextRow::Row));
            };
            if value.len() > bounds.record_bytes {
                self.ahead = Some((key, value));
                return Ok(NextRow::Large);
            }
            let parts = context.table.keys.split(&key).ok_or_else(damaged_key)?;
            let is_new = self
                .current
                .as_ref()
                .is_none_or(|current| current.prefix != parts.partition);
            if is_new {
                if let Some(row) = self.leave(context) {
                    self.ahead = Some((key, value));
                    return Ok(NextRow::Row(row));
                }
                let (token, partition_key) = context.decode_partition(parts.partition)?;
                let head = match parts.kind {
                    HEADER => Some(record::decode(value.clone())?),
                    _ => None,
                };
                self.current = Some(CurrentPartition {
                    prefix: key.slice(..parts.partition.len()),
                    entered: context.enter(token, partition_key, head.as_ref()),
                    found_rows: false,
                });
            }
            // Only once the entry is taken, as `let_go` has the read go on after this key.
            self.at = Some(key.clone());
            let Some(current) = &mut self.current else {
                continue;
            };
            // Range deletions are looked up when there is a row.
            if parts.kind != ROW {
                continue;
            }
            let slices = &self.plan.slices;
            if !slices.is_empty() && !slices.iter().any(|s| s.contains(parts.suffix)) {
                continue;
            }
            let record = record::decode(value)?;
            let partition = parts.partition.len();
            let row = context.row(&mut current.entered, partition, key.clone(), record)?;
            check_tombstones(
                self.tombstones + current.entered.tombstones,
                bounds.tombstones,
            )?;
            if let Some(row) = row {
                current.found_rows = true;
                return Ok(NextRow::Row(row));
            }
        }
    }

    /// Leaves the current partition. Returns a row with its static content if it had no rows and
    /// such a row was requested.
    fn leave(&mut self, context: &ReadContext) -> Option<Row> {
        let current = self.current.take()?;
        self.tombstones += current.entered.tombstones;
        if self.plan.static_only && !current.found_rows {
            context.static_only(&current.entered, &current.prefix)
        } else {
            None
        }
    }
}

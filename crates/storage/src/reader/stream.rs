//! Streams of live rows.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::context::{Entered, ReadContext, damaged_key};
use super::plan::{self, PartitionPlan, ReadPlan, RingPlan, RowRange};
use crate::StorageError;
use crate::engine::Scan;
use crate::key::{self, HEADER, ROW, SuffixRange};
use crate::read::{ReadRequest, Row};
use crate::record;

/// A stream of live rows. It owns its snapshot of the storage and may be moved between threads.
pub struct RowStream {
    context: Arc<ReadContext>,
    state: State,
    /// The tombstones of the read, once it has ended.
    tombstones: u64,
    /// The most tombstones that the read may pass.
    tombstones_max: u64,
}

enum State {
    Partition(Box<PartitionRead>),
    Ring(Box<RingRead>),
    Ended,
}

struct PartitionRead {
    plan: PartitionPlan,
    reversed: bool,
    /// The partition's state, which is read at the first row.
    entered: Option<Entered>,
    scan: Option<Scan>,
    found_rows: bool,
}

struct RingRead {
    plan: RingPlan,
    scan: Scan,
    current: Option<Current>,
    /// An entry of the next partition, read before the end of the last one was known.
    ahead: Option<(Bytes, Bytes)>,
    /// The tombstones of the partitions that the read has left.
    tombstones: u64,
}

/// The partition that a ring read is in.
struct Current {
    /// Token and partition key.
    prefix: Bytes,
    entered: Entered,
    found_rows: bool,
}

pub(super) fn open(
    context: Arc<ReadContext>,
    request: &ReadRequest,
) -> Result<RowStream, StorageError> {
    let state = match plan::plan(&context.table, request)? {
        ReadPlan::Empty => State::Ended,
        ReadPlan::Partition(plan) => State::Partition(Box::new(PartitionRead {
            plan,
            reversed: request.reversed,
            entered: None,
            scan: None,
            found_rows: false,
        })),
        ReadPlan::Ring(plan) => {
            let scan = context.engine.scan_at(
                &context.snapshot,
                context.table.space,
                plan.range.clone(),
            )?;
            let current = match &plan.resumed_in {
                Some(prefix) => Some(Current::again(&context, prefix)?),
                None => None,
            };
            State::Ring(Box::new(RingRead {
                plan,
                scan,
                current,
                ahead: None,
                tombstones: 0,
            }))
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
            State::Partition(read) => read.entered.as_ref().map_or(0, |of| of.tombstones),
            State::Ring(read) => {
                let current = read.current.as_ref();
                read.tombstones + current.map_or(0, |current| current.entered.tombstones)
            }
            State::Ended => self.tombstones,
        }
    }

    fn end(&mut self) {
        self.tombstones = self.tombstones();
        self.state = State::Ended;
    }
}

impl Iterator for RowStream {
    type Item = Result<Row, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let max = self.tombstones_max;
        let next = match &mut self.state {
            State::Partition(read) => read.next(&self.context, max),
            State::Ring(read) => read.next(&self.context, max),
            State::Ended => return None,
        };
        match next {
            Ok(Some(row)) => Some(Ok(row)),
            Ok(None) => {
                self.end();
                None
            }
            Err(error) => {
                self.end();
                Some(Err(error))
            }
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

impl Current {
    /// Enters a partition again, of which rows have been returned already.
    fn again(context: &ReadContext, prefix: &[u8]) -> Result<Current, StorageError> {
        let head = context.head(prefix)?;
        let (token, key) = context.decode_partition(prefix)?;
        Ok(Current {
            prefix: Bytes::copy_from_slice(prefix),
            entered: context.enter(token, key, head.as_ref()),
            found_rows: true,
        })
    }
}

impl PartitionRead {
    fn next(&mut self, context: &ReadContext, max: u64) -> Result<Option<Row>, StorageError> {
        let entered = match &mut self.entered {
            Some(entered) => entered,
            not_yet => {
                let head = context.head(&self.plan.partition)?;
                let key = std::mem::take(&mut self.plan.key);
                not_yet.insert(context.enter(self.plan.token, key, head.as_ref()))
            }
        };
        let partition = self.plan.partition.len();
        loop {
            if let Some(scan) = &mut self.scan {
                let entry = if self.reversed {
                    scan.next_back()
                } else {
                    scan.next()
                };
                let Some(entry) = entry else {
                    self.scan = None;
                    continue;
                };
                let (key, value) = entry?;
                let record = record::decode(value)?;
                let row = context.row(entered, partition, key, record)?;
                check_tombstones(entered.tombstones, max)?;
                if row.is_some() {
                    self.found_rows = true;
                    return Ok(row);
                }
                continue;
            }
            match self.plan.ranges.pop_front() {
                Some(RowRange::Point(suffix)) => {
                    let key = key::bound(&self.plan.partition, ROW, &suffix);
                    let Some(record) = context.get(&key)? else {
                        continue;
                    };
                    let row = context.row(entered, partition, key.into(), record)?;
                    check_tombstones(entered.tombstones, max)?;
                    if row.is_some() {
                        self.found_rows = true;
                        return Ok(row);
                    }
                }
                Some(RowRange::Range(SuffixRange { low, high })) => {
                    let bounds = (
                        Bound::Included(key::bound(&self.plan.partition, ROW, &low)),
                        Bound::Excluded(key::bound(&self.plan.partition, ROW, &high)),
                    );
                    let table = &context.table;
                    self.scan = Some(context.engine.scan_at(
                        &context.snapshot,
                        table.space,
                        bounds,
                    )?);
                }
                None if self.plan.static_only && !self.found_rows => {
                    self.plan.static_only = false;
                    return Ok(context.static_only(entered, &self.plan.partition));
                }
                None => return Ok(None),
            }
        }
    }
}

impl RingRead {
    fn next(&mut self, context: &ReadContext, max: u64) -> Result<Option<Row>, StorageError> {
        loop {
            let entry = match self.ahead.take() {
                Some(entry) => Some(entry),
                None => self.scan.next().transpose()?,
            };
            let Some((key, value)) = entry else {
                return Ok(self.leave(context));
            };
            let parts = context.table.keys.split(&key).ok_or_else(damaged_key)?;
            let is_new = self
                .current
                .as_ref()
                .is_none_or(|current| current.prefix != parts.partition);
            if is_new {
                if let Some(row) = self.leave(context) {
                    self.ahead = Some((key, value));
                    return Ok(Some(row));
                }
                let (token, partition_key) = context.decode_partition(parts.partition)?;
                let head = match parts.kind {
                    HEADER => Some(record::decode(value.clone())?),
                    _ => None,
                };
                self.current = Some(Current {
                    prefix: key.slice(..parts.partition.len()),
                    entered: context.enter(token, partition_key, head.as_ref()),
                    found_rows: false,
                });
            }
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
            check_tombstones(self.tombstones + current.entered.tombstones, max)?;
            if row.is_some() {
                current.found_rows = true;
                return Ok(row);
            }
        }
    }

    /// Leaves the current partition. Returns a row with its static content if it had no rows and
    /// such a row was asked for.
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

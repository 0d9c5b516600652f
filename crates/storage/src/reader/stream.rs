//! Live rows one by one.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use cql::token::Token;

use super::plan::{self, PartitionPlan, Plan, RingPlan, RowRange};
use super::{RowParts, build_row};
use crate::StorageError;
use crate::engine::{Engine, Scan, Snapshot};
use crate::key::{self, HEADER, RANGE, ROW, SuffixRange};
use crate::ranges::RangeDeletions;
use crate::read::{Partition, ReadRequest, Row};
use crate::record::{self, Liveness, Record};
use crate::schema::TableSchema;

/// What a stream reads from and what it sees.
pub(crate) struct ReadContext {
    pub engine: Arc<Engine>,
    pub snapshot: Snapshot,
    pub table: Arc<TableSchema>,
    /// Whatever is dead by then is hidden. Seconds.
    pub now_s: i64,
    /// Held so that what the stream may see is not forgotten under it.
    #[expect(dead_code, reason = "held for its drop")]
    pub hold: crate::horizon::Hold,
    /// Held so that the files of the table outlive it.
    #[expect(dead_code, reason = "held for its drop")]
    pub lease: Arc<()>,
}

/// Live rows, one by one. Owns its snapshot of the storage; may be moved between threads.
pub struct RowStream {
    context: ReadContext,
    state: State,
}

enum State {
    Partition(Box<PartitionRead>),
    Ring(Box<RingRead>),
    Ended,
}

struct PartitionRead {
    plan: PartitionPlan,
    reversed: bool,
    /// Read at the first row.
    entered: Option<Entered>,
    scan: Option<Scan>,
    found_rows: bool,
}

struct RingRead {
    plan: RingPlan,
    scan: Scan,
    current: Option<Current>,
    /// A row that was read ahead while the partition before it ended.
    ahead: Option<(Bytes, Bytes)>,
}

/// The partition that a ring read is in.
struct Current {
    /// Token and partition key.
    prefix: Bytes,
    entered: Entered,
    found_rows: bool,
}

/// What counts for all rows of a partition.
struct Entered {
    partition: Arc<Partition>,
    deleted_to: i64,
    ranges: RangeDeletions,
}

pub(crate) fn open(context: ReadContext, request: &ReadRequest) -> Result<RowStream, StorageError> {
    let state = match plan::plan(&context.table, request)? {
        Plan::Empty => State::Ended,
        Plan::Partition(plan) => State::Partition(Box::new(PartitionRead {
            plan,
            reversed: request.reversed,
            entered: None,
            scan: None,
            found_rows: false,
        })),
        Plan::Ring(plan) => {
            let scan = context.engine.scan_at(
                &context.snapshot,
                context.table.space,
                plan.range.clone(),
            )?;
            let current = match &plan.resumed_in {
                Some(prefix) => Some(context.re_enter(prefix)?),
                None => None,
            };
            State::Ring(Box::new(RingRead {
                plan,
                scan,
                current,
                ahead: None,
            }))
        }
    };
    Ok(RowStream { context, state })
}

impl Iterator for RowStream {
    type Item = Result<Row, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match &mut self.state {
            State::Partition(read) => read.next(&self.context),
            State::Ring(read) => read.next(&self.context),
            State::Ended => return None,
        };
        match next {
            Ok(Some(row)) => Some(Ok(row)),
            Ok(None) => {
                self.state = State::Ended;
                None
            }
            Err(error) => {
                self.state = State::Ended;
                Some(Err(error))
            }
        }
    }
}

impl ReadContext {
    fn get(&self, key: &[u8]) -> Result<Option<Record>, StorageError> {
        self.engine
            .get_at(&self.snapshot, self.table.space, key)?
            .map(record::decode)
            .transpose()
    }

    fn head(&self, partition: &[u8]) -> Result<Option<Record>, StorageError> {
        if self.table.has_heads() {
            self.get(&key::bound(partition, HEADER, &[]))
        } else {
            Ok(None)
        }
    }

    fn enter(
        &self,
        token: Token,
        key: Vec<Bytes>,
        head: Option<&Record>,
        ranges: RangeDeletions,
    ) -> Entered {
        let liveness = Liveness {
            deleted_to: i64::MIN,
            now_s: self.now_s,
        };
        Entered {
            partition: Arc::new(Partition {
                token,
                key,
                static_cells: head
                    .map(|head| liveness.statics(head, &self.table.live))
                    .unwrap_or_default(),
            }),
            deleted_to: head
                .and_then(|head| head.deletion)
                .map_or(i64::MIN, |deletion| deletion.timestamp),
            ranges,
        }
    }

    /// Enters a partition of which rows have been given out already.
    fn re_enter(&self, prefix: &[u8]) -> Result<Current, StorageError> {
        let head = self.head(prefix)?;
        let ranges = self.ranges(prefix, head.as_ref())?;
        let (token, key) = self.decode_partition(prefix)?;
        Ok(Current {
            prefix: Bytes::copy_from_slice(prefix),
            entered: self.enter(token, key, head.as_ref(), ranges),
            found_rows: true,
        })
    }

    fn ranges(
        &self,
        partition: &[u8],
        head: Option<&Record>,
    ) -> Result<RangeDeletions, StorageError> {
        if head.is_some_and(|head| head.has_ranges) {
            RangeDeletions::read(&self.engine, &self.snapshot, self.table.space, partition)
        } else {
            Ok(RangeDeletions::default())
        }
    }

    fn decode_partition(&self, partition: &[u8]) -> Result<(Token, Vec<Bytes>), StorageError> {
        self.table
            .keys
            .decode_partition(partition)
            .ok_or_else(damaged_key)
    }

    fn row(
        &self,
        entered: &Entered,
        suffix: &[u8],
        key: Bytes,
        record: Record,
    ) -> Result<Option<Row>, StorageError> {
        let mut deleted_to = entered.deleted_to;
        if let Some(deletion) = entered.ranges.covering(suffix) {
            deleted_to = deleted_to.max(deletion.timestamp);
        }
        let liveness = Liveness {
            deleted_to,
            now_s: self.now_s,
        };
        let Some(cells) = liveness.row(&record, &self.table.live) else {
            return Ok(None);
        };
        let clustering = match record.clustering {
            Some(values) => values,
            None => self
                .table
                .keys
                .decode_clustering(suffix)
                .ok_or_else(damaged_key)?,
        };
        Ok(Some(build_row(RowParts {
            partition: Arc::clone(&entered.partition),
            clustering: Some(clustering),
            cells,
            key,
        })))
    }

    /// The row of a partition without live rows.
    fn static_only(&self, entered: &Entered, prefix: &[u8]) -> Option<Row> {
        if entered.partition.static_cells.is_empty() {
            return None;
        }
        Some(build_row(RowParts {
            partition: Arc::clone(&entered.partition),
            clustering: None,
            cells: Vec::new(),
            key: key::bound(prefix, HEADER, &[]).into(),
        }))
    }
}

impl PartitionRead {
    fn next(&mut self, context: &ReadContext) -> Result<Option<Row>, StorageError> {
        let entered = match &mut self.entered {
            Some(entered) => entered,
            not_yet => {
                let head = context.head(&self.plan.partition)?;
                let ranges = context.ranges(&self.plan.partition, head.as_ref())?;
                let key = std::mem::take(&mut self.plan.key);
                not_yet.insert(context.enter(self.plan.token, key, head.as_ref(), ranges))
            }
        };
        let prefix = self.plan.partition.len() + 1;
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
                if let Some(row) = context.row(entered, &key[prefix..], key.clone(), record)? {
                    self.found_rows = true;
                    return Ok(Some(row));
                }
                continue;
            }
            match self.plan.ranges.pop_front() {
                Some(RowRange::Point(suffix)) => {
                    let key = key::bound(&self.plan.partition, ROW, &suffix);
                    if let Some(record) = context.get(&key)?
                        && let Some(row) = context.row(entered, &suffix, key.into(), record)?
                    {
                        self.found_rows = true;
                        return Ok(Some(row));
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
    fn next(&mut self, context: &ReadContext) -> Result<Option<Row>, StorageError> {
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
                    entered: context.enter(
                        token,
                        partition_key,
                        head.as_ref(),
                        RangeDeletions::default(),
                    ),
                    found_rows: false,
                });
            }
            let Some(current) = &mut self.current else {
                continue;
            };
            match parts.kind {
                RANGE => current.entered.ranges.load(parts.suffix, &value)?,
                ROW => {
                    let slices = &self.plan.slices;
                    if !slices.is_empty() && !slices.iter().any(|s| s.contains(parts.suffix)) {
                        continue;
                    }
                    let record = record::decode(value)?;
                    if let Some(row) =
                        context.row(&current.entered, parts.suffix, key.clone(), record)?
                    {
                        current.found_rows = true;
                        return Ok(Some(row));
                    }
                }
                _ => {}
            }
        }
    }

    /// Ends the current partition, which may give a row of its static content.
    fn leave(&mut self, context: &ReadContext) -> Option<Row> {
        let current = self.current.take()?;
        if self.plan.static_only && !current.found_rows {
            context.static_only(&current.entered, &current.prefix)
        } else {
            None
        }
    }
}

fn damaged_key() -> StorageError {
    StorageError::Corrupt("a stored key can't be read: its bytes are damaged".to_owned())
}

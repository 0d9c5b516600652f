//! Sources of rows: partitions that are read one after the other, several that are merged by ORDER
//! BY, or rows that secondary indexes find.

use std::collections::VecDeque;

use client_memory::{MemoryAccount, MemoryCharge};
use cql::error::CqlError;
use storage::read::{NextRow, PartitionSelection, ReadRequest, Row, RowPosition};
use storage::{RowStream, Storage};

use super::indexed::{IndexRowSource, IndexScanStep};
use super::memory_table::MemoryTable;
use super::order::RowOrder;
use super::partition_query::PartitionQuery;
use super::partitions::WantedPartitions;
use super::retained_rows::{HeldRow, charge_rows};
use crate::statement::storage_error;

/// The most partitions that one query may merge, as all of them are open at the same time.
pub(super) const MERGED_PARTITIONS_MAX: usize = 1_000;

/// The data that rows are read from.
#[derive(Clone)]
pub(super) enum TableSource {
    /// A table of the storage.
    Stored {
        storage: Storage,
        /// The present as the client sent it, in seconds since the epoch.
        client_now_s: Option<i64>,
        /// The most tombstones that a read may pass.
        tombstones_max: u64,
    },
    /// A system table.
    Memory(MemoryTable),
}

enum PartitionRowStream {
    Stored(Box<RowStream>),
    Memory(std::vec::IntoIter<Row>),
}

impl TableSource {
    /// The most tombstones that a read may pass.
    fn tombstones_max(&self) -> u64 {
        match self {
            TableSource::Stored { tombstones_max, .. } => *tombstones_max,
            TableSource::Memory(_) => u64::MAX,
        }
    }

    /// Opens a read. `passed` is the number of tombstones that were passed before.
    fn open(&self, request: ReadRequest, passed: u64) -> Result<PartitionRowStream, CqlError> {
        match self {
            TableSource::Stored {
                storage,
                client_now_s: told_s,
                ..
            } => {
                let view = storage.view_at(request.table, *told_s);
                let stream = view.and_then(|view| view.read(&request));
                let stream = stream.map_err(storage_error)?;
                let mut rows = PartitionRowStream::Stored(Box::new(stream));
                // The bound is for all partitions of the page together.
                rows.stop_at_tombstones(self.tombstones_max().saturating_sub(passed));
                Ok(rows)
            }
            TableSource::Memory(table) => Ok(PartitionRowStream::Memory(
                table.read(&request)?.into_iter(),
            )),
        }
    }
}

impl PartitionRowStream {
    /// The next row. A record that is longer than `record_bytes_max` is not decoded.
    fn advance(&mut self, record_bytes_max: usize) -> Result<NextRow, CqlError> {
        match self {
            PartitionRowStream::Stored(stream) => {
                stream.advance(record_bytes_max).map_err(storage_error)
            }
            PartitionRowStream::Memory(rows) => {
                Ok(rows.next().map_or(NextRow::Nothing, NextRow::Row))
            }
        }
    }

    /// Lets go of what was read ahead.
    fn let_go(&mut self) {
        match self {
            PartitionRowStream::Stored(stream) => stream.let_go(),
            PartitionRowStream::Memory(_) => {}
        }
    }

    /// Makes the read fail once it has passed more tombstones than this.
    fn stop_at_tombstones(&mut self, max: u64) {
        match self {
            PartitionRowStream::Stored(stream) => stream.stop_at_tombstones(max),
            PartitionRowStream::Memory(_) => {}
        }
    }

    /// The number of tombstones that were passed so far.
    fn tombstones(&self) -> u64 {
        match self {
            PartitionRowStream::Stored(stream) => stream.tombstones(),
            PartitionRowStream::Memory(_) => 0,
        }
    }
}

/// The outcome of one step of a source.
pub(super) enum FetchOutcome {
    /// A row, and the slot of its partition: the index of the partition among the query's keys, or
    /// 0 in a range of tokens.
    Row(usize, Row),
    /// A position of a secondary index where there is no row any more.
    Gone(RowPosition),
    /// The step did some work, but there is no row yet.
    Nothing,
    /// A record comes next that is longer than the step may decode.
    Large,
    /// There are no more rows.
    End,
}

/// A source of rows.
pub(super) enum RowSource {
    /// Partitions are read one after the other.
    Sequence(PartitionSequence),
    /// Partitions are merged by ORDER BY.
    Merge(PartitionMerge),
    /// Secondary indexes find rows.
    Indexed {
        rows: Box<IndexRowSource>,
        /// The reader of a scan, if one takes the place of the indexes.
        reader: TableSource,
    },
}

impl RowSource {
    /// Takes one step, which opens a partition or reads a row. A record that is longer than
    /// `record_bytes_max` is not decoded.
    ///
    /// # Errors
    /// Failures of the storage, and a paging state that can't be read.
    pub(super) fn fetch(&mut self, record_bytes_max: usize) -> Result<FetchOutcome, CqlError> {
        match self {
            RowSource::Sequence(sequence) => sequence.fetch(record_bytes_max),
            RowSource::Merge(merge) => merge.fetch(record_bytes_max),
            RowSource::Indexed { rows, reader } => Ok(match rows.fetch(record_bytes_max)? {
                IndexScanStep::Row(row) => FetchOutcome::Row(0, row),
                IndexScanStep::Gone(position) => FetchOutcome::Gone(position),
                IndexScanStep::Nothing => FetchOutcome::Nothing,
                IndexScanStep::Large => FetchOutcome::Large,
                IndexScanStep::End => FetchOutcome::End,
                // The ranges have so many entries that to scan the table takes less work than to
                // gather them.
                IndexScanStep::Scan(after) => {
                    let (question, (start, end)) = rows.scan();
                    let wanted = WantedPartitions::Tokens(start, end);
                    let mut scan =
                        PartitionSequence::new(reader.clone(), question, wanted, 0, after);
                    let fetched = scan.fetch(record_bytes_max);
                    *self = RowSource::Sequence(scan);
                    return fetched;
                }
            }),
        }
    }

    /// Lets go of the rows that were read ahead. Those that partitions which are merged have to
    /// hold are charged.
    ///
    /// # Errors
    /// Rows for which there is no memory.
    pub(super) fn let_go(&mut self) -> Result<(), CqlError> {
        match self {
            RowSource::Sequence(sequence) => {
                if let Some(rows) = &mut sequence.open {
                    rows.let_go();
                }
                Ok(())
            }
            RowSource::Merge(merge) => merge.let_go(),
            RowSource::Indexed { rows, .. } => {
                rows.let_go();
                Ok(())
            }
        }
    }

    /// The slot of the next partition if the last one is finished and the next one is not open yet.
    /// Always `None` for merged partitions.
    pub(super) fn between_partitions(&self) -> Option<usize> {
        match self {
            RowSource::Sequence(sequence) if sequence.open.is_none() => Some(sequence.slot),
            _ => None,
        }
    }

    /// Skips the rest of the partition that the last row belongs to. Has no effect on a range of
    /// tokens and on merged partitions.
    pub(super) fn skip_partition(&mut self) {
        match self {
            RowSource::Sequence(sequence)
                if matches!(sequence.wanted, WantedPartitions::Keys(_)) =>
            {
                sequence.close_partition();
            }
            RowSource::Indexed { rows, .. } => rows.skip_partition(),
            RowSource::Sequence(_) | RowSource::Merge(_) => {}
        }
    }

    /// Whether secondary indexes find rows, and have them under single values.
    pub(super) fn is_quick_lookup(&self) -> bool {
        matches!(self, RowSource::Indexed { rows, .. } if rows.is_quick())
    }

    /// The number of tombstones that were passed so far.
    pub(super) fn tombstones(&self) -> u64 {
        match self {
            RowSource::Sequence(sequence) => sequence.tombstones(),
            RowSource::Merge(merge) => merge.tombstones,
            RowSource::Indexed { rows, .. } => rows.tombstones(),
        }
    }

    /// Whether a page may end after any row.
    pub(super) fn can_resume(&self) -> bool {
        !matches!(self, RowSource::Merge(_))
    }
}

/// A source that reads partitions one after the other, or one range of tokens.
pub(super) struct PartitionSequence {
    reader: TableSource,
    question: PartitionQuery,
    wanted: WantedPartitions,
    /// The slot of the partition that is open or comes next; 1 after a range of tokens.
    slot: usize,
    /// The rows of the partition that is open.
    open: Option<PartitionRowStream>,
    /// The most rows that the open partition can still have.
    left: usize,
    /// The tombstones of the partitions that were left.
    tombstones: u64,
    /// The row after which the first partition is read.
    resume_after: Option<RowPosition>,
}

impl PartitionSequence {
    /// Makes a source that begins with the partition at `slot`, after the row at `resume_after`.
    pub(super) fn new(
        reader: TableSource,
        question: PartitionQuery,
        wanted: WantedPartitions,
        slot: usize,
        resume_after: Option<RowPosition>,
    ) -> PartitionSequence {
        PartitionSequence {
            reader,
            question,
            wanted,
            slot,
            open: None,
            left: 0,
            tombstones: 0,
            resume_after,
        }
    }

    fn tombstones(&self) -> u64 {
        self.tombstones + self.open.as_ref().map_or(0, PartitionRowStream::tombstones)
    }

    fn fetch(&mut self, record_bytes_max: usize) -> Result<FetchOutcome, CqlError> {
        if let Some(rows) = &mut self.open {
            // Once each whole key has its row, the stream would only look for rows that can't be
            // there.
            if self.left > 0 {
                match rows.advance(record_bytes_max)? {
                    NextRow::Row(row) => {
                        self.left -= 1;
                        return Ok(FetchOutcome::Row(self.slot, row));
                    }
                    NextRow::Large => return Ok(FetchOutcome::Large),
                    NextRow::Nothing => {}
                }
            }
            // A step by itself, so that a query over many empty partitions still ends within its
            // budget.
            self.close_partition();
            return Ok(FetchOutcome::Nothing);
        }
        let partitions = match &self.wanted {
            WantedPartitions::Nothing => return Ok(FetchOutcome::End),
            WantedPartitions::Keys(keys) => match keys.get(self.slot) {
                Some(key) => PartitionSelection::One(key.clone()),
                None => return Ok(FetchOutcome::End),
            },
            WantedPartitions::Tokens(_, _) if self.slot > 0 => return Ok(FetchOutcome::End),
            WantedPartitions::Tokens(start, end) => PartitionSelection::Tokens(*start, *end),
        };
        self.left = match partitions {
            PartitionSelection::One(_) => self.question.rows_max(),
            PartitionSelection::Tokens(_, _) => usize::MAX,
        };
        let request = self.question.ask(partitions, self.resume_after.take());
        self.open = Some(self.reader.open(request, self.tombstones)?);
        Ok(FetchOutcome::Nothing)
    }

    fn close_partition(&mut self) {
        self.tombstones = self.tombstones();
        self.open = None;
        self.slot += 1;
    }
}

/// A source that reads partitions side by side and merges their rows.
pub(super) struct PartitionMerge {
    reader: TableSource,
    question: PartitionQuery,
    /// The order of the rows.
    order: RowOrder,
    /// The partitions that are not open yet, as (slot, key).
    waiting: VecDeque<(usize, Vec<bytes::Bytes>)>,
    /// The open partitions. The one whose row is to return first comes last.
    heads: Vec<MergedPartition>,
    /// A partition that is open and whose next row is not decoded yet, as it is large.
    put_off: Option<(usize, PartitionRowStream)>,
    /// The tombstones of all partitions so far.
    tombstones: u64,
    /// The memory that the rows of the heads are charged for between two steps.
    charge: MemoryCharge,
}

/// A partition that is merged.
struct MergedPartition {
    slot: usize,
    /// The next row.
    row: HeldRow,
    /// The rows after it.
    rows: PartitionRowStream,
}

impl PartitionMerge {
    /// Makes a source that merges the partitions of these keys. The rows that it holds between two
    /// steps are charged to `memory`.
    pub(super) fn new(
        reader: TableSource,
        question: PartitionQuery,
        keys: Vec<Vec<bytes::Bytes>>,
        order: RowOrder,
        memory: &MemoryAccount,
    ) -> PartitionMerge {
        PartitionMerge {
            reader,
            question,
            order,
            waiting: keys.into_iter().enumerate().collect(),
            heads: Vec::new(),
            put_off: None,
            tombstones: 0,
            charge: memory.charge(),
        }
    }

    fn fetch(&mut self, record_bytes_max: usize) -> Result<FetchOutcome, CqlError> {
        if let Some((slot, rows)) = self.put_off.take() {
            return self.advanced(slot, rows, record_bytes_max);
        }
        if let Some((slot, key)) = self.waiting.pop_front() {
            let request = self.question.ask(PartitionSelection::One(key), None);
            let rows = self.reader.open(request, self.tombstones)?;
            return self.advanced(slot, rows, record_bytes_max);
        }
        let Some(MergedPartition { slot, row, rows }) = self.heads.pop() else {
            return Ok(FetchOutcome::End);
        };
        // The next row of the partition takes its place among the heads first. If it is large it is
        // put off, and this one is returned all the same.
        self.advance(slot, rows, record_bytes_max)?;
        Ok(FetchOutcome::Row(slot, row.into_row()))
    }

    fn advanced(
        &mut self,
        slot: usize,
        rows: PartitionRowStream,
        record_bytes_max: usize,
    ) -> Result<FetchOutcome, CqlError> {
        self.advance(slot, rows, record_bytes_max)?;
        Ok(match self.put_off {
            Some(_) => FetchOutcome::Large,
            None => FetchOutcome::Nothing,
        })
    }

    /// Puts a partition among the heads by its next row, or puts it off if that row is large. A
    /// partition without further rows is dropped.
    fn advance(
        &mut self,
        slot: usize,
        mut rows: PartitionRowStream,
        record_bytes_max: usize,
    ) -> Result<(), CqlError> {
        // What the others have passed counts, too.
        let before = rows.tombstones();
        let of_others = self.tombstones - before;
        rows.stop_at_tombstones(self.reader.tombstones_max().saturating_sub(of_others));
        let next = rows.advance(record_bytes_max)?;
        self.tombstones = of_others + rows.tombstones();
        let row = match next {
            NextRow::Row(row) => HeldRow::new(row),
            NextRow::Large => {
                self.put_off = Some((slot, rows));
                return Ok(());
            }
            NextRow::Nothing => return Ok(()),
        };
        // The heads are in reverse, as a vector gives up its last element without a move of the
        // others. Of equal rows the one of the earlier key is returned first.
        let at = self.heads.partition_point(|other| {
            let (theirs, own) = (other.row.row(), row.row());
            self.order
                .compare(theirs.clustering.as_deref(), own.clustering.as_deref())
                .then(other.slot.cmp(&slot))
                .is_gt()
        });
        self.heads.insert(at, MergedPartition { slot, row, rows });
        Ok(())
    }

    fn let_go(&mut self) -> Result<(), CqlError> {
        if let Some((_, rows)) = &mut self.put_off {
            rows.let_go();
        }
        let mut bytes = 0;
        for head in &mut self.heads {
            head.rows.let_go();
            bytes += head.row.own();
        }
        charge_rows(&mut self.charge, bytes)
    }
}

//! Sources of rows: partitions that are read one after the other, several that are merged by ORDER
//! BY, or rows that secondary indexes find.

use std::collections::VecDeque;

use client_memory::{Account, Charge};
use cql::error::CqlError;
use storage::read::{Next, Partitions, Position, ReadRequest, Row};
use storage::{RowStream, Storage};

use super::held::{HeldRow, charge_rows};
use super::indexed::{Found, Indexed};
use super::memory::MemoryTable;
use super::order::RowOrder;
use super::partitions::WantedPartitions;
use super::question::Question;
use crate::statement::storage_error;

/// The most partitions that one query may merge, as all of them are open at the same time.
pub(super) const MERGED_PARTITIONS_MAX: usize = 1_000;

/// The data that rows are read from.
#[derive(Clone)]
pub(super) enum Reader {
    /// A table of the storage.
    Stored {
        storage: Storage,
        /// The present as the client sent it, in seconds since the epoch.
        told_s: Option<i64>,
        /// The most tombstones that a read may pass.
        tombstones_max: u64,
    },
    /// A system table.
    Memory(MemoryTable),
}

enum Rows {
    Stored(Box<RowStream>),
    Memory(std::vec::IntoIter<Row>),
}

impl Reader {
    /// The most tombstones that a read may pass.
    fn tombstones_max(&self) -> u64 {
        match self {
            Reader::Stored { tombstones_max, .. } => *tombstones_max,
            Reader::Memory(_) => u64::MAX,
        }
    }

    /// Opens a read. `passed` is the number of tombstones that were passed before.
    fn open(&self, request: ReadRequest, passed: u64) -> Result<Rows, CqlError> {
        match self {
            Reader::Stored {
                storage, told_s, ..
            } => {
                let view = storage.view_at(request.table, *told_s);
                let stream = view.and_then(|view| view.read(&request));
                let stream = stream.map_err(storage_error)?;
                let mut rows = Rows::Stored(Box::new(stream));
                rows.stop_at_tombstones(self.tombstones_max().saturating_sub(passed));
                Ok(rows)
            }
            Reader::Memory(table) => Ok(Rows::Memory(table.read(&request)?.into_iter())),
        }
    }
}

impl Rows {
    /// The next row. A record that is longer than `record_bytes_max` is not decoded.
    fn advance(&mut self, record_bytes_max: usize) -> Result<Next, CqlError> {
        match self {
            Rows::Stored(stream) => stream.advance(record_bytes_max).map_err(storage_error),
            Rows::Memory(rows) => Ok(rows.next().map_or(Next::Nothing, Next::Row)),
        }
    }

    /// Lets go of what was read ahead.
    fn let_go(&mut self) {
        match self {
            Rows::Stored(stream) => stream.let_go(),
            Rows::Memory(_) => {}
        }
    }

    /// Makes the read fail once it has passed more tombstones than this.
    fn stop_at_tombstones(&mut self, max: u64) {
        match self {
            Rows::Stored(stream) => stream.stop_at_tombstones(max),
            Rows::Memory(_) => {}
        }
    }

    /// The number of tombstones that were passed so far.
    fn tombstones(&self) -> u64 {
        match self {
            Rows::Stored(stream) => stream.tombstones(),
            Rows::Memory(_) => 0,
        }
    }
}

/// The outcome of one step of a source.
pub(super) enum Fetched {
    /// A row, and the slot of its partition: the index of the partition among the query's keys, or
    /// 0 in a range of tokens.
    Row(usize, Row),
    /// A position of a secondary index where there is no row any more.
    Gone(Position),
    /// The step did some work, but there is no row yet.
    Nothing,
    /// A record comes next that is longer than the step may decode.
    Large,
    /// There are no more rows.
    End,
}

/// A source of rows.
pub(super) enum Source {
    /// Partitions are read one after the other.
    Sequence(Sequence),
    /// Partitions are merged by ORDER BY.
    Merge(Merge),
    /// Secondary indexes find rows.
    Indexed {
        rows: Box<Indexed>,
        /// The reader of a scan, if one takes the place of the indexes.
        reader: Reader,
    },
}

impl Source {
    /// Takes one step, which opens a partition or reads a row. A record that is longer than
    /// `record_bytes_max` is not decoded.
    ///
    /// # Errors
    /// Failures of the storage, and a paging state that can't be read.
    pub(super) fn fetch(&mut self, record_bytes_max: usize) -> Result<Fetched, CqlError> {
        match self {
            Source::Sequence(sequence) => sequence.fetch(record_bytes_max),
            Source::Merge(merge) => merge.fetch(record_bytes_max),
            Source::Indexed { rows, reader } => Ok(match rows.fetch(record_bytes_max)? {
                Found::Row(row) => Fetched::Row(0, row),
                Found::Gone(position) => Fetched::Gone(position),
                Found::Nothing => Fetched::Nothing,
                Found::Large => Fetched::Large,
                Found::End => Fetched::End,
                Found::Scan(after) => {
                    let (question, (start, end)) = rows.scan();
                    let wanted = WantedPartitions::Tokens(start, end);
                    let mut scan = Sequence::new(reader.clone(), question, wanted, 0, after);
                    let fetched = scan.fetch(record_bytes_max);
                    *self = Source::Sequence(scan);
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
            Source::Sequence(sequence) => {
                if let Some(rows) = &mut sequence.open {
                    rows.let_go();
                }
                Ok(())
            }
            Source::Merge(merge) => merge.let_go(),
            Source::Indexed { rows, .. } => {
                rows.let_go();
                Ok(())
            }
        }
    }

    /// The slot of the next partition if the last one is finished and the next one is not open yet.
    /// Always `None` for merged partitions.
    pub(super) fn between_partitions(&self) -> Option<usize> {
        match self {
            Source::Sequence(sequence) if sequence.open.is_none() => Some(sequence.slot),
            _ => None,
        }
    }

    /// Skips the rest of the partition that the last row belongs to. Has no effect on a range of
    /// tokens and on merged partitions.
    pub(super) fn skip_partition(&mut self) {
        match self {
            Source::Sequence(sequence) if matches!(sequence.wanted, WantedPartitions::Keys(_)) => {
                sequence.leave();
            }
            Source::Indexed { rows, .. } => rows.skip_partition(),
            Source::Sequence(_) | Source::Merge(_) => {}
        }
    }

    /// Whether secondary indexes find rows, and have them under single values.
    pub(super) fn is_quick_lookup(&self) -> bool {
        matches!(self, Source::Indexed { rows, .. } if rows.is_quick())
    }

    /// The number of tombstones that were passed so far.
    pub(super) fn tombstones(&self) -> u64 {
        match self {
            Source::Sequence(sequence) => sequence.tombstones(),
            Source::Merge(merge) => merge.tombstones,
            Source::Indexed { rows, .. } => rows.tombstones(),
        }
    }

    /// Whether a page may end after any row.
    pub(super) fn can_resume(&self) -> bool {
        !matches!(self, Source::Merge(_))
    }
}

/// A source that reads partitions one after the other, or one range of tokens.
pub(super) struct Sequence {
    reader: Reader,
    question: Question,
    wanted: WantedPartitions,
    /// The slot of the partition that is open or comes next; 1 after a range of tokens.
    slot: usize,
    /// The rows of the partition that is open.
    open: Option<Rows>,
    /// The most rows that the open partition can still have.
    left: usize,
    /// The tombstones of the partitions that were left.
    tombstones: u64,
    /// The row after which the first partition is read.
    resume_after: Option<Position>,
}

impl Sequence {
    /// Makes a source that begins with the partition at `slot`, after the row at `resume_after`.
    pub(super) fn new(
        reader: Reader,
        question: Question,
        wanted: WantedPartitions,
        slot: usize,
        resume_after: Option<Position>,
    ) -> Sequence {
        Sequence {
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
        self.tombstones + self.open.as_ref().map_or(0, Rows::tombstones)
    }

    fn fetch(&mut self, record_bytes_max: usize) -> Result<Fetched, CqlError> {
        if let Some(rows) = &mut self.open {
            if self.left > 0 {
                match rows.advance(record_bytes_max)? {
                    Next::Row(row) => {
                        self.left -= 1;
                        return Ok(Fetched::Row(self.slot, row));
                    }
                    Next::Large => return Ok(Fetched::Large),
                    Next::Nothing => {}
                }
            }
            self.leave();
            return Ok(Fetched::Nothing);
        }
        let partitions = match &self.wanted {
            WantedPartitions::Nothing => return Ok(Fetched::End),
            WantedPartitions::Keys(keys) => match keys.get(self.slot) {
                Some(key) => Partitions::One(key.clone()),
                None => return Ok(Fetched::End),
            },
            WantedPartitions::Tokens(_, _) if self.slot > 0 => return Ok(Fetched::End),
            WantedPartitions::Tokens(start, end) => Partitions::Tokens(*start, *end),
        };
        self.left = match partitions {
            Partitions::One(_) => self.question.rows_max(),
            Partitions::Tokens(_, _) => usize::MAX,
        };
        let request = self.question.ask(partitions, self.resume_after.take());
        self.open = Some(self.reader.open(request, self.tombstones)?);
        Ok(Fetched::Nothing)
    }

    fn leave(&mut self) {
        self.tombstones = self.tombstones();
        self.open = None;
        self.slot += 1;
    }
}

/// A source that reads partitions side by side and merges their rows.
pub(super) struct Merge {
    reader: Reader,
    question: Question,
    /// The order of the rows.
    order: RowOrder,
    /// The partitions that are not open yet, as (slot, key).
    waiting: VecDeque<(usize, Vec<bytes::Bytes>)>,
    /// The open partitions. The one whose row is to return first comes last.
    heads: Vec<Head>,
    /// A partition that is open and whose next row is not decoded yet, as it is large.
    put_off: Option<(usize, Rows)>,
    /// The tombstones of all partitions so far.
    tombstones: u64,
    /// The memory that the rows of the heads are charged for between two steps.
    charge: Charge,
}

/// A partition that is merged.
struct Head {
    slot: usize,
    /// The next row.
    row: HeldRow,
    /// The rows after it.
    rows: Rows,
}

impl Merge {
    /// Makes a source that merges the partitions of these keys. The rows that it holds between two
    /// steps are charged to `memory`.
    pub(super) fn new(
        reader: Reader,
        question: Question,
        keys: Vec<Vec<bytes::Bytes>>,
        order: RowOrder,
        memory: &Account,
    ) -> Merge {
        Merge {
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

    fn fetch(&mut self, record_bytes_max: usize) -> Result<Fetched, CqlError> {
        if let Some((slot, rows)) = self.put_off.take() {
            return self.advanced(slot, rows, record_bytes_max);
        }
        if let Some((slot, key)) = self.waiting.pop_front() {
            let request = self.question.ask(Partitions::One(key), None);
            let rows = self.reader.open(request, self.tombstones)?;
            return self.advanced(slot, rows, record_bytes_max);
        }
        let Some(Head { slot, row, rows }) = self.heads.pop() else {
            return Ok(Fetched::End);
        };
        self.advance(slot, rows, record_bytes_max)?;
        Ok(Fetched::Row(slot, row.into_row()))
    }

    fn advanced(
        &mut self,
        slot: usize,
        rows: Rows,
        record_bytes_max: usize,
    ) -> Result<Fetched, CqlError> {
        self.advance(slot, rows, record_bytes_max)?;
        Ok(match self.put_off {
            Some(_) => Fetched::Large,
            None => Fetched::Nothing,
        })
    }

    /// Puts a partition among the heads by its next row, or puts it off if that row is large. A
    /// partition without further rows is dropped.
    fn advance(
        &mut self,
        slot: usize,
        mut rows: Rows,
        record_bytes_max: usize,
    ) -> Result<(), CqlError> {
        // What the others have passed counts, too.
        let before = rows.tombstones();
        let of_others = self.tombstones - before;
        rows.stop_at_tombstones(self.reader.tombstones_max().saturating_sub(of_others));
        let next = rows.advance(record_bytes_max)?;
        self.tombstones = of_others + rows.tombstones();
        let row = match next {
            Next::Row(row) => HeldRow::new(row),
            Next::Large => {
                self.put_off = Some((slot, rows));
                return Ok(());
            }
            Next::Nothing => return Ok(()),
        };
        let at = self.heads.partition_point(|other| {
            let (theirs, own) = (other.row.row(), row.row());
            self.order
                .compare(theirs.clustering.as_deref(), own.clustering.as_deref())
                .then(other.slot.cmp(&slot))
                .is_gt()
        });
        self.heads.insert(at, Head { slot, row, rows });
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

//! Where rows come from: partition after partition, or several merged by ORDER BY.

use std::cmp::Ordering;
use std::collections::VecDeque;

use cql::error::CqlError;
use cql::types::CqlType;
use cql::value::compare;
use storage::Storage;
use storage::catalog::TableId;
use storage::read::{ClusteringSlice, Partitions, Position, ReadRequest, Row, RowStream};

use super::memory::MemoryTable;
use super::partitions::Targets;
use crate::failure::storage_error;

/// Each merged partition is open at once.
pub(super) const MERGED_PARTITIONS_MAX: usize = 1_000;

/// What is read from.
#[derive(Clone)]
pub(super) enum Reader {
    Stored(Storage),
    Memory(MemoryTable),
}

enum Rows {
    Stored(Box<RowStream>),
    Memory(std::vec::IntoIter<Row>),
}

impl Reader {
    fn open(&self, request: ReadRequest) -> Result<Rows, CqlError> {
        match self {
            Reader::Stored(storage) => storage
                .read(request)
                .map(|stream| Rows::Stored(Box::new(stream)))
                .map_err(storage_error),
            Reader::Memory(table) => Ok(Rows::Memory(table.read(&request)?.into_iter())),
        }
    }
}

impl Rows {
    fn next_row(&mut self) -> Result<Option<Row>, CqlError> {
        match self {
            Rows::Stored(stream) => stream.next().transpose().map_err(storage_error),
            Rows::Memory(rows) => Ok(rows.next()),
        }
    }
}

/// What every partition of a query is asked.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub table: TableId,
    /// Empty for all rows.
    pub slices: Vec<ClusteringSlice>,
    pub reversed: bool,
    pub static_only_rows: bool,
    /// The slices are of whole clustering keys: there are no more rows than slices.
    pub is_of_whole_keys: bool,
}

impl Question {
    fn ask(&self, partitions: Partitions, resume_after: Option<Position>) -> ReadRequest {
        ReadRequest {
            table: self.table,
            partitions,
            slices: self.slices.clone(),
            reversed: self.reversed,
            resume_after,
            static_only_rows: self.static_only_rows,
        }
    }

    /// The most rows that a partition can have.
    fn rows_max(&self) -> usize {
        if self.is_of_whole_keys {
            self.slices.len().max(1)
        } else {
            usize::MAX
        }
    }
}

/// One step of a source.
pub(super) enum Fetched {
    /// A row of the partition at a slot.
    Row(usize, Row),
    /// Work was done, but there is no row yet.
    Nothing,
    End,
}

pub(super) enum Source {
    Sequence(Sequence),
    Merge(Merge),
}

impl Source {
    pub(super) fn fetch(&mut self) -> Result<Fetched, CqlError> {
        match self {
            Source::Sequence(sequence) => sequence.fetch(),
            Source::Merge(merge) => merge.fetch(),
        }
    }

    /// The next partition's slot, if the one before is done with and it is not open yet.
    pub(super) fn between_partitions(&self) -> Option<usize> {
        match self {
            Source::Sequence(sequence) if sequence.open.is_none() => Some(sequence.slot),
            _ => None,
        }
    }

    /// No more rows are wanted of the partition that the last row was of.
    pub(super) fn skip_partition(&mut self) {
        if let Source::Sequence(sequence) = self
            && matches!(sequence.targets, Targets::Keys(_))
        {
            sequence.leave();
        }
    }
}

/// One partition, or range of tokens, after the other.
pub(super) struct Sequence {
    reader: Reader,
    question: Question,
    targets: Targets,
    slot: usize,
    open: Option<Rows>,
    /// Rows that the open partition can still have.
    left: usize,
    /// Where the first partition goes on.
    resume_after: Option<Position>,
}

impl Sequence {
    /// Begins at `slot` behind `resume_after`.
    pub(super) fn new(
        reader: Reader,
        question: Question,
        targets: Targets,
        slot: usize,
        resume_after: Option<Position>,
    ) -> Sequence {
        Sequence {
            reader,
            question,
            targets,
            slot,
            open: None,
            left: 0,
            resume_after,
        }
    }

    fn fetch(&mut self) -> Result<Fetched, CqlError> {
        if let Some(rows) = &mut self.open {
            if self.left > 0
                && let Some(row) = rows.next_row()?
            {
                self.left -= 1;
                return Ok(Fetched::Row(self.slot, row));
            }
            self.leave();
            return Ok(Fetched::Nothing);
        }
        let partitions = match &self.targets {
            Targets::Nothing => return Ok(Fetched::End),
            Targets::Keys(keys) => match keys.get(self.slot) {
                Some(key) => Partitions::One(key.clone()),
                None => return Ok(Fetched::End),
            },
            Targets::Tokens(_, _) if self.slot > 0 => return Ok(Fetched::End),
            Targets::Tokens(start, end) => Partitions::Tokens(*start, *end),
        };
        self.left = match partitions {
            Partitions::One(_) => self.question.rows_max(),
            Partitions::Tokens(_, _) => usize::MAX,
        };
        let request = self.question.ask(partitions, self.resume_after.take());
        self.open = Some(self.reader.open(request)?);
        Ok(Fetched::Nothing)
    }

    fn leave(&mut self) {
        self.open = None;
        self.slot += 1;
    }
}

/// Partitions read side by side, their rows merged.
pub(super) struct Merge {
    reader: Reader,
    question: Question,
    /// Clustering columns: position, type, whether they go down.
    order: Vec<(usize, CqlType, bool)>,
    /// Partitions not opened yet, with their slots.
    waiting: VecDeque<(usize, Vec<bytes::Bytes>)>,
    /// The next row of each open partition; the one to return first comes last.
    heads: Vec<(usize, Row, Rows)>,
}

impl Merge {
    pub(super) fn new(
        reader: Reader,
        question: Question,
        keys: Vec<Vec<bytes::Bytes>>,
        order: Vec<(usize, CqlType, bool)>,
    ) -> Merge {
        Merge {
            reader,
            question,
            order,
            waiting: keys.into_iter().enumerate().collect(),
            heads: Vec::new(),
        }
    }

    fn fetch(&mut self) -> Result<Fetched, CqlError> {
        if let Some((slot, key)) = self.waiting.pop_front() {
            let request = self.question.ask(Partitions::One(key), None);
            let rows = self.reader.open(request)?;
            self.advance(slot, rows)?;
            return Ok(Fetched::Nothing);
        }
        let Some((slot, row, rows)) = self.heads.pop() else {
            return Ok(Fetched::End);
        };
        self.advance(slot, rows)?;
        Ok(Fetched::Row(slot, row))
    }

    /// Puts the partition back in by its next row, if it has one.
    fn advance(&mut self, slot: usize, mut rows: Rows) -> Result<(), CqlError> {
        let Some(row) = rows.next_row()? else {
            return Ok(());
        };
        let at = self.heads.partition_point(|(other_slot, other, _)| {
            compare_rows(&self.order, self.question.reversed, other, &row)
                .then(other_slot.cmp(&slot))
                .is_gt()
        });
        self.heads.insert(at, (slot, row, rows));
        Ok(())
    }
}

/// Rows with static content only come first in the order of the disk, and last against it.
fn compare_rows(order: &[(usize, CqlType, bool)], reversed: bool, a: &Row, b: &Row) -> Ordering {
    let (a, b) = match (&a.clustering, &b.clustering) {
        (Some(a), Some(b)) => (a, b),
        (a, b) => {
            let order = a.is_some().cmp(&b.is_some());
            return if reversed { order.reverse() } else { order };
        }
    };
    order
        .iter()
        .map(|(position, cql_type, descending)| {
            let order = compare(cql_type, &a[*position], &b[*position]);
            if *descending { order.reverse() } else { order }
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

//! A source of the rows that secondary indexes find.
//!
//! The source begins with a choice: the lookup with the fewest entries is taken, if it has few, or
//! else those of one value together. If only ranges are looked up and they have too many entries,
//! the rows are scanned. The positions come in the order of the disk whatever is taken, so a page
//! may choose otherwise than the one before.
//!
//! An entry may be of a row that has changed since. The taker of the rows checks them all.

use client_memory::MemoryAccount;
use cql::error::CqlError;
use storage::read::{NextRow, PartitionSelection, Row, RowPosition};
use storage::{RowStream, StorageError, TableView};

use super::lookup::IndexLookup;
use super::partition_query::PartitionQuery;
use super::partitions::Tokens;
use super::positions::{IndexReadRange, PositionIntersection, PositionStep, RangePositions, own};
use crate::statement::storage_error;

/// The number of entries up to which lookups are counted to compare them. Fewer rows are read
/// sooner than further indexes.
const FEW: usize = 256;

/// The outcome of one step of the source.
pub(super) enum IndexScanStep {
    Row(Row),
    /// A position where there is no row any more.
    Gone(RowPosition),
    /// The step did some work, but there is no row yet.
    Nothing,
    /// A record comes next that is longer than the step may decode.
    Large,
    End,
    /// The rows have to be scanned after the position.
    Scan(Option<RowPosition>),
}

/// A source of the rows that secondary indexes find.
pub(super) struct IndexRowSource {
    view: TableView,
    question: PartitionQuery,
    /// The lookups to choose from, later those that are not tried yet.
    lookups: Vec<IndexLookup>,
    span: IndexReadRange,
    memory: MemoryAccount,
    positions: Option<PositionSource>,
    /// A position whose row is not decoded yet, as it is large.
    put_off: Option<RowPosition>,
    /// The rest of a partition that was found as a whole.
    open: Option<RowStream>,
    /// The partition of the last position that was visited.
    current: Option<RowPosition>,
    /// The partition whose further positions are passed over.
    left: Option<RowPosition>,
    /// The tombstones of the rows that were visited, and of the partitions that were found as a
    /// whole and left.
    tombstones: u64,
    /// The most tombstones that the rows may have.
    tombstones_max: u64,
}

enum PositionSource {
    Common(PositionIntersection),
    Gathered(Box<RangePositions>),
}

impl IndexRowSource {
    /// Makes a source of the rows in a span. The lookups, at least one, are of relations that hold
    /// for all of them. Above `tombstones_max` tombstones the read fails.
    pub(super) fn new(
        view: TableView,
        question: PartitionQuery,
        lookups: Vec<IndexLookup>,
        span: IndexReadRange,
        tombstones_max: u64,
        memory: &MemoryAccount,
    ) -> IndexRowSource {
        IndexRowSource {
            view,
            question,
            lookups,
            span,
            memory: memory.clone(),
            positions: None,
            put_off: None,
            open: None,
            current: None,
            left: None,
            tombstones: 0,
            tombstones_max,
        }
    }

    /// The number of tombstones in the rows that were visited.
    pub(super) fn tombstones(&self) -> u64 {
        self.tombstones + self.open.as_ref().map_or(0, RowStream::tombstones)
    }

    /// Whether a row is found without reading many entries.
    pub(super) fn is_quick(&self) -> bool {
        self.lookups.iter().all(IndexLookup::is_of_one_value)
    }

    /// Takes one step, which reads some entries or a row. A record that is longer than
    /// `record_bytes_max` is not decoded.
    ///
    /// # Errors
    /// Failures of the storage, and more positions than there is memory for.
    pub(super) fn fetch(&mut self, record_bytes_max: usize) -> Result<IndexScanStep, CqlError> {
        if let Some(rows) = &mut self.open {
            return Ok(
                match rows.advance(record_bytes_max).map_err(storage_error)? {
                    NextRow::Row(row) => IndexScanStep::Row(row),
                    NextRow::Large => IndexScanStep::Large,
                    NextRow::Nothing => {
                        self.tombstones = self.tombstones();
                        self.open = None;
                        IndexScanStep::Nothing
                    }
                },
            );
        }
        if let Some(position) = self.put_off.take() {
            return self.visit(position, record_bytes_max);
        }
        let step = match &mut self.positions {
            // The choice waits for the first step, as it reads entries of the indexes.
            None => return self.choose(),
            Some(PositionSource::Common(common)) => common.step(&self.view)?,
            Some(PositionSource::Gathered(gathered)) => gathered.step(&self.view)?,
        };
        match step {
            PositionStep::Found(position) => self.visit(position, record_bytes_max),
            PositionStep::Working => Ok(IndexScanStep::Nothing),
            PositionStep::End => Ok(IndexScanStep::End),
            PositionStep::TooMany => Ok(self.gather()),
        }
    }

    /// Skips the rest of the partition that the last row belongs to.
    pub(super) fn skip_partition(&mut self) {
        self.tombstones = self.tombstones();
        self.open = None;
        self.left.clone_from(&self.current);
    }

    /// The question and the tokens, for a scan in the place of the indexes.
    pub(super) fn scan(&self) -> (PartitionQuery, Tokens) {
        (self.question.clone(), self.span.tokens)
    }

    /// Lets go of the rows and entries that were read ahead.
    pub(super) fn let_go(&mut self) {
        if let Some(rows) = &mut self.open {
            rows.let_go();
        }
        match &mut self.positions {
            Some(PositionSource::Common(common)) => common.let_go(),
            Some(PositionSource::Gathered(gathered)) => gathered.let_go(),
            None => {}
        }
        own(&mut self.put_off);
        own(&mut self.current);
        own(&mut self.left);
    }

    /// Reads the row at a position, or opens the partition.
    fn visit(
        &mut self,
        position: RowPosition,
        record_bytes_max: usize,
    ) -> Result<IndexScanStep, CqlError> {
        let partition = self.view.partition_at(&position).map_err(storage_error)?;
        // The positions of a page begin with the one at which the last page ended.
        if self.left.as_ref() == Some(&partition) || self.span.after.as_ref() == Some(&position) {
            return Ok(IndexScanStep::Nothing);
        }
        self.current = Some(partition.clone());
        if partition != position {
            let looked_up = self.view.row_at(&position, record_bytes_max);
            let (next, tombstones) = looked_up.map_err(storage_error)?;
            self.tombstones += tombstones;
            if self.tombstones > self.tombstones_max {
                let error = StorageError::TooManyTombstones(self.tombstones);
                return Err(storage_error(error));
            }
            return Ok(match next {
                NextRow::Row(row) => IndexScanStep::Row(row),
                NextRow::Nothing => IndexScanStep::Gone(position),
                NextRow::Large => {
                    self.put_off = Some(position);
                    IndexScanStep::Large
                }
            });
        }
        let is_begun = self.span.begun.as_ref() == Some(&partition);
        let resume_after = self.span.after.clone().filter(|_| is_begun);
        let key = self.view.key_at(&position).map_err(storage_error)?;
        let request = self
            .question
            .ask(PartitionSelection::One(key.partition_key), resume_after);
        let mut rows = self.view.read(&request).map_err(storage_error)?;
        rows.stop_at_tombstones(self.tombstones_max.saturating_sub(self.tombstones));
        self.open = Some(rows);
        // The stream has all rows of the partition, so further positions in it are passed over.
        self.left = Some(partition);
        Ok(IndexScanStep::Nothing)
    }

    fn choose(&mut self) -> Result<IndexScanStep, CqlError> {
        let mut lookups = std::mem::take(&mut self.lookups);
        if lookups.len() > 1
            && let Some(fewest) = self.fewest(&lookups)?
        {
            lookups = vec![lookups.swap_remove(fewest)];
        }
        let (values, ranges) = lookups.into_iter().partition(IndexLookup::is_of_one_value);
        self.lookups = ranges;
        if values.is_empty() {
            return Ok(self.gather());
        }
        let common = PositionIntersection::open(&self.view, &values, &self.span)?;
        self.positions = Some(PositionSource::Common(common));
        Ok(IndexScanStep::Nothing)
    }

    /// Takes the next of the lookups of ranges.
    fn gather(&mut self) -> IndexScanStep {
        let Some(lookup) = self.lookups.pop() else {
            return IndexScanStep::Scan(self.span.after.clone());
        };
        let gathered = RangePositions::new(lookup, self.span.clone(), &self.memory);
        self.positions = Some(PositionSource::Gathered(Box::new(gathered)));
        IndexScanStep::Nothing
    }

    /// The lookup with the fewest entries, if it has few. A lookup that names whole partitions
    /// counts only among its like, as the number of their rows is unknown.
    fn fewest(&self, lookups: &[IndexLookup]) -> Result<Option<usize>, CqlError> {
        let names_rows = lookups.iter().any(|lookup| !lookup.names_partitions);
        let mut fewest = (FEW, None);
        for (at, lookup) in lookups.iter().enumerate() {
            if names_rows && lookup.names_partitions {
                continue;
            }
            let entries = self.span.entries(&self.view, lookup)?;
            // No more are counted than the best lookup so far has, which bounds the work.
            let counted = entries.take(fewest.0).map(|entry| entry.map(drop));
            let count = counted
                .collect::<Result<Vec<()>, _>>()
                .map_err(storage_error)?
                .len();
            if count < fewest.0 {
                fewest = (count, Some(at));
            }
        }
        Ok(fewest.1)
    }
}

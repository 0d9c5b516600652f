//! Positions of rows that secondary indexes name, in the order of the disk.
//!
//! An index has the rows of one value in the order of the disk. So several such lookups are read
//! side by side, and the positions that all of them have are taken ([`PositionIntersection`]). The
//! rows of a range of values are in the order of the values. They are gathered by passes over the
//! range, each of which keeps the first positions after those of the pass before
//! ([`RangePositions`]).
//!
//! A position may be a part of the block of the disk that it was read from. What is held from one
//! slice of a query to the next is copied, so that it holds no block.

use std::collections::BTreeSet;

use client_memory::{MemoryAccount, MemoryCharge};
use cql::error::{CqlError, ErrorKind};
use storage::read::{IndexRequest, RowPosition};
use storage::{EntryStream, TableView};

use super::lookup::IndexLookup;
use super::partitions::Tokens;
use super::retained_rows::own_value;
use crate::statement::storage_error;

/// The number of entries that are passed over one by one. To look a later one up costs about as
/// much.
const PASSED_MAX: usize = 16;
/// The number of entries that one step of a pass reads.
const GATHERED_A_STEP: usize = 64;
/// The most entries that a pass may read. Each page makes a pass of its own, so a scan of the table
/// is better beyond.
const PASS_ENTRIES_MAX: usize = 1 << 17;
/// The most positions that a pass keeps, and the most bytes of them.
const KEPT_MAX: usize = 1 << 13;
const KEPT_BYTES_MAX: usize = 4 << 20;
/// The bytes that a position takes in addition to its own.
const POSITION_BYTES: usize = 64;

/// The outcome of one step.
pub(super) enum PositionStep {
    /// A position of a row, or of a partition all of whose rows are named.
    Found(RowPosition),
    /// The step did some work.
    Working,
    /// There are no more positions.
    End,
    /// There are too many entries to go on.
    TooMany,
}

/// The part of the disk in which positions are looked for.
#[derive(Clone, Debug)]
pub(super) struct IndexReadRange {
    /// The tokens of the partitions.
    pub tokens: Tokens,
    /// The row after which the read begins.
    pub after: Option<RowPosition>,
    /// The partition of that row as a whole, if it may have more rows.
    pub begun: Option<RowPosition>,
}

impl IndexReadRange {
    /// The span of these tokens after a row.
    ///
    /// # Errors
    /// If `after` is no position of the table.
    pub(super) fn new(
        view: &TableView,
        tokens: Tokens,
        after: Option<RowPosition>,
    ) -> Result<IndexReadRange, CqlError> {
        let mut span = IndexReadRange {
            tokens,
            after,
            begun: None,
        };
        if let Some(after) = &span.after {
            let partition = view.partition_at(after).map_err(storage_error)?;
            span.begun = (partition != *after).then_some(partition);
        }
        Ok(span)
    }

    /// The entries of a lookup. With `after`, those of one value begin there.
    pub(super) fn entries(
        &self,
        view: &TableView,
        lookup: &IndexLookup,
    ) -> Result<EntryStream, CqlError> {
        view.positions(&self.request(lookup)).map_err(storage_error)
    }

    fn request(&self, lookup: &IndexLookup) -> IndexRequest {
        // A whole partition comes before its rows.
        let begun = self.begun.as_ref().filter(|_| lookup.names_partitions);
        IndexRequest {
            index: lookup.index.version,
            values: lookup.values.clone(),
            tokens: self.tokens,
            from: begun.or(self.after.as_ref()).cloned(),
        }
    }
}

/// The entries of one value, with the next position.
struct EntryCursor {
    request: IndexRequest,
    stream: EntryStream,
    next: Option<RowPosition>,
}

impl EntryCursor {
    fn open(view: &TableView, request: IndexRequest) -> Result<EntryCursor, CqlError> {
        let stream = view.positions(&request).map_err(storage_error)?;
        let mut head = EntryCursor {
            request,
            stream,
            next: None,
        };
        head.advance()?;
        Ok(head)
    }

    fn advance(&mut self) -> Result<(), CqlError> {
        self.next = self.stream.next().transpose().map_err(storage_error)?;
        Ok(())
    }

    /// Goes on to the first position that is not before this one.
    fn reach(&mut self, view: &TableView, target: &RowPosition) -> Result<(), CqlError> {
        let is_before = |head: &EntryCursor| head.next.as_ref().is_some_and(|next| next < target);
        for _ in 0..PASSED_MAX {
            if !is_before(self) {
                return Ok(());
            }
            self.advance()?;
        }
        if is_before(self) {
            self.request.from = Some(target.clone());
            self.stream = view.positions(&self.request).map_err(storage_error)?;
            self.advance()?;
        }
        Ok(())
    }

    fn let_go(&mut self) {
        self.stream.let_go();
        own(&mut self.next);
        own(&mut self.request.from);
    }
}

/// The positions that several lookups of one value each have in common.
pub(super) struct PositionIntersection {
    heads: Vec<EntryCursor>,
    /// The position that the first of those in common must reach.
    from: Option<RowPosition>,
}

impl PositionIntersection {
    /// Starts the reads of the lookups, at least one.
    pub(super) fn open(
        view: &TableView,
        lookups: &[IndexLookup],
        span: &IndexReadRange,
    ) -> Result<PositionIntersection, CqlError> {
        let heads = lookups
            .iter()
            .map(|lookup| EntryCursor::open(view, span.request(lookup)));
        Ok(PositionIntersection {
            heads: heads.collect::<Result<_, _>>()?,
            from: span.after.clone(),
        })
    }

    /// Finds the next position, or brings the lookups nearer to it.
    pub(super) fn step(&mut self, view: &TableView) -> Result<PositionStep, CqlError> {
        let mut target = self.from.clone();
        for head in &self.heads {
            match &head.next {
                None => return Ok(PositionStep::End),
                next if *next > target => target.clone_from(next),
                _ => {}
            }
        }
        let Some(target) = target else {
            return Ok(PositionStep::End);
        };
        let partition = view.partition_at(&target).map_err(storage_error)?;
        let (mut is_common, mut has_row) = (true, false);
        for head in &mut self.heads {
            // The entry of a partition as a whole comes before those of its rows.
            head.reach(view, &partition)?;
            if head.next.as_ref() == Some(&partition) {
                continue;
            }
            head.reach(view, &target)?;
            match head.next.as_ref() == Some(&target) {
                true => has_row = true,
                false => is_common = false,
            }
        }
        if !is_common {
            return Ok(PositionStep::Working);
        }
        // Where each has the partition as a whole, so has the answer.
        let found = if has_row { target } else { partition };
        for head in &mut self.heads {
            if head.next.as_ref() == Some(&found) {
                head.advance()?;
            }
        }
        self.from = None;
        Ok(PositionStep::Found(found))
    }

    /// Lets go of the entries that were read ahead, but for the next position of each lookup.
    pub(super) fn let_go(&mut self) {
        self.heads.iter_mut().for_each(EntryCursor::let_go);
        own(&mut self.from);
    }
}

/// The positions of a range of values.
pub(super) struct RangePositions {
    lookup: IndexLookup,
    span: IndexReadRange,
    /// The pass under way.
    pass: Option<EntryStream>,
    /// The number of entries that it has read.
    read: usize,
    /// The first positions of the pass, and the bytes that they take.
    kept: BTreeSet<RowPosition>,
    kept_bytes: usize,
    /// Whether later positions were left out.
    is_cut: bool,
    charge: MemoryCharge,
}

impl RangePositions {
    /// Makes the positions of a lookup. Those that are held are charged to `memory`.
    pub(super) fn new(
        lookup: IndexLookup,
        span: IndexReadRange,
        memory: &MemoryAccount,
    ) -> RangePositions {
        RangePositions {
            lookup,
            span,
            pass: None,
            read: 0,
            kept: BTreeSet::new(),
            kept_bytes: 0,
            // So that the first step begins a pass.
            is_cut: true,
            charge: memory.charge(),
        }
    }

    /// Takes the next position, or goes on with a pass.
    pub(super) fn step(&mut self, view: &TableView) -> Result<PositionStep, CqlError> {
        if let Some(mut pass) = self.pass.take() {
            for _ in 0..GATHERED_A_STEP {
                let Some(position) = pass.next().transpose().map_err(storage_error)? else {
                    return Ok(PositionStep::Working);
                };
                self.read += 1;
                self.keep(position)?;
            }
            self.pass = Some(pass);
            return Ok(match self.read > PASS_ENTRIES_MAX {
                true => PositionStep::TooMany,
                false => PositionStep::Working,
            });
        }
        if let Some(position) = self.kept.pop_first() {
            self.kept_bytes -= bytes(&position);
            self.span.after = Some(position.clone());
            self.span.begun = None;
            return Ok(PositionStep::Found(position));
        }
        if !self.is_cut {
            return Ok(PositionStep::End);
        }
        self.pass = Some(self.span.entries(view, &self.lookup)?);
        (self.read, self.is_cut) = (0, false);
        Ok(PositionStep::Working)
    }

    /// Lets go of the entries that were read ahead. The positions that a pass keeps are charged.
    pub(super) fn let_go(&mut self) {
        if let Some(pass) = &mut self.pass {
            pass.let_go();
        }
        own(&mut self.span.after);
    }

    fn keep(&mut self, position: RowPosition) -> Result<(), CqlError> {
        let is_behind = self
            .span
            .after
            .as_ref()
            .is_none_or(|after| position > *after);
        if !is_behind && self.span.begun.as_ref() != Some(&position) {
            return Ok(());
        }
        let added = bytes(&position);
        if self.kept.insert(RowPosition(own_value(&position.0))) {
            self.kept_bytes += added;
        }
        while self.kept.len() > KEPT_MAX || self.kept_bytes > KEPT_BYTES_MAX {
            let Some(last) = self.kept.pop_last() else {
                break;
            };
            self.kept_bytes -= bytes(&last);
            self.is_cut = true;
        }
        if self.kept_bytes > self.charge.bytes() {
            let ahead = self.kept_bytes / 8;
            self.charge
                .resize(self.kept_bytes + ahead)
                .map_err(|_| key_memory_error())?;
        }
        Ok(())
    }
}

/// Copies a position out of the block that it was read from.
pub(super) fn own(position: &mut Option<RowPosition>) {
    if let Some(RowPosition(bytes)) = position {
        *bytes = own_value(bytes);
    }
}

/// The bytes that a held position takes.
fn bytes(position: &RowPosition) -> usize {
    position.0.len() + POSITION_BYTES
}

fn key_memory_error() -> CqlError {
    CqlError::new(
        ErrorKind::Overloaded,
        "Overloaded: there is no memory for the keys that an index names, as other answers are not read yet; read \
         them first, or start the server with a larger --memory-limit",
    )
}

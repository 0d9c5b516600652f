//! A query under way: takes rows from its source, filters and counts them, and writes a page.
//!
//! It works in bounded steps, so that whoever drives it can give the thread back between them and
//! stop when nobody waits for the answer any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use client_memory::Account;
use cql::error::CqlError;
use storage::read::Row;

use super::aggregate::Accumulator;
use super::expression::Scope;
use super::filter::Filter;
use super::page::Page;
use super::paging::PagingState;
use super::plan::Resolved;
use super::source::{Fetched, Source};
use crate::clock::StatementClock;

/// Once a page is full, so many rows are looked at for one more match; if none is found by then,
/// the client asks for the next page in vain, at worst.
const LOOKAHEAD_ROWS_MAX: u32 = 128;

/// Between looks at the clock.
const ROWS_BETWEEN_CLOCK_READS: usize = 32;

/// How much one step may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub rows: usize,
    pub time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Unfinished,
    Finished,
}

/// Where rows go.
pub(super) enum Output {
    Page(Page),
    Aggregate {
        accumulators: Vec<Accumulator>,
        /// Columns beside aggregates show the first row's values.
        first: Option<Box<Row>>,
    },
}

pub(super) struct Cursor {
    pub plan: Arc<Resolved>,
    pub clock: StatementClock,
    /// The values of the projection's terms.
    pub terms: Vec<Option<Bytes>>,
    pub filters: Vec<Filter>,
    pub source: Source,
    pub output: Output,
    /// What the answer is charged to.
    pub memory: Account,
    /// For merged partitions, the rows returned of each; else empty.
    pub returned_by_slot: Vec<u32>,
    pub per_partition_max: Option<u32>,
    /// Where the next page begins.
    pub state: PagingState,
    /// The state has moved on from where this page began.
    pub has_moved: bool,
    /// Rows looked at since the page is full.
    pub looked_ahead: u32,
    pub has_more: bool,
}

impl Cursor {
    /// Works until the budget is spent or nothing is left to do.
    pub(super) fn step(&mut self, budget: Budget) -> Result<Progress, CqlError> {
        let started = Instant::now();
        for worked in 1..=budget.rows {
            if self.advance()? == Progress::Finished {
                return Ok(Progress::Finished);
            }
            if worked % ROWS_BETWEEN_CLOCK_READS == 0 && started.elapsed() > budget.time {
                break;
            }
        }
        Ok(Progress::Unfinished)
    }

    /// Ends the page where it is, if there can be another and it would begin further on.
    pub(super) fn end_page_early(&mut self) -> bool {
        let is_paged = matches!(&self.output, Output::Page(page) if page.is_paged());
        let can_resume = is_paged && self.has_moved && matches!(self.source, Source::Sequence(_));
        if can_resume {
            self.has_more = true;
        }
        can_resume
    }

    fn advance(&mut self) -> Result<Progress, CqlError> {
        let is_full = self.is_full();
        match self.source.fetch()? {
            Fetched::End => return Ok(Progress::Finished),
            Fetched::Nothing => {
                if let Some(slot) = self.source.between_partitions() {
                    self.state.slot = slot as u32;
                    self.state.position = None;
                    self.has_moved = true;
                }
            }
            Fetched::Row(slot, row) => {
                if !self.wants(slot, &row) {
                    self.pass_over(slot, row);
                } else if is_full {
                    self.has_more = true;
                    return Ok(Progress::Finished);
                } else {
                    return self.take(slot, row);
                }
            }
        }
        if is_full {
            self.looked_ahead += 1;
            if self.looked_ahead >= LOOKAHEAD_ROWS_MAX {
                self.has_more = true;
                return Ok(Progress::Finished);
            }
        }
        Ok(Progress::Unfinished)
    }

    fn is_full(&self) -> bool {
        matches!(&self.output, Output::Page(page) if page.is_full())
    }

    /// Whether the row passes the filters and its partition's limit.
    fn wants(&mut self, slot: usize, row: &Row) -> bool {
        if let Some(max) = self.per_partition_max
            && self.returned_of(slot, row) >= max
        {
            self.source.skip_partition();
            return false;
        }
        self.filters.iter().all(|filter| filter.accepts(row))
    }

    /// How many rows of the row's partition were returned.
    fn returned_of(&self, slot: usize, row: &Row) -> u32 {
        match self.returned_by_slot.get(slot) {
            Some(returned) => *returned,
            None if self.state.token == row.partition.token.0 => self.state.in_partition,
            None => 0,
        }
    }

    fn pass_over(&mut self, slot: usize, row: Row) {
        self.state.slot = slot as u32;
        self.state.position = Some(row.position);
        self.has_moved = true;
    }

    fn take(&mut self, slot: usize, row: Row) -> Result<Progress, CqlError> {
        let returned = self.returned_of(slot, &row) + 1;
        if let Some(count) = self.returned_by_slot.get_mut(slot) {
            *count = returned;
        }
        self.state.token = row.partition.token.0;
        self.state.in_partition = returned;
        let scope = Scope {
            row: Some(&row),
            terms: &self.terms,
            aggregates: &[],
            clock: &self.clock,
        };
        match &mut self.output {
            Output::Page(page) => {
                page.push(&self.plan.projection.outputs, scope)?;
                self.pass_over(slot, row);
                if let Some(remaining) = &mut self.state.remaining {
                    *remaining -= 1;
                    if *remaining == 0 {
                        return Ok(Progress::Finished);
                    }
                }
            }
            Output::Aggregate {
                accumulators,
                first,
            } => {
                let calls = &self.plan.projection.aggregates;
                for (accumulator, call) in accumulators.iter_mut().zip(calls) {
                    accumulator.take(match &call.argument {
                        Some(argument) => argument.evaluate(scope)?,
                        None => None,
                    })?;
                }
                first.get_or_insert_with(|| Box::new(row));
            }
        }
        Ok(Progress::Unfinished)
    }

    /// The page, and where the next one begins.
    ///
    /// # Errors
    /// What the expressions over aggregates refuse.
    pub(super) fn finish(self) -> Result<(Page, Option<PagingState>), CqlError> {
        match self.output {
            Output::Page(page) => Ok((page, self.has_more.then_some(self.state))),
            Output::Aggregate {
                accumulators,
                first,
            } => {
                let aggregates = accumulators
                    .into_iter()
                    .map(Accumulator::finish)
                    .collect::<Result<Vec<_>, _>>()?;
                let mut page = Page::new(None, &self.memory);
                let scope = Scope {
                    row: first.as_deref(),
                    terms: &self.terms,
                    aggregates: &aggregates,
                    clock: &self.clock,
                };
                page.push(&self.plan.projection.outputs, scope)?;
                Ok((page, None))
            }
        }
    }
}

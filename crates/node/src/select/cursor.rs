//! A cursor is a query under way. It takes rows from a source, filters and counts them, and writes
//! a page.
//!
//! A cursor works in bounded steps. Between them its caller can give the thread back, and can stop
//! when nobody waits for the answer any more.

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

/// The most rows that are looked at behind a full page to find out whether another match follows.
/// If none of them matches, the page gets a paging state, and the next page may turn out empty.
const LOOKAHEAD_ROWS_MAX: u32 = 128;

/// The number of rows between two looks at the clock.
const ROWS_BETWEEN_CLOCK_READS: usize = 32;

/// The most that one step may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// The number of rows to look at.
    pub rows: usize,
    /// The time after which the step ends. The clock is looked at only now and then.
    pub time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// The state of a query after a step.
pub(super) enum Progress {
    /// The page needs more steps.
    Unfinished,
    /// The page is ready.
    Finished,
}

/// The destination of rows.
pub(super) enum Output {
    /// Each row becomes a row of a page.
    Page(Page),
    /// All rows are taken together into one row of aggregates.
    Aggregate {
        /// The states of the projection's aggregates, in their order.
        accumulators: Vec<Accumulator>,
        /// The first row. Columns beside aggregates show its values.
        first: Option<Box<Row>>,
    },
}

/// A query under way.
pub(super) struct Cursor {
    /// The plan of the query.
    pub plan: Arc<Resolved>,
    /// The time at which the query runs.
    pub clock: StatementClock,
    /// The values of the projection's terms; `None` for null.
    pub terms: Vec<Option<Bytes>>,
    /// The filters that a row must pass, all of them.
    pub filters: Vec<Filter>,
    /// The source of the rows.
    pub source: Source,
    /// The destination of the rows.
    pub output: Output,
    /// The account that the answer is charged to.
    pub memory: Account,
    /// The number of rows returned of each partition, by slot, if partitions are merged; else
    /// empty.
    pub returned_by_slot: Vec<u32>,
    /// The most rows to return of a partition; `None` for no limit.
    pub per_partition_max: Option<u32>,
    /// The place where the next page begins.
    pub state: PagingState,
    /// Whether `state` has moved on from where this page began.
    pub has_moved: bool,
    /// The number of rows looked at since the page became full.
    pub looked_ahead: u32,
    /// Whether more rows may follow on another page.
    pub has_more: bool,
}

impl Cursor {
    /// Works until the budget is spent or the page is finished.
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

    /// Ends the page here, if another page can follow and would begin further on than this one did.
    /// Returns whether the page was ended.
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

    /// The number of rows of the row's partition that were returned so far.
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

    /// The page, and the state with which the next page begins; `None` if this is the last page.
    ///
    /// # Errors
    /// With aggregates: a result that its type can't hold, an expression that fails, and a row for
    /// which there is no memory.
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

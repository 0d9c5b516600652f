//! A collector takes the rows of a query, whichever way they are found. It filters and counts them,
//! and makes the page of them.

use std::sync::Arc;

use bytes::Bytes;
use client_memory::Account;
use cql::error::CqlError;
use index::Metric;
use query::Nearest;
use query::clock::StatementClock;
use storage::read::{Position, Row};

use super::aggregate::Accumulator;
use super::expression::Scope;
use super::filter::Filter;
use super::page::Page;
use super::paging::PagingState;
use super::place::Place;
use super::plan::Resolved;

/// The state of a query after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The page needs more rows.
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
    /// The rows nearest to a vector become the rows of a page, the nearest first.
    Ranking(Ranking),
}

/// Rows that are put in order by their vectors.
pub(super) struct Ranking {
    /// The best rows so far.
    pub nearest: Nearest<Row>,
    /// The metric by which vectors are compared.
    pub metric: Metric,
    /// The vector to look for, serialised.
    pub vector: Bytes,
    /// The place of a row's vector. Rows without a vector are left out.
    pub place: Place,
}

/// The rows of a query under way.
pub(super) struct Collector {
    /// The plan of the query.
    pub plan: Arc<Resolved>,
    /// The time at which the query runs.
    pub clock: StatementClock,
    /// The values of the projection's terms; `None` for null.
    pub terms: Vec<Option<Bytes>>,
    /// The filters that a row must pass, all of them.
    pub filters: Vec<Filter>,
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
}

impl Collector {
    /// Whether the page can take no more rows.
    pub(super) fn is_full(&self) -> bool {
        matches!(&self.output, Output::Page(page) if page.is_full())
    }

    /// Whether the page may end before all rows are found, as another page can follow.
    pub(super) fn is_paged(&self) -> bool {
        matches!(&self.output, Output::Page(page) if page.is_paged())
    }

    /// Whether as many rows of the row's partition were returned as its limit allows.
    pub(super) fn has_enough_of_partition(&self, slot: usize, row: &Row) -> bool {
        self.per_partition_max
            .is_some_and(|max| self.returned_of(slot, row) >= max)
    }

    /// Whether the row passes the filters.
    pub(super) fn passes(&self, row: &Row) -> bool {
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

    /// Lets the next page begin behind the row at this position.
    pub(super) fn pass_over(&mut self, slot: usize, position: Position) {
        self.state.slot = slot as u32;
        self.state.position = Some(position);
        self.has_moved = true;
    }

    /// Takes a row of the answer. `slot` is the index of its partition among those that the query
    /// names.
    ///
    /// # Errors
    /// An expression that fails, and a row for which there is no memory.
    pub(super) fn take(&mut self, slot: usize, row: Row) -> Result<Progress, CqlError> {
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
                self.pass_over(slot, row.position);
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
            Output::Ranking(ranking) => ranking.take(row),
        }
        Ok(Progress::Unfinished)
    }

    /// The page, and the place where the next one would begin.
    ///
    /// # Errors
    /// With aggregates: a result that its type can't hold. With aggregates and rankings: an
    /// expression that fails, and a row for which there is no memory.
    pub(super) fn finish(self) -> Result<(Page, PagingState), CqlError> {
        let scope = Scope {
            row: None,
            terms: &self.terms,
            aggregates: &[],
            clock: &self.clock,
        };
        let outputs = &self.plan.projection.outputs;
        let page = match self.output {
            Output::Page(page) => page,
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
                    aggregates: &aggregates,
                    ..scope
                };
                page.push(outputs, scope)?;
                page
            }
            Output::Ranking(ranking) => {
                let mut page = Page::new(None, &self.memory);
                for row in ranking.nearest.into_best() {
                    let scope = Scope {
                        row: Some(&row),
                        ..scope
                    };
                    page.push(outputs, scope)?;
                }
                page
            }
        };
        Ok((page, self.state))
    }
}

impl Ranking {
    fn take(&mut self, row: Row) {
        if let Some(stored) = self.place.value(&row) {
            let score = self.metric.score(&self.vector, stored);
            self.nearest.push(score, row);
        }
    }
}

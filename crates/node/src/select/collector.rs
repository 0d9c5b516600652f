//! A collector takes the rows of a query, whichever way they are found. It filters and counts them,
//! and makes the page of them.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use client_memory::{MemoryAccount, MemoryCharge};
use cql::error::CqlError;
use index::SimilarityFunction;
use query::TopScored;
use query::statement_clock::StatementClock;
use storage::read::{Row, RowPosition};

use super::aggregate::{Accumulator, AggregateCall};
use super::column_location::ColumnLocation;
use super::expression::{COMPOSED_BYTES_MAX, EvaluationContext};
use super::filter::ResidualFilter;
use super::group::PageGroups;
use super::page::ResultPage;
use super::paging::PagingState;
use super::plan::ResolvedSelect;
use super::projection::ResolvedSelection;
use super::retained_rows::{HeldRow, charge_rows};

/// The most bytes that the values take which `min` and `max` keep.
const AGGREGATES_BYTES_MAX: usize = 64 << 20;

/// The state of a query after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageProgress {
    /// The page needs more rows.
    Unfinished,
    /// The page is ready.
    Finished,
}

/// The destination of rows.
pub(super) enum RowSink {
    /// Each row becomes a row of a page.
    Page(ResultPage),
    /// All rows are taken together into one row of aggregates.
    Aggregate {
        /// The states of the projection's aggregates, in their order.
        accumulators: Vec<Accumulator>,
        /// The first row, as far as it is selected. Columns next to aggregates show its values.
        first: Option<Box<HeldRow>>,
    },
    /// Each group of rows becomes a row of a page.
    Groups(PageGroups),
    /// The rows nearest to a vector are held, the nearest first.
    Ranking(VectorRanking),
    /// Some rows are held, until they are taken out.
    Batch(CollectedBatch),
}

impl RowSink {
    /// The sink of all rows of a selection that has aggregates.
    pub(super) fn aggregate(selection: &ResolvedSelection) -> RowSink {
        let calls = selection.aggregates.iter();
        RowSink::Aggregate {
            accumulators: calls.map(Accumulator::new).collect(),
            first: None,
        }
    }
}

/// Rows that are taken out some at a time.
#[derive(Default)]
pub(super) struct CollectedBatch {
    rows: Vec<HeldRow>,
    bytes: usize,
}

/// The number of rows, and of their bytes, with which a batch is full.
const BATCH_ROWS: usize = 512;
const BATCH_BYTES: usize = 2 << 20;

/// Rows that are put in order by their vectors.
pub(super) struct VectorRanking {
    /// The best rows so far, with their scores.
    pub nearest: TopScored<NearestRow>,
    /// The metric by which vectors are compared.
    pub metric: SimilarityFunction,
    /// The vector to look for, serialised.
    pub vector: Bytes,
    /// The place of a row's vector. Rows without a vector are left out.
    pub place: ColumnLocation,
}

/// A row with its score.
pub(super) struct NearestRow {
    row: HeldRow,
    score: f32,
}

/// The rows of a query under way.
pub(super) struct RowCollector {
    /// The plan of the query.
    pub plan: Arc<ResolvedSelect>,
    /// The time at which the query runs.
    pub clock: StatementClock,
    /// The values of the projection's terms; `None` for null.
    pub terms: Vec<Option<Bytes>>,
    /// The filters that a row must pass, all of them.
    pub filters: Vec<ResidualFilter>,
    /// The values that searches give of the row that is taken next, as the selection shows them;
    /// `None` for null. Empty if it shows nothing of the kind.
    pub hits: Vec<Option<Bytes>>,
    /// The destination of the rows.
    pub output: RowSink,
    /// The account that the answer is charged to.
    pub memory: MemoryAccount,
    /// The rows that are held from one step to the next are charged here.
    pub held: MemoryCharge,
    /// The number of rows returned of each partition, by slot, if partitions are merged; else
    /// empty.
    pub returned_by_slot: Vec<u32>,
    /// The most rows to return of a partition; `None` for no limit.
    pub per_partition_max: Option<u32>,
    /// The number of partitions that the query names; `None` if it reads a range of them.
    pub partitions: Option<usize>,
    /// The place where the next page begins.
    pub state: PagingState,
    /// Whether `state` has moved on from where this page began.
    pub has_moved: bool,
}

impl RowCollector {
    /// Lets go of the blocks that rows were read from, and charges the rows that have to be held
    /// until the next step.
    ///
    /// # Errors
    /// Rows for which there is no memory.
    pub(super) fn let_go(&mut self) -> Result<(), CqlError> {
        self.state.own();
        let bytes = match &mut self.output {
            RowSink::Page(_) => return Ok(()),
            RowSink::Aggregate {
                accumulators,
                first,
            } => {
                let values: usize = accumulators.iter_mut().map(Accumulator::own).sum();
                values + first.as_mut().map_or(0, |first| first.own())
            }
            RowSink::Groups(groups) => match &mut groups.open {
                Some(open) => open.own(),
                None => 0,
            },
            RowSink::Ranking(ranking) => {
                let ranked = ranking.nearest.items_mut();
                ranked.map(|ranked| ranked.row.own()).sum::<usize>()
            }
            RowSink::Batch(batch) => batch.rows.iter_mut().map(HeldRow::own).sum::<usize>(),
        };
        charge_rows(&mut self.held, bytes)
    }

    /// Whether the page is put in order once it is whole.
    pub(super) fn sorts(&self) -> bool {
        matches!(&self.output, RowSink::Groups(groups) if groups.order.is_some())
    }

    /// Whether the page can take no more rows.
    pub(super) fn is_full(&self) -> bool {
        match &self.output {
            RowSink::Page(page) => page.is_full(),
            RowSink::Groups(groups) => groups.open.is_none() && groups.page.is_full(),
            RowSink::Aggregate { .. } | RowSink::Ranking(_) | RowSink::Batch(_) => false,
        }
    }

    /// Whether rows are taken together, so that many of them are read for one of the answer.
    pub(super) fn takes_together(&self) -> bool {
        match &self.output {
            RowSink::Aggregate { .. } | RowSink::Groups(_) => true,
            RowSink::Page(_) | RowSink::Ranking(_) | RowSink::Batch(_) => false,
        }
    }

    /// Whether the page may end before all rows are found, as another page can follow.
    pub(super) fn is_paged(&self) -> bool {
        match &self.output {
            RowSink::Page(page) => page.is_paged(),
            RowSink::Groups(groups) => groups.page.is_paged(),
            RowSink::Aggregate { .. } | RowSink::Ranking(_) | RowSink::Batch(_) => false,
        }
    }

    /// Whether a page that ends now would let the next one begin further on than this one did.
    pub(super) fn has_moved(&self) -> bool {
        match &self.output {
            RowSink::Groups(PageGroups {
                open: Some(open), ..
            }) => open.has_moved_before,
            _ => self.has_moved,
        }
    }

    /// Whether nothing follows a row of this slot that was returned, as the query names its
    /// partitions: the slot is the last, and its partition has no other row or has given as many as
    /// its limit allows. These are the cases in which Cassandra gives no paging state with a page
    /// that is full.
    pub(super) fn is_last_row(&self, slot: usize, is_only: bool) -> bool {
        let limit = self.per_partition_max;
        self.partitions.is_some_and(|named| slot + 1 >= named)
            && (is_only || limit.is_some_and(|max| self.state.in_partition >= max))
    }

    /// Ends the last group. Returns whether the page is full then, so that another one follows.
    ///
    /// # Errors
    /// An expression that fails, and a row for which there is no memory.
    pub(super) fn end(&mut self) -> Result<bool, CqlError> {
        let open = match &self.output {
            RowSink::Groups(groups) => groups.open.as_ref(),
            _ => None,
        };
        // Noted first, as `end_group` takes the group out.
        let Some((slot, is_only)) =
            open.map(|open| (open.slot, is_only_of_partition(open.first.row())))
        else {
            return Ok(false);
        };
        let progress = self.end_group()?;
        Ok(progress == PageProgress::Unfinished
            && self.is_full()
            && !self.is_last_row(slot, is_only))
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

    /// Lets the next page begin after the row at this position.
    pub(super) fn resume_after(&mut self, slot: usize, position: RowPosition) {
        self.state.slot = slot as u32;
        self.state.position = Some(position);
        self.has_moved = true;
    }

    /// Ends the open group if the row is of another one.
    ///
    /// # Errors
    /// An expression that fails, and a row for which there is no memory.
    pub(super) fn leave_group(&mut self, slot: usize, row: &Row) -> Result<PageProgress, CqlError> {
        let (RowSink::Groups(groups), Some(grouping)) = (&mut self.output, &self.plan.grouping)
        else {
            return Ok(PageProgress::Unfinished);
        };
        let scope = EvaluationContext {
            row: Some(row),
            terms: &self.terms,
            aggregates: &[],
            hits: &self.hits,
            clock: &self.clock,
            composed_bytes: &Cell::new(COMPOSED_BYTES_MAX),
        };
        let Some(open) = &groups.open else {
            return Ok(PageProgress::Unfinished);
        };
        if open.slot == slot && grouping.has(open, scope)? {
            return Ok(PageProgress::Unfinished);
        }
        self.end_group()
    }

    /// Makes a row of the open group, if there is one.
    fn end_group(&mut self) -> Result<PageProgress, CqlError> {
        let RowSink::Groups(groups) = &mut self.output else {
            return Ok(PageProgress::Unfinished);
        };
        let Some(open) = groups.open.take() else {
            return Ok(PageProgress::Unfinished);
        };
        let aggregates = finish_all(open.accumulators)?;
        let scope = EvaluationContext {
            row: Some(open.first.row()),
            terms: &self.terms,
            aggregates: &aggregates,
            hits: &[],
            clock: &self.clock,
            composed_bytes: &Cell::new(COMPOSED_BYTES_MAX),
        };
        let begin = groups.page.body.len();
        groups.page.push(&self.plan.projection.outputs, scope)?;
        if let Some(order) = &mut groups.order {
            order.note(open.first.row(), begin, &mut groups.page)?;
        }
        self.count(open.slot, open.first.row());
        Ok(self.count_toward_limit())
    }

    /// Counts a row that was returned of its partition.
    fn count(&mut self, slot: usize, row: &Row) {
        let returned = self.returned_of(slot, row) + 1;
        if let Some(count) = self.returned_by_slot.get_mut(slot) {
            *count = returned;
        }
        self.state.token = row.partition.token.0;
        self.state.in_partition = returned;
    }

    /// Counts a row of the page for LIMIT.
    fn count_toward_limit(&mut self) -> PageProgress {
        match &mut self.state.remaining {
            Some(remaining) => {
                *remaining -= 1;
                match *remaining {
                    0 => PageProgress::Finished,
                    _ => PageProgress::Unfinished,
                }
            }
            None => PageProgress::Unfinished,
        }
    }

    /// Takes a row of the answer. `slot` is the index of its partition among those that the query
    /// names.
    ///
    /// # Errors
    /// An expression that fails, and a row for which there is no memory.
    pub(super) fn take(&mut self, slot: usize, row: Row) -> Result<PageProgress, CqlError> {
        // Limits count groups instead, each when it ends.
        if !matches!(self.output, RowSink::Groups(_)) {
            self.count(slot, &row);
        }
        let scope = EvaluationContext {
            row: Some(&row),
            terms: &self.terms,
            aggregates: &[],
            hits: &self.hits,
            clock: &self.clock,
            composed_bytes: &Cell::new(COMPOSED_BYTES_MAX),
        };
        match &mut self.output {
            RowSink::Page(page) => {
                page.push(&self.plan.projection.outputs, scope)?;
                self.resume_after(slot, row.position);
                return Ok(self.count_toward_limit());
            }
            RowSink::Aggregate {
                accumulators,
                first,
            } => {
                take_all(accumulators, &self.plan.projection.aggregates, scope)?;
                // Columns that are not selected are dropped, as the row is held until the end.
                first.get_or_insert_with(|| {
                    let mut selected = row;
                    self.plan.projection.retain_read(&mut selected);
                    Box::new(HeldRow::new(selected))
                });
            }
            RowSink::Groups(groups) => {
                let calls = &self.plan.projection.aggregates;
                let is_first = groups.open.is_none();
                let open = match (&mut groups.open, &self.plan.grouping) {
                    (Some(open), _) => open,
                    (none, Some(grouping)) => {
                        let accumulators = calls.iter().map(Accumulator::new).collect();
                        let before = (&self.state, self.has_moved);
                        let mut selected = row.clone();
                        self.plan.projection.retain_read(&mut selected);
                        let first = HeldRow::new(selected);
                        none.insert(grouping.open(slot, first, scope, accumulators, before)?)
                    }
                    (None, None) => return Ok(PageProgress::Unfinished),
                };
                // With DISTINCT, only the first row of a partition counts.
                if is_first || !self.plan.distinct {
                    take_all(&mut open.accumulators, calls, scope)?;
                }
                self.resume_after(slot, row.position);
            }
            RowSink::Ranking(ranking) => ranking.take(row),
            RowSink::Batch(batch) => return Ok(batch.take(row)),
        }
        Ok(PageProgress::Unfinished)
    }

    /// Takes out the rows of a ranking, the best first, with their scores, and the memory that they
    /// are charged for.
    pub(super) fn into_ranked(self) -> (Vec<(Row, f32)>, MemoryCharge) {
        let rows = match self.output {
            RowSink::Ranking(ranking) => {
                let ranked = ranking.nearest.into_best();
                ranked
                    .map(|ranked| (ranked.row.into_row(), ranked.score))
                    .collect()
            }
            _ => Vec::new(),
        };
        (rows, self.held)
    }

    /// Takes out the rows of a batch. They stay charged until others are held.
    pub(super) fn take_batch(&mut self) -> Vec<Row> {
        match &mut self.output {
            RowSink::Batch(batch) => {
                let rows = std::mem::take(batch).rows.into_iter();
                rows.map(HeldRow::into_row).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The page, and the place where the next one would begin. `has_more` says whether rows are
    /// left; then a group that is open belongs to the next page.
    ///
    /// # Errors
    /// With aggregates: a result that its type can't hold, an expression that fails, and a row for
    /// which there is no memory.
    pub(super) fn finish(mut self, has_more: bool) -> Result<(ResultPage, PagingState), CqlError> {
        if !has_more {
            self.end_group()?;
        }
        let scope = EvaluationContext {
            row: None,
            terms: &self.terms,
            aggregates: &[],
            hits: &[],
            clock: &self.clock,
            composed_bytes: &Cell::new(COMPOSED_BYTES_MAX),
        };
        let outputs = &self.plan.projection.outputs;
        let page = match self.output {
            RowSink::Page(page) => page,
            RowSink::Aggregate {
                accumulators,
                first,
            } => {
                let aggregates = finish_all(accumulators)?;
                let mut page = ResultPage::new(None, &self.memory);
                let scope = EvaluationContext {
                    row: first.as_deref().map(HeldRow::row),
                    aggregates: &aggregates,
                    ..scope
                };
                page.push(outputs, scope)?;
                page
            }
            RowSink::Groups(PageGroups {
                mut page,
                open,
                order,
            }) => {
                // The group goes on with rows of the next page, which reads those of this one
                // again.
                if let Some(open) = open {
                    self.state = open.before;
                }
                if let Some(order) = order {
                    order.finish(&mut page)?;
                }
                page
            }
            // These rows are taken out in other ways.
            RowSink::Ranking(_) | RowSink::Batch(_) => ResultPage::new(None, &self.memory),
        };
        Ok((page, self.state))
    }
}

/// Whether the row's partition can have no other row in an answer: the table has no clustering
/// columns, or the partition has only static columns.
pub(super) fn is_only_of_partition(row: &Row) -> bool {
    row.clustering.as_ref().is_none_or(Vec::is_empty)
}

/// Takes a row into the states of aggregates.
fn take_all(
    accumulators: &mut [Accumulator],
    calls: &[AggregateCall],
    scope: EvaluationContext<'_>,
) -> Result<(), CqlError> {
    scope.clock.begin_row();
    for (accumulator, call) in accumulators.iter_mut().zip(calls) {
        accumulator.take(match &call.argument {
            Some(argument) => argument.evaluate(scope)?,
            None => None,
        })?;
    }
    let kept: usize = accumulators.iter().map(Accumulator::kept_bytes).sum();
    match kept > AGGREGATES_BYTES_MAX {
        true => Err(CqlError::invalid(format!(
            "The values that aggregates keep take more than the {AGGREGATES_BYTES_MAX} bytes allowed"
        ))),
        false => Ok(()),
    }
}

/// The values of aggregates; `None` for null.
fn finish_all(accumulators: Vec<Accumulator>) -> Result<Vec<Option<Bytes>>, CqlError> {
    accumulators.into_iter().map(Accumulator::finish).collect()
}

impl VectorRanking {
    fn take(&mut self, row: Row) {
        if let Some(stored) = self.place.value(&row) {
            let score = self.metric.score(&self.vector, stored);
            let row = HeldRow::new(row);
            self.nearest.push(score, NearestRow { row, score });
        }
    }
}

impl CollectedBatch {
    fn take(&mut self, row: Row) -> PageProgress {
        self.bytes += row.memory_bytes();
        self.rows.push(HeldRow::new(row));
        match self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            true => PageProgress::Finished,
            false => PageProgress::Unfinished,
        }
    }
}

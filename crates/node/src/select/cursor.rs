//! A cursor is a query under way on an access path. It takes rows from a source and gives them to a
//! collector.
//!
//! A cursor works in bounded steps. Between them its caller can give the thread back, and can stop
//! when no one waits for the answer any more. A cursor that pauses lets go of the rows that it has
//! read ahead, and what it has to hold is charged ([`QueryCursor::let_go`]).

use std::time::Duration;

use cql::error::CqlError;
use storage::read::Row;
use tokio::time::Instant;

use super::collector::{PageProgress, RowCollector, is_only_of_partition};
use super::guarded::PageReadStats;
use super::page::ResultPage;
use super::paging::PagingState;
use super::retained_rows::LARGE_BYTES;
use super::source::{FetchOutcome, RowSource};

/// The number of rows between two looks at the clock.
const ROWS_BETWEEN_CLOCK_READS: usize = 32;

/// The most that one step may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepBudget {
    /// The number of rows to look at.
    pub rows: usize,
    /// The time after which the step ends. The clock is looked at only now and then, and before
    /// each large record.
    pub time: Duration,
    /// Whether large records are decoded. If not, the step ends before one.
    pub takes_large: bool,
}

/// A query under way.
pub(super) struct QueryCursor {
    /// The source of the rows.
    pub source: RowSource,
    /// The destination of the rows.
    pub collector: RowCollector,
    /// Whether more rows may follow on another page. As in Cassandra, they may follow a page that
    /// is full, so that a page without rows can come last.
    pub has_more: bool,
    /// The number of live rows that were read.
    pub rows_read: u64,
    /// The number of entries of secondary indexes whose rows no longer exist.
    pub rows_gone: u64,
    /// Whether the source has no more rows.
    pub is_at_end: bool,
}

impl QueryCursor {
    /// A query that has not begun.
    pub(super) fn new(source: RowSource, collector: RowCollector) -> QueryCursor {
        QueryCursor {
            source,
            collector,
            has_more: false,
            rows_read: 0,
            rows_gone: 0,
            is_at_end: false,
        }
    }

    /// Works until the budget is spent or the page is finished.
    pub(super) fn step(&mut self, budget: StepBudget) -> Result<PageProgress, CqlError> {
        let started = Instant::now();
        for worked in 1..=budget.rows {
            let mut fetched = self.source.fetch(LARGE_BYTES)?;
            if matches!(fetched, FetchOutcome::Large) {
                // The first record is taken whatever the time, so that a query of large records
                // advances.
                let is_over = worked > 1 && started.elapsed() > budget.time;
                if !budget.takes_large || is_over {
                    break;
                }
                fetched = self.source.fetch(usize::MAX)?;
            }
            if self.advance(fetched)? == PageProgress::Finished {
                return Ok(PageProgress::Finished);
            }
            if worked % ROWS_BETWEEN_CLOCK_READS == 0 && started.elapsed() > budget.time {
                break;
            }
        }
        Ok(PageProgress::Unfinished)
    }

    /// Ends the page here, if another page can follow and would begin further on than this one did.
    /// Returns whether the page was ended.
    pub(super) fn end_page_early(&mut self) -> bool {
        let can_resume =
            self.collector.is_paged() && self.collector.has_moved() && self.source.can_resume();
        if can_resume {
            self.has_more = true;
        }
        can_resume
    }

    /// Lets go of what was read ahead, and charges what the query has to hold.
    ///
    /// # Errors
    /// Rows for which there is no memory.
    pub(super) fn let_go(&mut self) -> Result<(), CqlError> {
        self.source.let_go()?;
        self.collector.let_go()
    }

    fn advance(&mut self, fetched: FetchOutcome) -> Result<PageProgress, CqlError> {
        match fetched {
            FetchOutcome::End => {
                self.is_at_end = true;
                self.has_more = self.collector.end()?;
                return Ok(PageProgress::Finished);
            }
            FetchOutcome::Nothing | FetchOutcome::Large => {
                if let Some(slot) = self.source.between_partitions() {
                    // The position was within a partition that has ended.
                    self.collector.state.slot = slot as u32;
                    self.collector.state.position = None;
                    self.collector.has_moved = true;
                }
            }
            FetchOutcome::Gone(position) => {
                self.rows_gone += 1;
                // The page moves on by such entries, too, or one that meets nothing else could not
                // end early.
                self.collector.resume_after(0, position);
            }
            FetchOutcome::Row(slot, row) => {
                self.rows_read += 1;
                // Before the page is checked for room: the group that ends here may be what fills
                // it.
                if self.collector.leave_group(slot, &row)? == PageProgress::Finished {
                    return Ok(PageProgress::Finished);
                }
                // The row is left to the next page, which begins before it, as the state has not
                // moved on.
                if self.collector.is_full() {
                    self.has_more = true;
                    return Ok(PageProgress::Finished);
                }
                if !self.wants(slot, &row) {
                    // The next page must not check a row again that this one has left out.
                    self.collector.resume_after(slot, row.position);
                    return Ok(PageProgress::Unfinished);
                }
                return self.take(slot, row);
            }
        }
        Ok(PageProgress::Unfinished)
    }

    fn take(&mut self, slot: usize, row: Row) -> Result<PageProgress, CqlError> {
        let is_only = is_only_of_partition(&row);
        if self.collector.take(slot, row)? == PageProgress::Finished {
            return Ok(PageProgress::Finished);
        }
        if !self.collector.is_full() {
            return Ok(PageProgress::Unfinished);
        }
        self.has_more = !self.collector.is_last_row(slot, is_only);
        Ok(PageProgress::Finished)
    }

    /// Whether the row passes the filters and its partition's limit.
    fn wants(&mut self, slot: usize, row: &Row) -> bool {
        if self.collector.has_enough_of_partition(slot, row) {
            self.source.skip_partition();
            return false;
        }
        self.collector.passes(row)
    }

    /// The figures of what was read so far.
    pub(super) fn read(&self) -> PageReadStats {
        PageReadStats {
            rows: self.rows_read,
            tombstones: self.source.tombstones(),
            token: self.collector.state.token,
        }
    }

    /// Whether [`QueryCursor::finish`] puts rows in order, which may take long.
    pub(super) fn sorts(&self) -> bool {
        self.collector.sorts()
    }

    /// Notes in a trace what was read.
    fn note_read(&self) {
        traces::note(|| {
            let tombstones = self.source.tombstones();
            let read = format!(
                "Read {} live rows and {tombstones} tombstone cells",
                self.rows_read
            );
            match self.rows_gone {
                0 => read,
                gone => format!("{read}; {gone} entries of indexes named rows that are gone"),
            }
        });
    }

    /// The collector, once it has all rows.
    pub(super) fn into_collector(self) -> RowCollector {
        self.note_read();
        self.collector
    }

    /// The page, and the state with which the next page begins; `None` if this is the last page.
    ///
    /// # Errors
    /// As [`RowCollector::finish`].
    pub(super) fn finish(self) -> Result<(ResultPage, Option<PagingState>), CqlError> {
        self.note_read();
        let (page, state) = self.collector.finish(self.has_more)?;
        Ok((page, self.has_more.then_some(state)))
    }
}

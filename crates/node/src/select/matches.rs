//! All rows with the words in WHERE, `WHERE BM25(c, ?) > 0` without ORDER BY, page by page.
//!
//! The index names the keys of rows that match, in the order in which it has them. A page asks for
//! as many as it still needs, so that the next page goes on where the index stopped: the paging
//! state is the index's own cursor. An index that has had no room for some rows can't name all, so
//! that the statement is refused. Rows are read here and checked for all of WHERE. A row that is
//! written while the pages are read may be missing, or come in either form, as with any paged read.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cql::error::CqlError;
use query::bind::StatementClock;
use query::search::{ReadRows, SearchWarning, SearchedRows, ValueOf};
use query::values::EvaluationInputs;
use query::{limit, refused};
use storage::read::{Row, RowPosition};
use store_api::{ClientError, ColumnsPredicate, MatchedRows, WordMatches};
use tokio::time::Instant;

use super::collector::{PageProgress, RowCollector, RowSink};
use super::hits::RowWithHits;
use super::page::ResultPage;
use super::paging::{self, PagingState};
use super::plan::ResolvedSelect;
use super::search_execution::{SearchExecution, word_predicate};
use super::searches::SearchOrder;
use super::view_rows::{Key, ViewRows};
use crate::database::CqlDatabase;
use crate::statement::{ExecutionOutcome, ExecutionParameters, ExecutionResult, ResultRows};

/// The most keys that the index is requested for at a time.
const KEYS_AT_ONCE: usize = 512;
/// The time after which a page ends, even if it is empty, so that a filter that few rows pass does
/// not run into the client's timeout.
const PAGE_TIME_MAX: Duration = Duration::from_secs(4);

/// Finds the rows of a plan, and returns one page of them.
///
/// # Errors
/// Values that don't fit their places, a paging state of another query, and failures of the index
/// service and of the storage.
pub(super) async fn execute(
    database: &CqlDatabase,
    plan: &Arc<ResolvedSelect>,
    order: &SearchOrder,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let clock =
        StatementClock::start(database.storage.clock()).with_client_now(parameters.client_now_s);
    let values = EvaluationInputs {
        bound: &parameters.values,
        clock: &clock,
    };
    let limit = limit::evaluate(plan.limit.as_ref(), values)?;
    let execution = SearchExecution::new(database, plan, order, &parameters, &clock, 0)?;
    let state = begin_state(plan, &parameters, limit)?;
    let mut pages = MatchPages {
        after: state.position.map(|position| position.0),
        rows: ViewRows::of(&execution),
        execution: &execution,
    };
    pages.rows.collector = collector(&execution, plan, &parameters, state.remaining);
    let has_more = pages.fill().await?;
    let MatchPages { after, rows, .. } = pages;
    let remaining = rows.collector.state.remaining;
    let (page, _) = rows.collector.finish(false)?;
    let state = has_more.then(|| PagingState {
        position: after.map(RowPosition),
        remaining,
        ..PagingState::default()
    });
    let count = page.count;
    let (body, charge) = page.into_body();
    Ok(ExecutionResult {
        outcome: ExecutionOutcome::Rows(ResultRows {
            columns: plan.projection.columns.clone(),
            body,
            count,
            paging_state: state.map(|state| state.encode(plan.selected.table.id)),
            charge: Some(charge),
        }),
        warnings: Vec::new(),
    })
}

/// The place where the page begins.
fn begin_state(
    plan: &ResolvedSelect,
    parameters: &ExecutionParameters,
    limit: Option<u32>,
) -> Result<PagingState, CqlError> {
    // LIMIT counts rows of the answer, and an aggregate makes one row of all that are read.
    let limit = limit.filter(|_| !plan.is_one_group());
    let Some(bytes) = &parameters.paging_state else {
        return Ok(PagingState::of_limit(limit));
    };
    let mut state = PagingState::decode(bytes.clone(), plan.selected.table.id)?;
    if plan.is_one_group()
        || state.position.is_none()
        || state.remaining.is_some() != limit.is_some()
    {
        return Err(paging::invalid());
    }
    // LIMIT may be a marker that is bound to less than it was for the page before.
    state.remaining = state.remaining.min(limit);
    Ok(state)
}

/// The collector of the page.
fn collector(
    execution: &SearchExecution<'_>,
    plan: &ResolvedSelect,
    parameters: &ExecutionParameters,
    remaining: Option<u32>,
) -> RowCollector {
    let output = match plan.is_one_group() {
        true => RowSink::aggregate(&plan.projection),
        false => {
            // A page size of 0 turns paging off.
            let page_rows = parameters.page_size.filter(|rows| *rows > 0);
            RowSink::Page(ResultPage::new(page_rows, &parameters.memory))
        }
    };
    execution.collector(output, remaining)
}

/// A page under way.
struct MatchPages<'a> {
    execution: &'a SearchExecution<'a>,
    rows: ViewRows<'a>,
    /// The place where the index goes on; `None` at its beginning.
    after: Option<Bytes>,
}

impl MatchPages<'_> {
    /// Fills the page. Returns whether another one follows.
    async fn fill(&mut self) -> Result<bool, CqlError> {
        let started = Instant::now();
        loop {
            self.rows.look();
            let MatchedRows {
                keys,
                next,
                is_short,
            } = self.ask().await?;
            if is_short {
                // Pages are of what the index names, so reading the table would not make up for it.
                let text = SearchWarning::NoRoom.text();
                return Err(refused(ClientError::overloaded(text.to_owned())));
            }
            let keys: Option<Vec<Key>> = keys.iter().map(|key| self.rows.key(key)).collect();
            let keys = keys.ok_or_else(|| refused(ClientError::InvalidJson))?;
            if self.take(keys).await? == PageProgress::Finished {
                return Ok(false);
            }
            let collector = &self.rows.collector;
            let is_over = collector.is_paged() && started.elapsed() > PAGE_TIME_MAX;
            let is_full = collector.is_full();
            self.after = next;
            if self.after.is_none() || is_full || is_over {
                return Ok(self.after.is_some());
            }
            self.execution.parameters.presence.check()?;
        }
    }

    /// Has the index name the next rows, no more than the page has room for.
    async fn ask(&mut self) -> Result<MatchedRows, CqlError> {
        let execution = self.execution;
        let Some(((target, query), others)) = execution.words.split_first() else {
            return Err(CqlError::server("the query has no words to look for"));
        };
        let stores = &execution.database.stores;
        let predicates = execution.predicates().into_iter().map(|one| one.predicate);
        let words = others.iter();
        let words = words.map(|(target, query)| word_predicate(target, query));
        let predicates: Vec<ColumnsPredicate> = predicates
            .chain(words)
            .filter(|predicate| stores.can_search_by(predicate))
            .collect();
        let limit = self.wanted();
        let keyspace = &execution.plan.selected.table.keyspace;
        let index = &target.index.name;
        traces::note(|| {
            let restrictions = predicates.len();
            format!(
                "Asking index {keyspace}.{index} for {limit} rows with words (restrictions = {restrictions})"
            )
        });
        let matches = WordMatches {
            query: query.clone(),
            predicates,
            after: self.after.clone(),
            limit,
            min_time_us: None,
        };
        let key_columns = execution.order.key_columns.iter();
        let key_columns: Vec<&str> = key_columns.map(|column| column.name.as_str()).collect();
        let named = stores.word_matches(keyspace, index, matches, &key_columns);
        named.await.map_err(refused)
    }

    /// The number of rows to request.
    fn wanted(&self) -> NonZeroUsize {
        let collector = &self.rows.collector;
        let room = match &collector.output {
            RowSink::Page(page) => page.room().unwrap_or(KEYS_AT_ONCE),
            _ => KEYS_AT_ONCE,
        };
        let remaining = collector.state.remaining.map_or(room, |rows| rows as usize);
        let wanted = room.min(remaining).min(KEYS_AT_ONCE);
        NonZeroUsize::new(wanted).unwrap_or(NonZeroUsize::MIN)
    }

    /// Reads the rows of keys, and takes those that satisfy WHERE.
    async fn take(&mut self, keys: Vec<Key>) -> Result<PageProgress, CqlError> {
        let has_changed = self.rows.open(false)?;
        let mut unread = keys;
        while !unread.is_empty() {
            let ReadRows { rows, unread: left } = self.rows.read(unread).await?;
            if rows.is_empty() {
                break;
            }
            unread = left;
            let rows = rows.into_iter().flatten();
            let rows: Vec<Row> = rows
                .filter(|row| {
                    let text = self.rows.value(row, ValueOf::Condition(0));
                    text.is_some() && self.rows.is_match(row)
                })
                .collect();
            let rows = self.matching(rows, has_changed).await?;
            let slots = &self.execution.slots;
            let rows = rows.into_iter().map(|row| RowWithHits {
                row,
                hits: slots.values(&[]),
            });
            let mut rows: Vec<RowWithHits> = rows.collect();
            if slots.need_texts() {
                self.complete(&mut rows).await?;
            }
            for RowWithHits { row, hits } in rows {
                self.rows.collector.hits = hits;
                if self.rows.collector.take(0, row)? == PageProgress::Finished {
                    return Ok(PageProgress::Finished);
                }
            }
        }
        // Those that aggregates hold.
        self.rows.collector.let_go()?;
        Ok(PageProgress::Unfinished)
    }

    /// Those of the rows whose texts have the words, where they may have changed since the index
    /// was searched, or it can't search by all words.
    async fn matching(
        &mut self,
        mut rows: Vec<Row>,
        has_changed: bool,
    ) -> Result<Vec<Row>, CqlError> {
        let execution = self.execution;
        let stores = &execution.database.stores;
        for (at, (target, query)) in execution.words.iter().enumerate() {
            let can_search = at == 0 || stores.can_search_by(&word_predicate(target, query));
            if rows.is_empty() || can_search && !has_changed {
                continue;
            }
            let texts = rows.iter().map(|row| target.place.value(row).cloned());
            let texts: Vec<Option<Bytes>> = texts.collect();
            let words = execution.word_ordering(target, query);
            let predicates: Vec<ColumnsPredicate> = self.predicates();
            let tenant = words.tenant(predicates.iter());
            let scores = stores.score_texts(
                words.keyspace,
                words.index,
                words.query.clone(),
                tenant,
                texts,
            );
            let scores = scores.await.map_err(refused)?;
            let scored = rows.into_iter().zip(scores);
            let matching = scored.filter_map(|(row, score)| score.map(|_| row));
            rows = matching.collect();
        }
        Ok(rows)
    }

    fn predicates(&self) -> Vec<ColumnsPredicate> {
        let predicates = self.execution.predicates().into_iter();
        predicates.map(|one| one.predicate).collect()
    }

    /// Fills in what the selection shows of the texts of rows.
    async fn complete(&mut self, rows: &mut [RowWithHits]) -> Result<(), CqlError> {
        let predicates = self.predicates();
        let execution = self.execution;
        let stores = &execution.database.stores;
        let completed = execution.slots.complete(stores, &predicates, rows);
        Box::pin(completed).await
    }
}

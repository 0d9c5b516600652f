//! The one way of searches, of vectors and of words. A search comes by HTTP ([`crate::routes`]) or
//! by a call of a node in the same process. Both take the same way from here on, and get the same
//! results and errors.

mod admission;
mod error;
mod input;
mod map;
mod question;
mod recall;
mod slow;
mod table_rows;
mod texts;
mod words;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use question::{ResolvedSearch, ResolvedSubject};
use slow::TimedSearch;
use slow_statements::SlowQueries;
use store_api::types::SearchPlan;
use tokio::time::Instant;
use traces::Trace;

use crate::compute::CpuExecutor;
use crate::counters::CountedEvent;
use crate::identity::IndexName;
use crate::indexes::{ExecutedPlan, IndexEngine, IndexHandle, IndexSearch, RankedRows};
use crate::options::ShortAnswerPolicy;

pub(crate) use admission::{ConcurrencyBudget, ConcurrencyPermit};
pub(crate) use error::SearchError;
pub(crate) use input::{ReceivedSearch, SearchSubject};
pub(crate) use map::{MadeMap, MapFault, WantedRows};
pub(crate) use texts::TextsQuestion;

/// The most rows of an answer. A limit has no upper bound (contract, section 1.3), but the database
/// requests no more than this: 1000 rows, oversampled 100 times. More would be memory and time
/// without bounds.
const ROWS_MAX: usize = 100_000;

/// Searches the indexes. Clones are cheap and lead to the same indexes.
#[derive(Clone)]
pub(crate) struct VectorSearcher {
    engine: Arc<IndexEngine>,
    compute: CpuExecutor,
    filter_values_max: usize,
    when_short: ShortAnswerPolicy,
    slow: Arc<SlowQueries>,
}

/// The fate of an answer that may lack rows, as the index has had no room for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingRowsPolicy {
    /// The answer says that it may lack some.
    Reported,
    /// The rows of the table are read, if the database is in this process; else as
    /// [`MissingRowsPolicy::Reported`].
    ReadFromTable,
}

/// An answer to a search, in the form that the caller needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexAnswer<A> {
    /// The answer.
    pub answer: A,
    /// Whether rows may be missing, as the index has had no room for some.
    pub is_short: bool,
}

impl VectorSearcher {
    /// A searcher of the indexes of `engine`. Searches run on the threads of `compute`. A filter
    /// may have `filter_values_max` values. Slow searches go to the log `slow`.
    pub(crate) fn new(
        engine: Arc<IndexEngine>,
        compute: CpuExecutor,
        filter_values_max: usize,
        when_short: ShortAnswerPolicy,
        slow: Arc<SlowQueries>,
    ) -> VectorSearcher {
        VectorSearcher {
            engine,
            compute,
            filter_values_max,
            when_short,
            slow,
        }
    }

    /// The most values that a filter may have.
    pub(crate) fn filter_values_max(&self) -> usize {
        self.filter_values_max
    }

    /// Searches an index. `write` turns the result into the answer, on the thread that searched.
    /// Its error is a fault of the service.
    pub(crate) async fn search<A: Send + 'static>(
        &self,
        name: IndexName,
        mut asked: ReceivedSearch,
        admission: ConcurrencyPermit,
        lacking: MissingRowsPolicy,
        write: impl Fn(RankedRows<'_>) -> Result<A, String> + Send + Sync + 'static,
    ) -> Result<IndexAnswer<A>, SearchError> {
        let rows = asked.limit.get().min(ROWS_MAX);
        let mut timed = TimedSearch::begin(&self.slow, rows);
        let question = self.question(&name, &mut asked, &admission).await?;
        timed.note_question(&question);
        let index = question.routed.index.clone();
        let waits = Instant::now();
        let taken_up = self
            .wait_for(&index, name.clone(), &asked, &admission)
            .await;
        timed.note_wait(waits.elapsed());
        taken_up?;
        let job = Arc::new(PreparedSearch {
            engine: self.engine.clone(),
            rows,
            exact: asked.exact,
            debug: asked.debug,
            write,
            lacked_rows: index.lacks_rows() || question.lacking_words().is_some(),
            question,
            plan: OnceLock::new(),
            trace: traces::current(),
        });
        let mut taken_in = index.doubts.watch();
        let database = self.engine.rows_to_search();
        let is_made_up = lacking == MissingRowsPolicy::ReadFromTable && !job.is_page();
        let to_make_up = database.filter(|_| is_made_up);
        let mut is_short = job.lacked_rows;
        let found = loop {
            let are_words_known = job.question.lacking_words().is_none();
            if let Some(database) = to_make_up.filter(|_| is_short && are_words_known) {
                let found = self.search_rows(database, job.clone()).await?;
                let is_short = job.question.lacking_words().is_some();
                break IndexAnswer { is_short, ..found };
            }
            match self.run(job.clone(), admission.deadline).await? {
                Some(found) if found.is_short && to_make_up.is_some() && are_words_known => {
                    is_short = true;
                    continue;
                }
                Some(found) => break found,
                None => {}
            }
            index.doubts.request_reads();
            let left = admission.time_left();
            if tokio::time::timeout(left, taken_in.changed())
                .await
                .is_err()
            {
                self.engine.metrics().search_refused("behind");
                return Err(SearchError::Behind(name));
            }
        };
        drop(admission);
        let requested = &job.question.routed.requested;
        self.count(requested, timed.note_answer(job.plan.get().copied()));
        if found.is_short {
            let is_answered = match database {
                // A node in the process of the rows reads them.
                Some(_) => lacking == MissingRowsPolicy::Reported && !job.is_page(),
                None => self.when_short == ShortAnswerPolicy::Answer,
            };
            self.count_short(name, &job.question, is_answered)?;
        }
        Ok(found)
    }

    /// Counts a search whose answer might lack rows.
    ///
    /// # Errors
    /// If it is refused.
    fn count_short(
        &self,
        name: IndexName,
        question: &ResolvedSearch,
        is_answered: bool,
    ) -> Result<(), SearchError> {
        if !is_answered {
            self.engine.metrics().search_refused("short");
            let of_words = question.lacking_words().cloned();
            return Err(SearchError::Short(of_words.unwrap_or(name)));
        }
        if self.engine.rows_to_search().is_none() {
            question.routed.requested.metrics.short.inc();
        }
        Ok(())
    }

    /// Counts a search that was answered.
    fn count(&self, requested: &IndexHandle, took: Duration) {
        let latency = &requested.metrics.request_latency;
        latency.observe(took.as_secs_f64());
        let counters = self.engine.metrics().counters();
        counters.count(CountedEvent::Search, 1);
    }

    /// Does a search once, in a turn of its own; see [`PreparedSearch::run`].
    async fn run<A, W>(
        &self,
        job: Arc<PreparedSearch<W>>,
        deadline: Instant,
    ) -> Result<Option<IndexAnswer<A>>, SearchError>
    where
        A: Send + 'static,
        W: Fn(RankedRows<'_>) -> Result<A, String> + Send + Sync + 'static,
    {
        let rows = job.rows;
        let answer = self.compute.search(deadline, rows, move || job.run()).await;
        answer.map_err(|error| self.not_searched(&error))?
    }
}

/// A search, ready to be done.
struct PreparedSearch<W> {
    engine: Arc<IndexEngine>,
    question: ResolvedSearch,
    /// The most rows of the answer.
    rows: usize,
    /// Whether the answer must be the true best rows.
    exact: bool,
    /// Whether the answer reports how the search was done.
    debug: bool,
    write: W,
    /// Whether the index, or one that answers words of the filter, lacked rows for want of room
    /// when it had taken up the writes that the search must know.
    lacked_rows: bool,
    /// The plan, once the index was searched.
    plan: OnceLock<ExecutedPlan>,
    trace: Option<Trace>,
}

impl<W> PreparedSearch<W> {
    /// Whether the answer is a page of all rows that match. It is of the rows that the index has,
    /// so nothing makes up for those that it lacks.
    fn is_page(&self) -> bool {
        matches!(self.question.subject, ResolvedSubject::Matches { .. })
    }

    /// Searches the index and writes the answer. `None` if a value that matters has just expired in
    /// one of its rows, which has to be read again first.
    fn run<A>(&self) -> Result<Option<IndexAnswer<A>>, SearchError>
    where
        W: Fn(RankedRows<'_>) -> Result<A, String>,
    {
        let routed = &self.question.routed;
        let index = &routed.index;
        let now_s = match index.freshness.acknowledged_us() {
            Some(_) => self.engine.now_s(),
            // A cluster returns the rest of a TTL in whole seconds, so the row may be there for a
            // moment longer.
            None => 0,
        };
        let question = &self.question;
        let filter = question.filter.as_deref();
        let named = words::naming(filter, &question.words, index, now_s)?;
        let mut ranked = index.content.search(&IndexSearch {
            query: question.subject.query(),
            limit: self.rows,
            now_s,
            filter: named.as_ref().map(|named| &named.filter).or(filter),
            tenant: question.tenant.as_deref(),
            returned: question.returned.as_deref(),
            exact: self.exact,
            keys: Some(&routed.identity().keys),
        })?;
        if ranked.has_expired_value() {
            return Ok(None);
        }
        if let Some(plan) = ranked.plan() {
            note_plan(index, plan, self.trace.as_ref());
            // A search that is done again mostly has the same plan.
            self.plan.get_or_init(|| *plan);
        }
        if self.is_page()
            && let Some(last) = ranked.last_of(self.rows, &index.identity.keys)
        {
            ranked.put_next(last.to_bytes().into());
        }
        if self.debug {
            ranked.explain(&index.identity.name.index);
        }
        // A row that was found until then may have lost its place meanwhile.
        let is_short = self.lacked_rows || index.lacks_rows() || question.lacking_words().is_some();
        if is_short {
            ranked.put_short();
        }
        let answer = (self.write)(ranked).map_err(SearchError::Internal)?;
        Ok(Some(IndexAnswer { answer, is_short }))
    }
}

/// Counts the plan of a search, and logs it.
fn note_plan(index: &IndexHandle, plan: &ExecutedPlan, trace: Option<&Trace>) {
    if let Some(trace) = trace {
        let admitted = plan
            .admitted
            .map(|rows| format!(", which the filter admitted {rows} rows to"));
        let given_up = if plan.walk_given_up {
            ", after a walk that was given up"
        } else {
            ""
        };
        let kind = match plan.kind {
            SearchPlan::Exact => "an exact search".to_owned(),
            kind => format!("a {}", kind.name()),
        };
        trace.note(format!(
            "Searched the index by {kind}{}{given_up}; {} candidates are not in the graph yet",
            admitted.unwrap_or_default(),
            plan.fresh,
        ));
    }
    index.metrics.searched(plan.kind);
    tracing::debug!(
        index = %index.identity.name,
        plan = plan.kind.name(),
        admitted = plan.admitted,
        fresh = plan.fresh,
        walk_given_up = plan.walk_given_up,
        "searched"
    );
}

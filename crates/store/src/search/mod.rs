//! The door for searches. A search comes by HTTP ([`crate::routes`]) or by a call of a node in the
//! same process. Both take the same way from here on, and get the same results and errors.

mod admission;
mod asked;
mod error;
mod of_rows;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use store_api::types::{AnnRequest, SearchPlan};
use tokio::time::Instant;
use traces::Trace;

use crate::compute::Compute;
use crate::counters::Event;
use crate::filter::{Needed, RowFilter, Unsuitable};
use crate::identity::{IndexIdentity, IndexName};
use crate::indexes::{
    Engine, IndexHandle, Query, RankedRows, ReturnedColumn, Routed, Search, check_query,
};
use crate::options::WhenShort;

pub use admission::{Admission, Admissions};
pub use asked::Asked;
pub use error::SearchError;

/// The most rows of an answer. A limit has no upper bound (contract, section 1.3), but the database
/// requests no more than this: 1000 rows, oversampled 100 times. More would be memory and time
/// without bounds.
const ROWS_MAX: usize = 100_000;

/// The door for searches. Clones are cheap and lead to the same indexes.
#[derive(Clone)]
pub struct SearchDoor {
    engine: Arc<Engine>,
    compute: Compute,
    filter_values_max: usize,
    when_short: WhenShort,
}

/// The fate of an answer that may lack rows, as the index has had no room for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// The answer says that it may lack some.
    IsTold,
    /// The rows of the table are read, if the database is in this process; else as
    /// [`Lacking::IsTold`].
    IsMadeUp,
}

/// An answer to a search, in the form that the caller needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<A> {
    /// The answer.
    pub answer: A,
    /// Whether rows may be missing, as the index has had no room for some.
    pub is_short: bool,
}

impl SearchDoor {
    /// A door to the indexes of `engine`. Searches run on the threads of `compute`. A filter may
    /// have `filter_values_max` values.
    pub fn new(
        engine: Arc<Engine>,
        compute: Compute,
        filter_values_max: usize,
        when_short: WhenShort,
    ) -> SearchDoor {
        SearchDoor {
            engine,
            compute,
            filter_values_max,
            when_short,
        }
    }

    /// The most values that a filter may have.
    pub fn filter_values_max(&self) -> usize {
        self.filter_values_max
    }

    /// Searches an index. `write` turns the result into the answer, on the thread that searched.
    /// Its error is a fault of the service.
    pub async fn search<A: Send + 'static>(
        &self,
        name: IndexName,
        asked: Asked,
        admission: Admission,
        lacking: Lacking,
        write: impl Fn(RankedRows<'_>) -> Result<A, String> + Send + Sync + 'static,
    ) -> Result<Found<A>, SearchError> {
        let began = Instant::now();
        let question = self.question(&name, &asked, &admission).await?;
        let search = asked.request;
        let index = question.routed.index.clone();
        let left = admission.time_left();
        let waits = Instant::now();
        let taken_up = take_up(&index, name.clone(), search.min_time_us, left).await;
        traces::note(|| {
            let waited = waits.elapsed().as_micros();
            format!(
                "Waited {waited} microseconds until the index had taken in all acknowledged writes"
            )
        });
        taken_up.inspect_err(|_| self.engine.metrics().search_refused("behind"))?;
        let job = Arc::new(Job {
            engine: self.engine.clone(),
            question,
            rows: search.limit.get().min(ROWS_MAX),
            search,
            write,
            lacked_rows: index.lacks_rows(),
            trace: traces::current(),
        });
        let mut taken_in = index.doubts.watch();
        let database = self.engine.rows_to_search();
        let to_make_up = database.filter(|_| lacking == Lacking::IsMadeUp);
        let mut is_short = job.lacked_rows;
        let found = loop {
            if let Some(database) = to_make_up.filter(|_| is_short) {
                break self.search_rows(database, job.clone()).await?;
            }
            match self.run(job.clone(), admission.deadline).await? {
                Some(found) if found.is_short && to_make_up.is_some() => {
                    is_short = true;
                    continue;
                }
                Some(found) => break found,
                None => {}
            }
            index.doubts.ask();
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
        let took = began.elapsed().as_secs_f64();
        let requested = &job.question.routed.requested;
        requested.metrics.request_latency.observe(took);
        self.engine.metrics().counters().count(Event::Search, 1);
        // A node in the process of the rows reads them.
        if found.is_short && database.is_none() {
            if self.when_short == WhenShort::Error {
                self.engine.metrics().search_refused("short");
                return Err(SearchError::Short(name));
            }
            requested.metrics.short.inc();
        }
        Ok(found)
    }

    /// Does a search once, in a turn of its own; see [`Job::run`].
    async fn run<A, W>(
        &self,
        job: Arc<Job<W>>,
        deadline: Instant,
    ) -> Result<Option<Found<A>>, SearchError>
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
struct Job<W> {
    engine: Arc<Engine>,
    question: Question,
    search: AnnRequest,
    /// The most rows of the answer.
    rows: usize,
    write: W,
    /// Whether the index lacked rows for want of room when it had taken up the writes that the
    /// search must know.
    lacked_rows: bool,
    trace: Option<Trace>,
}

impl<W> Job<W> {
    /// Searches the index and writes the answer. `None` if a value that matters has just expired in
    /// one of its rows, which has to be read again first.
    fn run<A>(&self) -> Result<Option<Found<A>>, SearchError>
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
        let ranked = index.content.search(&Search {
            query: query_of(&self.search),
            limit: self.rows,
            now_s,
            filter: self.question.filter.as_deref(),
            returned: self.question.returned.as_deref(),
            exact: self.search.exact,
            keys: Some(&routed.identity().keys),
        });
        let mut ranked = ranked?;
        if ranked.is_in_doubt() {
            return Ok(None);
        }
        note_plan(index, &ranked, self.trace.as_ref());
        if self.search.debug {
            ranked.explain(&index.identity.name.index);
        }
        // A row that was found until then may have lost its place meanwhile.
        let is_short = self.lacked_rows || index.lacks_rows();
        if is_short {
            ranked.put_short();
        }
        let answer = (self.write)(ranked).map_err(SearchError::Internal)?;
        Ok(Some(Found { answer, is_short }))
    }
}

impl SearchDoor {
    /// Finds the index that answers a search, and resolves its columns there.
    async fn question(
        &self,
        name: &IndexName,
        asked: &Asked,
        admission: &Admission,
    ) -> Result<Question, SearchError> {
        let max = self.filter_values_max;
        if asked.values() > max {
            return Err(SearchError::TooManyValues { max });
        }
        let search = &asked.request;
        let needed = Needed::by(search).and(&asked.predicates);
        let routed = self
            .engine
            .current_route(name, &needed, admission.time_left())
            .await
            .map_err(|no_route| SearchError::no_route(name.clone(), &no_route))?;
        let identity = routed.identity();
        check_query(query_of(search), &identity.options)?;
        check_allowed(&needed, identity)?;
        let unsuitable = |error: Unsuitable| SearchError::Unsuitable(error.to_string());
        let filter = RowFilter::new(identity, search.filter.as_ref(), &asked.predicates);
        let returned = search.return_columns.as_deref();
        let returned = returned.map(|names| ReturnedColumn::all_of(identity, names));
        Ok(Question {
            filter: filter.map_err(unsuitable)?,
            returned: returned.transpose().map_err(unsuitable)?,
            routed,
        })
    }
}

/// Counts the plan of a search, and logs it.
fn note_plan(index: &IndexHandle, ranked: &RankedRows<'_>, trace: Option<&Trace>) {
    let Some(plan) = ranked.plan() else {
        return;
    };
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

/// Waits until an index has taken up the writes that a search must know. `name` is the index of the
/// request.
async fn take_up(
    index: &IndexHandle,
    name: IndexName,
    min_time_us: Option<i64>,
    within: Duration,
) -> Result<(), SearchError> {
    let Some(time_us) = min_time_us else {
        return match index.freshness.take_up_acknowledged(within).await {
            true => Ok(()),
            false => Err(SearchError::Behind(name)),
        };
    };
    let taken_up = index.freshness.take_up(time_us, within).await;
    taken_up.map_err(|lag| SearchError::BehindTime { name, lag })
}

/// A search in the terms of the index that answers it.
struct Question {
    routed: Routed,
    filter: Option<Box<RowFilter>>,
    returned: Option<Vec<ReturnedColumn>>,
}

/// The part of a request that the structure of an index reads.
fn query_of(request: &AnnRequest) -> Query<'_> {
    Query::Vector(&request.vector)
}

/// Refuses a filter beyond the key of a local index, unless the user said ALLOW FILTERING.
fn check_allowed(needed: &Needed<'_>, index: &IndexIdentity) -> Result<(), SearchError> {
    let left: BTreeSet<&str> = needed.left_by(index).collect();
    if left.is_empty() || needed.is_allowed {
        return Ok(());
    }
    let left: Vec<&str> = left.into_iter().collect();
    Err(SearchError::Unsuitable(format!(
        "a search restricted by {} requires ALLOW FILTERING",
        left.join(", ")
    )))
}

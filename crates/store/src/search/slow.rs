//! The log of slow searches: a line for each that took longer than a threshold, also for one that
//! failed or whose client has gone meanwhile. A line has no values.

use std::sync::Arc;
use std::time::Duration;

use slow_statements::SlowQueries;
use tokio::time::Instant;

use super::question::ResolvedSearch;
use crate::indexes::{ExecutedPlan, IndexHandle};

/// A search that goes on. It is logged when this is dropped, if it was slow.
pub(super) struct TimedSearch {
    log: Arc<SlowQueries>,
    began: Instant,
    /// The index that was requested, once it is found.
    requested: Option<Arc<IndexHandle>>,
    rows: usize,
    is_filtered: bool,
    waited: Duration,
    plan: Option<ExecutedPlan>,
    is_answered: bool,
}

impl TimedSearch {
    /// Begins with a search for so many rows, or of so many texts.
    pub(super) fn begin(log: &Arc<SlowQueries>, rows: usize) -> TimedSearch {
        TimedSearch {
            log: Arc::clone(log),
            began: Instant::now(),
            requested: None,
            rows,
            is_filtered: false,
            waited: Duration::ZERO,
            plan: None,
            is_answered: false,
        }
    }

    /// Notes the index and its filter.
    pub(super) fn note_question(&mut self, question: &ResolvedSearch) {
        self.requested = Some(question.routed.requested.clone());
        self.is_filtered = question.filter.is_some() || question.tenant.is_some();
    }

    /// Notes how long the search waited until its index had taken in all acknowledged writes.
    pub(super) fn note_wait(&mut self, waited: Duration) {
        self.waited = waited;
        traces::note(|| {
            let waited = waited.as_micros();
            format!(
                "Waited {waited} microseconds until the index had taken in all acknowledged writes"
            )
        });
    }

    /// Notes that the search has its answer, by this plan. Returns the time that it took.
    pub(super) fn note_answer(&mut self, plan: Option<ExecutedPlan>) -> Duration {
        (self.plan, self.is_answered) = (plan, true);
        self.began.elapsed()
    }
}

impl Drop for TimedSearch {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let Some(requested) = &self.requested else {
            return;
        };
        if !self.log.is_logged(took) {
            return;
        }
        tracing::info!(
            target: "slow_query",
            duration_ms = whole_millis(took),
            index = %requested.identity.name,
            rows = self.rows,
            is_filtered = self.is_filtered,
            is_answered = self.is_answered,
            waited_ms = whole_millis(self.waited),
            plan = self.plan.map(|plan| plan.kind.name()),
            admitted = self.plan.and_then(|plan| plan.admitted),
            fresh = self.plan.map(|plan| plan.fresh),
            "a slow search"
        );
    }
}

/// Milliseconds as a number of the log, which has none of 128 bits.
fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

//! Checks of the recall of all vector indexes by schedule.
//!
//! An index is checked soon after it begins to serve, so that a new process has figures, and then
//! at the interval. One check runs at a time, as a task. It is background work, which yields to
//! searches. The outcome is that of `annulus check` (`crate::indexes::last_recall`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use store_api::types::IndexState;
use tasks::TaskRegistry;
use tokio::time::Instant;
use uuid::Uuid;

use crate::identity::{IndexName, StructureClass};
use crate::indexes::{CheckedRecall, IndexEngine, IndexHandle};
use crate::long_work;
use crate::options::RecallCheckOptions;
use crate::search::VectorSearcher;

/// The interval at which due checks are looked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// An index of one version. A new version has other content.
type CheckedVersion = (IndexName, Option<Uuid>);

fn version_of(index: &IndexHandle) -> CheckedVersion {
    (index.identity.name.clone(), index.identity.version)
}

/// The schedule of checks of a service.
pub(crate) struct RecallChecks {
    engine: Arc<IndexEngine>,
    searches: VectorSearcher,
    work: TaskRegistry,
    options: RecallCheckOptions,
    /// The beginning of the last check of each index.
    begun: HashMap<CheckedVersion, Instant>,
}

impl RecallChecks {
    /// Makes the schedule of a service, of which no check has run yet. `work` shows checks.
    pub(crate) fn new(
        engine: Arc<IndexEngine>,
        searches: VectorSearcher,
        work: TaskRegistry,
        options: RecallCheckOptions,
    ) -> RecallChecks {
        RecallChecks {
            engine,
            searches,
            work,
            options,
            begun: HashMap::new(),
        }
    }

    /// Checks indexes when they are due, without end. Returns at once if there is no interval.
    pub(crate) async fn run(mut self) {
        let Some(interval) = self.options.interval else {
            return;
        };
        let look_interval = LOOK_INTERVAL.min(interval);
        loop {
            tokio::time::sleep(look_interval).await;
            while let Some(index) = self.next_due(interval) {
                self.check(&index).await;
            }
        }
    }

    /// The index whose check is due, one that was not checked before others; `None` for none.
    fn next_due(&mut self, interval: Duration) -> Option<Arc<IndexHandle>> {
        let indexes = self.engine.indexes();
        self.begun
            .retain(|version, _| indexes.iter().any(|index| version_of(index) == *version));
        let checkable = indexes.into_iter().filter(|index| {
            index.identity.options.class() == StructureClass::Vector
                && index.state() == IndexState::Serving
        });
        let now = Instant::now();
        let due = checkable.filter(|index| {
            let begun = self.begun.get(&version_of(index));
            begun.is_none_or(|begun| now.duration_since(*begun) >= interval)
        });
        let next = due.min_by_key(|index| self.begun.get(&version_of(index)).copied())?;
        self.begun.insert(version_of(&next), now);
        Some(next)
    }

    /// Checks an index. The log has the outcome.
    async fn check(&self, index: &Arc<IndexHandle>) {
        let queries = self.options.queries;
        let task = self.work.start(long_work::recall(&index.identity, queries));
        let name = &index.identity.name;
        match self.searches.measure_recall(index, queries, &task).await {
            Ok(Some(_)) => {
                log(name, index.last_recall.get());
                task.done();
            }
            Ok(None) => task.stopped(),
            Err(error) => {
                tracing::warn!(index = %name, %error, "recall can't be checked now; the next check is at its time");
                task.failed(&error);
            }
        }
    }
}

/// Logs the outcome of a check. An index without rows has none.
fn log(index: &IndexName, checked: Option<CheckedRecall>) {
    if let Some(CheckedRecall {
        recall,
        low,
        high,
        queries,
        at_s,
    }) = checked
    {
        tracing::info!(%index, recall, low, high, queries, at_s, "recall is checked");
    }
}

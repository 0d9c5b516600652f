//! The index services, and the writes that searches there must know.
//!
//! The index learns of a write from the change log, moments later. A search names the time of the
//! newest write to the table which this gateway acknowledged, and the index service answers once it
//! has taken up the log to that time.

use std::sync::Arc;

use query::search::SearchFreshness;
use store_api::IndexServices;
use uuid::Uuid;

use super::reader::ReadPermissionCache;
use crate::metrics::RequestCounters;
use crate::node_requests::AnswerMemory;
use crate::options::{FreshnessOptions, WhenBehind};
use crate::writes::ChangeLog;

/// The index services, and the writes that searches there must know. A connection has its own.
#[derive(Clone, Debug)]
pub(crate) struct FreshSearches {
    /// The index services.
    pub(super) stores: IndexServices,
    log: Arc<ChangeLog>,
    options: FreshnessOptions,
    /// The reader of answers without rows; `None` if the gateway may not give any.
    reader: Option<Arc<ReadPermissionCache>>,
}

impl FreshSearches {
    /// `log` knows the writes that this gateway acknowledged.
    pub(crate) fn new(
        stores: IndexServices,
        log: Arc<ChangeLog>,
        options: FreshnessOptions,
    ) -> FreshSearches {
        FreshSearches {
            stores,
            log,
            options,
            reader: None,
        }
    }

    /// Lets queries be answered without rows. The values of an answer are held in `memory`.
    pub(crate) fn may_answer_without_rows(
        self,
        memory: AnswerMemory,
        metrics: Arc<RequestCounters>,
    ) -> FreshSearches {
        FreshSearches {
            reader: Some(Arc::new(ReadPermissionCache::new(memory, metrics))),
            ..self
        }
    }

    /// The reader of answers without rows; `None` if there may be none.
    pub(super) fn reader(&self) -> Option<&ReadPermissionCache> {
        self.reader.as_deref()
    }

    /// The writes that a search of a table must know, which is given by its id.
    pub(super) fn freshness(&self, table: Uuid) -> SearchFreshness {
        let FreshnessOptions { wait, when_behind } = self.options;
        SearchFreshness {
            newest_us: self.log.newest.of(table).filter(|_| !wait.is_zero()),
            wait,
            may_be_stale: when_behind == WhenBehind::Stale,
        }
    }
}

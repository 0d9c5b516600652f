//! Searches that know the newest write to the table which this gateway acknowledged.
//!
//! The index learns of a write from the change log, moments later. A search names the time of the
//! newest write, and the index service answers once it has taken up the log to that time.

use std::sync::Arc;
use std::time::Duration;

use store_api::types::AnnRequest;
use store_api::{ClientError, Neighbours, Stores};
use tokio::time::timeout;
use uuid::Uuid;

use super::reader::Reader;
use crate::inquiry::AnswerMemory;
use crate::metrics::Metrics;
use crate::options::{FreshnessOptions, WhenBehind};
use crate::writes::ChangeLog;

/// The warning beside an answer that may lack the newest writes.
pub(super) const STALE_WARNING: &str = "The vector index has not taken up the newest writes through this gateway yet, so the answer may lack \
     them.";

/// The index services, and the writes that searches there must know. A connection has its own.
#[derive(Clone, Debug)]
pub(crate) struct Searches {
    stores: Stores,
    log: Arc<ChangeLog>,
    options: FreshnessOptions,
    /// The reader of answers without rows; `None` if the gateway may not give any.
    reader: Option<Arc<Reader>>,
}

impl Searches {
    /// `log` tells the writes that this gateway acknowledged.
    pub(crate) fn new(stores: Stores, log: Arc<ChangeLog>, options: FreshnessOptions) -> Searches {
        Searches {
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
        metrics: Arc<Metrics>,
    ) -> Searches {
        Searches {
            reader: Some(Arc::new(Reader::new(memory, metrics))),
            ..self
        }
    }

    /// The reader of answers without rows; `None` if there may be none.
    pub(super) fn reader(&self) -> Option<&Reader> {
        self.reader.as_deref()
    }

    /// The searches of a query on a table, given by its id.
    pub(super) fn of_query(&self, table: Uuid) -> QuerySearches<'_> {
        let waits = !self.options.wait.is_zero();
        QuerySearches {
            stores: &self.stores,
            newest_us: self.log.newest.of(table).filter(|_| waits),
            wait: self.options.wait,
            when_behind: self.options.when_behind,
            keeps_unnamed: true,
        }
    }
}

/// The searches of one query.
#[derive(Debug)]
pub(super) struct QuerySearches<'a> {
    stores: &'a Stores,
    /// The time of the newest acknowledged write, in microseconds since the epoch; `None` if there
    /// is none to wait for, or the query has waited in vain.
    newest_us: Option<i64>,
    /// The longest time to wait.
    wait: Duration,
    when_behind: WhenBehind,
    /// Whether the service is taken to keep columns that the index does not name, as they have an
    /// index of Cassandra's own.
    pub(super) keeps_unnamed: bool,
}

impl QuerySearches<'_> {
    /// Asks for neighbours by `request`, of an index that knows the writes. The flag tells whether
    /// the answer may lack some.
    ///
    /// # Errors
    /// Those of the index service, of which [`ClientError::Behind`] means that the writes were not
    /// known in time and no stale answer is wanted.
    pub(super) async fn neighbours(
        &mut self,
        (keyspace, index): (&str, &str),
        request: AnnRequest,
        key_columns: &[&str],
    ) -> Result<(Neighbours, bool), ClientError> {
        let stores = self.stores;
        let ask = |min_time_us| {
            let request = AnnRequest {
                min_time_us,
                ..request.clone()
            };
            stores.ann(keyspace, index, request, key_columns)
        };
        if self.newest_us.is_some() {
            // The service itself waits until it knows the writes.
            match timeout(self.wait, ask(self.newest_us)).await {
                Ok(Ok(neighbours)) => return Ok((neighbours, false)),
                Ok(Err(ClientError::Behind { .. })) | Err(_) => {}
                Ok(Err(error)) => return Err(error),
            }
        }
        let is_stale = self.newest_us.take().is_some();
        if is_stale && self.when_behind == WhenBehind::Error {
            return Err(ClientError::Behind {
                message: format!("the index {index} lacks the newest writes"),
                behind_us: None,
            });
        }
        Ok((ask(None).await?, is_stale))
    }
}

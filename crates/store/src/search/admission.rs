//! Limits the number of searches at a time, and the time that a search may wait for its turn.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::error::SearchError;
use crate::metrics::ServiceMetrics;

/// The budget of searches of a listener, or of the node in the same process.
pub(crate) struct ConcurrencyBudget {
    /// One permit for each search that may still be admitted.
    places: Arc<Semaphore>,
    /// The longest time that a search may wait for its turn.
    wait_max: Duration,
}

/// The place of an admitted search. Dropping it frees the place.
pub(crate) struct ConcurrencyPermit {
    /// The time by which the search must have begun, by the clock of the timers, which a simulation
    /// moves; after it the search is refused.
    pub deadline: Instant,
    _place: OwnedSemaphorePermit,
}

impl ConcurrencyPermit {
    /// The time until the deadline.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl ConcurrencyBudget {
    /// A budget of `searches_max` searches at a time. None of them waits longer than `wait_max`.
    pub(crate) fn new(searches_max: usize, wait_max: Duration) -> ConcurrencyBudget {
        ConcurrencyBudget {
            places: Arc::new(Semaphore::new(searches_max)),
            wait_max,
        }
    }

    /// Admits a search, or fails with [`SearchError::Overloaded`] if there are too many. The search
    /// waits no longer than until `callers_deadline`.
    pub(crate) fn take(
        &self,
        callers_deadline: Option<Instant>,
        metrics: &ServiceMetrics,
    ) -> Result<ConcurrencyPermit, SearchError> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| {
            metrics.search_refused("admission");
            SearchError::Overloaded
        })?;
        let ours = Instant::now() + self.wait_max;
        Ok(ConcurrencyPermit {
            deadline: callers_deadline.map_or(ours, |theirs| theirs.min(ours)),
            _place: place,
        })
    }
}

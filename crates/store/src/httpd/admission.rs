//! How many searches are taken in, and how long one may wait for its turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;
use crate::metrics::Metrics;

/// The budget of a door by which searches come in.
pub struct Admissions {
    /// Searches that may still be taken in.
    places: Arc<Semaphore>,
    /// How long a search may wait for its turn.
    wait_max: Duration,
}

/// A search's place, which is taken until this is dropped.
pub struct Admission {
    /// When an answer would be of no use any more.
    pub deadline: Instant,
    _place: OwnedSemaphorePermit,
}

impl Admissions {
    /// So many searches at a time, none of which waits longer than that.
    pub fn new(searches_max: usize, wait_max: Duration) -> Admissions {
        Admissions {
            places: Arc::new(Semaphore::new(searches_max)),
            wait_max,
        }
    }

    /// Takes one in, unless there are too many; the caller waits no longer than it says.
    pub fn take(
        &self,
        callers_deadline: Option<Instant>,
        metrics: &Metrics,
    ) -> Result<Admission, ApiError> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| {
            metrics.search_refused("admission");
            ApiError::Overloaded
        })?;
        let ours = Instant::now() + self.wait_max;
        Ok(Admission {
            deadline: callers_deadline.map_or(ours, |theirs| theirs.min(ours)),
            _place: place,
        })
    }
}

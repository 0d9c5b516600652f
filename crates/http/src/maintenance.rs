//! Maintenance: a server that finishes the work that it has begun and takes on no more, so that it
//! can be stopped without a failed request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether a server is in maintenance, and the requests that it still works on. Clones are the
/// same.
#[derive(Clone, Debug, Default)]
pub struct MaintenanceMode(Arc<MaintenanceState>);

#[derive(Debug, Default)]
struct MaintenanceState {
    is_on: AtomicBool,
    in_progress: AtomicU64,
}

/// A request that the server works on, until this is dropped.
#[derive(Debug)]
pub struct WorkInProgress(Arc<MaintenanceState>);

/// The error for a request to a server in maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server is in maintenance and takes no new requests: use another server, or end it with \
     `annulus maintenance off`"
)]
pub struct InMaintenance;

impl MaintenanceMode {
    /// Begins or ends maintenance.
    pub fn set(&self, is_on: bool) {
        if self.0.is_on.swap(is_on, Ordering::SeqCst) != is_on {
            tracing::info!(is_on, "maintenance");
        }
    }

    /// Whether new requests are refused.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_on.load(Ordering::SeqCst)
    }

    /// The number of requests that the server works on. Once it is 0 during maintenance, it stays
    /// 0.
    #[must_use]
    pub fn in_progress(&self) -> u64 {
        self.0.in_progress.load(Ordering::SeqCst)
    }

    /// Takes a request on.
    ///
    /// # Errors
    /// During maintenance.
    pub fn begin(&self) -> Result<WorkInProgress, InMaintenance> {
        self.0.in_progress.fetch_add(1, Ordering::SeqCst);
        let work = WorkInProgress(Arc::clone(&self.0));
        // A look after the count, so that whoever sees no request in progress misses none.
        match self.is_on() {
            true => Err(InMaintenance),
            false => Ok(work),
        }
    }
}

impl Drop for WorkInProgress {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maintenance_lets_begun_work_end_and_no_other_begin() {
        let mode = MaintenanceMode::default();
        let first = mode.begin().unwrap();
        mode.set(true);
        assert!(mode.is_on());
        assert_eq!(mode.begin().unwrap_err(), InMaintenance);
        assert_eq!(mode.in_progress(), 1);
        drop(first);
        assert_eq!(mode.in_progress(), 0);
        mode.set(false);
        assert!(mode.clone().begin().is_ok());
        assert_eq!(mode.in_progress(), 0);
    }
}

//! Maintenance: a server that finishes the work that it has begun and takes on no more, so that it
//! can be stopped without a failed request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The number of counters of requests in progress. A thread has one of them, so that threads seldom
/// write to one cache line.
const COUNTERS: usize = 16;

/// Whether a server is in maintenance, and the requests that it still works on. Clones are the
/// same.
#[derive(Clone, Debug, Default)]
pub struct MaintenanceMode(Arc<MaintenanceState>);

#[derive(Debug, Default)]
struct MaintenanceState {
    is_on: AtomicBool,
    in_progress: [PaddedCount; COUNTERS],
}

/// A counter that shares its cache line, and the one that is fetched with it, with no other.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PaddedCount(AtomicU64);

/// A request that the server works on, until this is dropped.
#[derive(Debug)]
pub struct WorkInProgress {
    state: Arc<MaintenanceState>,
    counter: usize,
}

/// A request that the server works on, until this is dropped, within the life of its
/// [`MaintenanceMode`].
#[derive(Debug)]
pub struct BorrowedWork<'a> {
    count: &'a PaddedCount,
}

/// The counter of this thread.
fn counter_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static COUNTER: usize = NEXT.fetch_add(1, Ordering::Relaxed) % COUNTERS;
    }
    COUNTER.with(|counter| *counter)
}

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
        // A request is in one counter from its beginning to its end, so that none is missed though
        // the counters are read one after another.
        let counts = self.0.in_progress.iter();
        counts.map(|count| count.0.load(Ordering::SeqCst)).sum()
    }

    /// Takes a request on, for a value that outlives this one.
    ///
    /// # Errors
    /// During maintenance.
    pub fn begin(&self) -> Result<WorkInProgress, InMaintenance> {
        let counter = counter_of_thread();
        self.0.in_progress[counter].begin();
        let work = WorkInProgress {
            state: Arc::clone(&self.0),
            counter,
        };
        match self.is_on() {
            true => Err(InMaintenance),
            false => Ok(work),
        }
    }

    /// Takes a request on.
    ///
    /// # Errors
    /// During maintenance.
    pub fn begin_borrowed(&self) -> Result<BorrowedWork<'_>, InMaintenance> {
        let count = &self.0.in_progress[counter_of_thread()];
        count.begin();
        let work = BorrowedWork { count };
        match self.is_on() {
            true => Err(InMaintenance),
            false => Ok(work),
        }
    }
}

impl PaddedCount {
    /// Counts a request. The look at the mode comes after it, in the one order of all such
    /// operations: a reader that sees no request in progress misses none.
    fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends a request. What it has done is seen by a reader that sees it ended.
    fn end(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for WorkInProgress {
    fn drop(&mut self) {
        self.state.in_progress[self.counter].end();
    }
}

impl Drop for BorrowedWork<'_> {
    fn drop(&mut self) {
        self.count.end();
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

    #[test]
    fn work_of_many_threads_counts_until_each_has_ended() {
        let mode = MaintenanceMode::default();
        let begun: Vec<WorkInProgress> = (0..2 * COUNTERS)
            .map(|_| {
                let mode = mode.clone();
                let begins = std::thread::spawn(move || {
                    // One that ends at once leaves the count as it was.
                    drop(mode.begin_borrowed().unwrap());
                    mode.begin().unwrap()
                });
                begins.join().unwrap()
            })
            .collect();
        let borrowed = mode.begin_borrowed().unwrap();
        assert_eq!(mode.in_progress(), 2 * COUNTERS as u64 + 1);
        mode.set(true);
        assert_eq!(mode.begin_borrowed().unwrap_err(), InMaintenance);
        // They end on another thread than they have begun on.
        drop(begun);
        assert_eq!(mode.in_progress(), 1);
        drop(borrowed);
        assert_eq!(mode.in_progress(), 0);
    }
}

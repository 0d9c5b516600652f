//! Maintenance: a server that finishes the work that it has begun and takes on no more, so that it
//! can be stopped without a failed request.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::metrics::MetricsRegistry;

/// The number of counters of requests in progress. A thread has one of them, so that threads seldom
/// write to one cache line.
const COUNTERS: usize = 16;

/// Whether a server is in maintenance, and the requests that it still works on. Clones are the
/// same.
#[derive(Clone, Debug, Default)]
pub struct MaintenanceMode(Arc<MaintenanceState>);

#[derive(Default)]
struct MaintenanceState {
    is_on: AtomicBool,
    counts: [PaddedCount; COUNTERS],
    /// Reads the number of requests that a part of the server counts itself.
    counted_elsewhere: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>>,
}

impl fmt::Debug for MaintenanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaintenanceState")
            .field("is_on", &self.is_on)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// Counters that share their cache line, and the one that is fetched with it, with no others.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PaddedCount {
    in_progress: AtomicU64,
    begun: AtomicU64,
}

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

    /// Adds the requests of a part of the server that counts them itself, by this function. Only
    /// the first call has an effect.
    ///
    /// The part counts a request before it looks whether the mode is on. A request may go over to
    /// the counters of this value: it is counted there before it is not counted elsewhere.
    pub fn count_also(&self, read: impl Fn() -> u64 + Send + Sync + 'static) {
        self.0.counted_elsewhere.get_or_init(|| Box::new(read));
    }

    /// The number of requests that the server works on. Once it is 0 during maintenance, no request
    /// is left that was taken on before.
    #[must_use]
    pub fn in_progress(&self) -> u64 {
        // These first, as a request goes over from them to the counters.
        let elsewhere = self.0.counted_elsewhere.get().map_or(0, |read| read());
        // A request is in one counter from its beginning to its end, so that none is missed though
        // the counters are read one after another.
        let counts = self.0.counts.iter();
        let counted = counts.map(|count| count.in_progress.load(Ordering::SeqCst));
        elsewhere + counted.sum::<u64>()
    }

    /// The number of requests that have come so far, without those of a part that counts its own.
    /// Work that may wait sees by it that clients are there, though their requests are so short
    /// that none is ever seen in progress.
    #[must_use]
    pub fn begun(&self) -> u64 {
        let counts = self.0.counts.iter();
        counts
            .map(|count| count.begun.load(Ordering::Relaxed))
            .sum()
    }

    /// Takes a request on, for a value that outlives this one.
    ///
    /// # Errors
    /// During maintenance.
    pub fn begin(&self) -> Result<WorkInProgress, InMaintenance> {
        let work = self.go_on();
        match self.is_on() {
            true => Err(InMaintenance),
            false => Ok(work),
        }
    }

    /// Counts work for a request that was taken on before, and still counts. Such work goes on
    /// during maintenance.
    #[must_use]
    pub fn go_on(&self) -> WorkInProgress {
        let counter = counter_of_thread();
        self.0.counts[counter].begin();
        WorkInProgress {
            state: Arc::clone(&self.0),
            counter,
        }
    }

    /// Takes a request on.
    ///
    /// # Errors
    /// During maintenance.
    pub fn begin_borrowed(&self) -> Result<BorrowedWork<'_>, InMaintenance> {
        let count = &self.0.counts[counter_of_thread()];
        count.begin();
        let work = BorrowedWork { count };
        match self.is_on() {
            true => Err(InMaintenance),
            false => Ok(work),
        }
    }

    /// Shows among the metrics whether the mode is on.
    pub fn show(&self, metrics: &MetricsRegistry) {
        let mode = self.clone();
        metrics.show_gauge(
            "annulus_maintenance",
            "1 while the process takes no new requests",
            &[],
            Arc::new(move || vec![(Vec::new(), u64::from(mode.is_on()))]),
        );
    }
}

impl PaddedCount {
    /// Counts a request. The look at the mode comes after it, in the one order of all such
    /// operations: a reader that sees no request in progress misses none.
    fn begin(&self) {
        self.in_progress.fetch_add(1, Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a request. What it has done is seen by a reader that sees it ended.
    fn end(&self) {
        self.in_progress.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for WorkInProgress {
    fn drop(&mut self) {
        self.state.counts[self.counter].end();
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
    fn requests_that_a_part_counts_itself_are_in_progress_too() {
        let mode = MaintenanceMode::default();
        let of_part = Arc::new(AtomicU64::new(2));
        let read = Arc::clone(&of_part);
        mode.count_also(move || read.load(Ordering::SeqCst));
        let work = mode.begin().unwrap();
        assert_eq!(mode.clone().in_progress(), 3);
        mode.set(true);
        // A request of the part goes over to the counters, also during maintenance.
        let gone_over = mode.go_on();
        of_part.store(0, Ordering::SeqCst);
        drop(work);
        assert_eq!(mode.in_progress(), 1);
        drop(gone_over);
        assert_eq!(mode.in_progress(), 0);
    }

    #[test]
    fn the_mode_is_among_the_metrics() {
        let (mode, metrics) = (MaintenanceMode::default(), MetricsRegistry::default());
        mode.show(&metrics);
        mode.set(true);
        let text = metrics.text().unwrap();
        assert!(text.contains("annulus_maintenance 1"), "{text}");
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
        // Also requests that have ended, or were refused.
        assert_eq!(mode.begun(), 4 * COUNTERS as u64 + 2);
    }
}

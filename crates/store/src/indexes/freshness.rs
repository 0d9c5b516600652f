//! The progress of an index along the log of its table, and waiting for it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus::Gauge;
use tokio::sync::watch;

use crate::database::LogHead;
use crate::message::LogPosition;

/// The progress of an index along the log of its table.
pub(crate) struct Freshness {
    /// The index holds every write that the log named up to this time. Microseconds since the
    /// epoch.
    taken_up_us: AtomicI64,
    /// Notifies those that wait for `taken_up_us` of its changes. It is changed under this lock.
    told: watch::Sender<i64>,
    /// A time at which the index lagged the end of the log, as far as a caller looked; `i64::MAX`
    /// while it does not lag. Microseconds since the epoch. Without it the first write after a
    /// quiet hour would make a lag of an hour.
    behind_since_us: AtomicI64,
    /// The first run of the log's reader whose positions count.
    first_run: AtomicU64,
    /// The end of the log, if it is known without a request to the database.
    head: OnceLock<Arc<dyn LogHead>>,
    /// The gauges that show up to which time the log was read.
    shown_in: Mutex<Vec<Gauge>>,
}

/// The index has not taken up all writes up to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexLag {
    /// The part of that time for which it may lack writes, in microseconds; `None` if it does not
    /// know how far it is.
    pub behind_us: Option<u64>,
}

impl Default for Freshness {
    fn default() -> Freshness {
        Freshness {
            taken_up_us: AtomicI64::new(i64::MIN),
            told: watch::Sender::new(i64::MIN),
            behind_since_us: AtomicI64::new(i64::MAX),
            first_run: AtomicU64::new(0),
            head: OnceLock::new(),
            shown_in: Mutex::default(),
        }
    }
}

impl Freshness {
    /// Waits until the index has taken up every write of its table that was acknowledged before
    /// this call. A search afterwards finds a row that was inserted before, and no longer finds one
    /// that was deleted. Returns whether that was so within the given time; if it was not, a search
    /// could miss such a write.
    ///
    /// The wait is for the writes to be read again. It does not wait for the graph of the index,
    /// nor for writes that are acknowledged meanwhile, nor for rows for which the index has no
    /// room. It does not wait at all if the end of the log is known only by a request, as next to a
    /// cluster. If there is nothing to wait for, the call compares two integers.
    pub(crate) async fn wait_for_acknowledged(&self, within: Duration) -> bool {
        let Some(acknowledged_us) = self.missing() else {
            return true;
        };
        let mut told = self.told.subscribe();
        let taken_up = told.wait_for(|taken_up_us| *taken_up_us >= acknowledged_us);
        tokio::time::timeout(within, taken_up).await.is_ok()
    }

    /// Waits until the index has taken up every write of its table that the log names up to this
    /// time, in microseconds since the epoch. If the end of the log is known without a request, it
    /// waits for the writes that are [acknowledged](Freshness::wait_for_acknowledged) instead,
    /// which are all that there are. Fails if that was not so within the given time.
    pub(crate) async fn wait_until(&self, time_us: i64, within: Duration) -> Result<(), IndexLag> {
        let mut told = self.told.subscribe();
        let waits = async {
            match self.head.get() {
                Some(_) => self.wait_for_acknowledged(within).await,
                None => {
                    let taken_up = told.wait_for(|taken_up_us| *taken_up_us >= time_us);
                    taken_up.await.is_ok()
                }
            }
        };
        match tokio::time::timeout(within, waits).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => {
                let taken_up_us = self.taken_up_us.load(Ordering::Acquire);
                let behind_us = time_us.saturating_sub(taken_up_us).max(0).unsigned_abs();
                // An index that has heard of no position yet can't tell.
                let is_known = taken_up_us != i64::MIN;
                Err(IndexLag {
                    behind_us: is_known.then_some(behind_us),
                })
            }
        }
    }

    /// Slows the writers of the table until the result is dropped; `None` next to a cluster, whose
    /// writers can't be slowed from here.
    pub(crate) fn slow_writers(&self) -> Option<Box<dyn Send>> {
        Some(self.head.get()?.slow_writers())
    }

    /// The time by which the index lags: at most the age of the oldest write that it has not taken
    /// up. It may be less until a caller has looked twice. Next to a cluster the age of the end of
    /// what was read counts, as writes after it are not known. `None` before the first position in
    /// the log. `now` is the time since the epoch by the clock of the database.
    pub(crate) fn lag(&self, now: Duration) -> Option<Duration> {
        let now_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        let taken_up_us = self.taken_up_us.load(Ordering::Acquire);
        let since_us = if self.head.get().is_none() {
            taken_up_us
        } else if self.missing().is_none() {
            self.behind_since_us.store(i64::MAX, Ordering::Relaxed);
            now_us
        } else {
            let behind_since_us = self.behind_since_us.fetch_min(now_us, Ordering::Relaxed);
            taken_up_us.max(behind_since_us.min(now_us))
        };
        if since_us == i64::MIN {
            return None;
        }
        let lag_us = now_us.saturating_sub(since_us);
        Some(Duration::from_micros(u64::try_from(lag_us).unwrap_or(0)))
    }

    /// Adds a gauge that shows up to which time the log was read, in seconds since the epoch.
    pub(crate) fn show_in(&self, gauge: Gauge) {
        let mut shown_in = self.shown_in.lock().unwrap_or_else(PoisonError::into_inner);
        shown_in.push(gauge);
    }

    /// Brings the gauges up to date. A reader that is notified of rows reports nothing while there
    /// are none, although the log has been read up to the present.
    pub(crate) fn refresh_gauges(&self, now: Duration) {
        if self.head.get().is_none() || self.missing().is_some() {
            return;
        }
        let shown_in = self.shown_in.lock().unwrap_or_else(PoisonError::into_inner);
        for gauge in &*shown_in {
            gauge.set(gauge.get().max(now.as_secs_f64()));
        }
    }

    /// The end of the log, if the index lacks writes before it.
    fn missing(&self) -> Option<i64> {
        let acknowledged_us = self.head.get()?.acknowledged_us();
        (self.taken_up_us.load(Ordering::Acquire) < acknowledged_us).then_some(acknowledged_us)
    }

    /// Sets the end of the log. Only the first call counts.
    pub(crate) fn set_head(&self, head: Arc<dyn LogHead>) {
        let _ = self.head.set(head);
    }

    /// The end of the log for writes that are acknowledged by now, if it is known. Microseconds
    /// since the epoch.
    pub(crate) fn acknowledged_us(&self) -> Option<i64> {
        self.head.get().map(|head| head.acknowledged_us())
    }

    /// Notes that the index has taken in all that a run of the log's reader handed over up to this
    /// position.
    pub(crate) fn reached(&self, position: LogPosition) {
        self.raise(position.time_us, position.run);
    }

    /// Notes that the index holds all that the log named up to this time.
    pub(crate) fn taken_up(&self, time_us: i64) {
        self.raise(time_us, u64::MAX);
    }

    /// Lets only positions of this and later runs of the log's reader count. Earlier runs did not
    /// begin where the rows of the index end.
    pub(crate) fn counts_from(&self, run: u64) {
        self.told.send_modify(|told| {
            self.first_run.store(run, Ordering::Relaxed);
            *told = i64::MIN;
            self.taken_up_us.store(i64::MIN, Ordering::Release);
        });
    }

    fn raise(&self, time_us: i64, run: u64) {
        self.told.send_if_modified(|told| {
            let is_later = *told < time_us && self.first_run.load(Ordering::Relaxed) <= run;
            if is_later {
                *told = time_us;
                self.taken_up_us.store(time_us, Ordering::Release);
                if self.missing().is_none() {
                    self.behind_since_us.store(i64::MAX, Ordering::Relaxed);
                }
            }
            is_later
        });
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(250);

    struct FixedLogHead(AtomicI64);

    impl LogHead for FixedLogHead {
        fn acknowledged_us(&self) -> i64 {
            self.0.load(Ordering::Acquire)
        }

        fn slow_writers(&self) -> Box<dyn Send> {
            Box::new(())
        }
    }

    fn with_head(acknowledged_us: i64) -> (Freshness, Arc<FixedLogHead>) {
        let head = Arc::new(FixedLogHead(AtomicI64::new(acknowledged_us)));
        let freshness = Freshness::default();
        freshness.set_head(head.clone());
        (freshness, head)
    }

    #[tokio::test(start_paused = true)]
    async fn acknowledged_writes_are_waited_for_and_later_ones_are_not() {
        let (freshness, head) = with_head(10);
        let mut waiting = std::pin::pin!(freshness.wait_for_acknowledged(PATIENCE));
        assert!(futures::poll!(&mut waiting).is_pending());
        head.0.store(20, Ordering::Release);
        freshness.taken_up(9);
        assert!(futures::poll!(&mut waiting).is_pending());
        freshness.taken_up(10);
        assert_eq!(futures::poll!(&mut waiting), Poll::Ready(true));
        freshness.taken_up(25);
        let mut at_once = std::pin::pin!(freshness.wait_for_acknowledged(PATIENCE));
        assert!(futures::poll!(&mut at_once).is_ready());
    }

    #[test]
    fn an_idle_log_is_read_up_to_the_present_and_one_that_is_behind_is_not() {
        let (freshness, head) = with_head(10);
        let gauge = Gauge::new("g", "g").unwrap();
        freshness.show_in(gauge.clone());
        freshness.refresh_gauges(Duration::from_secs(5));
        assert_eq!(gauge.get(), 0.0);
        freshness.taken_up(10);
        freshness.refresh_gauges(Duration::from_secs(6));
        assert_eq!(gauge.get(), 6.0);
        head.0.store(20, Ordering::Release);
        freshness.refresh_gauges(Duration::from_secs(7));
        assert_eq!(gauge.get(), 6.0);
    }

    #[test]
    fn the_lag_is_the_age_of_what_is_missing() {
        const S: i64 = 1_000_000;
        let at = |seconds: i64| Duration::from_secs(seconds as u64);
        let (freshness, head) = with_head(10 * S);
        freshness.taken_up(10 * S);
        assert_eq!(freshness.lag(at(3600)), Some(Duration::ZERO));
        head.0.store(3601 * S, Ordering::Release);
        assert_eq!(
            freshness.lag(at(3602)),
            Some(Duration::ZERO),
            "it is seen first"
        );
        assert_eq!(freshness.lag(at(3605)), Some(at(3)));
        freshness.taken_up(3600 * S);
        assert_eq!(freshness.lag(at(3606)), Some(at(4)));
        freshness.taken_up(3604 * S);
        assert_eq!(freshness.lag(at(3606)), Some(Duration::ZERO));
        let beside_a_cluster = Freshness::default();
        assert_eq!(beside_a_cluster.lag(at(10)), None);
        beside_a_cluster.taken_up(7 * S);
        assert_eq!(beside_a_cluster.lag(at(10)), Some(at(3)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_of_the_log_is_waited_for() {
        let freshness = Freshness::default();
        let lag = |behind_us| Err(IndexLag { behind_us });
        assert_eq!(freshness.wait_until(10, PATIENCE).await, lag(None));
        let position = |run, time_us| freshness.reached(LogPosition { run, time_us });
        position(1, 7);
        assert_eq!(freshness.wait_until(10, PATIENCE).await, lag(Some(3)));
        assert_eq!(freshness.wait_until(7, PATIENCE).await, Ok(()));
        let mut waiting = std::pin::pin!(freshness.wait_until(10, PATIENCE));
        assert!(futures::poll!(&mut waiting).is_pending());
        position(1, 9);
        assert!(futures::poll!(&mut waiting).is_pending());
        position(1, 11);
        assert_eq!(futures::poll!(&mut waiting), Poll::Ready(Ok(())));
        // Where the end of the log is known, there is nothing to wait for beyond it.
        let (freshness, _head) = with_head(10);
        assert_eq!(freshness.wait_until(50, PATIENCE).await, lag(None));
        freshness.taken_up(10);
        assert_eq!(freshness.wait_until(50, PATIENCE).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_in_time_and_is_skipped_without_a_log_head() {
        let (freshness, _head) = with_head(10);
        let began = tokio::time::Instant::now();
        assert!(!freshness.wait_for_acknowledged(PATIENCE).await);
        assert_eq!(began.elapsed(), PATIENCE);
        let unknown = Freshness::default();
        let mut at_once = std::pin::pin!(unknown.wait_for_acknowledged(PATIENCE));
        assert!(futures::poll!(&mut at_once).is_ready());
    }
}

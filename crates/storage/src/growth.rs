//! The latest times of a log, for readers that wait for its next row.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use tokio::sync::watch;

use crate::waiters::WaitingTasks;

/// The latest times of one log.
#[derive(Debug)]
pub(crate) struct LatestLogTimes {
    /// The latest `cdc$time` given to a row since the storage was opened, in microseconds.
    given: watch::Sender<i64>,
    /// The latest `cdc$time` of a commit that succeeded, in microseconds.
    acknowledged: Arc<AtomicI64>,
    slowed: Arc<WriterThrottle>,
}

/// The slowing of the writers of one log.
#[derive(Debug, Default)]
struct WriterThrottle {
    /// The number of readers that have writers slowed.
    readers: AtomicUsize,
    /// Writers that wait until there are none.
    writers: WaitingTasks,
}

impl WriterThrottle {
    fn is_free(&self) -> bool {
        self.readers.load(Ordering::Acquire) == 0
    }
}

impl Default for LatestLogTimes {
    fn default() -> LatestLogTimes {
        LatestLogTimes {
            given: watch::Sender::new(i64::MIN),
            acknowledged: Arc::new(AtomicI64::new(i64::MIN)),
            slowed: Arc::default(),
        }
    }
}

/// The end of a CDC log, as far as writes have been acknowledged. Cheap to clone, and keeps nothing
/// of the table alive.
#[derive(Clone, Debug)]
pub struct LogEnd {
    acknowledged: Arc<AtomicI64>,
    /// No row that was in the log when the storage was opened has a later time.
    opened_at_micros: i64,
    slowed: Arc<WriterThrottle>,
}

/// Has the writers of a table slowed while it lives ([`LogEnd::slow_writers`]).
#[derive(Debug)]
pub struct WriterThrottleGuard(Arc<WriterThrottle>);

impl Drop for WriterThrottleGuard {
    fn drop(&mut self) {
        if self.0.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.writers.wake();
        }
    }
}

/// The times up to which the logs have been settled. Microseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettled {
    /// No row is added at or below this time any more, for as long as the storage is open.
    pub up_to_micros: i64,
    /// No row is added at or below this time any more, even after the storage was opened again. It
    /// is less than `up_to_micros` while the disk takes no writes, as when it is full.
    pub kept_micros: i64,
}

impl LogEnd {
    /// Returns a time such that no row of a write acknowledged by now has a later `cdc$time`.
    /// Microseconds since the epoch.
    pub fn acknowledged_micros(&self) -> i64 {
        self.acknowledged
            .load(Ordering::Acquire)
            .max(self.opened_at_micros)
    }

    /// Makes each write that would add to the log wait until the result is dropped, or for a second
    /// if that takes longer. It is for a reader that can't keep up.
    pub fn slow_writers(&self) -> WriterThrottleGuard {
        self.slowed.readers.fetch_add(1, Ordering::AcqRel);
        WriterThrottleGuard(Arc::clone(&self.slowed))
    }
}

impl LatestLogTimes {
    /// The latest `cdc$time` given to a row, in microseconds; `i64::MIN` for none.
    pub(crate) fn latest(&self) -> i64 {
        *self.given.borrow()
    }

    /// Notes that a commit that gave a row this time has succeeded. Called before the commit is
    /// acknowledged.
    pub(crate) fn acknowledge(&self, micros: i64) {
        self.acknowledged.fetch_max(micros, Ordering::AcqRel);
    }

    /// The end of the log, for a storage that was opened at that time.
    pub(crate) fn end(&self, opened_at_micros: i64) -> LogEnd {
        LogEnd {
            acknowledged: Arc::clone(&self.acknowledged),
            opened_at_micros,
            slowed: Arc::clone(&self.slowed),
        }
    }

    /// Notes that a commit has given a row this time. The commit is still under way and may fail.
    pub(crate) fn reach(&self, micros: i64) {
        self.given.send_if_modified(|latest| {
            let is_later = *latest < micros;
            *latest = micros.max(*latest);
            is_later
        });
    }

    /// A wait until no reader has writers slowed; `None` if none has.
    pub(crate) fn free(&self) -> Option<impl Future<Output = ()> + use<>> {
        let slowed = Arc::clone(&self.slowed);
        if slowed.is_free() {
            return None;
        }
        Some(async move { slowed.writers.until(|| slowed.is_free()).await })
    }

    /// Waits for a time at or after `from_micros`, or for the end of the log.
    pub(crate) fn reached(&self, from_micros: i64) -> impl Future<Output = ()> + use<> {
        let mut latest = self.given.subscribe();
        // An error says that the log was dropped.
        async move { drop(latest.wait_for(|latest| *latest >= from_micros).await) }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(future: Pin<&mut impl Future>) -> bool {
        future
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn a_log_is_waited_for_until_it_reaches_a_time_or_ends() {
        let growth = LatestLogTimes::default();
        let mut reached = pin!(growth.reached(1_500));
        growth.reach(1_499);
        assert!(!is_ready(reached.as_mut()));
        growth.reach(1_500);
        assert!(is_ready(reached));
        // An earlier time takes nothing back, and later waiters need not wait.
        growth.reach(1_000);
        assert!(is_ready(pin!(growth.reached(1_500))));
        let mut later = pin!(growth.reached(1_501));
        assert!(!is_ready(later.as_mut()));
        drop(growth);
        assert!(is_ready(later));
    }
}

//! Up to when the rows of a log go, for who waits for the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::watch;

/// How far one log goes.
#[derive(Debug)]
pub(crate) struct Growth {
    /// The latest `cdc$time` given to a row since the storage was opened, in microseconds.
    given: watch::Sender<i64>,
    /// The latest of those whose commits have ended well.
    acknowledged: Arc<AtomicI64>,
}

impl Default for Growth {
    fn default() -> Growth {
        Growth {
            given: watch::Sender::new(i64::MIN),
            acknowledged: Arc::new(AtomicI64::new(i64::MIN)),
        }
    }
}

/// The end of a CDC log, as of writes that have been acknowledged. Cheap to clone, and holds on to nothing of the table.
#[derive(Clone, Debug)]
pub struct LogEnd {
    acknowledged: Arc<AtomicI64>,
    /// What was in the log when the storage was opened has no later time.
    opened_at_micros: i64,
}

/// Up to when a log has been settled. Microseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettled {
    /// No row comes to lie there any more, for as long as the storage is open.
    pub up_to_micros: i64,
    /// Nor after it was opened again: what the disk has been told. It is behind while the disk takes no writes, as when it is
    /// full.
    pub kept_micros: i64,
}

impl LogEnd {
    /// No row of a write that has been acknowledged by now has a later `cdc$time`. Microseconds since the epoch.
    pub fn acknowledged_micros(&self) -> i64 {
        self.acknowledged
            .load(Ordering::Acquire)
            .max(self.opened_at_micros)
    }
}

impl Growth {
    /// The latest time given.
    pub(crate) fn latest(&self) -> i64 {
        *self.given.borrow()
    }

    /// A commit that has given a row this time has ended well. To be said before anyone hears of the commit.
    pub(crate) fn acknowledge(&self, micros: i64) {
        self.acknowledged.fetch_max(micros, Ordering::AcqRel);
    }

    /// The end of the log, of a storage that was opened at that time.
    pub(crate) fn end(&self, opened_at_micros: i64) -> LogEnd {
        LogEnd {
            acknowledged: Arc::clone(&self.acknowledged),
            opened_at_micros,
        }
    }

    /// A commit has given a row this time. It may be under way still, and may fail.
    pub(crate) fn reach(&self, micros: i64) {
        self.given.send_if_modified(|latest| {
            let is_later = *latest < micros;
            *latest = micros.max(*latest);
            is_later
        });
    }

    /// Waits for a time at or after `from_micros`, or for the end of the log.
    pub(crate) fn reached(&self, from_micros: i64) -> impl Future<Output = ()> + use<> {
        let mut latest = self.given.subscribe();
        // An error is the end.
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
        let growth = Growth::default();
        let mut reached = pin!(growth.reached(1_500));
        growth.reach(1_499);
        assert!(!is_ready(reached.as_mut()));
        growth.reach(1_500);
        assert!(is_ready(reached));
        // What comes with an earlier time takes nothing back, and later ones need not wait.
        growth.reach(1_000);
        assert!(is_ready(pin!(growth.reached(1_500))));
        let mut later = pin!(growth.reached(1_501));
        assert!(!is_ready(later.as_mut()));
        drop(growth);
        assert!(is_ready(later));
    }
}

//! The work that changes leave to do in the structure of an index, as far as the index knows of it.
//!
//! [`crate::graph_maintenance`] does the work.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, watch};

/// The changes that may have left work to do, and those whose work is done.
#[derive(Default)]
pub(crate) struct PendingMaintenance {
    /// The number of wakings.
    wakings: AtomicU64,
    woken: Notify,
    /// Notified when the work can't wait for a pause of changes.
    hurried: Notify,
    /// Notified after each piece of work.
    advanced: Notify,
    /// The number of wakings after whose work there was nothing left.
    done: watch::Sender<u64>,
    /// The number of times that work was done to its end.
    rounds: AtomicU64,
}

impl PendingMaintenance {
    /// Notes that changes, or a snapshot, may have left work to do.
    pub(crate) fn wake(&self) {
        self.wakings.fetch_add(1, Ordering::AcqRel);
        self.woken.notify_one();
    }

    /// Waits until there may be work to do. Only one task may wait.
    pub(crate) async fn woken(&self) {
        while !self.is_under_way() {
            self.woken.notified().await;
        }
    }

    /// Has the work begin without a pause of changes.
    pub(crate) fn hurry(&self) {
        self.hurried.notify_one();
    }

    /// Waits until the work can't wait for a pause of changes. Only one task may wait.
    pub(crate) async fn hurried(&self) {
        self.hurried.notified().await;
    }

    /// Notes that a piece of work is done.
    pub(crate) fn advance(&self) {
        self.advanced.notify_one();
    }

    /// Waits until a piece of work is done, or nothing is left to do. Only one task may wait.
    pub(crate) async fn advanced(&self) {
        self.advanced.notified().await;
    }

    /// The number of wakings up to now.
    pub(crate) fn wakings(&self) -> u64 {
        self.wakings.load(Ordering::Acquire)
    }

    /// Notes that nothing is left of the work of so many wakings. `has_worked` says whether there
    /// was any.
    pub(crate) fn done(&self, wakings: u64, has_worked: bool) {
        if has_worked {
            self.rounds.fetch_add(1, Ordering::AcqRel);
        }
        self.done.send_replace(wakings);
        self.advance();
    }

    /// Whether there may be work to do.
    pub(crate) fn is_under_way(&self) -> bool {
        *self.done.borrow() != self.wakings()
    }

    /// The number of times that there was work and it was done to its end. The graph is another one
    /// each time, though no row has changed.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Acquire)
    }

    /// Waits until nothing is left to do.
    #[cfg(test)]
    pub(crate) async fn ended(&self) {
        let mut done = self.done.subscribe();
        let is_all = |done: &u64| *done == self.wakings();
        done.wait_for(is_all).await.expect("the sender is here");
    }
}

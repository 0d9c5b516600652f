//! Rows that a search meets just when a value in them has expired.
//!
//! No log row reports a value that expires, so its row is read again then, which takes the index a
//! moment. A search that would answer with such a row does not know whether the row satisfies its
//! filter, nor the row's values. It requests the rows that are due, and looks again once they have
//! been read.

use tokio::sync::{Notify, watch};

/// The searches that wait for rows to be read again, and the task that has them read.
#[derive(Default)]
pub(crate) struct ExpiredFilterWaits {
    asked: Notify,
    /// Changed whenever rows have been taken in.
    taken_in: watch::Sender<()>,
}

impl ExpiredFilterWaits {
    /// A receiver that is notified whenever rows have been taken in from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.taken_in.subscribe()
    }

    /// Requests the rows that are due.
    pub(crate) fn request_reads(&self) {
        self.asked.notify_one();
    }

    /// Waits until a search requests the rows that are due. Only one task may wait.
    pub(crate) async fn wait_for_request(&self) {
        self.asked.notified().await;
    }

    /// Notifies those that wait that rows have been taken in.
    pub(crate) fn notify_taken_in(&self) {
        if self.taken_in.receiver_count() > 0 {
            self.taken_in.send_replace(());
        }
    }
}

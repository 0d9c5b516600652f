//! The progress of a transfer, shown in its task.

use std::sync::atomic::{AtomicU64, Ordering};

use backup::TransferProgress;
use storage::AdoptProgress;
use tasks::Task;
use tokio_util::sync::CancellationToken;

/// The counter of bytes that were transferred, as stored.
pub(crate) const SENT_BYTES: &str = "sent_bytes";
/// The counter of rows.
pub(crate) const ROWS: &str = "rows";

/// The progress of a transfer in a task: bytes of files, done and in all.
pub(crate) struct TransferReporter<'a> {
    /// The task.
    pub task: &'a Task,
    /// Cancelled when the server stops.
    pub stop: &'a CancellationToken,
}

impl TransferReporter<'_> {
    /// Whether the work is to go on.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.task.abort_requested() && !self.stop.is_cancelled()
    }
}

impl TransferProgress for TransferReporter<'_> {
    fn set_total(&self, bytes: u64) {
        self.task.set_total(bytes);
    }

    fn done(&self, bytes: u64, sent: u64) {
        self.task.add(bytes);
        self.task.count(SENT_BYTES, sent);
    }

    fn is_wanted(&self) -> bool {
        TransferReporter::is_wanted(self)
    }
}

/// The progress of the copy of one table: rows, as a counter of the task.
pub(crate) struct AdoptReporter<'a> {
    of: TransferReporter<'a>,
    rows: AtomicU64,
}

impl<'a> AdoptReporter<'a> {
    /// The progress of a table of which nothing is copied yet.
    pub(crate) fn new(task: &'a Task, stop: &'a CancellationToken) -> AdoptReporter<'a> {
        AdoptReporter {
            of: TransferReporter { task, stop },
            rows: AtomicU64::new(0),
        }
    }
}

impl AdoptProgress for AdoptReporter<'_> {
    fn copied(&self, rows: u64, _bytes: u64) {
        let before = self.rows.swap(rows, Ordering::Relaxed);
        self.of.task.count(ROWS, rows.saturating_sub(before));
    }

    fn is_wanted(&self) -> bool {
        self.of.is_wanted()
    }
}

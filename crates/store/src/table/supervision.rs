//! Tasks of a table whose panics are noticed.
//!
//! A panic of a task is a bug, and what the task had for the indexes of its table is lost. The
//! indexes would go on answering by what they hold, with older rows after every write, and nothing
//! would show it. So the table is followed again from the snapshots of its indexes, as after a
//! restart.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::feed::InterruptedTable;
use crate::identity::TableIdentity;
use crate::keys::KeySchema;

/// The pause before a table is followed again, as the cause of the panic may still be there.
pub(super) const PAUSE: Duration = Duration::from_secs(10);

/// Runs the tasks of a table and notices panics.
#[derive(Clone)]
pub(super) struct TaskSupervisor {
    /// All tasks of the service. Its end waits for them.
    pub tasks: TaskTracker,
    /// The channel for tables with a task that panicked.
    pub interrupted: mpsc::Sender<InterruptedTable>,
    /// The table.
    pub table: TableIdentity,
    /// The primary key of the table.
    pub keys: KeySchema,
    /// Cancelled when the table is no longer followed.
    pub following: CancellationToken,
    /// The pause before a panic is reported to the channel.
    pub pause: Duration,
}

impl TaskSupervisor {
    /// Runs a task until it ends or is cancelled.
    pub(super) fn spawn(
        &self,
        cancel: &CancellationToken,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let (cancel, watched) = (cancel.clone(), self.clone());
        self.tasks.spawn(async move {
            // The state that the task leaves is dropped as a whole.
            let task = AssertUnwindSafe(task).catch_unwind();
            if let Some(Err(_)) = cancel.run_until_cancelled(task).await {
                let following = watched.following.clone();
                following.run_until_cancelled(watched.broke_off()).await;
            }
        });
    }

    async fn broke_off(self) {
        tracing::error!(
            table = %self.table,
            "a task that follows the table broke off: this is a bug, and the log says where; the table is followed anew from the snapshots of its indexes"
        );
        tokio::time::sleep(self.pause).await;
        let interrupted = InterruptedTable {
            table: self.table,
            keys: self.keys,
            following: self.following,
        };
        // If the receiver was dropped, the service is stopping.
        let _ = self.interrupted.send(interrupted).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::tests::identity;

    #[tokio::test]
    async fn a_table_with_a_panicked_task_is_followed_again() {
        let (interrupted, mut told) = mpsc::channel(1);
        let index = identity("idx");
        let watched = TaskSupervisor {
            tasks: TaskTracker::new(),
            interrupted,
            table: index.table.clone(),
            keys: index.keys.clone(),
            following: CancellationToken::new(),
            pause: Duration::from_millis(1),
        };
        watched.spawn(&watched.following, async {});
        let cancelled = CancellationToken::new();
        watched.spawn(&cancelled, std::future::pending());
        cancelled.cancel();
        watched.spawn(&watched.following, async { panic!("a bug") });
        let within = Duration::from_secs(20);
        let interrupted = tokio::time::timeout(within, told.recv()).await;
        let interrupted = interrupted.expect("it is told").unwrap();
        assert_eq!(interrupted.table, index.table);
        // No report is needed once the table is dropped.
        watched.following.cancel();
        let of_index = CancellationToken::new();
        watched.spawn(&of_index, async { panic!("a bug") });
        watched.tasks.close();
        watched.tasks.wait().await;
        assert!(told.try_recv().is_err());
    }
}

//! Tasks of a table that don't end unseen.
//!
//! A task that panics, which is a bug, takes with it what it was to tell the indexes of its table. They would go on
//! answering by what they hold, older with every write, and nothing would say so. So the table is followed anew from the
//! snapshots of its indexes, as after a restart.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cdc::Interrupted;
use crate::identity::TableIdentity;
use crate::keys::KeySchema;

/// What made a task panic may be there again, so a table is not followed anew at once.
pub const PAUSE: Duration = Duration::from_secs(10);

/// Runs tasks of a table.
#[derive(Clone)]
pub struct Watched {
    /// All tasks, for the end.
    pub tasks: TaskTracker,
    /// Where to say that one broke off.
    pub interrupted: mpsc::Sender<Interrupted>,
    /// The table.
    pub table: TableIdentity,
    /// Its primary key.
    pub keys: KeySchema,
    /// Cancelled when the table is followed no longer.
    pub following: CancellationToken,
    /// How long to wait before that is said.
    pub pause: Duration,
}

impl Watched {
    /// Runs a task until it ends or is cancelled.
    pub fn spawn(
        &self,
        cancel: &CancellationToken,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let (cancel, watched) = (cancel.clone(), self.clone());
        self.tasks.spawn(async move {
            // What it leaves behind is given up as a whole.
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
        let interrupted = Interrupted {
            table: self.table,
            keys: self.keys,
            following: self.following,
        };
        // When nobody listens any more the service is stopping.
        let _ = self.interrupted.send(interrupted).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::identity;

    #[tokio::test]
    async fn a_task_that_panics_has_its_table_followed_anew() {
        let (interrupted, mut told) = mpsc::channel(1);
        let index = identity("idx");
        let watched = Watched {
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
        // Nobody needs to hear of it once the table has gone.
        watched.following.cancel();
        let of_index = CancellationToken::new();
        watched.spawn(&of_index, async { panic!("a bug") });
        watched.tasks.close();
        watched.tasks.wait().await;
        assert!(told.try_recv().is_err());
    }
}

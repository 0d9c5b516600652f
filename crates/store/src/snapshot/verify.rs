//! Notices damaged files. The files of an opened index are verified while it is searched, and any
//! reader of them may find damage too.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::indexes::{FilesState, IndexHandle};

/// The pause after each MiB, as searches read from the same disk.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until the files of an index are found to be damaged. Then it logs the name of the file
/// and sends the index to `damaged`.
pub(crate) async fn watch(index: Arc<IndexHandle>, damaged: mpsc::Sender<Arc<IndexHandle>>) {
    let error = index.content.damaged().await;
    let name = &index.identity.name;
    tracing::error!(index = %name, %error, "vectors are damaged; the index is built anew");
    // Without a receiver the service is stopping.
    let _ = damaged.send(index).await;
}

/// Verifies the files of an index until all are verified, the index goes, or damage is found.
/// Blocks.
pub(crate) fn verify(index: &Arc<IndexHandle>, cancel: &CancellationToken) {
    let unverified = &index.metrics.snapshots.unverified;
    let state = index.content.verify(|state| {
        if let FilesState::Verifying { done, total } = state {
            unverified.set((total - done).cast_signed());
        }
        std::thread::sleep(PAUSE);
        !cancel.is_cancelled()
    });
    let name = &index.identity.name;
    match state {
        FilesState::Verified => {
            unverified.set(0);
            tracing::debug!(index = %name, "all vectors are as they were saved");
        }
        // The function `watch` handles damage.
        FilesState::Verifying { .. } | FilesState::Damaged(_) => {}
    }
}

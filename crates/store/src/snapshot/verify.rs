//! Full vectors that are not what they were: found by verifying those of an index that was opened, while they
//! are searched, or by whoever reads them.

use std::sync::Arc;
use std::time::Duration;

use ann::VectorsState;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::IndexHandle;

/// The pause after each MiB: searches read from the same disk.
const PAUSE: Duration = Duration::from_millis(1);

/// Logs the name of the file once the vectors of an index are found to be damaged, and hands it to `damaged`.
pub async fn watch(index: Arc<IndexHandle>, damaged: mpsc::Sender<Arc<IndexHandle>>) {
    let error = index.vectors.damaged().await;
    let name = &index.identity.name;
    tracing::error!(index = %name, %error, "vectors are damaged; the index is built anew");
    // When nobody listens any more the service is stopping.
    let _ = damaged.send(index).await;
}

/// Verifies until all is, or the index goes, or is found to be damaged. Blocks.
pub fn verify(index: &Arc<IndexHandle>, cancel: &CancellationToken) {
    let unverified = &index.metrics.snapshots.unverified;
    let state = index.vectors.verify(|state| {
        if let VectorsState::Verifying { done, total } = state {
            unverified.set((total - done).cast_signed());
        }
        std::thread::sleep(PAUSE);
        !cancel.is_cancelled()
    });
    let name = &index.identity.name;
    match state {
        VectorsState::Verified => {
            unverified.set(0);
            tracing::debug!(index = %name, "all vectors are as they were saved");
        }
        // Who watches the index has been told.
        VectorsState::Verifying { .. } | VectorsState::Damaged(_) => {}
    }
}

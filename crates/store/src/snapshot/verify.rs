//! Verifying the full vectors of an index that was opened, while they are searched.

use std::sync::Arc;
use std::time::Duration;

use ann::VectorsState;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::IndexHandle;

/// The pause after each MiB: searches read from the same disk.
const PAUSE: Duration = Duration::from_millis(1);

/// Verifies until all is, or the index goes. An index whose vectors are damaged is logged with the name of
/// the file, and handed to `damaged`. Blocks.
pub fn verify(
    index: &Arc<IndexHandle>,
    damaged: &mpsc::Sender<Arc<IndexHandle>>,
    cancel: &CancellationToken,
) {
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
        VectorsState::Verifying { .. } => {}
        VectorsState::Damaged(error) => {
            tracing::error!(index = %name, %error, "the snapshot is damaged; the index is built anew");
            // When nobody listens any more the service is stopping.
            let _ = damaged.blocking_send(index.clone());
        }
    }
}

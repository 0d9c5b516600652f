//! The state that an index service has of its own: the definitions and the snapshots of its
//! indexes.

use std::io;
use std::path::Path;
use std::sync::Arc;

use platform::aside;
use store_api::types::IndexInfo;

use crate::indexes::IndexEngine;
use crate::snapshot::{LinkedSnapshots, Snapshots};

/// The indexes of a running service, for parts of the process that copy their state. Cheap to
/// clone; it does not keep the service running.
#[derive(Clone)]
pub struct OwnIndexState {
    engine: Arc<IndexEngine>,
    snapshots: Arc<Snapshots>,
}

impl OwnIndexState {
    pub(crate) fn new(engine: Arc<IndexEngine>, snapshots: Arc<Snapshots>) -> OwnIndexState {
        OwnIndexState { engine, snapshots }
    }

    /// Every index with its options, its state and its lag.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        let (indexes, now) = (self.engine.indexes(), self.engine.now());
        indexes.iter().map(|index| index.info(now)).collect()
    }

    /// Links the snapshots of all indexes, as [`crate::StoreHandle::link_snapshots`] does.
    ///
    /// # Errors
    /// If a file can't be linked. Links that were made stay.
    pub async fn link_snapshots(&self, target: &Path) -> io::Result<LinkedSnapshots> {
        self.snapshots.save_now().await;
        let (snapshots, target) = (self.snapshots.clone(), target.to_owned());
        let linked = aside(move || snapshots.link_to(&target)).await;
        linked.map_err(io::Error::other)?.map_err(io::Error::other)
    }
}

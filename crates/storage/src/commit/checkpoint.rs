//! The moment of a checkpoint, between two batches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Committer;
use crate::StorageError;
use crate::engine::CheckpointDraft;
use crate::layout::ResolvedSchema;

/// A checkpoint that has everything up to its moment.
pub(crate) struct LinkedCheckpoint {
    pub draft: Box<CheckpointDraft>,
    /// The schema of that moment.
    pub schema: Arc<ResolvedSchema>,
    /// The storage's time of that moment. Microseconds since the epoch.
    pub time_micros: i64,
    /// The time for which writes waited.
    pub writers_waited: Duration,
}

impl Committer {
    /// Links the files that make up the present state.
    pub(super) fn link_checkpoint(
        &self,
        mut draft: Box<CheckpointDraft>,
    ) -> Result<LinkedCheckpoint, StorageError> {
        // After a disk error a journal may hold a batch that was refused.
        self.shared.check_writable()?;
        let began = Instant::now();
        self.shared.engine.link_checkpoint(&mut draft)?;
        Ok(LinkedCheckpoint {
            draft,
            schema: self.shared.schema(),
            time_micros: self.shared.clock.now_micros(),
            writers_waited: began.elapsed(),
        })
    }
}

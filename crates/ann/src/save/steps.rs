//! How far a save is, and whether it goes on.

use crate::SnapshotError;

/// How far a save is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveProgress {
    /// Bytes of graph and full vectors that are written, or taken over from the snapshot before.
    pub done: u64,
    /// Bytes of graph and full vectors in all.
    pub total: u64,
}

/// Tells of each step, and asks whether there is to be another.
pub(super) struct Steps<'a> {
    progress: SaveProgress,
    keep_going: &'a mut dyn FnMut(SaveProgress) -> bool,
}

impl<'a> Steps<'a> {
    /// Before the first step.
    pub fn new(keep_going: &'a mut dyn FnMut(SaveProgress) -> bool) -> Steps<'a> {
        Steps {
            progress: SaveProgress { done: 0, total: 0 },
            keep_going,
        }
    }

    /// So many bytes are to be written in all.
    pub fn begin(&mut self, total: u64) -> Result<(), SnapshotError> {
        self.progress.total = total;
        self.passed(0)
    }

    /// So many more bytes are done.
    pub fn passed(&mut self, bytes: u64) -> Result<(), SnapshotError> {
        self.progress.done += bytes;
        match (self.keep_going)(self.progress) {
            true => Ok(()),
            false => Err(SnapshotError::Stopped),
        }
    }
}

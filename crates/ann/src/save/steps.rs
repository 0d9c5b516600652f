//! The progress of a save, and the question whether it goes on.

use crate::SnapshotError;

/// The progress of a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveProgress {
    /// Bytes of graph and full vectors that are written, or taken over from the last snapshot, so
    /// far.
    pub done: u64,
    /// Bytes of graph and full vectors in all.
    pub total: u64,
}

/// Reports each step of a save, and checks whether there is to be another.
pub(super) struct StepReporter<'a> {
    progress: SaveProgress,
    keep_going: &'a mut dyn FnMut(SaveProgress) -> bool,
}

impl<'a> StepReporter<'a> {
    /// Makes the steps of a save that has not begun.
    pub fn new(keep_going: &'a mut dyn FnMut(SaveProgress) -> bool) -> StepReporter<'a> {
        StepReporter {
            progress: SaveProgress { done: 0, total: 0 },
            keep_going,
        }
    }

    /// Sets the number of bytes to be written in all, and checks whether to begin.
    pub fn begin(&mut self, total: u64) -> Result<(), SnapshotError> {
        self.progress.total = total;
        self.passed(0)
    }

    /// Adds to the bytes done, and fails with [`SnapshotError::Stopped`] if the save is not to go
    /// on.
    pub fn passed(&mut self, bytes: u64) -> Result<(), SnapshotError> {
        self.progress.done += bytes;
        match (self.keep_going)(self.progress) {
            true => Ok(()),
            false => Err(SnapshotError::Stopped),
        }
    }
}

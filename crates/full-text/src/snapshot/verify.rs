//! Verification that the segments of an opened index are as they were saved.

use std::sync::Arc;

use crate::TextIndex;
use crate::segment::StoredFile;

/// The state of the files of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextFilesState {
    /// All is as it was written.
    Verified,
    /// Segments come from a snapshot, and no damage has been found so far.
    Verifying {
        /// Number of bytes that were verified.
        done: u64,
        /// Number of bytes of all segments in files.
        total: u64,
    },
    /// A file is not as it was written, or can't be read: the message names it. The index should be
    /// built again, and can't be saved.
    Damaged(String),
}

impl TextIndex {
    /// The state of the files.
    pub fn files_state(&self) -> TextFilesState {
        let segments = self.state.lock().segments.clone();
        let stored: Vec<&StoredFile> = segments
            .iter()
            .filter_map(|part| part.segment.stored())
            .collect();
        if let Some(file) = stored.iter().find(|file| file.is_unreadable()) {
            let what = "can't be read any more; look at the disk, and build the index anew";
            self.damage.note(format!("{} {what}", file.described()));
        }
        if let Some(damage) = self.damage.found() {
            return TextFilesState::Damaged(damage.to_owned());
        }
        match stored.iter().all(|file| file.is_verified()) {
            true => TextFilesState::Verified,
            false => TextFilesState::Verifying {
                done: stored.iter().map(|file| file.verified_bytes()).sum(),
                total: stored.iter().map(|file| file.bytes()).sum(),
            },
        }
    }

    /// Verifies segments in files, a MiB at a time. `keep_going` is called after each; when it
    /// returns false this ends, and another call goes on from there.
    pub fn verify(&self, mut keep_going: impl FnMut() -> bool) -> TextFilesState {
        let segments = self.state.lock().segments.clone();
        for part in segments {
            let segment = Arc::clone(&part.segment);
            loop {
                match self.verify_piece(&segment) {
                    Some(true) => break,
                    Some(false) if keep_going() => {}
                    _ => return self.files_state(),
                }
            }
        }
        self.files_state()
    }
}

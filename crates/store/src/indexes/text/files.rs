//! The files of an index on texts in a snapshot.

use std::path::Path;

use full_text::{TextIndex, TextSaveProgress};
use index::FullTextOptions;

use super::TextStructure;
use super::faults::files_state;
use crate::indexes::files::{FilesFault, FilesProgress, FilesState};

/// The part of a file that takes memory once the index is open: one in this many. Segments are
/// mapped, and what is made of them is a fraction: their lists of ids and of lengths.
const MEMORY_SHARE: u64 = 8;

impl TextStructure {
    /// Opens the index that a directory has.
    ///
    /// # Errors
    /// If the files are not those of such an index, or there is no memory for it.
    pub(crate) fn open(
        options: FullTextOptions,
        directory: &Path,
    ) -> Result<TextStructure, FilesFault> {
        Ok(TextStructure::of(TextIndex::open(options, directory)?))
    }

    /// Writes the segments, and the texts that none has yet, into a directory while they are
    /// searched and changed, for as long as `keep_going` returns true.
    pub(crate) fn save(
        &self,
        directory: &Path,
        mut keep_going: impl FnMut(FilesProgress) -> bool,
    ) -> Result<(), FilesFault> {
        let keep_going = |progress: TextSaveProgress| {
            keep_going(FilesProgress {
                done: progress.done,
                total: progress.total,
            })
        };
        self.index.save_while(directory, keep_going)?;
        Ok(())
    }

    /// Verifies the segments of an index from a snapshot, for as long as `keep_going` returns true.
    pub(crate) fn verify(&self, mut keep_going: impl FnMut(&FilesState) -> bool) -> FilesState {
        let state = self.index.verify(|| keep_going(&self.files_state()));
        files_state(state)
    }

    /// The state of the files of segments.
    pub(crate) fn files_state(&self) -> FilesState {
        files_state(self.index.files_state())
    }
}

/// Reads all files of a directory and compares them with their checksums; see
/// [`full_text::check_snapshot`].
///
/// # Errors
/// If a file is not as it was written, or can't be read.
pub(crate) fn check_files(
    directory: &Path,
    pass: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, FilesFault> {
    Ok(full_text::check_snapshot(directory, pass)?)
}

/// About the memory that a file of this length takes once the index is open, bytes.
pub(crate) fn file_memory(bytes: u64) -> u64 {
    bytes / MEMORY_SHARE
}

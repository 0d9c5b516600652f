//! The files of an index on vectors in a snapshot.

use std::path::Path;

use index::VectorOptions;

use super::VectorIndex;
use super::faults::files_state;
use super::options::engine_options;
use crate::indexes::files::{FilesFault, FilesProgress, FilesState};
use crate::options::{FullVectorPlacement, IndexesOptions};

impl VectorIndex {
    /// Opens the index that a directory has.
    ///
    /// # Errors
    /// If the files are not those of such an index, or there is no memory for it.
    pub(crate) fn open(
        options: &VectorOptions,
        directory: &Path,
        indexes: &IndexesOptions,
    ) -> Result<VectorIndex, FilesFault> {
        let engine = engine_options(options, indexes.vectors);
        let ann = ann::NeighbourIndex::open_in(directory, engine, &indexes.directory)?;
        Ok(VectorIndex {
            ann,
            similarity: options.effective_metric(),
        })
    }

    /// Writes the vectors into a directory while they are searched and changed, for as long as
    /// `keep_going` returns true; see [`ann::NeighbourIndex::save_while`].
    pub(crate) fn save(
        &self,
        directory: &Path,
        mut keep_going: impl FnMut(FilesProgress) -> bool,
    ) -> Result<(), FilesFault> {
        let keep_going = |progress: ann::SaveProgress| {
            keep_going(FilesProgress {
                done: progress.done,
                total: progress.total,
            })
        };
        self.ann.save_while(directory, keep_going)?;
        Ok(())
    }

    /// Verifies the vectors of an index from a snapshot, for as long as `keep_going` returns true.
    pub(crate) fn verify(&self, mut keep_going: impl FnMut(&FilesState) -> bool) -> FilesState {
        let state = self.ann.verify_vectors(|| keep_going(&self.files_state()));
        files_state(&state)
    }

    /// The state of the files of vectors.
    pub(crate) fn files_state(&self) -> FilesState {
        files_state(&self.ann.vectors_state())
    }
}

/// Reads all files of a directory and compares them with their checksums; see
/// [`ann::check_snapshot`].
///
/// # Errors
/// If a file is not as it was written, or can't be read.
pub(crate) fn check_files(
    directory: &Path,
    pass: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, FilesFault> {
    Ok(ann::check_snapshot(directory, pass)?)
}

/// About the memory that a file of this name and length takes once the index is open, bytes.
/// Mapped files take none.
pub(crate) fn file_memory(name: Option<&str>, bytes: u64, indexes: &IndexesOptions) -> u64 {
    match name {
        Some("graph") => bytes,
        _ if indexes.vectors == FullVectorPlacement::Memory => bytes,
        _ => 0,
    }
}

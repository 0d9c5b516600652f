//! The files of a structure in a snapshot: the progress of writing them, and their faults.

/// The reason why files of a structure can't be written or used. The text names the file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum FilesFault {
    /// The system failed or memory is short, so that the files may be sound.
    #[error("{0}")]
    System(String),
    /// The files are damaged, of another version or of another index, or the work was stopped.
    #[error("{0}")]
    Unusable(String),
}

/// The progress of writing files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilesProgress {
    /// The number of bytes that are written, or taken over from the last snapshot, so far.
    pub done: u64,
    /// The number of bytes in all.
    pub total: u64,
}

/// The state of the files that an opened structure reads while it is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilesState {
    /// The content of the files is as it was written.
    Verified,
    /// The content comes from a snapshot, and no damage has been found so far.
    Verifying {
        /// The number of bytes that were verified.
        done: u64,
        /// The number of bytes of all files.
        total: u64,
    },
    /// A file is damaged or can't be read. The text names it. The index should be built again.
    Damaged(String),
}

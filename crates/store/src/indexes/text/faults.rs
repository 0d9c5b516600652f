//! The errors and the states of the engine in the words that all structures share.

use full_text::{TextFileError, TextFilesState, TextIndexError};

use crate::indexes::change::RefusalReason;
use crate::indexes::files::{FilesFault, FilesState};
use crate::indexes::request::StructureError;

impl From<TextIndexError> for StructureError {
    fn from(error: TextIndexError) -> StructureError {
        StructureError::Internal(error.to_string())
    }
}

impl From<TextIndexError> for RefusalReason {
    fn from(error: TextIndexError) -> RefusalReason {
        let text = error.to_string();
        match error {
            // The index is built again.
            TextIndexError::Damaged(_) => RefusalReason::Unfit(text),
            TextIndexError::Failed(_) => RefusalReason::NoRoom(text),
        }
    }
}

impl From<TextFileError> for FilesFault {
    fn from(error: TextFileError) -> FilesFault {
        match error {
            TextFileError::System(text) => FilesFault::System(text),
            TextFileError::Unusable(text) => FilesFault::Unusable(text),
        }
    }
}

/// The state of the files of segments.
pub(super) fn files_state(state: TextFilesState) -> FilesState {
    match state {
        TextFilesState::Verified => FilesState::Verified,
        TextFilesState::Verifying { done, total } => FilesState::Verifying { done, total },
        TextFilesState::Damaged(error) => FilesState::Damaged(error),
    }
}

//! The errors and the states of the engine in the words that all structures share.

use ann::{IndexError, SnapshotError, VectorsState};

use crate::indexes::change::RefusalReason;
use crate::indexes::files::{FilesFault, FilesState};
use crate::indexes::request::StructureError;

impl From<IndexError> for StructureError {
    fn from(error: IndexError) -> StructureError {
        let text = error.to_string();
        match error {
            IndexError::Dimensions { .. } | IndexError::NotFinite { .. } => {
                StructureError::Query(text)
            }
            _ => StructureError::Internal(text),
        }
    }
}

impl From<IndexError> for RefusalReason {
    fn from(error: IndexError) -> RefusalReason {
        let text = error.to_string();
        match error {
            IndexError::Full | IndexError::NoRoom(_) => RefusalReason::NoRoom(text),
            _ => RefusalReason::Unfit(text),
        }
    }
}

impl From<SnapshotError> for FilesFault {
    fn from(error: SnapshotError) -> FilesFault {
        let text = error.to_string();
        match error {
            SnapshotError::Io { .. } | SnapshotError::Memory(_) => FilesFault::System(text),
            _ => FilesFault::Unusable(text),
        }
    }
}

/// The state of the files of vectors.
pub(super) fn files_state(state: &VectorsState) -> FilesState {
    match state {
        VectorsState::Verified => FilesState::Verified,
        VectorsState::Verifying { done, total } => FilesState::Verifying {
            done: *done,
            total: *total,
        },
        VectorsState::Damaged(error) => FilesState::Damaged(error.to_string()),
    }
}

//! The errors and the states of the engine in the words that all structures share.

use ann::{Error, SnapshotError, VectorsState};

use crate::indexes::change::ChangeError;
use crate::indexes::files::{FilesFault, FilesState};
use crate::indexes::request::StructureError;

impl From<Error> for StructureError {
    fn from(error: Error) -> StructureError {
        let text = error.to_string();
        match error {
            Error::Dimensions { .. } | Error::NotFinite { .. } => StructureError::Query(text),
            _ => StructureError::Internal(text),
        }
    }
}

impl From<Error> for ChangeError {
    fn from(error: Error) -> ChangeError {
        let text = error.to_string();
        match error {
            Error::Full | Error::NoRoom(_) => ChangeError::NoRoom(text),
            _ => ChangeError::Unfit(text),
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
pub fn files_state(state: &VectorsState) -> FilesState {
    match state {
        VectorsState::Verified => FilesState::Verified,
        VectorsState::Verifying { done, total } => FilesState::Verifying {
            done: *done,
            total: *total,
        },
        VectorsState::Damaged(error) => FilesState::Damaged(error.to_string()),
    }
}

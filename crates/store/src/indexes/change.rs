//! Changes of values that a structure did not make.

use crate::items::ChangeKind;

/// A change that the index refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RefusedChange {
    /// The id of the refused change. The index doesn't hold it now.
    pub id: u32,
    /// The operation that was refused.
    pub operation: ChangeKind,
    /// The reason of the refusal.
    pub error: RefusalReason,
}

/// The reason why a structure refused a change.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum RefusalReason {
    /// There is no room in memory or on the disk, so that the change may be made later.
    #[error("{0}")]
    NoRoom(String),
    /// The value is none of this index, or the structure is at fault.
    #[error("{0}")]
    Unfit(String),
}

impl RefusedChange {
    /// Whether there was no room, so that the change may be made later.
    pub(crate) fn for_want_of_room(&self) -> bool {
        matches!(self.error, RefusalReason::NoRoom(_))
    }
}

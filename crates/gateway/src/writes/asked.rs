//! What a client asked, as an errand takes it.

use bytes::Bytes;
use cql::wire::{Batch, BatchKind, Consistency, Flags};

use super::hint::Hint;

/// What a client asked, in the forms that it can go to the node in.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) stream: i16,
    /// The flags of the client's frame that the node must see, and the custom payload as it came.
    pub(super) flags: Flags,
    pub(super) payload: Bytes,
    pub(super) origin: Origin,
    /// The frame that makes the writes without log rows.
    pub(super) alone: Bytes,
    /// The same writes as a batch; `None` if they cannot share one with log rows.
    pub(super) batch: Option<Batch>,
    /// The client sent a batch itself; of which kind.
    pub(super) sent: Option<BatchKind>,
    /// It comes to the same whether it is carried out once or twice.
    pub(super) is_repeatable: bool,
    pub(super) consistency: Consistency,
    pub(super) hints: Vec<Hint>,
}

/// Where a write begins.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The client's frame as it came.
    pub(crate) frame: Bytes,
    /// The epoch of the snapshot that it was decided by.
    pub(crate) epoch: u64,
}

impl Asked {
    /// The client asks for the batch log itself, and gets what becomes of that.
    pub(super) fn wants_batch_log(&self) -> bool {
        self.sent == Some(BatchKind::Logged)
    }
}

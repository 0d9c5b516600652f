//! A client's write request, in the forms that an execution needs.

use std::sync::Arc;

use bytes::Bytes;
use cql::wire::{BatchKind, BatchRequest, Consistency, FrameFlags, ProtocolVersion};

use super::hint::WriteHint;

/// A client's write request, in each form in which it can go to the node.
#[derive(Debug)]
pub(super) struct RequestForms {
    /// The version of the protocol.
    pub(super) version: ProtocolVersion,
    /// The stream of the client's request.
    pub(super) stream: i16,
    /// The flags of the client's frame that the node must see.
    pub(super) flags: FrameFlags,
    /// The custom payload of the client's frame as it came.
    pub(super) payload: Bytes,
    /// The client's frame, with the snapshot that decided it.
    pub(super) origin: DecidedFrame,
    /// The frame that makes the writes without log rows.
    pub(super) alone: Bytes,
    /// The writes as a batch; `None` if they cannot share one with log rows.
    pub(super) batch: Option<BatchRequest>,
    /// The writes as the client sent them.
    pub(super) sent: SentWrite,
    /// Whether the result is the same if the writes are carried out twice.
    pub(super) is_repeatable: bool,
    /// The consistency level of the writes.
    pub(super) consistency: Consistency,
    /// The rows, partitions and ranges that the writes touch, each once.
    pub(super) hints: Vec<WriteHint>,
}

/// The form in which a client sent its writes.
#[derive(Clone, Debug)]
pub(super) enum SentWrite {
    /// A statement. The log of slow ones shows this beginning of its text.
    Statement(Arc<str>),
    /// A BATCH of this kind.
    Batch(BatchKind),
}

/// The client's frame and the snapshot that decided it, by which it may be decided again.
#[derive(Clone, Debug)]
pub(crate) struct DecidedFrame {
    /// The client's frame as it came.
    pub(crate) frame: Bytes,
    /// The epoch of the snapshot that the frame was decided by.
    pub(crate) epoch: u64,
}

impl RequestForms {
    /// Whether the client itself sent a LOGGED batch. It gets the result of that, even a timeout of
    /// the batch log.
    pub(super) fn wants_batch_log(&self) -> bool {
        matches!(self.sent, SentWrite::Batch(BatchKind::Logged))
    }
}

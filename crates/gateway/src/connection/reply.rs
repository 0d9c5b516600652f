//! The reply to a client upon a response of the node, as it is decided before anything is written.

use bytes::{Bytes, BytesMut};
use cql::wire::{Compression, Response, ResponseContext};

/// The reply upon a response that was read.
pub(super) enum ResponseAction {
    /// The client gets the response as it came.
    Keep,
    /// The client gets these bytes instead, or nothing if there are none.
    Replace(Bytes),
    /// The client gets nothing yet: this request goes to the node first.
    Ask(Bytes),
    /// The client gets nothing yet: a task will answer it.
    Later,
}

impl ResponseAction {
    /// A reply with another response.
    pub(super) fn with(
        response: &Response,
        context: &ResponseContext,
        compression: Option<Compression>,
    ) -> ResponseAction {
        let mut frame = BytesMut::new();
        response.encode(context, compression, &mut frame);
        ResponseAction::Replace(frame.freeze())
    }
}

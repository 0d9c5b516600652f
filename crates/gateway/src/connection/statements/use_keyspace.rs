//! USE. Its way to the node is that of [`Route::Use`](crate::connection::route::Route::Use).

use cql::wire::{DecodeError, FrameHeader, Response};

use crate::connection::context::Context;
use crate::connection::reply::Reply;

/// Notes the keyspace that the node has confirmed.
///
/// # Errors
/// If the response cannot be read.
pub(super) fn reply(
    context: &Context,
    header: &FrameHeader,
    body: &[u8],
) -> Result<Reply, DecodeError> {
    if let (_, Response::SetKeyspace(keyspace)) = context.decode(header, body)? {
        context.session.use_keyspace(&keyspace);
    }
    Ok(Reply::Keep)
}

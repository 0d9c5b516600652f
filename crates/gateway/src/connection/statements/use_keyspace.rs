//! USE. Its way to the node is that of
//! [`Route::Use`](crate::connection::route::RequestAction::Use).

use cql::wire::{DecodeError, FrameHeader, Response};

use crate::connection::context::DecisionContext;
use crate::connection::reply::ResponseAction;

/// Notes the keyspace that the node has confirmed.
///
/// # Errors
/// If the response cannot be read.
pub(super) fn reply(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
) -> Result<ResponseAction, DecodeError> {
    if let (_, Response::SetKeyspace(keyspace)) = context.decode(header, body)? {
        context.session.use_keyspace(&keyspace);
    }
    Ok(ResponseAction::Keep)
}

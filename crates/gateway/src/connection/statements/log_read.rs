//! Polls of change logs, which readers send all the time. The gateway answers them itself where it
//! knows that there are no rows, so that idle tables cost the node nothing.

use std::sync::Arc;

use cql::error::CqlError;
use cql::wire::{FrameFlags, Request};

use crate::connection::background_requests::{DeferredJob, DeferredRequest};
use crate::connection::context::DecisionContext;
use crate::connection::route::RequestAction;
use crate::overlay::log_read::{LogRead, PreparedLogRead};
use crate::writes::ClientRequest;

/// Decides the way of an EXECUTE of a poll. It passes if the log may have rows, if the client wants
/// something that only the node can do, or if there is no room for more work.
///
/// # Errors
/// If the body is malformed.
pub(super) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    poll: Arc<PreparedLogRead>,
    has_room: bool,
) -> Result<RequestAction, CqlError> {
    let flags = request.header.flags;
    if flags.contains(FrameFlags::TRACING)
        || flags.contains(FrameFlags::CUSTOM_PAYLOAD)
        || !has_room
    {
        return Ok(RequestAction::Pass);
    }
    let Request::Execute {
        id,
        result_metadata_id: expected,
        parameters,
    } = request.decode()?
    else {
        return Ok(RequestAction::Pass);
    };
    if !poll.has_columns(expected.as_ref()) {
        return Ok(RequestAction::Pass);
    }
    let Some(from_micros) = PreparedLogRead::from_micros(&parameters) else {
        return Ok(RequestAction::Pass);
    };
    let LogRead { keyspace, table } = &poll.of;
    if !context.catalog.is_idle(keyspace, table, from_micros) {
        return Ok(RequestAction::Pass);
    }
    Ok(RequestAction::Begin(DeferredRequest {
        stream: request.header.stream,
        traced: false,
        job: DeferredJob::Poll {
            poll,
            from_micros,
            id,
            expected,
            parameters,
        },
    }))
}

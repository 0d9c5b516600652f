//! DESCRIBE. The gateway adds descriptions of vector indexes to the node's answer.

use std::sync::Arc;

use cql::error::CqlError;
use cql::wire::{DecodeError, FrameHeader, Response};

use super::bound_values;
use super::probe::is_of_the_statement;
use crate::connection::context::DecisionContext;
use crate::connection::pending_response::PendingResponse;
use crate::connection::reply::ResponseAction;
use crate::connection::route::RequestAction;
use crate::overlay::describe::ParsedDescribe;
use crate::writes::ClientRequest;

/// Decides the way of a DESCRIBE, which passes.
///
/// # Errors
/// If the body is malformed.
pub(super) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    description: Arc<ParsedDescribe>,
) -> Result<RequestAction, CqlError> {
    bound_values(request)?;
    let awaited = PendingResponse::Description(description);
    context
        .session
        .await_response(request.header.stream, awaited);
    Ok(RequestAction::Pass)
}

/// Decides the reply upon the node's answer. An error that says that the node does not know the
/// name is replaced by the description of the vector index of that name.
///
/// # Errors
/// If the response cannot be read.
pub(super) fn reply(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    description: &ParsedDescribe,
) -> Result<ResponseAction, DecodeError> {
    let (of_node, response) = context.decode(header, body)?;
    let snapshot = context.catalog.snapshot();
    let told = match response {
        Response::Rows(answer) => {
            let told = description.add_to(&answer, &snapshot)?;
            told.map(|mut told| {
                told.new_metadata_id = answer.new_metadata_id;
                told
            })
        }
        Response::Error(error) if is_of_the_statement(&error) => description.instead(&snapshot),
        _ => None,
    };
    Ok(told.map_or(ResponseAction::Keep, |told| {
        let compression = context.session.compression();
        ResponseAction::with(&Response::Rows(told), &of_node, compression)
    }))
}

//! DESCRIBE. The gateway adds descriptions of vector indexes to the node's answer.

use std::sync::Arc;

use cql::error::CqlError;
use cql::wire::{DecodeError, FrameHeader, Response};

use super::bound_values;
use super::probe::is_of_the_statement;
use crate::connection::awaited::Awaited;
use crate::connection::context::Context;
use crate::connection::reply::Reply;
use crate::connection::route::Route;
use crate::overlay::describe::Description;
use crate::writes::ClientRequest;

/// Decides the way of a DESCRIBE, which passes.
///
/// # Errors
/// If the body is malformed.
pub(super) fn route(
    context: &Context,
    request: &ClientRequest,
    description: Arc<Description>,
) -> Result<Route, CqlError> {
    bound_values(request)?;
    let awaited = Awaited::Description(description);
    context
        .session
        .await_response(request.header.stream, awaited);
    Ok(Route::Pass)
}

/// Decides the reply upon the node's answer. An error that says that the node does not know the
/// name is replaced by the description of the vector index of that name.
///
/// # Errors
/// If the response cannot be read.
pub(super) fn reply(
    context: &Context,
    header: &FrameHeader,
    body: &[u8],
    description: &Description,
) -> Result<Reply, DecodeError> {
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
    Ok(told.map_or(Reply::Keep, |told| {
        let compression = context.session.compression();
        Reply::with(&Response::Rows(told), &of_node, compression)
    }))
}

//! Reads of `system_schema.indexes`. The gateway adds rows of vector indexes to the node's answer.

use std::sync::Arc;

use cql::error::CqlError;
use cql::wire::{ColumnsMetadata, DecodeError, FrameHeader, Response};

use super::bound_values;
use crate::connection::context::DecisionContext;
use crate::connection::pending_response::PendingResponse;
use crate::connection::reply::ResponseAction;
use crate::connection::route::RequestAction;
use crate::overlay::indexes::{IndexRows, IndexesRead};
use crate::writes::ClientRequest;

/// Decides the way of the read. `columns` are those of the prepared statement, if one is executed.
///
/// # Errors
/// If the body is malformed.
pub(super) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    read: &IndexesRead,
    columns: Option<Arc<ColumnsMetadata>>,
) -> Result<RequestAction, CqlError> {
    let values = bound_values(request)?;
    let rows = read.rows(&values, columns, request.snapshot);
    let awaited = PendingResponse::IndexRows(Box::new(rows));
    context
        .session
        .await_response(request.header.stream, awaited);
    Ok(RequestAction::Pass)
}

/// Decides the reply upon the node's rows.
///
/// # Errors
/// If the response cannot be read.
pub(super) fn reply(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    rows: &IndexRows,
) -> Result<ResponseAction, DecodeError> {
    let (of_node, Response::Rows(answer)) = context.decode(header, body)? else {
        return Ok(ResponseAction::Keep);
    };
    let told = rows.add_to(&answer)?;
    Ok(told.map_or(ResponseAction::Keep, |mut told| {
        told.new_metadata_id.clone_from(&answer.new_metadata_id);
        let compression = context.session.compression();
        ResponseAction::with(&Response::Rows(told), &of_node, compression)
    }))
}

//! Reads of the tables that tell of the cluster's nodes. The client gets the addresses of gateways
//! in place of those of nodes.

use std::sync::Arc;

use cql::wire::{ColumnsMetadata, DecodeError, FrameHeader, Response};

use crate::connection::context::DecisionContext;
use crate::connection::pending_response::PendingResponse;
use crate::connection::reply::ResponseAction;
use crate::connection::route::RequestAction;
use crate::ring::translate_rows;
use crate::writes::ClientRequest;

/// Decides the way of the read. `columns` are those of the prepared statement, if one is executed.
pub(super) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    columns: Option<Arc<ColumnsMetadata>>,
) -> RequestAction {
    let awaited = PendingResponse::RingRows(columns);
    context
        .session
        .await_response(request.header.stream, awaited);
    RequestAction::Pass
}

/// Decides the reply upon the rows, which may be of another table.
///
/// # Errors
/// If the rows cannot be read.
pub(super) fn reply(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    columns: Option<&ColumnsMetadata>,
) -> Result<ResponseAction, DecodeError> {
    let (of_node, Response::Rows(rows)) = context.decode(header, body)? else {
        return Ok(ResponseAction::Keep);
    };
    let own = context.session.own_address;
    let told = translate_rows(&rows, columns, &context.ring, own)?;
    Ok(told.map_or(ResponseAction::Keep, |mut told| {
        told.new_metadata_id.clone_from(&rows.new_metadata_id);
        let compression = context.session.compression();
        ResponseAction::with(&Response::Rows(told), &of_node, compression)
    }))
}

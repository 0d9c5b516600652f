//! Reads of the tables that tell of the cluster's nodes. The client gets the addresses of gateways
//! in place of those of nodes.

use std::sync::Arc;

use cql::wire::{DecodeError, FrameHeader, Metadata, Response};

use crate::connection::awaited::Awaited;
use crate::connection::context::Context;
use crate::connection::reply::Reply;
use crate::connection::route::Route;
use crate::ring::translate_rows;
use crate::writes::ClientRequest;

/// Decides the way of the read. `columns` are those of the prepared statement, if one is executed.
pub(super) fn route(
    context: &Context,
    request: &ClientRequest,
    columns: Option<Arc<Metadata>>,
) -> Route {
    let awaited = Awaited::RingRows(columns);
    context
        .session
        .await_response(request.header.stream, awaited);
    Route::Pass
}

/// Decides the reply upon the rows, which may be of another table.
///
/// # Errors
/// If the rows cannot be read.
pub(super) fn reply(
    context: &Context,
    header: &FrameHeader,
    body: &[u8],
    columns: Option<&Metadata>,
) -> Result<Reply, DecodeError> {
    let (of_node, Response::Rows(rows)) = context.decode(header, body)? else {
        return Ok(Reply::Keep);
    };
    let own = context.session.own_address;
    let told = translate_rows(&rows, columns, &context.ring, own)?;
    Ok(told.map_or(Reply::Keep, |mut told| {
        told.new_metadata_id.clone_from(&rows.new_metadata_id);
        let compression = context.session.compression();
        Reply::with(&Response::Rows(told), &of_node, compression)
    }))
}

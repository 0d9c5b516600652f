//! Probes: the node's answer to one shows whether the client may change a table, before the gateway
//! acts on the client's statement.

use bytes::BytesMut;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{QueryParameters, Request};

use crate::connection::context::DecisionContext;
use crate::connection::pending_response::{PendingResponse, ToClient};
use crate::connection::route::RequestAction;
use crate::writes::ClientRequest;

/// Sends a probe to the node in place of the client's request. `awaited` is what the probe's
/// response is awaited by, made of the way to the client.
pub(super) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    probe: String,
    awaited: impl FnOnce(ToClient) -> PendingResponse,
) -> RequestAction {
    let session = &context.session;
    let header = request.header;
    let stream = header.stream;
    session.await_response(stream, awaited(session.client.answers()));
    let request = Request::Query {
        statement: probe,
        parameters: QueryParameters::default(),
    };
    let mut frame = BytesMut::new();
    request.encode_in(header.version, stream, None, &mut frame);
    RequestAction::Replace(frame.freeze())
}

/// Whether an error is about the statement itself, and not about the client's permissions or the
/// node's state.
pub(super) fn is_of_the_statement(error: &CqlError) -> bool {
    matches!(
        error.kind,
        ErrorKind::Invalid | ErrorKind::SyntaxError | ErrorKind::ConfigError
    )
}

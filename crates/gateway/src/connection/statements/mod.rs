//! The handling of statements, a file for each kind: the way of its QUERY or EXECUTE (`route`), and
//! the reply upon the node's response (`reply`).
//!
//! A kind decides and does not wait. Whatever takes time it leaves to a task, which answers the
//! client later, or to the loop that reads requests (`super::requests`). PREPARE is the same for
//! all kinds (`prepare`): the value of the kind itself says what it takes from the node's answer
//! ([`ClassifiedStatement::prepared`]).
//!
//! Two values name the kinds, and not one. [`ClassifiedStatement`] is what a text means to the
//! gateway. It is remembered for all connections by the id of the prepared statement.
//! [`PendingResponse`] is one request of one connection between its way to the node and the
//! response, with all that belongs to this request: bound values, an execution's stage, the way to
//! the client. If they were one type, half of its variants could not occur in either place.

pub(super) mod batch;
mod definition;
mod describe;
mod generations;
mod indexes_read;
mod log_read;
pub(super) mod neighbours;
pub(super) mod prepare;
mod probe;
mod refused;
mod retry;
mod ring_read;
pub(super) mod truncate;
mod use_keyspace;
mod write;
mod write_step;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{DecodeError, FrameHeader, MarkerValues, Opcode, Request};
use tokio::sync::mpsc;

use super::context::DecisionContext;
use super::pending_response::PendingResponse;
use super::reply::ResponseAction;
use super::route::RequestAction;
use crate::statement::ClassifiedStatement;
use crate::writes::ClientRequest;

/// Decides the way of a QUERY or EXECUTE of a statement. `has_room` says whether the gateway may
/// carry out one more request of the connection itself.
///
/// # Errors
/// The error is the answer for the client.
pub(super) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    statement: ClassifiedStatement,
    has_room: bool,
) -> Result<RequestAction, CqlError> {
    match statement {
        ClassifiedStatement::Plain => Ok(RequestAction::Pass),
        ClassifiedStatement::Use => Ok(RequestAction::Use),
        ClassifiedStatement::RingRead(columns) => Ok(ring_read::route(context, request, columns)),
        ClassifiedStatement::LogRead(poll) => log_read::route(context, request, poll, has_room),
        ClassifiedStatement::Generations => Ok(generations::route(context, request)),
        ClassifiedStatement::Neighbours(statement) => neighbours::execute(request, statement),
        ClassifiedStatement::Definition(statement) => {
            definition::route(context, request, statement)
        }
        ClassifiedStatement::IndexesRead(read, columns) => {
            indexes_read::route(context, request, &read, columns)
        }
        ClassifiedStatement::Describe(description) => {
            describe::route(context, request, description)
        }
        ClassifiedStatement::Refused(refusal) => refused::route(context, request, refusal),
        ClassifiedStatement::Truncate(table) => Ok(RequestAction::Truncate(table)),
        ClassifiedStatement::Write(write) => write::route(context, request, &write),
    }
}

/// Decides the reply upon a response that was awaited. A task that has another request for the node
/// sends it by `to_node`.
///
/// # Errors
/// If the response cannot be read.
pub(super) fn reply(
    context: &DecisionContext,
    to_node: &mpsc::UnboundedSender<Bytes>,
    (header, body): (&FrameHeader, &[u8]),
    awaited: PendingResponse,
) -> Result<ResponseAction, DecodeError> {
    match awaited {
        PendingResponse::Truncated(truncate) => {
            Ok(truncate::reply(context, header, body, *truncate))
        }
        PendingResponse::Write(write) => {
            Ok(write_step::reply(context, to_node, header, body, *write))
        }
        PendingResponse::Definition(statement, to_client) => {
            definition::reply(context, header, body, statement, to_client)
        }
        PendingResponse::Refused(refusal, to_client) => {
            refused::reply(context, header, body, &refusal, to_client)
        }
        PendingResponse::IndexRows(rows) => indexes_read::reply(context, header, body, &rows),
        PendingResponse::Description(description) => {
            describe::reply(context, header, body, &description)
        }
        // An error of the node is the client's answer.
        PendingResponse::Prepared { .. }
        | PendingResponse::Keyspace
        | PendingResponse::Kept(_)
        | PendingResponse::RingRows(_)
            if header.opcode != Opcode::Result =>
        {
            Ok(ResponseAction::Keep)
        }
        PendingResponse::Prepared {
            dependencies,
            statement,
            text_bytes,
        } => prepare::reply(context, header, body, (dependencies, statement, text_bytes)),
        PendingResponse::Keyspace => use_keyspace::reply(context, header, body),
        PendingResponse::Kept(question) => Ok(generations::reply(context, header, body, question)),
        PendingResponse::RingRows(columns) => {
            ring_read::reply(context, header, body, columns.as_deref())
        }
    }
}

/// The values that an EXECUTE gives the bind markers; none for a QUERY.
fn bound_values(request: &ClientRequest) -> Result<MarkerValues, CqlError> {
    if request.header.opcode == Opcode::Execute
        && let Request::Execute { parameters, .. } = request.decode()?
    {
        return Ok(parameters.values);
    }
    Ok(MarkerValues::Positional(Vec::new()))
}

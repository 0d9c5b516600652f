//! Decides the way of a request, without waiting. The loop that reads requests takes that way.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{EventKind, Frame, FrameHeader, Opcode, Request, glance};
use http_server::InMaintenance;

use super::context::DecisionContext;
use super::errors::{in_maintenance, lapsed, not_let_in, unprepared};
use super::route::RequestAction;
use super::statements::{self, batch, neighbours, prepare};
use crate::recognise::{self, StatementVerb};
use crate::statement::{RecognisedStatement, StatementText};
use crate::writes::ClientRequest;

/// Decides the way of a request. `has_room` says whether the gateway may carry out one more request
/// of the connection itself.
pub(super) fn decide(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    has_room: bool,
) -> RequestAction {
    // A process that was stopped may wake here, long after its lease has ended.
    context.catalog.lapse_if_over();
    let decided = match header.opcode {
        Opcode::Query | Opcode::Prepare | Opcode::Execute | Opcode::Batch | Opcode::Register
            if !context.session.is_let_in() =>
        {
            Err(not_let_in())
        }
        // The request is noted as one in flight before this look.
        Opcode::Query | Opcode::Prepare | Opcode::Execute | Opcode::Batch
            if context.maintenance.is_on() =>
        {
            Err(in_maintenance(InMaintenance))
        }
        Opcode::Startup => startup(context, header, body),
        Opcode::Query | Opcode::Prepare | Opcode::Execute => {
            statement(context, header, body, has_room)
        }
        Opcode::Batch => batch(context, header, body),
        Opcode::Register => register(context, header, body),
        _ => Ok(RequestAction::Pass),
    };
    decided.unwrap_or_else(RequestAction::Answer)
}

/// Notes the version and the compression that STARTUP requests. It must be one that the gateway can
/// read.
fn startup(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
) -> Result<RequestAction, CqlError> {
    let frame = Frame {
        header: *header,
        body: Bytes::copy_from_slice(body),
    };
    // STARTUP itself is never compressed, as it is what agrees on a compression.
    let request = Request::decode(&frame, None, context.session.body_max())?;
    if let Request::Startup(startup) = request {
        let compression = startup.compression(header.version)?;
        context
            .session
            .set_frame_format(header.version, compression)?;
    }
    Ok(RequestAction::Startup)
}

/// Decides about a QUERY, PREPARE or EXECUTE.
fn statement(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    has_room: bool,
) -> Result<RequestAction, CqlError> {
    let mut scratch = Bytes::new();
    let plain = context.session.plain(header, body, &mut scratch)?;
    let keyspace = context.session.keyspace_of(header, plain)?;
    let request = ClientRequest {
        header,
        body,
        plain,
        keyspace: keyspace.as_deref(),
        snapshot: &context.catalog.snapshot(),
    };
    match header.opcode {
        Opcode::Execute => execute(context, &request, has_room),
        _ => text(context, &request, keyspace.as_ref(), has_room),
    }
}

/// Decides about a QUERY or PREPARE by the kind that its text shows.
fn text(
    context: &DecisionContext,
    request: &ClientRequest,
    keyspace: Option<&Arc<str>>,
    has_room: bool,
) -> Result<RequestAction, CqlError> {
    let header = request.header;
    let text = glance::statement_text(header.flags, request.plain)?;
    let verb = recognise::verb(text);
    if verb == StatementVerb::Select
        && let Some(route) = neighbours::text(request, text)?
    {
        return Ok(route);
    }
    if matches!(verb, StatementVerb::Write | StatementVerb::Truncate) && request.snapshot.lapsed() {
        return Err(lapsed());
    }
    let text = StatementText {
        text,
        verb,
        keyspace,
        snapshot: request.snapshot,
        definitions: context.catalog.keyspace(),
    };
    let RecognisedStatement {
        statement,
        rewritten,
    } = text.recognise()?;
    if header.opcode == Opcode::Prepare {
        return prepare::route(context, request, &text, statement, rewritten);
    }
    match rewritten {
        Some(rewritten) => Ok(prepare::with_text(request, text.text, &rewritten)),
        None => statements::route(context, request, statement, has_room),
    }
}

/// Decides about an EXECUTE by the kind of the statement that has its id.
fn execute(
    context: &DecisionContext,
    request: &ClientRequest,
    has_room: bool,
) -> Result<RequestAction, CqlError> {
    // A lapse needs no check here: under a lapsed snapshot no prepared write holds, and its PREPARE
    // is refused.
    let id = glance::executed_id(request.header.flags, request.plain)?;
    let Some(statement) = context.prepared.get(id, request.snapshot) else {
        return Err(unprepared(id));
    };
    statements::route(context, request, statement, has_room)
}

/// Decides about a BATCH.
fn batch(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
) -> Result<RequestAction, CqlError> {
    let snapshot = context.catalog.snapshot();
    if snapshot.lapsed() {
        return Err(lapsed());
    }
    let execution = batch::execution(context, header, body, &snapshot)?;
    Ok(RequestAction::of_write(execution))
}

/// Notes clients that register for changes of the schema: the gateway sends them events about
/// vector indexes, which the node knows nothing of. It sends none to a client that the node has not
/// let in.
fn register(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
) -> Result<RequestAction, CqlError> {
    let frame = Frame {
        header: *header,
        body: Bytes::copy_from_slice(body),
    };
    let session = &context.session;
    // A request that cannot be read goes to the node, which says what is wrong with it.
    if let Ok(Request::Register { events }) =
        Request::decode(&frame, session.compression(), session.body_max())
        && events.contains(&EventKind::SchemaChange)
    {
        session.client.hear_schema_changes(header.version);
    }
    Ok(RequestAction::Pass)
}

//! Writes to logged tables, by QUERY or EXECUTE. They go to the node in another form, in one or
//! more steps (`write_step`).

use cql::error::CqlError;
use cql::wire::{Opcode, glance};

use crate::connection::context::DecisionContext;
use crate::connection::route::RequestAction;
use crate::writes::{ClientRequest, PreparedWrite, WriteExecution, read};

/// Decides the way of a write. It passes if Cassandra refuses it anyway.
///
/// # Errors
/// If the gateway cannot know the rows that the statement writes, or if its clock is wrong.
pub(super) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    write: &PreparedWrite,
) -> Result<RequestAction, CqlError> {
    let execution = match request.header.opcode {
        Opcode::Execute => request.execute(write, &context.log)?,
        _ => request.query(&write.write, &context.log)?,
    };
    Ok(RequestAction::of_write(execution))
}

/// The execution of a QUERY whose text was a write's before; `None` if it passes now.
///
/// # Errors
/// As those of [`route`].
pub(super) fn query(
    context: &DecisionContext,
    request: &ClientRequest,
) -> Result<Option<WriteExecution>, CqlError> {
    // Cassandra refuses a text that is no UTF-8.
    let text = glance::statement_text(request.header.flags, request.plain)?;
    let Ok(text) = str::from_utf8(text) else {
        return Ok(None);
    };
    match read(text, request.keyspace, request.snapshot)? {
        Some(write) => request.query(&write, &context.log),
        None => Ok(None),
    }
}

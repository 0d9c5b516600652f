//! The way of a request, as it is decided before anything is done.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;

use super::background_requests::DeferredRequest;
use crate::catalog::LoggedTable;
use crate::writes::WriteExecution;

/// The way of a request. The loop that reads requests takes it.
pub(super) enum RequestAction {
    /// The request goes to the node as it is.
    Pass,
    /// This frame goes to the node in place of the request, on the same stream.
    Replace(Bytes),
    /// The client gets this error from the gateway.
    Answer(CqlError),
    /// The gateway carries the request out itself.
    Begin(DeferredRequest),
    /// The request writes to logged tables, and goes to the node in another form.
    Write(Box<WriteExecution>),
    /// The request truncates a logged table, and goes to the node once that is noted.
    Truncate(Arc<LoggedTable>),
    /// The request is a USE.
    Use,
    /// The request is a STARTUP.
    Startup,
}

impl RequestAction {
    /// The way of a write; without an execution it passes.
    pub(super) fn of_write(execution: Option<WriteExecution>) -> RequestAction {
        execution.map_or(RequestAction::Pass, |execution| {
            RequestAction::Write(Box::new(execution))
        })
    }
}

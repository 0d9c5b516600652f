//! Queries by searches, for vectors or for words: recognises them among the client's requests, and
//! makes them jobs of background tasks. The node gets none of them, so no response is awaited here.

use std::sync::Arc;

use cql::error::CqlError;
use cql::wire::{FrameFlags, Request};

use crate::connection::background_requests::{DeferredJob, DeferredRequest};
use crate::connection::route::RequestAction;
use crate::dependencies::StatementDependencies;
use crate::prepared::check_text;
use crate::recognise::{self, StatementVerb};
use crate::vector_search::{AnnPlan, AnnStatement, statement_id};
use crate::writes::ClientRequest;

/// Decides the way of a QUERY or PREPARE of a SELECT that may be a query by searches; `None` if it
/// is none, or uses no index of the gateway's.
///
/// # Errors
/// If the query cannot be carried out.
pub(in crate::connection) fn text(
    request: &ClientRequest,
    text: &[u8],
) -> Result<Option<RequestAction>, CqlError> {
    let (keyspace, snapshot) = (request.keyspace, request.snapshot);
    if snapshot.is_empty() || !recognise::may_search(text) {
        return Ok(None);
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return Ok(None);
    };
    let Some(plan) = AnnPlan::of(text, keyspace, snapshot)? else {
        return Ok(None);
    };
    tracing::debug!(%plan, "a query by searches is planned");
    let plan = Box::new(plan);
    let job = match request.decode()? {
        Request::Prepare { .. } => {
            check_text(text.len())?;
            DeferredJob::Prepare {
                plan,
                dependencies: StatementDependencies::of(
                    StatementVerb::Select,
                    text.as_bytes(),
                    keyspace,
                    snapshot,
                ),
                id: statement_id(keyspace, text),
                text_bytes: text.len(),
            }
        }
        Request::Query { parameters, .. } => DeferredJob::Query { plan, parameters },
        _ => return Ok(None),
    };
    Ok(Some(begin(request, job)))
}

/// Decides the way of the EXECUTE of a prepared query by searches.
///
/// # Errors
/// If the body is malformed.
pub(super) fn execute(
    request: &ClientRequest,
    statement: Arc<AnnStatement>,
) -> Result<RequestAction, CqlError> {
    let Request::Execute {
        id,
        result_metadata_id: expected,
        parameters,
    } = request.decode()?
    else {
        return Ok(RequestAction::Pass);
    };
    let job = DeferredJob::Execute {
        statement,
        id,
        expected,
        parameters,
    };
    Ok(begin(request, job))
}

/// The way of a request that is a job of a background task.
fn begin(request: &ClientRequest, job: DeferredJob) -> RequestAction {
    let header = request.header;
    RequestAction::Begin(DeferredRequest {
        stream: header.stream,
        traced: header.flags.contains(FrameFlags::TRACING),
        job,
    })
}

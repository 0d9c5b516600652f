//! Definitions of vector indexes. A probe of the node shows whether the client may make one. Then
//! the gateway carries it out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use cql::error::CqlError;
use cql::wire::{Compression, DecodeError, FrameHeader, Response, ResponseContext};

use super::bound_values;
use super::probe::{self, is_of_the_statement};
use crate::catalog::IndexStatement;
use crate::connection::context::DecisionContext;
use crate::connection::pending_response::{PendingResponse, ToClient};
use crate::connection::reply::ResponseAction;
use crate::connection::route::RequestAction;
use crate::error_frame::error_frame;
use crate::writes::ClientRequest;

/// The time for which CREATE INDEX waits until index services serve the index. The index of a large
/// table takes longer to build; then searches get an error that says so.
const SERVED_WITHIN: Duration = Duration::from_secs(5);

/// The time after which CREATE INDEX waits no longer, counted from the beginning of its definition.
/// It is shorter than drivers wait for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(9);

/// Decides the way of a definition: the node gets a probe.
///
/// # Errors
/// If the body is malformed.
pub(super) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    statement: Arc<IndexStatement>,
) -> Result<RequestAction, CqlError> {
    bound_values(request)?;
    let probe = statement.probe();
    let awaited = |to_client| PendingResponse::Definition(statement, to_client);
    Ok(probe::route(context, request, probe, awaited))
}

/// Decides the reply upon the response to the probe. The definition is carried out, unless the
/// client may not make it.
///
/// # Errors
/// If the response cannot be read.
pub(super) fn reply(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    statement: Arc<IndexStatement>,
    to_client: ToClient,
) -> Result<ResponseAction, DecodeError> {
    // The node refuses every probe. It finds fault with its text only if the client may alter the
    // table.
    match context.decode(header, body)? {
        (_, Response::Error(error)) if !is_of_the_statement(&error) => Ok(ResponseAction::Keep),
        _ => {
            define(context, header.stream, statement, to_client);
            Ok(ResponseAction::Replace(Bytes::new()))
        }
    }
}

/// Carries out a definition in a task, which answers the client once it is done.
fn define(
    context: &DecisionContext,
    stream: i16,
    statement: Arc<IndexStatement>,
    to_client: ToClient,
) {
    // Without a sender the connection is at its end.
    let Some(to_client) = to_client else { return };
    let (catalog, stores) = (context.catalog.clone(), context.stores.clone());
    let counted = context.maintenance.go_on();
    let version = context.session.version();
    tokio::spawn(async move {
        let began = Instant::now();
        let answer = match catalog.define(&statement).await {
            Ok(outcome) => {
                if let Some(index) = &outcome.created {
                    let within = SERVED_WITHIN.min(ANSWERED_WITHIN.saturating_sub(began.elapsed()));
                    let version = index.version;
                    stores
                        .created_everywhere(&index.keyspace, &index.name, version, within)
                        .await;
                }
                // Each frame says for itself whether it is compressed.
                const PLAIN: Option<Compression> = None;
                let context = ResponseContext {
                    warnings: outcome.warning.into_iter().collect(),
                    ..ResponseContext::new(stream).at(version)
                };
                let mut frame = BytesMut::new();
                outcome.response.encode(&context, PLAIN, &mut frame);
                frame.freeze()
            }
            Err(error) => error_frame(version, stream, error),
        };
        // If the other loop has ended, the client has disconnected.
        let _ = to_client.send(answer).await;
        drop(counted);
    });
}

//! The steps of a write to logged tables: the node's answer to each decides about the next.

use bytes::Bytes;
use cql::wire::{Frame, FrameHeader};
use tokio::sync::mpsc;

use super::retry::retry;
use crate::connection::context::DecisionContext;
use crate::connection::pending_response::{PendingResponse, WriteUnderWay};
use crate::connection::reply::ResponseAction;
use crate::writes::NextWriteAction;

/// The number of times that a write is retried because its definitions were outdated: once for a
/// table that was recreated, and once more for a table that was given an index meanwhile.
const RETRIES_MAX: u32 = 2;

/// Decides the reply upon the node's answer to a request of a write to logged tables. A retry goes
/// to the node by `to_node`.
pub(super) fn reply(
    context: &DecisionContext,
    to_node: &mpsc::UnboundedSender<Bytes>,
    header: &FrameHeader,
    body: &[u8],
    write: WriteUnderWay,
) -> ResponseAction {
    let WriteUnderWay {
        execution,
        since,
        retries,
        entered,
        memory,
    } = write;
    let session = &context.session;
    let (slow_queries, took) = (&context.slow_queries, since.elapsed());
    // Described now, as the node's answer uses the execution up.
    let slow = slow_queries
        .is_slow(took)
        .then(|| execution.executed(session.client_address));
    let frame = Frame {
        header: *header,
        body: Bytes::copy_from_slice(body),
    };
    match execution.answered(&frame, session.compression(), session.body_max()) {
        NextWriteAction::Ask(request, execution) => {
            let write = WriteUnderWay {
                execution: *execution,
                since,
                retries,
                entered,
                memory,
            };
            session.await_response(header.stream, PendingResponse::Write(Box::new(write)));
            ResponseAction::Ask(request)
        }
        NextWriteAction::InDoubt(origin) if retries < RETRIES_MAX => {
            let retries = retries + 1;
            retry(context, to_node, origin, frame, since, retries, memory)
        }
        next => {
            context.log.metrics.write_took(took);
            if let Some(slow) = slow {
                slow_queries.took(took, || slow);
            }
            match next {
                NextWriteAction::AnswerWith(answer) => ResponseAction::Replace(answer),
                _ => ResponseAction::Keep,
            }
        }
    }
}

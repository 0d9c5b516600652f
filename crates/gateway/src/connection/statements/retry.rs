//! Writes that the node refuses perhaps because they were decided by outdated definitions. The
//! gateway reads the definitions again, and decides once more if they have changed.
//!
//! The module `writes::execution` recognises such a refusal, and says why this is safe.

use std::time::Instant;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{Frame, FrameDirection, FrameHeader, HEADER_LENGTH, Opcode, glance};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::{batch, write};
use crate::connection::context::DecisionContext;
use crate::connection::errors::{lapsed, unprepared};
use crate::connection::pending_response::{PendingResponse, WriteUnderWay};
use crate::connection::reply::ResponseAction;
use crate::error_frame::error_frame;
use crate::statement::ClassifiedStatement;
use crate::writes::{ClientRequest, DecidedFrame, WriteExecution};

/// A write that the node refused.
struct RefusedWrite {
    /// The stream of the client's request.
    stream: i16,
    /// The state that the write is decided by once more.
    context: DecisionContext,
    /// The way to the node.
    to_node: mpsc::UnboundedSender<Bytes>,
    /// The way to the client. It is held until the client is answered or the write goes on, so that
    /// the other loop does not take the client for one that is due no more answers.
    to_client: mpsc::Sender<Bytes>,
    /// The time at which the client's request came.
    since: Instant,
    /// The number of times that the write was retried, this time included.
    retries: u32,
    /// The write's share of the memory that the connection's writes may hold.
    memory: OwnedSemaphorePermit,
}

/// Has the definitions read again, and retries the write if they have changed. Otherwise the client
/// gets the node's answer.
pub(super) fn retry(
    context: &DecisionContext,
    to_node: &mpsc::UnboundedSender<Bytes>,
    origin: DecidedFrame,
    answer: Frame,
    since: Instant,
    retries: u32,
    memory: OwnedSemaphorePermit,
) -> ResponseAction {
    // The client sends no more requests and no work is under way for it, so it cannot be answered
    // later.
    let Some(to_client) = context.session.client.answers() else {
        return ResponseAction::Keep;
    };
    let refused = RefusedWrite {
        stream: answer.header.stream,
        context: context.clone(),
        to_node: to_node.clone(),
        to_client,
        since,
        retries,
        memory,
    };
    tokio::spawn(async move {
        let catalog = refused.context.catalog.clone();
        let is_up_to_date = catalog.refresh_now().await;
        match is_up_to_date && catalog.snapshot().epoch() != origin.epoch {
            true => refused.begin(origin.frame).await,
            false => {
                let answer = [&answer.header.to_bytes()[..], &answer.body].concat();
                refused.answer(answer.into()).await;
            }
        }
    });
    ResponseAction::Later
}

impl RefusedWrite {
    /// Decides once more about the client's request as it came, and carries the decision out.
    async fn begin(self, request: Bytes) {
        let header = FrameHeader::read(&request, FrameDirection::Request, usize::MAX)
            .ok()
            .flatten()
            .expect("bug: a request that was decided on is no frame");
        let frame = Frame {
            header,
            body: request.slice(HEADER_LENGTH..),
        };
        tracing::debug!(
            stream = self.stream,
            "a write was decided by outdated definitions, and is begun anew"
        );
        // If a send fails, the connection has ended.
        match execution(&self.context, &frame) {
            Ok(None) => {
                let _ = self.to_node.send(request);
            }
            Ok(Some(execution)) => {
                let entered = match self.context.catalog.enter(execution.tables()).await {
                    Ok(entered) => entered,
                    Err(error) => {
                        let answer =
                            error_frame(self.context.session.version(), self.stream, error);
                        return self.answer(answer).await;
                    }
                };
                let (step, execution) = execution.begin();
                let write = WriteUnderWay {
                    execution,
                    since: self.since,
                    retries: self.retries,
                    entered,
                    // The request is the same, so it takes about as much memory as before.
                    memory: self.memory,
                };
                let awaited = PendingResponse::Write(Box::new(write));
                self.context.session.await_response(self.stream, awaited);
                let _ = self.to_node.send(step);
            }
            Err(error) => {
                let answer = error_frame(self.context.session.version(), self.stream, error);
                self.answer(answer).await;
            }
        }
    }

    async fn answer(self, answer: Bytes) {
        self.context.session.client_is_answered(self.stream);
        // If the other loop has ended, the client has disconnected.
        let _ = self.to_client.send(answer).await;
    }
}

/// The execution of a write that the node refused, by the present snapshot; `None` if the request
/// passes now.
fn execution(context: &DecisionContext, frame: &Frame) -> Result<Option<WriteExecution>, CqlError> {
    context.catalog.lapse_if_over();
    let snapshot = context.catalog.snapshot();
    if snapshot.lapsed() {
        return Err(lapsed());
    }
    let Frame { header, body } = frame;
    if header.opcode == Opcode::Batch {
        return batch::execution(context, header, body, &snapshot);
    }
    let mut scratch = Bytes::new();
    let plain = context.session.plain(header, body, &mut scratch)?;
    let keyspace = context.session.keyspace_of(header, plain)?;
    let request = ClientRequest {
        header,
        body,
        plain,
        keyspace: keyspace.as_deref(),
        snapshot: &snapshot,
    };
    if header.opcode == Opcode::Query {
        return write::query(context, &request);
    }
    let id = glance::executed_id(header.flags, plain)?;
    match context.prepared.get(id, &snapshot) {
        Some(ClassifiedStatement::Write(write)) => request.execute(&write, &context.log),
        // Somebody has prepared the statement again, and it writes to no logged table now.
        Some(_) => Ok(None),
        None => Err(unprepared(id)),
    }
}

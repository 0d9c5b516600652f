//! Writes that the node refuses perhaps because they were decided by outdated definitions. The
//! gateway reads the definitions again, and decides once more if they have changed.
//!
//! The module `writes::execution` recognises such a refusal, and says why this is safe.

use std::time::Instant;

use bytes::Bytes;
use cql::wire::{Direction, Frame, FrameHeader, HEADER_LENGTH};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::decide::encode_error;
use super::responses::{Decision, Responses};
use super::session::{Expected, WriteUnderWay};
use super::writes::Writes;
use crate::writes::Origin;

/// A write that the node refused.
struct Refused {
    /// The stream of the client's request.
    stream: i16,
    /// Decides about the write.
    writes: Writes,
    /// The way to the node.
    to_node: mpsc::UnboundedSender<Bytes>,
    /// The way to the client. It is held until the client is answered or the write goes on, so that
    /// the other loop does not take the client for one that is due no more answers.
    to_client: mpsc::Sender<Bytes>,
    /// The number of times that the write was retried, this time included.
    retries: u32,
    /// The write's share of the memory that the connection's writes may hold.
    memory: OwnedSemaphorePermit,
}

impl Responses {
    /// Has the definitions read again, and retries the write if they have changed. Otherwise
    /// the client gets the node's answer.
    pub(super) fn retry(
        &self,
        origin: Origin,
        answer: Frame,
        retries: u32,
        memory: OwnedSemaphorePermit,
    ) -> Decision {
        // The client asks nothing more and no work is under way for it, so it cannot be answered
        // later.
        let Some(to_client) = self.session.client.answers() else {
            return Decision::Keep;
        };
        let refused = Refused {
            stream: answer.header.stream,
            writes: self.writes.clone(),
            to_node: self.steps.clone(),
            to_client,
            retries,
            memory,
        };
        tokio::spawn(async move {
            let catalog = refused.writes.catalog.clone();
            let is_up_to_date = catalog.look_now().await;
            match is_up_to_date && catalog.snapshot().epoch() != origin.epoch {
                true => refused.begin(origin.frame).await,
                false => {
                    let answer = [&answer.header.to_bytes()[..], &answer.body].concat();
                    refused.answer(answer.into()).await;
                }
            }
        });
        Decision::Later
    }
}

impl Refused {
    /// Decides once more about the client's request as it came, and carries the decision out.
    async fn begin(self, request: Bytes) {
        let header = FrameHeader::read(&request, Direction::Request, usize::MAX)
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
        match self.writes.again(&frame) {
            Ok(None) => {
                let _ = self.to_node.send(request);
            }
            Ok(Some(execution)) => {
                let entered = match self.writes.catalog.enter(execution.tables()).await {
                    Ok(entered) => entered,
                    Err(error) => {
                        let answer = encode_error(self.stream, error);
                        return self.answer(answer).await;
                    }
                };
                let (step, execution) = execution.begin();
                let write = WriteUnderWay {
                    execution,
                    since: Instant::now(),
                    retries: self.retries,
                    entered,
                    // The request is the same, so it takes about as much memory as before.
                    memory: self.memory,
                };
                let expected = Expected::Write(Box::new(write));
                self.writes.session.expect(self.stream, expected);
                let _ = self.to_node.send(step);
            }
            Err(error) => {
                let answer = encode_error(self.stream, error);
                self.answer(answer).await;
            }
        }
    }

    async fn answer(self, answer: Bytes) {
        self.writes.session.client_is_answered(self.stream);
        // If the other loop has ended, the client is gone.
        let _ = self.to_client.send(answer).await;
    }
}

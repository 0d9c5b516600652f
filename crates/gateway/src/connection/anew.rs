//! Writes that the node refuses for what they were decided by: decided once more, by what the cluster says now.
//!
//! Why that is safe is told in `writes::errand`, where such a refusal is recognised.

use bytes::Bytes;
use cql::wire::{Direction, Frame, FrameHeader, HEADER_LENGTH};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::decide::encode_error;
use super::responses::{Decision, Responses};
use super::session::{Expected, WriteUnderWay};
use super::writes::Writes;
use crate::writes::Origin;

/// A refused write.
struct Refused {
    stream: i16,
    writes: Writes,
    to_node: mpsc::UnboundedSender<Bytes>,
    /// Held until it is known what comes of it: the other loop must not take the client for one that is due no more answers.
    to_client: mpsc::Sender<Bytes>,
    begun_anew: u32,
    memory: OwnedSemaphorePermit,
}

impl Responses {
    /// Has the definitions looked at again, and begins a write anew if they are others now. Else the client gets the
    /// node's answer.
    pub(super) fn begin_anew(
        &self,
        origin: Origin,
        answer: Frame,
        begun_anew: u32,
        memory: OwnedSemaphorePermit,
    ) -> Decision {
        // A client that asks nothing more, and for which nobody works, cannot be answered later.
        let Some(to_client) = self.session.client.answers() else {
            return Decision::Keep;
        };
        let refused = Refused {
            stream: answer.header.stream,
            writes: self.writes.clone(),
            to_node: self.steps.clone(),
            to_client,
            begun_anew,
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
    /// Begins with the client's request as it came.
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
            "a write was decided by what is out of date, and is begun anew"
        );
        // If a send fails, the connection has ended.
        match self.writes.again(&frame) {
            Ok(None) => {
                let _ = self.to_node.send(request);
            }
            Ok(Some(errand)) => {
                let entered = match self.writes.catalog.enter(errand.tables()).await {
                    Ok(entered) => entered,
                    Err(error) => {
                        let answer = encode_error(self.stream, error);
                        return self.answer(answer).await;
                    }
                };
                let (step, errand) = errand.begin();
                let write = WriteUnderWay {
                    errand,
                    begun_anew: self.begun_anew,
                    entered,
                    // Of the same request, so about as much as before.
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

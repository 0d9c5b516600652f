//! The direction from the node to the client. Responses pass as they come, except those that must
//! be read.

use std::time::Duration;

use bytes::Bytes;
use cql::wire::{
    Compression, DecodeError, Frame, FrameDirection, FrameHeader, HEADER_LENGTH, Opcode,
    ProtocolVersion, Response,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::context::DecisionContext;
use super::ends::ResponsesEnd;
use super::frame_reader::ClientFrameReader;
use super::frame_writer::ClientFrameWriter;
use super::reply::ResponseAction;
use super::statements;
use crate::node_requests::{AnswerMemory, NodeResponse};
use crate::ring::translate_event;

/// The loop from the node to the client.
pub(super) struct ResponseLoop {
    /// The state that responses are decided by.
    pub(super) context: DecisionContext,
    /// Answers that the gateway makes itself, as whole frames.
    pub(super) answers: mpsc::Receiver<Bytes>,
    /// The memory for answers to the gateway's own requests.
    pub(super) answer_memory: AnswerMemory,
    /// The way to the loop that writes to the node, for requests that this loop makes. At most one
    /// request is under way on each stream.
    pub(super) steps: mpsc::UnboundedSender<Bytes>,
    /// The time for which answers are waited for once the client sends no more requests.
    pub(super) drain_timeout: Duration,
}

impl ResponseLoop {
    /// Passes responses on until there are no more.
    pub(super) async fn run(
        mut self,
        node: &mut (impl AsyncRead + Unpin),
        client: &mut (impl AsyncWrite + Unpin),
    ) -> ResponsesEnd {
        match self
            .pass_on(node, &mut ClientFrameWriter::new(client))
            .await
        {
            Ok(end) | Err(end) => end,
        }
    }

    async fn pass_on(
        &mut self,
        node: &mut (impl AsyncRead + Unpin),
        client: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<ResponsesEnd, ResponsesEnd> {
        let mut intake = ClientFrameReader::new();
        // Bytes of a passing response that are still to come.
        let mut to_pass = 0;
        // The time at which the loop stops waiting for answers. Set once the client sends no more
        // requests.
        let mut deadline = None;
        loop {
            self.pass_front(&mut intake, &mut to_pass, client).await?;
            if deadline.is_some() && to_pass == 0 && self.context.session.client.in_flight() == 0 {
                return Ok(ResponsesEnd::Done);
            }
            tokio::select! {
                read = intake.fill(node) => {
                    if read.map_err(ResponsesEnd::Node)? == 0 {
                        return Ok(ResponsesEnd::Eof);
                    }
                }
                // An answer of the gateway's goes out only between two responses.
                answer = self.answers.recv(), if to_pass == 0 && deadline.is_none() => match answer {
                    Some(answer) => {
                        client.send(&answer).await.map_err(ResponsesEnd::Client)?;
                    }
                    None => deadline = Some(Instant::now() + self.drain_timeout),
                },
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    return Ok(ResponsesEnd::Unanswered(self.context.session.client.in_flight()));
                }
            }
        }
    }

    /// Passes on what it can of the buffer. Bytes that pass as they came go out in one write.
    async fn pass_front(
        &self,
        intake: &mut ClientFrameReader,
        to_pass: &mut usize,
        client: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<(), ResponsesEnd> {
        // Bytes at the front of the buffer that pass.
        let mut passing = 0;
        loop {
            let here = (*to_pass).min(intake.bytes().len() - passing);
            passing += here;
            *to_pass -= here;
            if *to_pass > 0 {
                break;
            }
            let rest = &intake.bytes()[passing..];
            // A response that passes needs no bound, since it is never held as a whole.
            let header = FrameHeader::read(rest, FrameDirection::Response, usize::MAX)
                .map_err(|refusal| ResponsesEnd::Senseless(refusal.error))?;
            let Some(header) = header else { break };
            let length = HEADER_LENGTH + header.length as usize;
            // The answer to STARTUP comes without segments, and everything after it within them.
            if self.has_begun(&header) && self.context.session.will_have_segments() {
                if rest.len() < length {
                    break;
                }
                let form = self.context.session.begin_segments();
                self.count(&header);
                write_front(intake, passing + length, client).await?;
                passing = 0;
                client.begin_segments(form);
                intake.begin_segments(form);
                continue;
            }
            if !self.must_read(&header) {
                if header.length as usize > self.context.session.body_max() {
                    // It is too long to be read, so the reason to read it is dropped. The next
                    // response on the stream is another one.
                    self.context.session.take_awaited(header.stream);
                }
                self.count(&header);
                *to_pass = length;
                continue;
            }
            let Some(body) = rest.get(HEADER_LENGTH..length) else {
                break;
            };
            if self.hand_over(&header, body) {
                write_front(intake, passing, client).await?;
                passing = 0;
                intake.advance(length);
                continue;
            }
            let reply = self.reply(&header, body);
            // With these the client has no answer yet.
            if !matches!(reply, ResponseAction::Ask(_) | ResponseAction::Later) {
                self.count(&header);
            }
            if matches!(reply, ResponseAction::Keep) {
                *to_pass = length;
                continue;
            }
            write_front(intake, passing, client).await?;
            passing = 0;
            intake.advance(length);
            match reply {
                ResponseAction::Keep | ResponseAction::Later => {}
                ResponseAction::Ask(request) => {
                    // If the other loop has failed, so has the node's socket, and this loop is
                    // about to see it.
                    let _ = self.steps.send(request);
                }
                ResponseAction::Replace(told) => {
                    client.send(&told).await.map_err(ResponsesEnd::Client)?;
                }
            }
        }
        write_front(intake, passing, client).await
    }

    /// Notes whether the node takes the client's STARTUP or lets it in. Returns whether it takes
    /// the STARTUP.
    fn has_begun(&self, header: &FrameHeader) -> bool {
        let session = &self.context.session;
        if matches!(header.opcode, Opcode::Ready | Opcode::AuthSuccess) {
            session.let_in();
        }
        let has_begun = matches!(header.opcode, Opcode::Ready | Opcode::Authenticate);
        if has_begun {
            session.begin();
        }
        has_begun
    }

    /// Notes that the client gets the answer to a request.
    fn count(&self, header: &FrameHeader) {
        if header.opcode != Opcode::Event {
            self.context.session.client_is_answered(header.stream);
        }
    }

    /// Hands an answer to the gateway's own request over; false if the answer is for the client.
    fn hand_over(&self, header: &FrameHeader, body: &[u8]) -> bool {
        if !self.context.session.own_streams.is_own(header.stream) {
            return false;
        }
        self.context.session.client.inquiry_answered();
        if let Some(answer) = self.context.session.own_streams.answered(header.stream) {
            let held = self.answer_memory.hold(body.len());
            // If no one waits for the answer any more, the client has disconnected.
            let _ = answer.send(held.map(|held| NodeResponse {
                frame: Frame {
                    header: *header,
                    body: Bytes::copy_from_slice(body),
                },
                held,
            }));
        }
        true
    }

    /// Whether a response must be read before it goes on.
    fn must_read(&self, header: &FrameHeader) -> bool {
        // The client must not get what the gateway requested for itself, however long it is.
        if self.context.session.own_streams.is_own(header.stream) {
            return true;
        }
        if header.length as usize > self.context.session.body_max() {
            return false;
        }
        match header.opcode {
            Opcode::Event | Opcode::Supported => true,
            _ => self.context.session.is_awaited(header.stream),
        }
    }

    /// Decides the reply upon a response that must be read. If it cannot be read, it passes as it
    /// came.
    fn reply(&self, header: &FrameHeader, body: &[u8]) -> ResponseAction {
        let decided = match header.opcode {
            Opcode::Event => self.event(header, body),
            Opcode::Supported => self.supported(header, body),
            _ => match self.context.session.take_awaited(header.stream) {
                Some(awaited) => {
                    statements::reply(&self.context, &self.steps, (header, body), awaited)
                }
                None => Ok(ResponseAction::Keep),
            },
        };
        decided.unwrap_or_else(|error| {
            tracing::debug!(%error, opcode = ?header.opcode, "a response passes unread");
            ResponseAction::Keep
        })
    }

    /// Sends the client the gateway's address in an event about a node, or nothing if the node has
    /// no gateway.
    fn event(&self, header: &FrameHeader, body: &[u8]) -> Result<ResponseAction, DecodeError> {
        let (context, Response::Event(event)) = self.context.decode(header, body)? else {
            return Ok(ResponseAction::Keep);
        };
        Ok(match translate_event(event.clone(), &self.context.ring) {
            Some(told) if told == event => ResponseAction::Keep,
            Some(told) => ResponseAction::with(&Response::Event(told), &context, None),
            None => ResponseAction::Replace(Bytes::new()),
        })
    }

    /// Leaves in SUPPORTED only what the gateway supports, too.
    fn supported(&self, header: &FrameHeader, body: &[u8]) -> Result<ResponseAction, DecodeError> {
        let (context, Response::Supported(mut options)) = self.context.decode(header, body)? else {
            return Ok(ResponseAction::Keep);
        };
        for (name, values) in &mut options {
            match name.as_str() {
                "PROTOCOL_VERSIONS" => values.retain(|version| is_spoken(version)),
                "COMPRESSION" => values.retain(|name| Compression::from_name(name).is_some()),
                _ => {}
            }
        }
        let told = Response::Supported(options);
        Ok(ResponseAction::with(&told, &context, None))
    }
}

/// Whether the gateway speaks a version of SUPPORTED, such as `5/v5`.
fn is_spoken(version: &str) -> bool {
    let spoken = ProtocolVersion::EVERY.map(|version| version.to_string());
    spoken.iter().any(|spoken| spoken == version)
}

/// Writes the first `count` bytes of the buffer to the client, and removes them.
async fn write_front(
    intake: &mut ClientFrameReader,
    count: usize,
    client: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
) -> Result<(), ResponsesEnd> {
    if count > 0 {
        let written = client.send(&intake.bytes()[..count]).await;
        written.map_err(ResponsesEnd::Client)?;
        intake.advance(count);
    }
    Ok(())
}

//! The direction from the node to the client. Responses pass as they come, except those that must
//! be read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cql::wire::{
    Compression, DecodeError, Direction, Frame, FrameError, FrameHeader, HEADER_LENGTH, Opcode,
    Prepared, Response, ResponseContext, glance,
};
use store_api::Stores;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::intake::Intake;
use super::session::{Expected, Seen, Session};
use super::socket::send;
use super::writes::Writes;
use crate::catalog::Catalog;
use crate::grounds::Grounds;
use crate::inquiry::{Answer, AnswerMemory};
use crate::kept_answers::KeptAnswers;
use crate::prepared::{Meaning, PreparedStatements};
use crate::ring::{Ring, RingTable, translate_event, translate_rows};

/// The reasons why no more responses are written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResponsesEnd {
    /// The node has closed the connection.
    #[error("the node has closed the connection")]
    Eof,
    /// The client sends no more requests, and all of them are answered.
    #[error("there are no more requests, and all are answered")]
    Done,
    /// The client sends no more requests, and so many were not answered within the drain timeout.
    #[error("there are no more requests, but {0} of them were not answered in time")]
    Unanswered(usize),
    /// The node sent bytes that are no response.
    #[error("the node sent bytes that are no response: {0}")]
    Senseless(FrameError),
    /// The client's socket failed.
    #[error("the connection to the client failed: {0}")]
    Client(io::Error),
    /// The node's socket failed.
    #[error("the connection to the node failed: {0}")]
    Node(io::Error),
}

/// A decision about a response that was read.
pub(super) enum Decision {
    /// The client gets the response as it came.
    Keep,
    /// The client gets these bytes instead, or nothing if there are none.
    Replace(Bytes),
    /// The client gets nothing yet: this request goes to the node first.
    Ask(Bytes),
    /// The client gets nothing yet: a task will answer it.
    Later,
}

/// The loop from the node to the client.
pub(super) struct Responses {
    /// The state that both directions share.
    pub(super) session: Arc<Session>,
    /// The prepared statements of the gateway.
    pub(super) prepared: Arc<PreparedStatements>,
    /// The addresses of the gateways that drivers are told.
    pub(super) ring: Arc<Ring>,
    /// The definitions of vector indexes.
    pub(super) catalog: Arc<Catalog>,
    /// Answers that the gateway makes itself, as whole frames.
    pub(super) answers: mpsc::Receiver<Bytes>,
    /// The memory for answers to the gateway's own inquiries.
    pub(super) answer_memory: AnswerMemory,
    /// The index services, which CREATE INDEX waits for.
    pub(super) stores: Stores,
    /// Answers that many clients ask for.
    pub(super) kept_answers: Arc<KeptAnswers>,
    /// Decides once more about writes that the node refused.
    pub(super) writes: Writes,
    /// The way to the loop that writes to the node, for requests that this loop makes. At most one
    /// request is under way on each stream.
    pub(super) steps: mpsc::UnboundedSender<Bytes>,
    /// The time for which answers are waited for once the client sends no more requests.
    pub(super) drain_timeout: Duration,
}

impl Responses {
    /// Passes responses on until there are no more.
    pub(super) async fn run(
        mut self,
        node: &mut (impl AsyncRead + Unpin),
        client: &mut (impl AsyncWrite + Unpin),
    ) -> ResponsesEnd {
        match self.pass_on(node, client).await {
            Ok(end) | Err(end) => end,
        }
    }

    async fn pass_on(
        &mut self,
        node: &mut (impl AsyncRead + Unpin),
        client: &mut (impl AsyncWrite + Unpin),
    ) -> Result<ResponsesEnd, ResponsesEnd> {
        let mut intake = Intake::new();
        // Bytes of a passing response that are still to come.
        let mut to_pass = 0;
        // The time at which the loop stops waiting for answers. Set once the client sends no more
        // requests.
        let mut deadline = None;
        loop {
            self.pass_front(&mut intake, &mut to_pass, client).await?;
            if deadline.is_some() && to_pass == 0 && self.session.client.in_flight() == 0 {
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
                        send(client, &answer).await.map_err(ResponsesEnd::Client)?;
                    }
                    None => deadline = Some(Instant::now() + self.drain_timeout),
                },
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    return Ok(ResponsesEnd::Unanswered(self.session.client.in_flight()));
                }
            }
        }
    }

    /// Passes on what it can of the buffer. Bytes that pass as they came go out in one write.
    async fn pass_front(
        &self,
        intake: &mut Intake,
        to_pass: &mut usize,
        client: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), ResponsesEnd> {
        // Bytes at the front of the buffer that pass.
        let mut passing = 0;
        loop {
            let rest = &intake.bytes()[passing..];
            if *to_pass > 0 {
                let here = (*to_pass).min(rest.len());
                passing += here;
                *to_pass -= here;
                if *to_pass > 0 {
                    break;
                }
                continue;
            }
            // A response that passes needs no bound, since it is never held as a whole.
            let header = FrameHeader::read(rest, Direction::Response, usize::MAX)
                .map_err(|refusal| ResponsesEnd::Senseless(refusal.error))?;
            let Some(header) = header else { break };
            let length = HEADER_LENGTH + header.length as usize;
            if matches!(header.opcode, Opcode::Ready | Opcode::AuthSuccess) {
                self.session.let_in();
            }
            if !self.must_read(&header) {
                if header.length as usize > self.session.body_max() {
                    // It is too long to be read, so the reason to read it is dropped. The next
                    // response on the stream is another one.
                    self.session.take_expected(header.stream);
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
            let decision = self.decide(&header, body);
            if !matches!(decision, Decision::Ask(_) | Decision::Later) {
                self.count(&header);
            }
            match decision {
                Decision::Keep => *to_pass = length,
                Decision::Later => {
                    write_front(intake, passing, client).await?;
                    passing = 0;
                    intake.advance(length);
                }
                Decision::Ask(request) => {
                    write_front(intake, passing, client).await?;
                    passing = 0;
                    intake.advance(length);
                    // If the other loop has failed, so has the node's socket, and this loop is
                    // about to see it.
                    let _ = self.steps.send(request);
                }
                Decision::Replace(told) => {
                    write_front(intake, passing, client).await?;
                    passing = 0;
                    intake.advance(length);
                    send(client, &told).await.map_err(ResponsesEnd::Client)?;
                }
            }
        }
        write_front(intake, passing, client).await
    }

    /// Notes that the client gets the answer to a request.
    fn count(&self, header: &FrameHeader) {
        if header.opcode != Opcode::Event {
            self.session.client_is_answered(header.stream);
        }
    }

    /// Hands an answer to the gateway's own inquiry over; false if the answer is for the client.
    fn hand_over(&self, header: &FrameHeader, body: &[u8]) -> bool {
        if !self.session.own_streams.is_own(header.stream) {
            return false;
        }
        self.session.client.inquiry_answered();
        if let Some(answer) = self.session.own_streams.answered(header.stream) {
            let held = self.answer_memory.hold(body.len());
            // If nobody waits for the answer any more, the client is gone.
            let _ = answer.send(held.map(|held| Answer {
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
        // The client must not get what the gateway asked for itself, however long it is.
        if self.session.own_streams.is_own(header.stream) {
            return true;
        }
        if header.length as usize > self.session.body_max() {
            return false;
        }
        match header.opcode {
            Opcode::Event | Opcode::Supported => true,
            _ => self.session.is_expected(header.stream),
        }
    }

    /// Decides about a response that must be read. If it cannot be read, it passes as it came.
    fn decide(&self, header: &FrameHeader, body: &[u8]) -> Decision {
        let decided = match header.opcode {
            Opcode::Event => self.event(header, body),
            Opcode::Supported => self.supported(header, body),
            opcode => match self.session.take_expected(header.stream) {
                Some(Expected::Truncated(truncate)) => Ok(self.truncated(header, body, *truncate)),
                Some(Expected::Write(write)) => Ok(self.write_answered(header, body, *write)),
                Some(Expected::Answering(answering)) => {
                    self.answer_overlaid(header, body, *answering)
                }
                Some(expected) if opcode == Opcode::Result => self.result(header, body, expected),
                _ => Ok(Decision::Keep),
            },
        };
        decided.unwrap_or_else(|error| {
            tracing::debug!(%error, opcode = ?header.opcode, "a response passes unread");
            Decision::Keep
        })
    }

    /// Tells the client the gateway's address in an event about a node, or nothing if the node has
    /// no gateway.
    fn event(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, DecodeError> {
        let (context, Response::Event(event)) = self.decode(header, body)? else {
            return Ok(Decision::Keep);
        };
        Ok(match translate_event(event.clone(), &self.ring) {
            Some(told) if told == event => Decision::Keep,
            Some(told) => Decision::Replace(encode(&Response::Event(told), &context, None)),
            None => Decision::Replace(Bytes::new()),
        })
    }

    /// Leaves in SUPPORTED only what the gateway supports, too.
    fn supported(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, DecodeError> {
        let (context, Response::Supported(mut options)) = self.decode(header, body)? else {
            return Ok(Decision::Keep);
        };
        for (name, values) in &mut options {
            match name.as_str() {
                "PROTOCOL_VERSIONS" => values.retain(|version| version.starts_with("4/")),
                "COMPRESSION" => values.retain(|name| Compression::from_name(name).is_some()),
                _ => {}
            }
        }
        let told = Response::Supported(options);
        Ok(Decision::Replace(encode(&told, &context, None)))
    }

    /// Decides about a result by the request that it answers.
    fn result(
        &self,
        header: &FrameHeader,
        body: &[u8],
        expected: Expected,
    ) -> Result<Decision, DecodeError> {
        match expected {
            Expected::Prepared {
                grounds,
                seen,
                text_bytes,
            } => {
                self.remember(header, body, grounds, seen, text_bytes)?;
                Ok(Decision::Keep)
            }
            // These are handled by `decide`, whatever the opcode.
            Expected::Answering(_) | Expected::Truncated(_) | Expected::Write(_) => {
                Ok(Decision::Keep)
            }
            Expected::Kept(question) => {
                let frame = Frame {
                    header: *header,
                    body: Bytes::copy_from_slice(body),
                };
                self.kept_answers.keep(question, frame);
                Ok(Decision::Keep)
            }
            Expected::Keyspace => {
                if let (_, Response::SetKeyspace(keyspace)) = self.decode(header, body)? {
                    self.session.use_keyspace(&keyspace);
                }
                Ok(Decision::Keep)
            }
            Expected::RingRows(columns) => {
                let (context, Response::Rows(rows)) = self.decode(header, body)? else {
                    return Ok(Decision::Keep);
                };
                let own = self.session.own_address;
                let told = translate_rows(&rows, columns.as_deref(), &self.ring, own)?;
                Ok(told.map_or(Decision::Keep, |told| {
                    let compression = self.session.compression();
                    Decision::Replace(encode(&Response::Rows(told), &context, compression))
                }))
            }
        }
    }

    /// Remembers the id that the node gave a statement, with its meaning.
    fn remember(
        &self,
        header: &FrameHeader,
        body: &[u8],
        grounds: Grounds,
        seen: Seen,
        text_bytes: usize,
    ) -> Result<(), DecodeError> {
        let mut scratch = Bytes::new();
        let plain = self.session.plain(header, body, &mut scratch)?;
        let Some(id) = glance::prepared_id(header.flags, plain)? else {
            return Ok(());
        };
        let meaning = match seen {
            Seen::Nothing => Meaning::Plain,
            Seen::Use => Meaning::Use,
            Seen::RingTable => self.ring_rows(header, body),
            Seen::LogRead(of) => self.poll_of(header, body, of),
            Seen::Generations => Meaning::Kept,
            Seen::Concern(concern) => self.concern(header, body, concern),
            Seen::Truncate(table) => Meaning::Truncate(table),
            Seen::Write(write) => Meaning::Write(self.with_names(header, body, *write)),
        };
        let made_of = text_bytes + plain.len();
        self.prepared.insert(id, grounds, meaning, made_of);
        Ok(())
    }

    /// The meaning of a prepared read that may be of a table that tells of nodes.
    fn ring_rows(&self, header: &FrameHeader, body: &[u8]) -> Meaning {
        // The response is decoded only now: columns of other tables may have types that the gateway
        // does not know. The id alone can always be read.
        match self.decode(header, body) {
            Ok((
                _,
                Response::Prepared(Prepared {
                    result: Some(columns),
                    ..
                }),
            )) if RingTable::of(&columns).is_some() => Meaning::RingRows(Arc::new(columns)),
            _ => Meaning::Plain,
        }
    }

    /// Decodes a response with the connection's compression.
    pub(super) fn decode(
        &self,
        header: &FrameHeader,
        body: &[u8],
    ) -> Result<(ResponseContext, Response), DecodeError> {
        let frame = Frame {
            header: *header,
            body: Bytes::copy_from_slice(body),
        };
        Response::decode(&frame, self.session.compression(), self.session.body_max())
    }
}

fn encode(
    response: &Response,
    context: &ResponseContext,
    compression: Option<Compression>,
) -> Bytes {
    let mut out = BytesMut::new();
    response.encode(context, compression, &mut out);
    out.freeze()
}

/// Writes the first `count` bytes of the buffer to the client, and removes them.
async fn write_front(
    intake: &mut Intake,
    count: usize,
    client: &mut (impl AsyncWrite + Unpin),
) -> Result<(), ResponsesEnd> {
    if count > 0 {
        let written = send(client, &intake.bytes()[..count]).await;
        written.map_err(ResponsesEnd::Client)?;
        intake.advance(count);
    }
    Ok(())
}

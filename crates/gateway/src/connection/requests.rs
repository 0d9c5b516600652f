//! From the client to the node: every request is looked at, and passes as it came.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    Compression, Direction, EventKind, Frame, FrameHeader, HEADER_LENGTH, Opcode, Request,
    Response, ResponseContext, glance,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::inquiries::write_inquiries;
use super::intake::Intake;
use super::session::{Expected, Seen, Session};
use super::socket::send;
use super::work::{Work, Workshop};
use crate::catalog::Catalog;
use crate::inquiry::Inquiry;
use crate::prepared::{Meaning, PreparedStatements, check_text};
use crate::recognise::{self, Verb};
use crate::writes::{ChangeLog, ClientRequest, Errand};

/// Why no more requests are read.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestsEnd {
    #[error("the client asks nothing more")]
    Eof,
    #[error("the gateway stops")]
    Stopping,
    /// The client has been told.
    #[error("the client sent what makes no sense")]
    Refused,
    /// Its socket failed, or it had not logged in in time.
    #[error("the client: {0}")]
    Client(io::Error),
    #[error("the node: {0}")]
    Node(io::Error),
}

/// What is done with a request.
pub(super) enum Decision {
    /// It goes to the node.
    Pass,
    /// This frame goes to the node in its place, on the same stream.
    Replace(Bytes),
    /// It is answered here.
    Answer(CqlError),
    /// It is worked on here.
    Begin(Work),
    /// It writes to logged tables, and goes to the node in another form.
    Write(Box<Errand>),
    /// It is a USE.
    Use,
}

/// The loop from the client to the node.
pub(super) struct Requests {
    pub(super) session: Arc<Session>,
    pub(super) prepared: Arc<PreparedStatements>,
    pub(super) catalog: Arc<Catalog>,
    /// Where requests are worked on that the node cannot answer. Its answers are written by the other loop, between two
    /// responses, and the end of them tells that loop that there are no more requests.
    pub(super) workshop: Workshop,
    /// What the workshop asks the node.
    pub(super) inquiries: mpsc::Receiver<Inquiry>,
    pub(super) log: Arc<ChangeLog>,
    /// Requests that the other loop makes on streams whose writes are under way.
    pub(super) steps: mpsc::UnboundedReceiver<Bytes>,
    /// Bytes that writes under way may hold.
    pub(super) write_memory: Arc<Semaphore>,
    pub(super) stop: CancellationToken,
    /// How long the client may take until the node has let it in.
    pub(super) handshake_timeout: Duration,
    /// How long to go on with what is worked on once there are no more requests.
    pub(super) drain_timeout: Duration,
}

impl Requests {
    /// Passes requests on until there are no more.
    pub(super) async fn run(
        mut self,
        client: &mut (impl AsyncRead + Unpin),
        node: &mut (impl AsyncWrite + Unpin),
    ) -> RequestsEnd {
        let end = match self.pass_on(client, node).await {
            Err(end @ (RequestsEnd::Client(_) | RequestsEnd::Node(_))) => return end,
            Ok(end) | Err(end) => end,
        };
        tracing::debug!(%end, "no more requests");
        match self.go_on(node).await {
            Ok(()) => end,
            Err(failed) => failed,
        }
    }

    /// There are no more requests: writes and searches that are under way have more to ask.
    async fn go_on(self, node: &mut (impl AsyncWrite + Unpin)) -> Result<(), RequestsEnd> {
        let Requests {
            session,
            workshop,
            mut inquiries,
            mut steps,
            drain_timeout,
            ..
        } = self;
        // The other loop ends with the last answer that is due. It waits for those of the workshop as long as somebody holds
        // the sender of answers: from here on, only work that has begun.
        let gone = workshop.gone.clone();
        drop(workshop);
        let deadline = Instant::now() + drain_timeout;
        loop {
            tokio::select! {
                step = steps.recv() => match step {
                    Some(step) => send(node, &step).await.map_err(RequestsEnd::Node)?,
                    None => return Ok(()),
                },
                Some(inquiry) = inquiries.recv() => {
                    write_inquiries(inquiry, &mut inquiries, &session, node).await?;
                }
                () = sleep_until(deadline), if !gone.is_cancelled() => gone.cancel(),
            }
        }
    }

    async fn pass_on(
        &mut self,
        client: &mut (impl AsyncRead + Unpin),
        node: &mut (impl AsyncWrite + Unpin),
    ) -> Result<RequestsEnd, RequestsEnd> {
        let mut intake = Intake::new();
        // Bytes of a refused request's body that are still to come.
        let mut to_skip = 0;
        let mut time_is_up = pin!(sleep(self.handshake_timeout));
        loop {
            self.pass_whole_frames(&mut intake, &mut to_skip, node)
                .await?;
            let is_stranger = !self.session.is_let_in();
            let read = tokio::select! {
                read = intake.fill(client) => read.map_err(RequestsEnd::Client)?,
                Some(inquiry) = self.inquiries.recv() => {
                    write_inquiries(inquiry, &mut self.inquiries, &self.session, node).await?;
                    continue;
                }
                Some(step) = self.steps.recv() => {
                    send(node, &step).await.map_err(RequestsEnd::Node)?;
                    continue;
                }
                () = self.stop.cancelled() => return Ok(RequestsEnd::Stopping),
                () = &mut time_is_up, if is_stranger => {
                    // While the node owes an answer it is the node that takes its time.
                    if !self.session.is_let_in() && self.session.client.in_flight() == 0 {
                        return Err(RequestsEnd::Client(io::ErrorKind::TimedOut.into()));
                    }
                    let longer = Instant::now() + self.handshake_timeout;
                    time_is_up.as_mut().reset(longer);
                    continue;
                }
            };
            if read == 0 {
                return Ok(RequestsEnd::Eof);
            }
        }
    }

    /// Deals with the frames that are wholly in the buffer. Those that pass go out in one write.
    async fn pass_whole_frames(
        &mut self,
        intake: &mut Intake,
        to_skip: &mut usize,
        node: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), RequestsEnd> {
        // Bytes at the front of the buffer that pass.
        let mut passing = 0;
        loop {
            if *to_skip > 0 {
                let skipped = (*to_skip).min(intake.bytes().len());
                intake.advance(skipped);
                *to_skip -= skipped;
            }
            let rest = &intake.bytes()[passing..];
            let body_max = self.session.request_body_max();
            let (answer, length) = match FrameHeader::read(rest, Direction::Request, body_max) {
                Ok(None) => break,
                Ok(Some(header)) => {
                    let length = HEADER_LENGTH + header.length as usize;
                    let Some(body) = rest.get(HEADER_LENGTH..length) else {
                        break;
                    };
                    if self.session.in_flight.holds(header.stream) {
                        write_front(intake, passing, node).await?;
                        self.answer(header.stream, stream_in_use(header.stream))
                            .await;
                        return Err(RequestsEnd::Refused);
                    }
                    self.session.client.asked(header.stream);
                    match self.decide(&header, body) {
                        Decision::Pass => {
                            self.session.client_asks(header.stream).await;
                            passing += length;
                            continue;
                        }
                        Decision::Replace(frame) => {
                            self.session.client_asks(header.stream).await;
                            write_front(intake, passing, node).await?;
                            passing = 0;
                            intake.advance(length);
                            send(node, &frame).await.map_err(RequestsEnd::Node)?;
                            continue;
                        }
                        Decision::Write(errand) => {
                            self.session.client_asks(header.stream).await;
                            write_front(intake, passing, node).await?;
                            passing = 0;
                            intake.advance(length);
                            self.begin(&header, *errand, length, node).await?;
                            continue;
                        }
                        Decision::Use => {
                            write_front(intake, passing, node).await?;
                            passing = 0;
                            self.use_keyspace(&header, &intake.bytes()[..length], node)
                                .await?;
                            intake.advance(length);
                            continue;
                        }
                        Decision::Answer(error) => {
                            self.session.client.answered(header.stream);
                            (Some((header.stream, error)), length)
                        }
                        Decision::Begin(work) => {
                            // It writes nothing, so nobody need wait for its end.
                            self.session.client.answered(header.stream);
                            let begun = self.workshop.begin(work, self.session.compression());
                            (begun.err().map(|error| (header.stream, error)), length)
                        }
                    }
                }
                Err(refusal) => {
                    let answer = (refusal.error.stream(), refusal.error.into());
                    let Some(length) = refusal.body_length else {
                        write_front(intake, passing, node).await?;
                        self.answer(answer.0, answer.1).await;
                        return Err(RequestsEnd::Refused);
                    };
                    (Some(answer), HEADER_LENGTH + length)
                }
            };
            write_front(intake, passing, node).await?;
            passing = 0;
            *to_skip = length;
            if let Some((stream, error)) = answer {
                self.answer(stream, error).await;
            }
        }
        write_front(intake, passing, node).await
    }

    fn decide(&self, header: &FrameHeader, body: &[u8]) -> Decision {
        self.catalog.lapse_if_over();
        let decided = match header.opcode {
            Opcode::Query | Opcode::Prepare | Opcode::Execute | Opcode::Batch
                if !self.session.is_let_in() =>
            {
                Err(not_let_in())
            }
            Opcode::Batch if self.catalog.snapshot().lapsed() => Err(lapsed()),
            Opcode::Startup => self.startup(header, body),
            Opcode::Query | Opcode::Prepare => self.text(header, body),
            Opcode::Execute => self.execute(header, body),
            Opcode::Batch => self.batch(header, body),
            Opcode::Register => self.register(header, body),
            _ => Ok(Decision::Pass),
        };
        decided.unwrap_or_else(Decision::Answer)
    }

    /// Takes note of the compression, which must be one that can be read here.
    fn startup(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let frame = Frame {
            header: *header,
            body: Bytes::copy_from_slice(body),
        };
        let request = Request::decode(&frame, None, self.session.body_max())?;
        if let Request::Startup(startup) = request {
            self.session.agree_on(startup.compression()?);
        }
        Ok(Decision::Pass)
    }

    fn text(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let mut scratch = Bytes::new();
        let plain = self.session.plain(header, body, &mut scratch)?;
        let text = glance::statement_text(header.flags, plain)?;
        let snapshot = self.catalog.snapshot();
        let verb = recognise::verb(text);
        if verb == Verb::Select
            && let Some(decision) = self.neighbours(header, plain, text, &snapshot)?
        {
            return Ok(decision);
        }
        if matches!(verb, Verb::Write | Verb::Truncate) && snapshot.lapsed() {
            return Err(lapsed());
        }
        if let Some(decision) = self.overlaid_text(header, plain, verb, &snapshot)? {
            return Ok(decision);
        }
        let seen = match verb {
            Verb::Select if recognise::may_read_ring(text) => Seen::RingTable,
            Verb::Use => Seen::Use,
            Verb::Write | Verb::Truncate if snapshot.logs_nothing() => Seen::Nothing,
            Verb::Truncate => match self.truncated_table(text, &snapshot)? {
                Some(table) => Seen::Truncate(table),
                None => Seen::Nothing,
            },
            Verb::Write if header.opcode == Opcode::Prepare => {
                let seen = self.write_prepare(text, self.session.keyspace(), &snapshot)?;
                if matches!(seen, Seen::Write(_)) {
                    check_text(text.len())?;
                }
                seen
            }
            Verb::Write => {
                let keyspace = self.session.keyspace();
                let request = ClientRequest {
                    header,
                    body,
                    plain,
                    keyspace: keyspace.as_deref(),
                    snapshot: &snapshot,
                };
                return self.write_query(&request, text);
            }
            _ => Seen::Nothing,
        };
        let expected = match (header.opcode, seen) {
            (Opcode::Prepare, seen) => Expected::Prepared {
                epoch: snapshot.epoch(),
                seen,
                text_bytes: text.len(),
            },
            (_, Seen::RingTable) => Expected::RingRows(None),
            (_, Seen::Truncate(table)) => {
                self.expect_truncated(header, table);
                return Ok(Decision::Pass);
            }
            (_, Seen::Use) => return Ok(Decision::Use),
            (_, Seen::Nothing | Seen::Concern(_) | Seen::Write(_)) => return Ok(Decision::Pass),
        };
        self.session.expect(header.stream, expected);
        Ok(Decision::Pass)
    }

    fn execute(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let mut scratch = Bytes::new();
        let plain = self.session.plain(header, body, &mut scratch)?;
        let id = glance::executed_id(header.flags, plain)?;
        let snapshot = self.catalog.snapshot();
        match self.prepared.get(id, snapshot.epoch()) {
            Some(Meaning::Plain) => {}
            Some(Meaning::Use) => return Ok(Decision::Use),
            Some(Meaning::RingRows(columns)) => {
                self.session
                    .expect(header.stream, Expected::RingRows(Some(columns)));
            }
            Some(Meaning::Ann(statement)) => return self.search(header, plain, statement),
            Some(Meaning::Concern(prepared)) => {
                return self.overlaid_execute(header, body, &prepared, &snapshot);
            }
            Some(Meaning::Truncate(table)) => self.expect_truncated(header, table),
            Some(Meaning::Write(write)) => {
                return self.write_execute(header, body, plain, &write);
            }
            None => return Ok(Decision::Answer(unprepared(id))),
        }
        Ok(Decision::Pass)
    }

    /// Takes note of clients that want to hear of changes of the schema, as indexes come and go without the node's knowledge.
    fn register(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let frame = Frame {
            header: *header,
            body: Bytes::copy_from_slice(body),
        };
        // The node says what is wrong with one that cannot be read.
        if let Ok(Request::Register { events }) =
            Request::decode(&frame, self.session.compression(), self.session.body_max())
            && events.contains(&EventKind::SchemaChange)
        {
            self.session.client.hear_schema_changes();
        }
        Ok(Decision::Pass)
    }

    async fn answer(&self, stream: i16, error: CqlError) {
        // If the other loop has ended, the client is gone.
        let _ = self
            .workshop
            .answers
            .send(encode_error(stream, error))
            .await;
    }
}

/// An error response, never compressed: a client may not know yet what was agreed on.
pub(super) fn encode_error(stream: i16, error: CqlError) -> Bytes {
    const NONE: Option<Compression> = None;
    let mut out = BytesMut::new();
    Response::Error(error).encode(&ResponseContext::new(stream), NONE, &mut out);
    out.freeze()
}

/// The node would say so, too, unless it lets the client in meanwhile; what nobody looked at must not come then.
fn not_let_in() -> CqlError {
    CqlError::new(
        ErrorKind::ProtocolError,
        "the connection is not open yet: send STARTUP, log in if the node asks for it, and wait for its answer",
    )
}

/// Nobody could tell which answer is whose.
fn stream_in_use(stream: i16) -> CqlError {
    let message = format!(
        "stream {stream} is in use: the request before on it has no answer yet, so take another stream or wait"
    );
    CqlError::new(ErrorKind::ProtocolError, message)
}

/// Upon this drivers ask another gateway.
fn lapsed() -> CqlError {
    CqlError::new(
        ErrorKind::IsBootstrapping,
        "the gateway has lost touch with the cluster's definitions of vector indexes and passes no writes: use another one",
    )
}

/// Drivers prepare the statement again upon this, and execute it once more.
pub(super) fn unprepared(id: &[u8]) -> CqlError {
    let id = Bytes::copy_from_slice(id);
    let message = format!(
        "Prepared query with ID {id:02x} was not prepared through this gateway, or was forgotten: prepare it again"
    );
    CqlError::new(ErrorKind::Unprepared { id }, message)
}

async fn write_front(
    intake: &mut Intake,
    count: usize,
    node: &mut (impl AsyncWrite + Unpin),
) -> Result<(), RequestsEnd> {
    if count > 0 {
        let written = send(node, &intake.bytes()[..count]).await;
        written.map_err(RequestsEnd::Node)?;
        intake.advance(count);
    }
    Ok(())
}

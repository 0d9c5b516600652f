//! One connection: it reads frames, has requests answered side by side, and writes frames.
//!
//! The reader takes frames off the socket in order, and handles the handshake itself. Each
//! statement becomes a task of its own, and answers go out in the order in which they are done. The
//! connection does not know the meaning of statements; the [`CqlService`] does.
//!
//! A client that closes its side, fails, or takes no more answers has hung up, and the service
//! learns of it ([`CqlService::hung_up`]). Requests in flight still get answers, but those of long
//! reads are errors. Where the server itself ends connections, reads go on to their end.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use client_memory::{FLOOR_BYTES, MemoryAccount, MemoryCharge};
use cql::error::{CqlError, ErrorKind};
use cql::secret::Secret;
use cql::wire::{
    EVENT_STREAM, EventKind, Frame, FrameDirection, Opcode, ProtocolVersion, Request, Response,
    ResponseContext, Startup, StreamDecoder,
};
use net::pending_connections::ConnectionAdmission;
use net::sockets::linger;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::admission::{charge_plain, semaphore};
use super::framing::Framing;
use super::outbox::{Outbox, encode, outbox};
use super::request::{self, ConnectionContext};
use super::service::{CqlService, ShedReason};
use super::shared::ListenerState;
use super::tls_handshake::{AcceptedConnection, enter};

/// The room that is made at once for reading from the socket, in bytes. A request holds on to the
/// memory in which it came, so many requests share it.
const READ_BYTES: usize = 16 << 10;
/// More room is made for reading when less than this many bytes are left.
const READ_BYTES_MIN: usize = 2 << 10;

/// The longest body of a frame before STARTUP, in bytes. A client that has not begun may use little
/// memory here.
const STRANGERS_BODY_MAX: usize = 16 << 10;

/// The authenticator by the Java name that drivers know: SASL PLAIN.
const AUTHENTICATOR: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

/// The longest time for which frames that were read wait for memory.
const ROOM_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

/// The bytes that a request is charged for its task, in addition to those of its frame. More are
/// charged for the work on it.
const REQUEST_BYTES: usize = 2 << 10;

/// The reason for which no more requests are read.
#[derive(Debug)]
enum CloseReason {
    /// The client has closed its side.
    Eof,
    /// The server stops, the rules for clients have changed, the writer has ended, or the client
    /// lags too far.
    Closing,
    /// The client sent something that can't be served, and has got an error.
    Refused,
    /// The socket failed, or the client was too slow.
    Failed(io::Error),
}

/// A connection, from the reader's side.
struct ServedConnection<S: CqlService> {
    shared: Arc<ListenerState<S>>,
    guest: ConnectionAdmission,
    session: Arc<S::Session>,
    account: MemoryAccount,
    outbox: Outbox,
    in_flight: Arc<Semaphore>,
    /// Cancelled when the reader has ended or must end.
    closing: CancellationToken,
    /// The time until which the client must have begun.
    handshake_deadline: Instant,
    started: bool,
    /// Holds one permit, which a login under way takes. It is closed once a login was refused.
    logging_in: Arc<Semaphore>,
    framing: Framing,
    following_schema: bool,
}

/// Serves a connection until it ends. It is dropped if it has to give way to another.
pub(super) async fn serve<S: CqlService>(
    stream: TcpStream,
    shared: Arc<ListenerState<S>>,
    guest: ConnectionAdmission,
) {
    let closing = shared.connections.load().child_token();
    let _closing = closing.clone().drop_guard();
    let handshake_deadline = Instant::now() + shared.options.connection.handshake_timeout;
    let Some(account) = open_account(&shared, &guest).await else {
        return;
    };
    let entered = enter(stream, &shared, &account, &guest, handshake_deadline).await;
    let Some(AcceptedConnection {
        socket,
        peer,
        tls_memory,
    }) = entered
    else {
        return;
    };
    let (reader, writer_half) = socket.into_split();
    let unread_bytes_max = shared.options.connection.unread_bytes_max;
    let (outbox, writer) = outbox(unread_bytes_max.min(account.bytes_max() / 2));
    let connection = ServedConnection {
        session: Arc::new(shared.service.open_session(peer).await),
        account,
        in_flight: semaphore(shared.options.connection.requests_max),
        outbox,
        closing: closing.clone(),
        handshake_deadline,
        started: false,
        logging_in: semaphore(1),
        framing: Framing::plain(ProtocolVersion::V4),
        following_schema: false,
        shared: shared.clone(),
        guest: guest.clone(),
    };
    let session = connection.session.clone();
    let writing = {
        let shared = shared.clone();
        let session = session.clone();
        let closing = closing.clone();
        async move {
            let stall = shared.options.connection.stall_timeout;
            let kill = shared.shutdown.kill.cancelled();
            tokio::select! {
                result = writer.run(writer_half, stall, &shared.counters) => {
                    if let Err(error) = result {
                        tracing::debug!(%error, "a client takes no more answers");
                        shared.service.hung_up(&session);
                    }
                }
                () = kill => shared.service.hung_up(&session),
                () = guest.evicted() => {}
            }
            closing.cancel();
        }
    };
    let writing = tokio::spawn(writing);
    let (end, mut reader) = connection.read(reader).await;
    closing.cancel();
    if matches!(end, CloseReason::Eof | CloseReason::Failed(_)) {
        shared.service.hung_up(&session);
    }
    // The writer ends when the requests in flight are answered.
    let _ = writing.await;
    match end {
        CloseReason::Refused => linger(&mut reader).await,
        CloseReason::Failed(error) => tracing::debug!(%error, "a connection failed"),
        CloseReason::Eof | CloseReason::Closing => {}
    }
    drop(tls_memory);
}

/// Opens the account of a connection. `None` if clients hold all the memory, and none of them can
/// give way.
async fn open_account<S: CqlService>(
    shared: &ListenerState<S>,
    guest: &ConnectionAdmission,
) -> Option<MemoryAccount> {
    let account = guest.find_room(|| shared.options.memory.client().ok());
    let account = account.await;
    if account.is_none() {
        shared.counters.connections_refused.add(1);
        tracing::warn!("clients hold all the memory that they may: a connection is refused");
    }
    account
}

impl<S: CqlService> ServedConnection<S> {
    async fn read<R: AsyncRead + Unpin>(mut self, mut reader: R) -> (CloseReason, R) {
        let closing = self.closing.clone();
        let end = tokio::select! {
            end = self.read_frames(&mut reader) => end,
            () = closing.cancelled() => CloseReason::Closing,
        };
        match end {
            CloseReason::Closing if self.logging_in.is_closed() => (CloseReason::Refused, reader),
            end => (end, reader),
        }
    }

    async fn read_frames(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> CloseReason {
        let options = self.shared.options.connection.clone();
        let mut decoder = StreamDecoder::new(FrameDirection::Request, self.body_max());
        let mut input = BytesMut::new();
        // The bytes of an unfinished frame are charged as they come. The charge goes with the
        // frame.
        let mut charge = self.account.charge();
        let mut frame_deadline: Option<Instant> = None;
        loop {
            if self.outbox.has_room().await {
                // Nothing was read meanwhile, so an unfinished frame gets a new deadline.
                frame_deadline = None;
            }
            // A login may have ended meanwhile, after which longer frames are taken.
            decoder.set_body_limit(self.body_max());
            let decoded = decoder.decode(&mut input);
            // Before STARTUP each frame is answered in its own version.
            self.framing.version = decoder.answered_in();
            match decoded {
                Ok(Some(frame)) => {
                    frame_deadline = None;
                    let of_frame = std::mem::replace(&mut charge, self.account.charge());
                    self.take(frame, of_frame, &mut decoder);
                    // The frames after it in a segment are charged while they wait.
                    if decoder.held_bytes() > FLOOR_BYTES
                        && !has_room(&mut charge, decoder.held_capacity(), None).await
                    {
                        self.refuse_for_memory(decoder.unfinished(&input));
                        return CloseReason::Refused;
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    let (stream, fatal) = (error.stream(), error.is_fatal());
                    self.refuse(stream, error.into());
                    if fatal {
                        return CloseReason::Refused;
                    }
                    continue;
                }
            }
            let is_stranger = !self.is_open();
            let deadline = if is_stranger {
                Some(self.handshake_deadline)
            } else if !input.is_empty() || decoder.held_bytes() > 0 {
                let now = Instant::now();
                let whole = frame_deadline.get_or_insert(now + options.frame_timeout);
                Some((*whole).min(now + options.stall_timeout))
            } else {
                None
            };
            let held = input.capacity() + decoder.held_capacity();
            if input.len() + decoder.held_bytes() > FLOOR_BYTES
                && !has_room(&mut charge, held, deadline).await
            {
                // The buffer is given up, to make room for others that may be waiting for it.
                self.refuse_for_memory(decoder.unfinished(&input));
                return CloseReason::Refused;
            }
            match read_some(reader, &mut input, deadline).await {
                Ok(0) => return CloseReason::Eof,
                Ok(bytes) => self.shared.counters.bytes_read.add(bytes as u64),
                // The client has logged in meanwhile, so the handshake's deadline is void.
                Err(error)
                    if error.kind() == io::ErrorKind::TimedOut && is_stranger && self.is_open() => {
                }
                Err(error) => return CloseReason::Failed(error),
            }
        }
    }

    /// The longest body of a frame that is accepted now, in bytes.
    fn body_max(&self) -> usize {
        let options = &self.shared.options.connection;
        match self.is_open() {
            true => options.frame_body_max.min(self.account.bytes_max()),
            false => options.frame_body_max.min(STRANGERS_BODY_MAX),
        }
    }

    /// Answers the requests that concern the connection itself, and makes a task of each statement.
    fn take(&mut self, frame: Frame, charge: MemoryCharge, decoder: &mut StreamDecoder) {
        let stream = frame.header.stream;
        match frame.header.opcode {
            Opcode::Options => {
                self.send(
                    stream,
                    &Response::Supported(self.shared.service.supported()),
                );
            }
            Opcode::Startup | Opcode::Register | Opcode::AuthResponse => {
                let limit = self.shared.options.connection.frame_body_max;
                let was_started = self.started;
                let answer = Request::decode(&frame, self.framing.frames, limit)
                    .map_err(CqlError::from)
                    .and_then(|request| self.control(request, stream));
                match answer {
                    Ok(Some(answer)) => self.send(stream, &answer),
                    Ok(None) => {}
                    Err(error) => self.refuse(stream, error),
                }
                if self.started && !was_started {
                    self.begin_framing(decoder);
                }
            }
            opcode if !self.is_open() => {
                let expected = match self.started {
                    true => "SASL_RESPONSE",
                    false => "STARTUP or OPTIONS",
                };
                self.refuse(
                    stream,
                    CqlError::protocol(format!(
                        "Unexpected message {opcode:?}, expecting {expected}"
                    )),
                );
            }
            _ => self.spawn(frame, charge),
        }
    }

    /// Whether statements are answered: the client has begun, and has logged in if it must.
    fn is_open(&self) -> bool {
        self.started && !self.shared.service.must_log_in(&self.session)
    }

    /// Reads and writes in the form that STARTUP chose, now that its answer is under way.
    fn begin_framing(&self, decoder: &mut StreamDecoder) {
        decoder.agree_on(self.framing.version);
        if let Some(form) = self.framing.segments {
            decoder.begin_segments(form);
            self.outbox.begin_segments(form);
        }
    }

    /// Carries out a request that changes the connection. Returns its answer, unless that comes
    /// later.
    fn control(&mut self, request: Request, stream: i16) -> Result<Option<Response>, CqlError> {
        match request {
            Request::Startup(startup) if !self.started => {
                check_version(&startup)?;
                self.framing = Framing::chosen(self.framing.version, &startup)?;
                self.started = true;
                let version = self.framing.version;
                self.shared
                    .service
                    .started(&self.session, version, &startup);
                Ok(Some(match self.is_open() {
                    true => {
                        self.guest.admit();
                        Response::Ready
                    }
                    false => Response::Authenticate {
                        authenticator: AUTHENTICATOR.to_owned(),
                    },
                }))
            }
            Request::Startup(_) => Err(CqlError::protocol(
                "Unexpected message STARTUP, the connection is open already",
            )),
            Request::Register { events } if self.is_open() => {
                if events.contains(&EventKind::SchemaChange) && !self.following_schema {
                    self.following_schema = true;
                    self.follow_schema();
                }
                Ok(Some(Response::Ready))
            }
            Request::AuthResponse { token } if self.started && !self.is_open() => {
                self.log_in(stream, token)?;
                Ok(None)
            }
            Request::AuthResponse { .. } if self.started => Err(CqlError::protocol(
                "Unexpected message AUTH_RESPONSE, no authentication was asked for",
            )),
            _ => Err(CqlError::protocol(match self.started {
                true => "Unexpected message, expecting SASL_RESPONSE",
                false => "Unexpected message, expecting STARTUP or OPTIONS",
            })),
        }
    }

    /// Has a token checked, and answers when that is done. A client that is refused gets an error,
    /// and the connection ends.
    ///
    /// Where too many wait, it ends without an answer: drivers take any error for a wrong password
    /// and give up, but connect again to a node that has hung up.
    fn log_in(&self, stream: i16, token: Secret<Option<Bytes>>) -> Result<(), CqlError> {
        // One attempt at a time, and one for each connection if it fails.
        let Ok(place) = self.logging_in.clone().try_acquire_owned() else {
            return Err(CqlError::protocol("a login is under way already"));
        };
        let (shared, session) = (self.shared.clone(), self.session.clone());
        let (outbox, charge) = (self.outbox.clone(), self.account.charge());
        let (closing, logging_in) = (self.closing.clone(), self.logging_in.clone());
        let guest = self.guest.clone();
        let version = self.framing.version;
        self.shared.shutdown.tasks.spawn(async move {
            // A login that is logged goes on when no one waits for it.
            let checked = tokio::select! {
                checked = shared.service.log_in(&session, token) => checked,
                () = closing.cancelled() => return,
            };
            let is_refused = checked.is_err();
            let answer = match checked {
                Ok(()) => {
                    guest.admit();
                    Some(Response::AuthSuccess {
                        token: Secret::new(None),
                    })
                }
                Err(error) => {
                    shared.counters.requests_failed.add(1);
                    (error.kind != ErrorKind::Overloaded).then_some(Response::Error(error))
                }
            };
            if let Some(answer) = answer {
                let context = ResponseContext::new(stream).at(version);
                let frame = encode(&answer, &context, None);
                if let Ok(frame) = frame.charged(charge, None) {
                    outbox.send(frame);
                }
            }
            if is_refused {
                logging_in.close();
                closing.cancel();
            }
            drop(place);
        });
        Ok(())
    }

    /// Sends schema events to the client until the connection closes.
    fn follow_schema(&self) {
        let mut events = self.shared.service.events();
        let (outbox, account) = (self.outbox.clone(), self.account.clone());
        let closing = self.closing.clone();
        let framing = self.framing;
        self.shared.shutdown.tasks.spawn(async move {
            loop {
                let event = tokio::select! {
                    event = events.recv() => event,
                    () = closing.cancelled() => return,
                };
                match event {
                    Ok(event) => {
                        let event = Response::Event(event);
                        let context = ResponseContext::new(EVENT_STREAM).at(framing.version);
                        let frame = encode(&event, &context, framing.frames);
                        match frame.charged(account.charge(), None) {
                            Ok(frame) => outbox.send(frame),
                            Err(_) => return closing.cancel(),
                        }
                    }
                    Err(RecvError::Lagged(missed)) => {
                        tracing::warn!(missed, "a client is behind with schema events: closed");
                        closing.cancel();
                        return;
                    }
                    Err(RecvError::Closed) => return,
                }
            }
        });
    }

    fn spawn(&self, frame: Frame, mut charge: MemoryCharge) {
        let stream = frame.header.stream;
        let shared = self.shared.clone();
        shared.counters.requests.add(1);
        let Some(admitted) = shared.admission.admit(&self.in_flight) else {
            self.overloaded(stream, ShedReason::Requests, "too many requests in flight");
            return;
        };
        let charged = charge
            .resize(frame.body.len() + REQUEST_BYTES)
            .and_then(|()| charge_plain(&self.account, &frame, self.framing.frames));
        let Ok(plain) = charged else {
            drop((admitted, charge));
            let why = "too many bytes of requests and answers in memory";
            self.overloaded(stream, ShedReason::Memory, why);
            return;
        };
        let of = ConnectionContext {
            session: self.session.clone(),
            account: self.account.clone(),
            framing: self.framing,
        };
        let outbox = self.outbox.clone();
        let tasks = shared.shutdown.tasks.clone();
        let task = async move {
            let Some(turn) = outbox.turn().await else {
                return;
            };
            let frame = request::answer(&shared, &of, frame, charge).await;
            turn.send(frame);
            drop((admitted, plain));
        };
        debug_assert!(size_of_val(&task) <= REQUEST_BYTES);
        tasks.spawn(task);
    }

    /// Answers that there is no memory for the unfinished frame that begins so.
    fn refuse_for_memory(&self, unfinished: &[u8]) {
        let stream = stream_of(unfinished);
        self.overloaded(
            stream,
            ShedReason::Memory,
            "no memory for so large a request",
        );
    }

    fn overloaded(&self, stream: i16, reason: ShedReason, why: &str) {
        self.shared.counters.requests_overloaded.add(1);
        self.shared.service.shed(reason);
        self.refuse(
            stream,
            CqlError::new(ErrorKind::Overloaded, format!("Overloaded: {why}")),
        );
    }

    fn refuse(&self, stream: i16, error: CqlError) {
        self.shared.counters.requests_failed.add(1);
        self.send(stream, &Response::Error(error));
    }

    fn send(&self, stream: i16, response: &Response) {
        // Never compressed: these answers are small, and the client may not know yet that
        // compression was agreed on.
        let context = ResponseContext::new(stream).at(self.framing.version);
        let frame = encode(response, &context, None);
        match frame.charged(self.account.charge(), None) {
            Ok(frame) => self.outbox.send(frame),
            // There is no room for even this answer: the client has not read the earlier ones.
            Err(_) => self.closing.cancel(),
        }
    }
}

/// Charges bytes that were read, and waits for room until the deadline, but not for long. Returns
/// whether there is room.
async fn has_room(charge: &mut MemoryCharge, bytes: usize, deadline: Option<Instant>) -> bool {
    let patience = Instant::now() + ROOM_WITHIN;
    let patience = deadline.map_or(patience, |deadline| deadline.min(patience));
    timeout_at(patience, charge.resize_when_free(bytes))
        .await
        .is_ok()
}

/// The stream id of the frame at the beginning of the input, which holds at least the header.
fn stream_of(input: &[u8]) -> i16 {
    let stream = input.get(2..4).and_then(|bytes| bytes.try_into().ok());
    stream.map_or(0, i16::from_be_bytes)
}

/// Reads what there is, at least a byte unless the client has closed its side.
async fn read_some(
    reader: &mut (impl AsyncRead + Unpin),
    input: &mut BytesMut,
    deadline: Option<Instant>,
) -> io::Result<usize> {
    if input.capacity() - input.len() < READ_BYTES_MIN {
        input.reserve(READ_BYTES);
    }
    let read = reader.read_buf(input);
    match deadline {
        None => read.await,
        Some(deadline) => match timeout_at(deadline, read).await {
            Ok(read) => read,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        },
    }
}

fn check_version(startup: &Startup) -> Result<(), CqlError> {
    match startup.option("CQL_VERSION") {
        None => Err(CqlError::protocol(
            "Missing value CQL_VERSION in STARTUP message",
        )),
        // Drivers send a version of 3 or, like the official Rust driver, 4.0.0. Both mean the
        // language that is spoken here.
        Some(version) if version.starts_with("3.") || version.starts_with("4.") => Ok(()),
        Some(version) => Err(CqlError::protocol(format!(
            "CQL version {version} is not supported; the supported version is 3"
        ))),
    }
}

//! One connection: frames in, requests answered side by side, frames out.
//!
//! The reader takes frames off the socket in order and deals with the handshake itself; every
//! statement becomes a task of its own, and whichever is done first is answered first. Nothing here knows what a
//! statement means: that is the [`Service`]'s.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    Compression, Direction, EVENT_STREAM, EventKind, Frame, FrameDecoder, HEADER_LENGTH, Opcode,
    Request, Response, ResponseContext, Startup,
};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::admission::{Reservation, semaphore};
use super::listener::Shared;
use super::outbox::{Outbox, encode, outbox};
use super::request;
use super::service::Service;

/// Room made for reading from the socket, and how little of it may be left before there is more made. Requests
/// hold on to the room they came in, so it is used up by many of them.
const READ_BYTES: usize = 16 << 10;
const READ_BYTES_MIN: usize = 2 << 10;

/// How long, and for how many bytes, a client that is being closed may go on sending: closing a socket with unread bytes in
/// it would take the error away that tells the client why.
const LINGER: std::time::Duration = std::time::Duration::from_secs(1);
const LINGER_BYTES: u64 = 64 << 20;

/// Why no more requests are read.
#[derive(Debug)]
enum End {
    /// The client is done.
    Eof,
    /// The server stops, or the writer has given up.
    Closing,
    /// What came makes no sense, and the client has been told.
    Refused,
    Failed(io::Error),
}

struct Connection<S: Service> {
    shared: Arc<Shared<S>>,
    session: Arc<S::Session>,
    outbox: Outbox,
    in_flight: Arc<Semaphore>,
    /// Cancelled when the reader ends, or when it must.
    closing: CancellationToken,
    started: bool,
    compression: Option<Compression>,
    following_schema: bool,
}

/// Serves a connection to its end.
pub(super) async fn serve<S: Service>(stream: TcpStream, shared: Arc<Shared<S>>) {
    let Ok(address) = stream.local_addr() else {
        // The client has gone already.
        return;
    };
    let (reader, writer_half) = stream.into_split();
    let (outbox, writer) = outbox(shared.options.connection.unread_bytes_max);
    let closing = shared.shutdown.stop.child_token();
    let connection = Connection {
        session: Arc::new(shared.service.open_session(address)),
        in_flight: semaphore(shared.options.connection.requests_max),
        outbox,
        closing: closing.clone(),
        started: false,
        compression: None,
        following_schema: false,
        shared: shared.clone(),
    };
    let writing = {
        let shared = shared.clone();
        let closing = closing.clone();
        async move {
            let stall = shared.options.connection.stall_timeout;
            let kill = shared.shutdown.kill.cancelled();
            tokio::select! {
                result = writer.run(writer_half, stall, &shared.counters) => {
                    if let Err(error) = result {
                        tracing::debug!(%error, "a client takes no more answers");
                    }
                }
                () = kill => {}
            }
            closing.cancel();
        }
    };
    let writing = tokio::spawn(writing);
    let (end, mut reader) = connection.read(reader).await;
    closing.cancel();
    // The writer ends when the requests in flight are answered.
    let _ = writing.await;
    match end {
        End::Refused => linger(&mut reader).await,
        End::Failed(error) => tracing::debug!(%error, "a connection failed"),
        End::Eof | End::Closing => {}
    }
}

/// Lets the client read what was written before the socket is closed for good.
async fn linger(reader: &mut (impl AsyncRead + Unpin)) {
    let mut rest = reader.take(LINGER_BYTES);
    let _ = timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}

impl<S: Service> Connection<S> {
    async fn read<R: AsyncRead + Unpin>(mut self, mut reader: R) -> (End, R) {
        let closing = self.closing.clone();
        let end = tokio::select! {
            end = self.read_frames(&mut reader) => end,
            () = closing.cancelled() => End::Closing,
        };
        (end, reader)
    }

    async fn read_frames(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> End {
        let options = self.shared.options.connection.clone();
        let handshake_deadline = Instant::now() + options.handshake_timeout;
        let mut decoder = FrameDecoder::new(Direction::Request, options.frame_body_max);
        let mut input = BytesMut::new();
        let mut reservation: Option<Reservation> = None;
        loop {
            self.outbox.has_room().await;
            match decoder.decode(&mut input) {
                Ok(Some(frame)) => {
                    self.take(frame, reservation.take());
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    let (stream, fatal) = (error.stream(), error.is_fatal());
                    self.refuse(stream, error.into());
                    if fatal {
                        return End::Refused;
                    }
                    continue;
                }
            }
            if reservation.is_none()
                && let Some(length) = announced_length(&input, options.frame_body_max)
            {
                reservation = self.shared.admission.reserve(length).await;
            }
            let deadline = if !self.started {
                Some(handshake_deadline)
            } else if !input.is_empty() {
                Some(Instant::now() + options.stall_timeout)
            } else {
                None
            };
            if input.capacity() - input.len() < READ_BYTES_MIN {
                input.reserve(READ_BYTES);
            }
            let read = reader.read_buf(&mut input);
            let read = match deadline {
                None => read.await,
                Some(deadline) => match timeout_at(deadline, read).await {
                    Ok(read) => read,
                    Err(_) => return End::Failed(io::ErrorKind::TimedOut.into()),
                },
            };
            match read {
                Ok(0) => return End::Eof,
                Ok(bytes) => self.shared.counters.bytes_read.add(bytes as u64),
                Err(error) => return End::Failed(error),
            }
        }
    }

    /// Answers what belongs to the connection itself, and gives statements a task.
    fn take(&mut self, frame: Frame, reservation: Option<Reservation>) {
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
                let answer = Request::decode(&frame, self.compression, limit)
                    .map_err(CqlError::from)
                    .and_then(|request| self.control(request));
                match answer {
                    Ok(()) => self.send(stream, &Response::Ready),
                    Err(error) => self.refuse(stream, error),
                }
            }
            opcode if !self.started => self.refuse(
                stream,
                CqlError::protocol(format!(
                    "Unexpected message {opcode:?}, expecting STARTUP or OPTIONS"
                )),
            ),
            _ => self.spawn(frame, reservation),
        }
    }

    /// Requests that change the connection and are answered READY.
    fn control(&mut self, request: Request) -> Result<(), CqlError> {
        match request {
            Request::Startup(startup) if !self.started => {
                check_version(&startup)?;
                self.compression = startup.compression()?;
                self.started = true;
                Ok(())
            }
            Request::Startup(_) => Err(CqlError::protocol(
                "Unexpected message STARTUP, the connection is open already",
            )),
            Request::Register { events } if self.started => {
                if events.contains(&EventKind::SchemaChange) && !self.following_schema {
                    self.following_schema = true;
                    self.follow_schema();
                }
                Ok(())
            }
            Request::AuthResponse { .. } if self.started => Err(CqlError::protocol(
                "Unexpected message AUTH_RESPONSE, no authentication was asked for",
            )),
            _ => Err(CqlError::protocol(
                "Unexpected message, expecting STARTUP or OPTIONS",
            )),
        }
    }

    /// Passes schema events on until the connection closes.
    fn follow_schema(&self) {
        let mut events = self.shared.service.events();
        let outbox = self.outbox.clone();
        let closing = self.closing.clone();
        let compression = self.compression;
        self.shared.shutdown.tasks.spawn(async move {
            loop {
                let event = tokio::select! {
                    event = events.recv() => event,
                    () = closing.cancelled() => return,
                };
                match event {
                    Ok(event) => outbox.send(encode(
                        &Response::Event(event),
                        &ResponseContext::new(EVENT_STREAM),
                        compression,
                    )),
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

    fn spawn(&self, frame: Frame, reservation: Option<Reservation>) {
        let stream = frame.header.stream;
        let shared = self.shared.clone();
        shared.counters.requests.add(1);
        let Some(admitted) = shared.admission.admit(&self.in_flight) else {
            self.overloaded(stream, "too many requests in flight");
            return;
        };
        let Ok(plain_reservation) = shared.admission.reserve_plain(&frame, self.compression) else {
            self.overloaded(stream, "too many bytes of requests in flight");
            return;
        };
        let session = self.session.clone();
        let outbox = self.outbox.clone();
        let compression = self.compression;
        let tasks = shared.shutdown.tasks.clone();
        tasks.spawn(async move {
            let Some(turn) = outbox.turn().await else {
                return;
            };
            let frame = request::answer(&shared, &session, frame, compression).await;
            turn.send(frame);
            drop((admitted, reservation, plain_reservation));
        });
    }

    fn overloaded(&self, stream: i16, why: &str) {
        self.shared.counters.requests_overloaded.add(1);
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
        // Never compressed: these are small, and a client may not know yet what was agreed on.
        self.outbox
            .send(encode(response, &ResponseContext::new(stream), None));
    }
}

/// The body length that the frame at the front of `input` announces, if it is one to be waited for.
fn announced_length(input: &[u8], limit: usize) -> Option<usize> {
    let length = input.get(HEADER_LENGTH - 4..HEADER_LENGTH)?;
    let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
    (length <= limit).then_some(length)
}

fn check_version(startup: &Startup) -> Result<(), CqlError> {
    match startup.option("CQL_VERSION") {
        None => Err(CqlError::protocol(
            "Missing value CQL_VERSION in STARTUP message",
        )),
        // Drivers say 3.something or, like the official Rust one, 4.0.0; both mean what is spoken here.
        Some(version) if version.starts_with("3.") || version.starts_with("4.") => Ok(()),
        Some(version) => Err(CqlError::protocol(format!(
            "CQL version {version} is not supported; the supported version is 3"
        ))),
    }
}

//! The direction from the client to the node. Every request is looked at; most pass as they came.

mod begin_write;
mod startup;
mod use_keyspace;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client_memory::{FLOOR_BYTES, MemoryCharge};
use cql::error::CqlError;
use cql::wire::{
    FrameDirection, FrameError, FrameHeader, HEADER_LENGTH, ProtocolVersion, SegmentError,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::background_requests::BackgroundRequests;
use super::context::DecisionContext;
use super::decide::decide;
use super::ends::RequestsEnd;
use super::errors::stream_in_use;
use super::frame_reader::ClientFrameReader;
use super::frame_writer::ClientFrameWriter;
use super::own_requests::write_node_requests;
use super::route::RequestAction;
use super::statements::truncate;
use crate::error_frame::error_frame;
use crate::metrics::RequestClass;
use crate::node_requests::NodeRequest;

pub(super) use begin_write::write_memory;

/// The time for which a request that is coming in waits for memory. Then its connection is closed,
/// which makes room for others.
const ROOM_WITHIN: Duration = Duration::from_secs(5);

/// The loop from the client to the node.
pub(super) struct RequestLoop {
    /// The state that requests are decided by.
    pub(super) context: DecisionContext,
    /// The tasks for requests that the gateway carries out itself. The other loop writes their
    /// answers between two responses, and knows by the end of their channel that there are no more
    /// requests.
    pub(super) background: BackgroundRequests,
    /// The requests of the background tasks to the node.
    pub(super) node_requests: mpsc::Receiver<NodeRequest>,
    /// Frames that other parts of the connection send to the node, each on the stream of a request
    /// that the client waits for.
    pub(super) steps: mpsc::UnboundedReceiver<Bytes>,
    /// The sender of `steps`. It is weak, so that the channel ends with the other loop.
    pub(super) steps_sender: mpsc::WeakUnboundedSender<Bytes>,
    /// The memory that the connection's writes under way may hold. Bytes.
    pub(super) write_memory: Arc<Semaphore>,
    /// Whether a request has been dealt with since the last read.
    pub(super) has_passed: bool,
    /// Cancelled when the gateway stops.
    pub(super) stop: CancellationToken,
    /// The memory charged for the request that is coming in.
    pub(super) charge: MemoryCharge,
    /// The time that a whole request may take to come in.
    pub(super) frame_timeout: Duration,
    /// The time that the client has until the node lets it in.
    pub(super) handshake_timeout: Duration,
    /// The time for which work goes on once there are no more requests.
    pub(super) drain_timeout: Duration,
}

impl RequestLoop {
    /// Passes requests on until there are no more.
    pub(super) async fn run(
        mut self,
        client: &mut (impl AsyncRead + Unpin),
        node: &mut (impl AsyncWrite + Unpin),
    ) -> RequestsEnd {
        let node = &mut ClientFrameWriter::new(node);
        let end = match self.pass_on(client, node).await {
            // The client has disconnected, or the node takes nothing any more: no request is left
            // to send.
            Err(end @ (RequestsEnd::Client(_) | RequestsEnd::Node(_))) => return end,
            Ok(end) | Err(end) => end,
        };
        tracing::debug!(%end, "no more requests");
        match self.go_on(node).await {
            Ok(()) => end,
            Err(failed) => failed,
        }
    }

    /// Sends the requests of writes and searches under way to the node, once the client sends no
    /// more requests.
    async fn go_on(
        self,
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<(), RequestsEnd> {
        let RequestLoop {
            context,
            background: workshop,
            node_requests: mut inquiries,
            mut steps,
            drain_timeout,
            ..
        } = self;
        // The other loop ends with the last answer that is due. It waits for answers of background
        // tasks as long as somebody holds their sender: from here on, only work that has begun.
        let gone = workshop.closed.clone();
        drop(workshop);
        let deadline = Instant::now() + drain_timeout;
        loop {
            tokio::select! {
                step = steps.recv() => match step {
                    Some(step) => node.send(&step).await.map_err(RequestsEnd::Node)?,
                    None => return Ok(()),
                },
                Some(inquiry) = inquiries.recv() => {
                    write_node_requests(inquiry, &mut inquiries, &context.session, node).await?;
                }
                () = sleep_until(deadline), if !gone.is_cancelled() => gone.cancel(),
            }
        }
    }

    /// Passes requests on until the client sends no more or breaks the rules.
    async fn pass_on(
        &mut self,
        client: &mut (impl AsyncRead + Unpin),
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<RequestsEnd, RequestsEnd> {
        let mut intake = ClientFrameReader::new();
        // Bytes of a refused request's body that are still to come.
        let mut to_skip = 0;
        let mut time_is_up = pin!(sleep(self.handshake_timeout));
        // The time by which a request that has begun to come in must be whole.
        let mut whole_by: Option<Instant> = None;
        loop {
            self.pass_whole_frames(&mut intake, &mut to_skip, node)
                .await?;
            let is_stranger = !self.context.session.is_let_in();
            let came = intake.held();
            whole_by = match whole_by {
                // A request may have waited here because the node took its time for those before.
                _ if came == 0 || self.has_passed => None,
                None => Some(Instant::now() + self.frame_timeout),
                begun => begun,
            };
            self.has_passed = false;
            let deadline = whole_by.unwrap_or_else(Instant::now);
            if came <= FLOOR_BYTES {
                // A smaller charge never fails.
                let _ = self.charge.resize(0);
            } else {
                let room = self.charge.resize_when_free(came);
                tokio::time::timeout(ROOM_WITHIN, room)
                    .await
                    .map_err(|_| RequestsEnd::Client(io::ErrorKind::TimedOut.into()))?;
            }
            let read = tokio::select! {
                read = intake.fill(client) => self.check_read(read).await?,
                Some(inquiry) = self.node_requests.recv() => {
                    write_node_requests(inquiry, &mut self.node_requests, &self.context.session, node).await?;
                    continue;
                }
                Some(step) = self.steps.recv() => {
                    node.send(&step).await.map_err(RequestsEnd::Node)?;
                    continue;
                }
                () = sleep_until(deadline), if whole_by.is_some() => {
                    return Err(RequestsEnd::Client(io::ErrorKind::TimedOut.into()));
                }
                () = self.stop.cancelled() => return Ok(RequestsEnd::Stopping),
                () = &mut time_is_up, if is_stranger => {
                    // While the node owes an answer, the delay is the node's.
                    if !self.context.session.is_let_in() && self.context.session.client.in_flight() == 0 {
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

    /// Handles the frames that are wholly in the buffer. Frames that pass go out in one write.
    async fn pass_whole_frames(
        &mut self,
        intake: &mut ClientFrameReader,
        to_skip: &mut usize,
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
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
            let body_max = self.context.session.request_body_max();
            match FrameHeader::read(rest, FrameDirection::Request, body_max) {
                Ok(None) => break,
                Ok(Some(header)) => {
                    let length = HEADER_LENGTH + header.length as usize;
                    let Some(body) = rest.get(HEADER_LENGTH..length) else {
                        break;
                    };
                    // Before the request is noted: a second one on a stream would replace what is
                    // awaited there.
                    if let Err(error) = self.check(&header) {
                        write_front(intake, passing, node).await?;
                        self.answer(header.stream, error).await;
                        return Err(RequestsEnd::Refused);
                    }
                    self.has_passed = true;
                    self.context.session.client.request_came(header.stream);
                    let has_room = self.background.has_room();
                    let route = decide(&self.context, &header, body, has_room);
                    self.count(&route);
                    passing = self.take(route, &header, intake, passing, node).await?;
                }
                Err(refusal) => {
                    write_front(intake, passing, node).await?;
                    passing = 0;
                    let stream = refusal.error.stream();
                    if let FrameError::UnsupportedVersion { version } = refusal.error {
                        // After the handshake there is but one version to answer in.
                        let _ = self
                            .context
                            .session
                            .check_version(ProtocolVersion::nearest(version));
                    }
                    self.answer(stream, refusal.error.into()).await;
                    let Some(length) = refusal.body_length else {
                        return Err(RequestsEnd::Refused);
                    };
                    *to_skip = HEADER_LENGTH + length;
                }
            }
        }
        write_front(intake, passing, node).await
    }

    /// Takes the way of the request that follows the first `passing` bytes of the buffer. Returns
    /// how many bytes pass now: with a request that passes they wait for those after it, before any
    /// other they are written and the request is removed.
    async fn take(
        &mut self,
        route: RequestAction,
        header: &FrameHeader,
        intake: &mut ClientFrameReader,
        passing: usize,
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<usize, RequestsEnd> {
        let length = HEADER_LENGTH + header.length as usize;
        let stream = header.stream;
        match route {
            RequestAction::Pass => {
                self.context.session.reserve_stream(stream).await;
                return Ok(passing + length);
            }
            RequestAction::Replace(frame) => {
                self.context.session.reserve_stream(stream).await;
                write_front(intake, passing, node).await?;
                intake.advance(length);
                node.send(&frame).await.map_err(RequestsEnd::Node)?;
            }
            RequestAction::Write(execution) => {
                self.context.session.reserve_stream(stream).await;
                write_front(intake, passing, node).await?;
                intake.advance(length);
                self.begin(header, *execution, length, node).await?;
            }
            RequestAction::Truncate(table) => {
                self.context.session.reserve_stream(stream).await;
                write_front(intake, passing, node).await?;
                // Copied, as it is sent only once the TRUNCATE is noted in the cluster.
                let frame = Bytes::copy_from_slice(&intake.bytes()[..length]);
                intake.advance(length);
                truncate::send(&self.context, &self.steps_sender, stream, frame, table);
            }
            RequestAction::Use => {
                write_front(intake, passing, node).await?;
                self.use_keyspace(header, &intake.bytes()[..length], node)
                    .await?;
                intake.advance(length);
            }
            RequestAction::Startup => {
                write_front(intake, passing, node).await?;
                self.start(header, intake, length, node).await?;
            }
            RequestAction::Answer(error) => {
                self.context.session.client.answered(stream);
                write_front(intake, passing, node).await?;
                intake.advance(length);
                self.answer(stream, error).await;
            }
            RequestAction::Begin(work) => {
                let dialect = self.context.session.dialect();
                // It counts as work in progress before its stream is free.
                let begun = self.background.begin(work, dialect);
                // The work writes no rows, so nothing has to wait until it is done.
                self.context.session.client.answered(stream);
                write_front(intake, passing, node).await?;
                intake.advance(length);
                if let Err(error) = begun {
                    self.answer(stream, error).await;
                }
            }
        }
        Ok(0)
    }

    /// Checks that a request is of the connection's version and on a free stream.
    fn check(&self, header: &FrameHeader) -> Result<(), CqlError> {
        let &FrameHeader {
            version, stream, ..
        } = header;
        if self.context.session.client.is_due_on(stream) {
            return Err(stream_in_use(stream));
        }
        let spoken = self.context.session.check_version(version);
        spoken.map_err(|agreed| {
            let error = FrameError::MixedVersions {
                got: version,
                agreed,
                stream,
            };
            error.into()
        })
    }

    /// The outcome of a read from the client. A client whose segments are damaged gets an error.
    async fn check_read<T>(&self, read: io::Result<T>) -> Result<T, RequestsEnd> {
        match read {
            Err(error)
                if error
                    .get_ref()
                    .is_some_and(|error| error.is::<SegmentError>()) =>
            {
                self.answer(0, CqlError::protocol(error.to_string())).await;
                Err(RequestsEnd::Refused)
            }
            read => read.map_err(RequestsEnd::Client),
        }
    }

    /// Counts a request by its way.
    fn count(&self, route: &RequestAction) {
        let metrics = &self.context.log.metrics;
        metrics.request(match route {
            RequestAction::Pass | RequestAction::Use | RequestAction::Startup => {
                RequestClass::Passed
            }
            RequestAction::Replace(_) => RequestClass::Overlaid,
            RequestAction::Write(_) => RequestClass::Write,
            RequestAction::Truncate(_) => RequestClass::Truncate,
            RequestAction::Begin(work) => work.kind(),
            RequestAction::Answer(_) => RequestClass::Refused,
        });
    }

    /// Refuses a request on a stream.
    pub(super) async fn answer(&self, stream: i16, error: CqlError) {
        self.context.log.metrics.refused(&error.kind);
        // If the other loop has ended, the client has disconnected.
        let _ = self
            .background
            .answers
            .send(error_frame(self.context.session.version(), stream, error))
            .await;
    }
}

/// Writes the first `count` bytes of the buffer to the node, and removes them.
async fn write_front(
    intake: &mut ClientFrameReader,
    count: usize,
    node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
) -> Result<(), RequestsEnd> {
    if count > 0 {
        let written = node.send(&intake.bytes()[..count]).await;
        written.map_err(RequestsEnd::Node)?;
        intake.advance(count);
    }
    Ok(())
}

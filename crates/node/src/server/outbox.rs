//! The outbox of a connection: one task writes the answers to all requests, several frames at a
//! time. In version 5 of the protocol such frames share a segment.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use client_memory::{MemoryCharge, NoRoom};
use cql::wire::{Compression, Response, ResponseContext, SegmentForm, segments_of};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::batch::OutgoingFrames;
use super::counters::ListenerCounters;
use super::unread::ResponseBacklog;

/// The size in bytes up to which frames are collected before they are written.
const BATCH_BYTES: usize = 64 << 10;

/// Parts with more bytes than this are written from where they are, without a copy.
const COPY_BYTES_MAX: usize = 16 << 10;

/// The things that the writer takes, in order.
enum WriterCommand {
    /// A frame, or the segments of one.
    Answer(EncodedResponse),
    /// The frames after this go out within segments of a form.
    Segments(SegmentForm),
}

/// The entry for answers. It is cheap to clone. The writer ends when the last clone is dropped.
#[derive(Clone)]
pub(super) struct Outbox {
    items: mpsc::UnboundedSender<WriterCommand>,
    unread: Arc<ResponseBacklog>,
    /// The form of segments, once they have begun.
    segments: Arc<OnceLock<SegmentForm>>,
}

/// The writing side of an outbox.
pub(super) struct ResponseWriter {
    items: mpsc::UnboundedReceiver<WriterCommand>,
    unread: Arc<ResponseBacklog>,
}

/// Makes an outbox and its writer. While more than `unread_bytes_max` bytes of answers wait for the
/// client, no request gets a [`ResponseReservation`].
pub(super) fn outbox(unread_bytes_max: usize) -> (Outbox, ResponseWriter) {
    #[expect(
        clippy::disallowed_methods,
        reason = "`Unread` limits the bytes that wait"
    )]
    let (sender, receiver) = mpsc::unbounded_channel();
    let unread = Arc::new(ResponseBacklog::new(unread_bytes_max));
    let outbox = Outbox {
        items: sender,
        unread: unread.clone(),
        segments: Arc::default(),
    };
    let writer = ResponseWriter {
        items: receiver,
        unread,
    };
    (outbox, writer)
}

/// An encoded response, with the charges for its memory.
pub(super) struct EncodedResponse {
    parts: ResponseBytes,
    charges: [Option<MemoryCharge>; 2],
}

/// The bytes of an encoded response.
enum ResponseBytes {
    /// A frame. The writer puts it into a segment if the connection has segments.
    Frame([Bytes; 2]),
    /// The segments of a large frame, as they go out.
    Segments(Vec<Bytes>),
}

impl ResponseBytes {
    fn bytes(&self) -> usize {
        match self {
            ResponseBytes::Frame(parts) => parts.iter().map(Bytes::len).sum(),
            ResponseBytes::Segments(parts) => parts.iter().map(Bytes::len).sum(),
        }
    }
}

impl EncodedResponse {
    fn length(&self) -> usize {
        self.parts.bytes()
    }

    /// Puts a large frame into segments of its own, if the connection has segments. Small frames
    /// share one.
    pub fn within(mut self, segments: Option<SegmentForm>) -> EncodedResponse {
        if let (Some(form), ResponseBytes::Frame([head, tail])) = (segments, &self.parts)
            && head.len() + tail.len() > COPY_BYTES_MAX
        {
            self.parts = ResponseBytes::Segments(segments_of(form, head, tail));
        }
        self
    }

    /// Charges the memory of this response. `rows` covers the rows in it already. `charge` is set
    /// to the rest, whatever it covered before.
    ///
    /// # Errors
    /// If there is no room.
    pub fn charged(
        mut self,
        mut charge: MemoryCharge,
        rows: Option<MemoryCharge>,
    ) -> Result<EncodedResponse, NoRoom> {
        let of_rows = rows.as_ref().map_or(0, MemoryCharge::bytes);
        charge.resize(self.length().saturating_sub(of_rows))?;
        self.charges = [Some(charge), rows];
        Ok(self)
    }
}

/// Encodes a response.
pub(super) fn encode(
    response: &Response,
    context: &ResponseContext,
    compression: Option<Compression>,
) -> EncodedResponse {
    let mut head = BytesMut::new();
    let tail = response.encode_parts(context, compression, &mut head);
    EncodedResponse {
        parts: ResponseBytes::Frame([head.freeze(), tail]),
        charges: [None, None],
    }
}

impl Outbox {
    /// Hands in a frame. It is dropped if the client has disconnected.
    pub fn send(&self, frame: EncodedResponse) {
        let frame = frame.within(self.segments.get().copied());
        self.unread.add(frame.length());
        // It fails only if the writer has ended, and then the connection has ended, too.
        let _ = self.items.send(WriterCommand::Answer(frame));
    }

    /// Puts the frames that are handed in from now on into segments.
    pub fn begin_segments(&self, form: SegmentForm) {
        if self.segments.set(form).is_ok() {
            let _ = self.items.send(WriterCommand::Segments(form));
        }
    }

    /// Waits until work on the answer to one more request may begin; `None` if the client has
    /// disconnected.
    pub async fn turn(&self) -> Option<ResponseReservation> {
        let expected = self.unread.expect().await?;
        Some(ResponseReservation {
            outbox: self.clone(),
            expected,
        })
    }

    /// Waits until the client has read enough answers for the server to read its requests again.
    /// Returns whether it had to wait.
    pub async fn has_room(&self) -> bool {
        self.unread.has_room().await
    }
}

/// The right to work on one answer.
pub(super) struct ResponseReservation {
    outbox: Outbox,
    /// The bytes that were set aside for the answer.
    expected: usize,
}

impl ResponseReservation {
    /// Hands in the answer.
    pub fn send(self, frame: EncodedResponse) {
        self.outbox.unread.learn(frame.length());
        self.outbox.send(frame);
    }
}

impl Drop for ResponseReservation {
    fn drop(&mut self) {
        self.outbox.unread.subtract(self.expected);
    }
}

impl Drop for ResponseWriter {
    fn drop(&mut self) {
        self.unread.gone.cancel();
    }
}

impl ResponseWriter {
    /// Writes until the last [`Outbox`] is dropped, then shuts down its side of the socket.
    ///
    /// # Errors
    /// If the socket fails, or takes no bytes for as long as `stall`.
    pub async fn run(
        mut self,
        mut socket: impl AsyncWrite + Unpin,
        stall: Duration,
        counters: &ListenerCounters,
    ) -> io::Result<()> {
        let mut batch = OutgoingFrames::default();
        // The charges of the frames in the batch.
        let mut charges = Vec::new();
        while let Some(first) = self.items.recv().await {
            let mut next = Some(first);
            while let Some(item) = next {
                match item {
                    WriterCommand::Segments(form) => batch.begin_segments(form),
                    WriterCommand::Answer(answer) => {
                        charges.push(answer.charges);
                        let parts = match answer.parts {
                            ResponseBytes::Frame(frame) => batch.add_frame(frame),
                            ResponseBytes::Segments(parts) => {
                                batch.close_segment();
                                parts
                            }
                        };
                        for part in parts {
                            if part.len() > COPY_BYTES_MAX {
                                self.write_batch(&mut socket, &mut batch, stall, counters)
                                    .await?;
                                let counted = part.len();
                                self.write(&mut socket, &part, counted, stall, counters)
                                    .await?;
                            } else {
                                batch.add_ready(&part);
                            }
                        }
                    }
                }
                if batch.bytes() >= BATCH_BYTES {
                    break;
                }
                next = self.items.try_recv().ok();
            }
            self.write_batch(&mut socket, &mut batch, stall, counters)
                .await?;
            charges.clear();
        }
        in_time(stall, socket.shutdown()).await
    }

    async fn write_batch(
        &self,
        socket: &mut (impl AsyncWrite + Unpin),
        batch: &mut OutgoingFrames,
        stall: Duration,
        counters: &ListenerCounters,
    ) -> io::Result<()> {
        let (bytes, counted) = batch.ready();
        self.write(socket, bytes, counted, stall, counters).await?;
        batch.clear();
        Ok(())
    }

    /// Writes bytes. `counted` of them are among the unread ones, fewer or more than there are if
    /// they are segments.
    async fn write(
        &self,
        socket: &mut (impl AsyncWrite + Unpin),
        mut bytes: &[u8],
        mut counted: usize,
        stall: Duration,
        counters: &ListenerCounters,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = in_time(stall, socket.write(bytes)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
            counters.bytes_written.add(written as u64);
            let read = match bytes.is_empty() {
                true => counted,
                false => written.min(counted),
            };
            counted -= read;
            self.unread.subtract(read);
        }
        // TLS keeps back what the socket does not take at once.
        in_time(stall, socket.flush()).await
    }
}

/// Waits for a step of writing no longer than `stall`.
async fn in_time<T>(stall: Duration, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = timeout(stall, step).await;
    done.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll};

    use cql::wire::{SEGMENT_PAYLOAD_MAX, SegmentDecoder};

    use super::*;

    /// A socket that remembers each write.
    #[derive(Clone, Default)]
    struct Wire(Arc<Mutex<Vec<Vec<u8>>>>);

    impl AsyncWrite for Wire {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.lock().unwrap().push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn frame(head: &[u8], tail: &[u8]) -> EncodedResponse {
        EncodedResponse {
            parts: ResponseBytes::Frame([
                Bytes::copy_from_slice(head),
                Bytes::copy_from_slice(tail),
            ]),
            charges: [None, None],
        }
    }

    #[tokio::test]
    async fn waiting_frames_go_out_together_and_in_order() {
        let (outbox, writer) = outbox(20);
        let large = vec![7; COPY_BYTES_MAX + 1];
        outbox.send(frame(b"a", b""));
        outbox.send(frame(b"b", b"c"));
        outbox.send(frame(b"d", &large));
        outbox.send(frame(b"e", b""));
        drop(outbox);
        let wire = Wire::default();
        let counters = ListenerCounters::default();
        writer
            .run(wire.clone(), Duration::from_secs(1), &counters)
            .await
            .unwrap();
        let writes = wire.0.lock().unwrap().clone();
        assert_eq!(writes, [b"abcd".to_vec(), large, b"e".to_vec()]);
        assert_eq!(
            counters.values().bytes_written,
            5 + COPY_BYTES_MAX as u64 + 1
        );
    }

    #[tokio::test]
    async fn frames_behind_the_handshake_share_segments() {
        for form in [SegmentForm::Plain, SegmentForm::Lz4] {
            let (outbox, writer) = outbox(20);
            let unread = outbox.unread.clone();
            let large = vec![7; COPY_BYTES_MAX];
            let huge = vec![8; 3 * SEGMENT_PAYLOAD_MAX];
            outbox.send(frame(b"ready", b""));
            outbox.begin_segments(form);
            outbox.send(frame(b"a", b"").within(Some(form)));
            outbox.send(frame(b"b", b"c").within(Some(form)));
            outbox.send(frame(b"d", &large).within(Some(form)));
            outbox.send(frame(b"e", b"").within(Some(form)));
            // One that was not put into segments before.
            outbox.send(frame(b"f", &huge));
            outbox.send(frame(b"g", b"").within(Some(form)));
            drop(outbox);
            let wire = Wire::default();
            writer
                .run(
                    wire.clone(),
                    Duration::from_secs(1),
                    &ListenerCounters::default(),
                )
                .await
                .unwrap();
            let mut written = BytesMut::from(&wire.0.lock().unwrap().concat()[..]);
            assert_eq!(&written.split_to(5)[..], b"ready");
            let mut decoder = SegmentDecoder::new(form);
            let mut segments = Vec::new();
            while let Some(segment) = decoder.decode(&mut written).unwrap() {
                segments.push((segment.is_self_contained, segment.payload.len()));
            }
            assert!(written.is_empty());
            let max = SEGMENT_PAYLOAD_MAX;
            assert_eq!(
                segments,
                [
                    (true, 3),
                    (true, large.len() + 1),
                    (true, 1),
                    (false, max),
                    (false, max),
                    (false, max),
                    (false, 1),
                    (true, 1)
                ]
            );
            assert_eq!(unread.bytes(), 0, "all was counted off");
        }
    }

    #[tokio::test]
    async fn room_comes_back_as_the_client_reads() {
        let (outbox, writer) = outbox(20);
        let (ours, mut theirs) = tokio::io::duplex(8);
        outbox.send(frame(&[1; 100], b""));
        let counters = Arc::new(ListenerCounters::default());
        tokio::spawn(async move {
            let _ = writer.run(ours, Duration::from_secs(5), &counters).await;
        });
        let wait = timeout(Duration::from_millis(30), outbox.has_room());
        assert!(wait.await.is_err(), "nobody has read");
        let mut read = [0; 90];
        tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut read)
            .await
            .unwrap();
        timeout(Duration::from_secs(5), outbox.has_room())
            .await
            .expect("most of it is read");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_given_up() {
        let (outbox, writer) = outbox(20);
        let (ours, _theirs) = tokio::io::duplex(8);
        outbox.send(frame(&[1; 100], b""));
        let error = writer
            .run(ours, Duration::from_secs(60), &ListenerCounters::default())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

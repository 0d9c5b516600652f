//! The buffer of one direction: bytes of frames that came from one socket and were not written to
//! the other yet. They may come within segments.

use std::io;

use bytes::BytesMut;
use cql::wire::{BufferMemory, SegmentDecoder, SegmentForm};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The room that is made for the first read, small for a connection with few requests. Bytes.
const READ_BYTES_MIN: usize = 4 << 10;
/// The limit of that room, which doubles when a read fills it. Bytes.
const READ_BYTES_MAX: usize = 64 << 10;
/// The most memory that an empty buffer keeps. Bytes.
const IDLE_BYTES_MAX: usize = 2 * READ_BYTES_MAX;

/// Bytes that were read and not passed on yet.
pub(super) struct ClientFrameReader {
    bytes: BytesMut,
    /// The memory of `bytes`.
    memory: BufferMemory,
    segments: Option<UnfinishedSegments>,
    /// The room for the next read. Bytes.
    read_bytes: usize,
}

/// The segments that the bytes come within.
struct UnfinishedSegments {
    decoder: SegmentDecoder,
    /// The bytes of segments whose frames are not taken out yet.
    unfinished: BytesMut,
}

impl ClientFrameReader {
    /// An empty buffer.
    pub(super) fn new() -> Self {
        ClientFrameReader {
            bytes: BytesMut::new(),
            memory: BufferMemory::new(IDLE_BYTES_MAX),
            segments: None,
            read_bytes: READ_BYTES_MIN,
        }
    }

    /// Expects segments of a form in all bytes that were not passed on yet. Does nothing if it does
    /// so already.
    pub(super) fn begin_segments(&mut self, form: SegmentForm) {
        if self.segments.is_some() {
            return;
        }
        self.segments = Some(UnfinishedSegments {
            decoder: SegmentDecoder::new(form),
            unfinished: std::mem::take(&mut self.bytes),
        });
    }

    /// Takes the frames out of the next segment if it is whole, and returns the length of the
    /// segment as it came. The error is a [`cql::wire::SegmentError`].
    fn take_segment(&mut self) -> io::Result<Option<usize>> {
        let Some(segments) = &mut self.segments else {
            return Ok(None);
        };
        let before = segments.unfinished.len();
        match segments.decoder.decode(&mut segments.unfinished) {
            Ok(None) => return Ok(None),
            Ok(Some(segment)) if self.bytes.is_empty() => self.bytes = segment.payload,
            Ok(Some(segment)) => self.bytes.extend_from_slice(&segment.payload),
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
        Ok(Some(before - segments.unfinished.len()))
    }

    /// The number of bytes that are held: those that were not passed on yet, and those of segments
    /// whose frames are not taken out yet.
    pub(super) fn held(&self) -> usize {
        let unfinished = self.segments.as_ref().map_or(0, |of| of.unfinished.len());
        self.bytes.len() + unfinished
    }

    /// The bytes that were not passed on yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes the first `count` bytes, which were passed on. This also frees the memory of a large
    /// message.
    pub(super) fn advance(&mut self, count: usize) {
        self.memory.advance(&mut self.bytes, count);
    }

    /// Takes in more bytes and returns their number; 0 at the end. Nothing is lost if the future is
    /// dropped.
    ///
    /// They are those of the next segment where there are segments. A segment may be hundreds of
    /// times as long when it is decompressed. So those after it wait until its frames were passed
    /// on.
    ///
    /// # Errors
    /// If the socket fails, or the bytes are no segments where segments are expected.
    pub(super) async fn fill(
        &mut self,
        socket: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<usize> {
        if self.segments.is_some() {
            return self.fill_segments(socket).await;
        }
        // A large message is read in ever larger pieces, so that it is not moved for each of them.
        // No more memory is taken for it than has come already.
        self.bytes.reserve(self.read_bytes.max(self.bytes.len()));
        let room = self.bytes.capacity() - self.bytes.len();
        let read = socket.read_buf(&mut self.bytes).await?;
        self.note(read, room);
        Ok(read)
    }

    async fn fill_segments(&mut self, socket: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        loop {
            if let Some(taken) = self.take_segment()? {
                return Ok(taken);
            }
            let read_bytes = self.read_bytes;
            let Some(UnfinishedSegments { unfinished, .. }) = &mut self.segments else {
                return Ok(0);
            };
            if unfinished.capacity() == unfinished.len() {
                unfinished.reserve(read_bytes);
            }
            let room = unfinished.capacity() - unfinished.len();
            let read = socket.read_buf(unfinished).await?;
            self.note(read, room);
            if read == 0 {
                return Ok(0);
            }
        }
    }

    /// Makes more room for the next read if one has filled it.
    fn note(&mut self, read: usize, room: usize) {
        if read == room {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_follows_what_comes() {
        let stream = vec![7; 4 << 20];
        let mut socket = &stream[..];
        let mut intake = ClientFrameReader::new();
        while intake.fill(&mut socket).await.unwrap() > 0 {
            assert!(intake.bytes.capacity() <= READ_BYTES_MIN + 3 * intake.bytes().len());
        }
        assert_eq!(intake.bytes(), stream);
        intake.advance(stream.len() - 10);
        assert!(intake.bytes.capacity() <= IDLE_BYTES_MAX);
        intake.advance(10);
        intake.fill(&mut &b"small"[..]).await.unwrap();
        assert_eq!(intake.bytes(), b"small");
        assert!(intake.bytes.capacity() <= 2 * READ_BYTES_MAX);
    }

    #[tokio::test]
    async fn frames_come_out_of_segments() {
        use cql::wire::put_segment;

        for form in [SegmentForm::Plain, SegmentForm::Lz4] {
            let mut stream = BytesMut::from(&b"before"[..]);
            let mut expected = b"before".to_vec();
            for length in [1, 70_000, 131_071, 0, 10] {
                let payload = vec![length as u8; length];
                put_segment(form, &payload, true, &mut stream);
                expected.extend_from_slice(&payload);
            }
            let mut intake = ClientFrameReader::new();
            let mut socket = &stream[..];
            intake.fill(&mut socket).await.unwrap();
            let mut came = intake.bytes()[..6].to_vec();
            intake.advance(6);
            intake.begin_segments(form);
            loop {
                came.extend_from_slice(intake.bytes());
                intake.advance(intake.bytes().len());
                if intake.fill(&mut socket).await.unwrap() == 0 {
                    break;
                }
                assert!(intake.held() <= 131_071 + 2 * READ_BYTES_MAX + 16);
            }
            came.extend_from_slice(intake.bytes());
            assert_eq!(came, expected);

            let mut damaged = &b"no segment at all"[..];
            let error = intake.fill(&mut damaged).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[tokio::test]
    async fn a_segment_is_decompressed_when_those_before_it_have_gone_on() {
        use cql::wire::{SEGMENT_PAYLOAD_MAX, put_segment};

        let mut stream = BytesMut::new();
        for _ in 0..100 {
            let zeros = vec![0; SEGMENT_PAYLOAD_MAX];
            put_segment(SegmentForm::Lz4, &zeros, true, &mut stream);
        }
        let mut socket = &stream[..];
        let mut intake = ClientFrameReader::new();
        intake.begin_segments(SegmentForm::Lz4);
        for _ in 0..100 {
            assert!(intake.fill(&mut socket).await.unwrap() > 0);
            assert_eq!(intake.bytes().len(), SEGMENT_PAYLOAD_MAX);
            assert!(intake.held() <= SEGMENT_PAYLOAD_MAX + 2 * READ_BYTES_MAX);
            intake.advance(SEGMENT_PAYLOAD_MAX);
        }
        assert_eq!(intake.fill(&mut socket).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn the_memory_of_large_messages_in_segments_goes_with_them() {
        use cql::wire::{SEGMENT_PAYLOAD_MAX, put_segment};

        for form in [SegmentForm::Plain, SegmentForm::Lz4] {
            let mut stream = BytesMut::new();
            for _ in 0..50 {
                let part: Vec<u8> = (0..SEGMENT_PAYLOAD_MAX).map(|at| (at * at) as u8).collect();
                put_segment(form, &part, false, &mut stream);
            }
            let mut socket = &stream[..];
            let mut intake = ClientFrameReader::new();
            intake.begin_segments(form);
            while intake.fill(&mut socket).await.unwrap() > 0 {}
            assert_eq!(intake.bytes().len(), 50 * SEGMENT_PAYLOAD_MAX);
            intake.advance(intake.bytes().len() - 10);
            assert_eq!(intake.bytes().len(), 10);
            let unfinished = &intake.segments.as_ref().unwrap().unfinished;
            let kept = intake.bytes.capacity() + unfinished.capacity();
            assert!(kept <= IDLE_BYTES_MAX, "{kept}");
        }
    }

    #[tokio::test]
    async fn a_stream_that_passes_in_pieces_needs_memory_for_a_few_of_them() {
        let stream = vec![7; 4 << 20];
        let mut socket = &stream[..];
        let mut intake = ClientFrameReader::new();
        loop {
            let read = intake.fill(&mut socket).await.unwrap();
            if read == 0 {
                break;
            }
            intake.advance(read);
            assert!(intake.bytes.capacity() <= 2 * READ_BYTES_MAX);
        }
    }
}

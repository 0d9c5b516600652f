//! The frames that go out in one write, within segments if the connection has them.

use bytes::{Bytes, BytesMut};
use cql::wire::{SEGMENT_PAYLOAD_MAX, SegmentForm, put_segment, segments_of};

/// The memory in bytes that an open segment keeps for the next one.
const KEPT_BYTES: usize = 16 << 10;

/// Frames that are collected to be written together.
#[derive(Default)]
pub(super) struct OutgoingFrames {
    segments: Option<SegmentForm>,
    /// The frames of the segment that is not closed yet.
    open: BytesMut,
    /// The bytes that are ready to be written.
    ready: BytesMut,
    /// The bytes in the batch as the outbox counts them: those of frames in shared segments, and
    /// those of all others as they go out.
    counted: usize,
}

impl OutgoingFrames {
    /// Puts the frames that are added from now on into segments.
    pub fn begin_segments(&mut self, form: SegmentForm) {
        self.segments = Some(form);
    }

    /// Adds a frame to the open segment. Returns its parts instead, to be added or written in
    /// order, if the connection has no segments.
    pub fn add_frame(&mut self, frame: [Bytes; 2]) -> Vec<Bytes> {
        let Some(form) = self.segments else {
            return frame.into();
        };
        let length: usize = frame.iter().map(Bytes::len).sum();
        if self.open.len() + length > SEGMENT_PAYLOAD_MAX {
            self.close_segment();
        }
        self.counted += length;
        if length > SEGMENT_PAYLOAD_MAX {
            let [head, tail] = frame;
            for part in segments_of(form, &head, &tail) {
                self.ready.extend_from_slice(&part);
            }
            return Vec::new();
        }
        for part in frame {
            self.open.extend_from_slice(&part);
        }
        Vec::new()
    }

    /// Adds bytes as they are.
    pub fn add_ready(&mut self, bytes: &[u8]) {
        self.ready.extend_from_slice(bytes);
        self.counted += bytes.len();
    }

    /// Closes the segment of the frames so far, if there is one.
    pub fn close_segment(&mut self) {
        if let Some(form) = self.segments
            && !self.open.is_empty()
        {
            put_segment(form, &self.open, true, &mut self.ready);
            self.open.clear();
            if self.open.capacity() > KEPT_BYTES {
                self.open = BytesMut::new();
            }
        }
    }

    /// The number of bytes that wait.
    pub fn bytes(&self) -> usize {
        self.open.len() + self.ready.len()
    }

    /// All bytes to write, and the number of bytes that the outbox counts for them.
    pub fn ready(&mut self) -> (&[u8], usize) {
        self.close_segment();
        (&self.ready, self.counted)
    }

    /// Forgets the bytes, which are written.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.counted = 0;
    }
}

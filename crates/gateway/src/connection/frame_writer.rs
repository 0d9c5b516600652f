//! The way of frames to a socket: as they are, or within segments from the answer to STARTUP on.
//!
//! Frames come whole or in pieces, one after the other. Whole frames that come together share a
//! segment. A frame that comes in pieces goes in as many segments, so that no more of it is held
//! than has come.

use std::io;

use bytes::BytesMut;
use cql::wire::{HEADER_LENGTH, SEGMENT_PAYLOAD_MAX, SegmentForm, put_segment};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The position of the body's length in a header.
const LENGTH_AT: usize = 5;

/// The length of segments up to which they are collected before they are written. Bytes.
const WRITE_BYTES: usize = 64 << 10;

/// A socket that takes frames.
pub(super) struct ClientFrameWriter<'s, S> {
    socket: &'s mut S,
    segments: Option<OutgoingSegments>,
}

/// The state of a writer with segments.
struct OutgoingSegments {
    form: SegmentForm,
    /// Bytes of a frame in pieces that are still to come.
    to_come: usize,
}

impl<'s, S: AsyncWrite + Unpin> ClientFrameWriter<'s, S> {
    /// A writer without segments.
    pub(super) fn new(socket: &'s mut S) -> Self {
        ClientFrameWriter {
            socket,
            segments: None,
        }
    }

    /// Puts the frames from now on into segments.
    pub(super) fn begin_segments(&mut self, form: SegmentForm) {
        if self.segments.is_none() {
            self.segments = Some(OutgoingSegments { form, to_come: 0 });
        }
    }

    /// Writes bytes of frames and flushes them: TLS keeps back what the socket does not take at
    /// once. Bytes that begin a frame hold its whole header.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(segments) = &mut self.segments else {
            self.socket.write_all(bytes).await?;
            return self.socket.flush().await;
        };
        let mut out = BytesMut::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (length, is_self_contained) = segments.next(rest);
            let (payload, behind) = rest.split_at(length);
            put_segment(segments.form, payload, is_self_contained, &mut out);
            rest = behind;
            if out.len() >= WRITE_BYTES || rest.is_empty() {
                self.socket.write_all(&out).await?;
                out.clear();
            }
        }
        self.socket.flush().await
    }
}

impl OutgoingSegments {
    /// The number of bytes for the next segment, at least one, and whether it is self-contained.
    fn next(&mut self, bytes: &[u8]) -> (usize, bool) {
        if self.to_come == 0 {
            let whole = whole_frames(bytes);
            if whole > 0 {
                return (whole, true);
            }
            self.to_come = frame_length(bytes).unwrap_or(bytes.len());
        }
        let piece = self.to_come.min(bytes.len()).min(SEGMENT_PAYLOAD_MAX);
        self.to_come -= piece;
        (piece, false)
    }
}

/// The length of the whole frames at the front of some bytes that fit in one segment.
fn whole_frames(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(length) = frame_length(&bytes[end..]) {
        let with = end + length;
        if with > bytes.len().min(SEGMENT_PAYLOAD_MAX) {
            break;
        }
        end = with;
    }
    end
}

/// The length of the frame that begins so; `None` without a whole header.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<HEADER_LENGTH>()?;
    let length = header[LENGTH_AT..].try_into().ok()?;
    Some(HEADER_LENGTH + u32::from_be_bytes(length) as usize)
}

#[cfg(test)]
mod tests {
    use cql::wire::SegmentDecoder;

    use super::*;

    fn frame(length: usize) -> Vec<u8> {
        let mut frame = vec![5, 0, 0, 1, 7];
        frame.extend_from_slice(&(length as u32).to_be_bytes());
        frame.resize(HEADER_LENGTH + length, 9);
        frame
    }

    #[tokio::test]
    async fn whole_frames_share_a_segment_and_pieces_have_their_own() {
        for form in [SegmentForm::Plain, SegmentForm::Lz4] {
            let mut written = Vec::new();
            let mut outlet = ClientFrameWriter::new(&mut written);
            outlet.send(&frame(1)).await.unwrap();
            outlet.begin_segments(form);
            let max = SEGMENT_PAYLOAD_MAX;
            let large = frame(2 * max);
            let together = [frame(0), frame(5), frame(max - 9), frame(3)].concat();
            let pieces = [&frame(7)[..], &large[..20]].concat();
            let end = [&large[20..], &frame(2)[..]].concat();
            for sent in [&together, &pieces, &end] {
                outlet.send(sent).await.unwrap();
            }
            let mut input = BytesMut::from(&written[..]);
            assert_eq!(&input.split_to(10)[..], frame(1));
            let mut decoder = SegmentDecoder::new(form);
            let mut segments = Vec::new();
            let mut plain = Vec::new();
            while let Some(segment) = decoder.decode(&mut input).unwrap() {
                segments.push((segment.is_self_contained, segment.payload.len()));
                plain.extend_from_slice(&segment.payload);
            }
            assert_eq!(plain, [&together[..], &pieces, &end].concat());
            assert_eq!(
                segments,
                [
                    (true, 9 + 14),
                    (true, max),
                    (true, 12),
                    (true, 16),
                    (false, 20),
                    (false, max),
                    (false, max + 9 - 20),
                    (true, 11)
                ]
            );
        }
    }
}

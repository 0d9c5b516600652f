//! Cutting the bytes of one direction of a connection into frames, over its whole life.
//!
//! In version 4 frames come one after the other. In version 5 they do so up to the answer to
//! STARTUP, and come within segments from then on.

use bytes::BytesMut;

use super::frame::{Frame, FrameDecoder, FrameError};
use super::header::{FrameDirection, ProtocolVersion};
use super::segment::{SegmentDecoder, SegmentError, SegmentForm};
use crate::error::CqlError;

/// The reason why bytes are no frame that can be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// A frame is refused.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The segments can't be read any further.
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

impl StreamError {
    /// The stream id that the answer must carry.
    pub fn stream(&self) -> i16 {
        match self {
            StreamError::Frame(error) => error.stream(),
            StreamError::Segment(_) => 0,
        }
    }

    /// Whether the connection must be closed once the error is sent.
    pub fn is_fatal(&self) -> bool {
        match self {
            StreamError::Frame(error) => error.is_fatal(),
            StreamError::Segment(_) => true,
        }
    }
}

impl From<StreamError> for CqlError {
    fn from(error: StreamError) -> CqlError {
        match error {
            StreamError::Frame(error) => error.into(),
            StreamError::Segment(error) => error.into(),
        }
    }
}

/// Cuts bytes into frames, which may be within segments.
#[derive(Debug)]
pub struct StreamDecoder {
    frames: FrameDecoder,
    segments: Option<BufferedSegments>,
}

/// The segments of a stream.
#[derive(Debug)]
struct BufferedSegments {
    decoder: SegmentDecoder,
    /// The plain bytes of segments, out of which the next frames are cut.
    plain: BytesMut,
    /// Whether `plain` is the rest of a self-contained segment instead of a part of a frame of
    /// several segments.
    is_self_contained: bool,
}

impl StreamDecoder {
    /// Makes a decoder of the frames that come in `direction`, which does not expect segments yet.
    /// It refuses bodies of more than `body_limit` bytes.
    pub fn new(direction: FrameDirection, body_limit: usize) -> Self {
        StreamDecoder {
            frames: FrameDecoder::new(direction, body_limit),
            segments: None,
        }
    }

    /// Sets the limit of bodies in bytes, from the next header on.
    pub fn set_body_limit(&mut self, bytes: usize) {
        self.frames.set_body_limit(bytes);
    }

    /// Refuses frames of other versions from the next header on.
    pub fn agree_on(&mut self, version: ProtocolVersion) {
        self.frames.agree_on(version);
    }

    /// Expects segments of a form in the bytes that were not taken yet.
    pub fn begin_segments(&mut self, form: SegmentForm) {
        self.segments = Some(BufferedSegments {
            decoder: SegmentDecoder::new(form),
            plain: BytesMut::new(),
            is_self_contained: false,
        });
    }

    /// The version in which the frame before is answered, whether it was taken or refused.
    pub fn answered_in(&self) -> ProtocolVersion {
        self.frames.answered_in()
    }

    /// The bytes that the decoder holds: those of segments of which not all frames are taken yet.
    pub fn held_bytes(&self) -> usize {
        self.segments.as_ref().map_or(0, |of| of.plain.len())
    }

    /// The memory that the decoder holds, in bytes.
    pub fn held_capacity(&self) -> usize {
        self.segments.as_ref().map_or(0, |of| of.plain.capacity())
    }

    /// The beginning of the unfinished frame, where `input` are the bytes that were not taken yet.
    pub fn unfinished<'a>(&'a self, input: &'a [u8]) -> &'a [u8] {
        self.segments.as_ref().map_or(input, |of| &of.plain)
    }

    /// Takes the next frame off the front of `input`; `None` if more bytes are needed.
    ///
    /// # Errors
    /// If the frame is refused, or the segments can't be read. After an error that is not fatal the
    /// next calls skip the body of the frame, without keeping it, and go on. After a fatal error
    /// every call returns an error.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, StreamError> {
        let Some(segments) = &mut self.segments else {
            return Ok(self.frames.decode(input)?);
        };
        loop {
            if let Some(frame) = self.frames.decode(&mut segments.plain)? {
                return Ok(Some(frame));
            }
            let is_within = !segments.plain.is_empty() || self.frames.is_skipping();
            if is_within && segments.is_self_contained {
                return Err(SegmentError::Beyond.into());
            }
            match segments.decoder.decode(input)? {
                None => return Ok(None),
                Some(segment) if !segment.is_self_contained => {
                    segments.plain.extend_from_slice(&segment.payload);
                    segments.is_self_contained = false;
                }
                Some(_) if is_within => return Err(SegmentError::Interrupted.into()),
                Some(segment) => {
                    segments.is_self_contained = true;
                    segments.plain = segment.payload;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::frame::SHARED_MAX;
    use super::super::segment::{SEGMENT_PAYLOAD_MAX, put_segment, segments_of};
    use super::*;

    const LIMIT: usize = 1 << 20;

    fn decoder(form: SegmentForm) -> StreamDecoder {
        let mut decoder = StreamDecoder::new(FrameDirection::Request, LIMIT);
        decoder.agree_on(ProtocolVersion::V5);
        decoder.begin_segments(form);
        decoder
    }

    fn frame(stream: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![5, 0, 0, stream, 7];
        bytes.extend_from_slice(&(length as u32).to_be_bytes());
        bytes.resize(9 + length, stream);
        bytes
    }

    fn large(form: SegmentForm, stream: u8, length: usize) -> Vec<u8> {
        segments_of(form, &frame(stream, length).into(), &Bytes::new()).concat()
    }

    fn together(form: SegmentForm, frames: &[Vec<u8>]) -> Vec<u8> {
        let mut out = BytesMut::new();
        put_segment(form, &frames.concat(), true, &mut out);
        out.to_vec()
    }

    /// The streams and lengths of the frames that come `step` bytes at a time, and the error that
    /// ends them.
    fn taken(
        mut decoder: StreamDecoder,
        bytes: &[u8],
        step: usize,
    ) -> (Vec<(i16, usize)>, Option<StreamError>) {
        let mut input = BytesMut::new();
        let mut taken = Vec::new();
        for part in bytes.chunks(step) {
            input.extend_from_slice(part);
            loop {
                match decoder.decode(&mut input) {
                    Ok(Some(frame)) => {
                        let stream = frame.header.stream;
                        assert!(frame.body.iter().all(|byte| i16::from(*byte) == stream));
                        taken.push((stream, frame.body.len()));
                    }
                    Ok(None) => break,
                    Err(error) if error.is_fatal() => return (taken, Some(error)),
                    Err(error) => taken.push((error.stream(), usize::MAX)),
                }
            }
        }
        assert_eq!(decoder.held_bytes(), 0);
        (taken, None)
    }

    #[test]
    fn frames_come_out_of_segments_of_both_kinds() {
        for form in [SegmentForm::Plain, SegmentForm::Lz4] {
            let long = 3 * SEGMENT_PAYLOAD_MAX;
            let stream = [
                together(form, &[frame(1, 5), frame(2, 0), frame(3, 40_000)]),
                large(form, 4, long),
                together(form, &[]),
                together(form, &[frame(5, 1)]),
                large(form, 6, SEGMENT_PAYLOAD_MAX - 8),
                large(form, 7, 10),
            ]
            .concat();
            for step in [1, 1_000, 200_000, stream.len()] {
                let expected = vec![
                    (1, 5),
                    (2, 0),
                    (3, 40_000),
                    (4, long),
                    (5, 1),
                    (6, SEGMENT_PAYLOAD_MAX - 8),
                    (7, 10),
                ];
                assert_eq!(taken(decoder(form), &stream, step), (expected, None));
            }
        }
    }

    #[test]
    fn a_frame_that_is_too_large_is_skipped_over_all_its_segments() {
        let form = SegmentForm::Plain;
        let stream = [large(form, 1, LIMIT + 1), together(form, &[frame(2, 3)])].concat();
        let mut decoder = decoder(form);
        let mut input = BytesMut::new();
        let mut seen = Vec::new();
        for part in stream.chunks(10_000) {
            input.extend_from_slice(part);
            loop {
                match decoder.decode(&mut input) {
                    Ok(None) => break,
                    Ok(Some(frame)) => seen.push(Ok(frame.header.stream)),
                    Err(error) => seen.push(Err(error.stream())),
                }
            }
            assert!(decoder.held_bytes() < 2 * SEGMENT_PAYLOAD_MAX, "it is kept");
        }
        assert_eq!(seen, [Err(1), Ok(2)]);
    }

    #[test]
    fn segments_hold_what_they_say() {
        let form = SegmentForm::Plain;
        let cut = &frame(2, 100)[..50];
        let mut beyond = BytesMut::new();
        put_segment(form, &[&frame(1, 5)[..], cut].concat(), true, &mut beyond);
        put_segment(form, &frame(3, 1), true, &mut beyond);
        let (frames, error) = taken(decoder(form), &beyond, 7);
        assert_eq!(frames, [(1, 5)]);
        assert_eq!(error, Some(SegmentError::Beyond.into()));

        let mut interrupted = BytesMut::new();
        put_segment(form, cut, false, &mut interrupted);
        put_segment(form, &frame(3, 1), true, &mut interrupted);
        let (frames, error) = taken(decoder(form), &interrupted, 7);
        assert_eq!(frames, []);
        assert_eq!(error, Some(SegmentError::Interrupted.into()));
    }

    #[test]
    fn a_damaged_segment_ends_the_stream() {
        let form = SegmentForm::Lz4;
        let mut stream = together(form, &[frame(1, 5)]);
        let good = stream.len();
        stream.extend_from_slice(&together(form, &[frame(2, 5)]));
        stream[good + 10] ^= 4;
        let (frames, error) = taken(decoder(form), &stream, stream.len());
        assert_eq!(frames, [(1, 5)]);
        let error = error.unwrap();
        assert_eq!(error.stream(), 0);
        assert_eq!(
            CqlError::from(error.clone()),
            CqlError::protocol(error.to_string())
        );
    }

    #[test]
    fn a_small_frame_does_not_keep_a_large_segment() {
        let form = SegmentForm::Plain;
        let mut input = BytesMut::from(&together(form, &[frame(1, 5), frame(2, 90_000)])[..]);
        let memory = input.as_ptr_range();
        let mut decoder = decoder(form);
        let small = decoder.decode(&mut input).unwrap().unwrap();
        assert!(!memory.contains(&small.body.as_ptr()));
        assert!(decoder.held_capacity() >= 90_000);
        let large = decoder.decode(&mut input).unwrap().unwrap();
        assert!(memory.contains(&large.body.as_ptr()));
        assert_eq!(decoder.held_bytes(), 0);
    }

    /// The frames of a stream that comes in pieces, and the room of all buffers at its end.
    fn taken_apart(mut decoder: StreamDecoder, stream: &[u8]) -> (Vec<Bytes>, usize) {
        let mut input = BytesMut::new();
        let mut bodies = Vec::new();
        for part in stream.chunks(10_000) {
            input.extend_from_slice(part);
            while let Some(frame) = decoder.decode(&mut input).unwrap() {
                bodies.push(frame.body);
            }
        }
        (bodies, input.capacity() + decoder.held_capacity())
    }

    #[test]
    fn a_large_frame_is_not_kept_by_what_came_with_it() {
        let frames = [frame(1, LIMIT), frame(2, 50), frame(3, 0), frame(4, 20_000)];
        let mut in_segments = BytesMut::new();
        for part in frames.concat().chunks(SEGMENT_PAYLOAD_MAX) {
            put_segment(SegmentForm::Plain, part, false, &mut in_segments);
        }
        let plain = StreamDecoder::new(FrameDirection::Request, LIMIT);
        for (decoder, stream) in [
            (plain, frames.concat()),
            (decoder(SegmentForm::Plain), in_segments.to_vec()),
        ] {
            let (mut bodies, room) = taken_apart(decoder, &stream);
            assert_eq!(bodies.len(), frames.len());
            assert!(room <= SHARED_MAX, "{room} bytes of empty buffers");
            let large = bodies.remove(0);
            assert_eq!(large.len(), LIMIT);
            let owned = large.try_into_mut();
            assert!(owned.is_ok(), "another frame or a buffer keeps it");
        }
    }

    #[test]
    fn frames_before_segments_come_as_they_are() {
        let mut decoder = StreamDecoder::new(FrameDirection::Request, LIMIT);
        let mut input = BytesMut::from(&frame(1, 5)[..]);
        assert_eq!(decoder.unfinished(&input), &frame(1, 5)[..]);
        assert!(decoder.decode(&mut input).unwrap().is_some());
        assert_eq!(decoder.answered_in(), ProtocolVersion::V5);
        decoder.begin_segments(SegmentForm::Plain);
        input.extend_from_slice(&together(SegmentForm::Plain, &[frame(2, 0)]));
        let second = decoder.decode(&mut input).unwrap().unwrap();
        assert_eq!(second.header.stream, 2);
    }
}

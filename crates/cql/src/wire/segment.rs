//! Segments, within which the frames of version 5 come after the handshake.
//!
//! ```text
//! plain:  payload length 17 bits, self-contained 1 bit, padding 6 bits, CRC24 of these 3 bytes,
//!         payload, CRC32 of the payload
//! LZ4:    payload length 17 bits, plain length 17 bits, self-contained 1 bit, padding 5 bits,
//!         CRC24 of these 5 bytes, payload, CRC32 of the payload
//! ```
//!
//! All numbers are little-endian. A self-contained segment holds one or more whole frames. A frame
//! that is too long for one segment goes over several, which hold nothing else and are not
//! self-contained. A plain length of 0 says that the payload is not compressed.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::buffer::BufferMemory;
use super::compression::Compression;
use super::crc24::crc24;
use super::frame::SHARED_MAX;
use crate::error::CqlError;

/// The longest payload of a segment in bytes, compressed or not.
pub const SEGMENT_PAYLOAD_MAX: usize = (1 << LENGTH_BITS) - 1;

/// The bits of a length in the header.
const LENGTH_BITS: u32 = 17;

/// The bytes of a header's checksum.
const CRC24_LENGTH: usize = 3;

/// The bytes of a payload's checksum.
const CRC32_LENGTH: usize = 4;

/// The bytes that go before the payload into its checksum.
const CRC32_FIRST: [u8; 4] = [0xFA, 0x2D, 0x55, 0xCA];

/// The form of a connection's segments, which STARTUP chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentForm {
    /// Payloads are not compressed.
    Plain,
    /// Payloads are raw LZ4 blocks, where that makes them shorter.
    Lz4,
}

impl SegmentForm {
    /// The form by the compression that STARTUP chose. Segments know only LZ4.
    pub fn of(compression: Option<Compression>) -> SegmentForm {
        match compression {
            Some(Compression::Lz4) => SegmentForm::Lz4,
            None | Some(Compression::Snappy) => SegmentForm::Plain,
        }
    }

    /// The bytes of the header without its checksum.
    fn header_bytes(self) -> usize {
        match self {
            SegmentForm::Plain => 3,
            SegmentForm::Lz4 => 5,
        }
    }

    /// The bytes before the payload.
    fn front_length(self) -> usize {
        self.header_bytes() + CRC24_LENGTH
    }
}

/// A segment as it came, decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedSegment {
    /// Whether the payload consists of whole frames.
    pub is_self_contained: bool,
    /// The plain payload.
    pub payload: BytesMut,
}

/// The reason why segments can't be read any further. The connection must be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// A checksum is not that of the bytes.
    #[error(
        "invalid, unrecoverable CRC mismatch detected in frame {part}. Read {read}, Computed {computed}"
    )]
    Crc {
        /// The part of the segment: `header` or `body`.
        part: &'static str,
        /// The checksum that came.
        read: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The payload is no LZ4 block of the stated length. The string is a sentence for the user.
    #[error("{0}")]
    Malformed(String),
    /// A frame goes on beyond the end of a self-contained segment.
    #[error("a frame goes beyond the end of its self-contained segment")]
    Beyond,
    /// A self-contained segment came before the end of a frame of several segments.
    #[error("a self-contained segment within a frame of several segments")]
    Interrupted,
}

impl From<SegmentError> for CqlError {
    fn from(error: SegmentError) -> CqlError {
        CqlError::protocol(error.to_string())
    }
}

/// The fields of a segment's header.
struct PayloadHeader {
    payload: usize,
    /// The length of the plain payload; 0 if it is not compressed.
    plain: usize,
    is_self_contained: bool,
}

impl PayloadHeader {
    fn read(form: SegmentForm, input: &[u8]) -> Result<Option<PayloadHeader>, SegmentError> {
        let Some(front) = input.get(..form.front_length()) else {
            return Ok(None);
        };
        let (mut header, mut checksum) = front.split_at(form.header_bytes());
        let computed = crc24(header);
        let read = checksum.get_uint_le(CRC24_LENGTH) as u32;
        if read != computed {
            return Err(SegmentError::Crc {
                part: "header",
                read,
                computed,
            });
        }
        let mut bits = header.get_uint_le(form.header_bytes());
        let mut length = || {
            let length = bits as usize & SEGMENT_PAYLOAD_MAX;
            bits >>= LENGTH_BITS;
            length
        };
        let payload = length();
        let plain = match form {
            SegmentForm::Plain => 0,
            SegmentForm::Lz4 => length(),
        };
        Ok(Some(PayloadHeader {
            payload,
            plain,
            is_self_contained: bits & 1 == 1,
        }))
    }

    fn put(&self, form: SegmentForm, out: &mut [u8]) {
        let mut bits = self.payload as u64;
        let mut shift = LENGTH_BITS;
        if form == SegmentForm::Lz4 {
            bits |= (self.plain as u64) << shift;
            shift += LENGTH_BITS;
        }
        bits |= u64::from(self.is_self_contained) << shift;
        let (header, mut checksum) = out.split_at_mut(form.header_bytes());
        (&mut *header).put_uint_le(bits, form.header_bytes());
        checksum.put_uint_le(u64::from(crc24(header)), CRC24_LENGTH);
    }
}

fn payload_crc(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&CRC32_FIRST);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Cuts the bytes of one direction of a connection into segments.
#[derive(Debug)]
pub struct SegmentDecoder {
    form: SegmentForm,
    /// The memory of the input.
    memory: BufferMemory,
    /// The error, if there was one. The bytes after it can't be read.
    failure: Option<SegmentError>,
}

impl SegmentDecoder {
    /// Makes a decoder of segments of a form.
    pub fn new(form: SegmentForm) -> Self {
        SegmentDecoder {
            form,
            memory: BufferMemory::new(SHARED_MAX),
            failure: None,
        }
    }

    /// Takes the next segment off the front of `input`; `None` if more bytes are needed. A payload
    /// that is not compressed may share the memory of `input`, as frames do
    /// ([`super::FrameDecoder::decode`]).
    ///
    /// # Errors
    /// If a checksum or the compression is wrong. Then every later call returns that error.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<DecodedSegment>, SegmentError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let decoded = self.next(input);
        if let Err(failure) = &decoded {
            self.failure = Some(failure.clone());
        }
        decoded
    }

    fn next(&mut self, input: &mut BytesMut) -> Result<Option<DecodedSegment>, SegmentError> {
        let Some(header) = PayloadHeader::read(self.form, input)? else {
            return Ok(None);
        };
        let front = self.form.front_length();
        let length = front + header.payload + CRC32_LENGTH;
        if input.len() < length {
            input.reserve(length - input.len());
            return Ok(None);
        }
        input.advance(front);
        let payload = self.memory.split_to(input, header.payload);
        let read = input.get_u32_le();
        let computed = payload_crc(&[&payload]);
        if read != computed {
            return Err(SegmentError::Crc {
                part: "body",
                read,
                computed,
            });
        }
        let payload = match header.plain {
            0 => payload,
            plain => decompress(&payload, plain)?,
        };
        Ok(Some(DecodedSegment {
            is_self_contained: header.is_self_contained,
            payload,
        }))
    }
}

fn decompress(block: &[u8], plain: usize) -> Result<BytesMut, SegmentError> {
    let mut out = BytesMut::zeroed(plain);
    let malformed = |why: String| SegmentError::Malformed(format!("malformed lz4 segment: {why}"));
    match lz4_flex::block::decompress_into(block, &mut out) {
        Ok(length) if length == plain => Ok(out),
        Ok(length) => Err(malformed(format!(
            "it holds {length} bytes instead of {plain}"
        ))),
        Err(error) => Err(malformed(error.to_string())),
    }
}

/// Appends a segment.
///
/// # Panics
/// If the payload is longer than [`SEGMENT_PAYLOAD_MAX`]: that is a bug of the caller.
pub fn put_segment(form: SegmentForm, payload: &[u8], is_self_contained: bool, out: &mut BytesMut) {
    assert!(payload.len() <= SEGMENT_PAYLOAD_MAX, "bug: a long segment");
    let at = out.len();
    let body_at = at + form.front_length();
    out.resize(body_at, 0);
    let mut plain = 0;
    if form == SegmentForm::Lz4 {
        let room = lz4_flex::block::get_maximum_output_size(payload.len());
        out.resize(body_at + room, 0);
        let written = lz4_flex::block::compress_into(payload, &mut out[body_at..])
            .expect("bug: an LZ4 block larger than the largest");
        let is_shorter = written < payload.len();
        plain = if is_shorter { payload.len() } else { 0 };
        out.truncate(body_at + if is_shorter { written } else { 0 });
    }
    if plain == 0 {
        out.extend_from_slice(payload);
    }
    let header = PayloadHeader {
        payload: out.len() - body_at,
        plain,
        is_self_contained,
    };
    header.put(form, &mut out[at..body_at]);
    let checksum = payload_crc(&[&out[body_at..]]);
    out.put_u32_le(checksum);
}

/// The segments of one frame, which begins with `head` and ends with `tail`, as the parts to send.
/// The frame is copied only if it is compressed.
pub fn segments_of(form: SegmentForm, head: &Bytes, tail: &Bytes) -> Vec<Bytes> {
    let length = head.len() + tail.len();
    let is_self_contained = length <= SEGMENT_PAYLOAD_MAX;
    let chunks = (0..length)
        .step_by(SEGMENT_PAYLOAD_MAX)
        .map(|from| from..length.min(from + SEGMENT_PAYLOAD_MAX));
    let within = |part: &Bytes, begins: usize, chunk: &std::ops::Range<usize>| {
        let inside = |at: usize| at.saturating_sub(begins).min(part.len());
        part.slice(inside(chunk.start)..inside(chunk.end))
    };
    let mut parts = Vec::new();
    let mut scratch = BytesMut::new();
    for chunk in chunks {
        let pieces = [within(head, 0, &chunk), within(tail, head.len(), &chunk)];
        let payload = [&pieces[0][..], &pieces[1][..]];
        match form {
            SegmentForm::Plain => {
                // `scratch` may have the checksum of the segment before.
                let at = scratch.len();
                scratch.resize(at + form.front_length(), 0);
                let header = PayloadHeader {
                    payload: chunk.len(),
                    plain: 0,
                    is_self_contained,
                };
                header.put(form, &mut scratch[at..]);
                parts.push(scratch.split().freeze());
                scratch.put_u32_le(payload_crc(&payload));
                parts.extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
            }
            SegmentForm::Lz4 => {
                scratch.clear();
                match payload {
                    [whole, []] | [[], whole] => {
                        put_segment(form, whole, is_self_contained, &mut scratch);
                    }
                    both => put_segment(form, &both.concat(), is_self_contained, &mut scratch),
                }
                // A part has no more memory than it needs, since many may wait to be sent.
                parts.push(Bytes::copy_from_slice(&scratch));
            }
        }
    }
    if form == SegmentForm::Plain {
        parts.push(scratch.freeze());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(form: SegmentForm, bytes: &[u8]) -> Result<Option<DecodedSegment>, SegmentError> {
        SegmentDecoder::new(form).decode(&mut BytesMut::from(bytes))
    }

    fn encoded(form: SegmentForm, payload: &[u8], is_self_contained: bool) -> BytesMut {
        let mut out = BytesMut::new();
        put_segment(form, payload, is_self_contained, &mut out);
        out
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    /// The segments are those that `cassandra.segment` of the official Python driver 3.30 makes.
    #[test]
    fn segments_are_those_of_the_official_driver() {
        let plain = b"\x05\0\x02\x19\x99\x9ahello\x74\x80\x0e\xb6";
        assert_eq!(&encoded(SegmentForm::Plain, b"hello", true)[..], plain);
        let too_short = b"\x05\0\0\0\x04\xe4\xab\x8ehello\x74\x80\x0e\xb6";
        assert_eq!(&encoded(SegmentForm::Lz4, b"hello", true)[..], too_short);
        let compressed = b"\x10\0\x3c\0\x04\xf1\x22\xcb\x6fhello \x06\0\0\x50ello \xd6\xff\x1c\x88";
        let segment = decode(SegmentForm::Lz4, compressed).unwrap().unwrap();
        assert_eq!(segment.payload, "hello ".repeat(5));
        assert!(segment.is_self_contained);
    }

    #[test]
    fn segments_lead_back_however_the_bytes_come_in() {
        for form in [SegmentForm::Plain, SegmentForm::Lz4] {
            let payloads = [
                Vec::new(),
                b"a".to_vec(),
                vec![7; 10_000],
                noise(300),
                vec![7; SEGMENT_PAYLOAD_MAX],
                noise(SEGMENT_PAYLOAD_MAX),
            ];
            let mut stream = BytesMut::new();
            for (at, payload) in payloads.iter().enumerate() {
                put_segment(form, payload, at % 2 == 0, &mut stream);
            }
            for step in [1, 2, 7, 1_000, stream.len()] {
                let mut decoder = SegmentDecoder::new(form);
                let mut input = BytesMut::new();
                let mut taken = Vec::new();
                for part in stream.chunks(step) {
                    input.extend_from_slice(part);
                    while let Some(segment) = decoder.decode(&mut input).unwrap() {
                        taken.push(segment);
                    }
                }
                assert!(input.is_empty());
                assert_eq!(taken.len(), payloads.len());
                for (at, (segment, payload)) in taken.iter().zip(&payloads).enumerate() {
                    assert_eq!(segment.payload, payload);
                    assert_eq!(segment.is_self_contained, at % 2 == 0);
                }
            }
        }
    }

    #[test]
    fn a_compressed_payload_is_shorter_and_noise_is_sent_as_it_is() {
        let zeros = encoded(SegmentForm::Lz4, &[0; 10_000], true);
        assert!(zeros.len() < 100, "{}", zeros.len());
        let noise = noise(1_000);
        let as_it_is = encoded(SegmentForm::Lz4, &noise, true);
        assert_eq!(as_it_is.len(), 8 + noise.len() + 4);
        assert_eq!(&as_it_is[8..1_008], &noise);
    }

    #[test]
    fn a_flipped_bit_is_found_wherever_it_is() {
        for form in [SegmentForm::Plain, SegmentForm::Lz4] {
            let good = encoded(form, b"a payload of some length", true);
            for bit in 0..8 * good.len() {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                let expected = match bit / 8 < form.front_length() {
                    true => "header",
                    false => "body",
                };
                match decode(form, &bad) {
                    Err(SegmentError::Crc { part, .. }) => assert_eq!(part, expected, "{bit}"),
                    other => panic!("{bit}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn nothing_is_read_behind_an_error() {
        let good = encoded(SegmentForm::Plain, b"x", true);
        let mut bad = good.clone();
        bad[7] ^= 1;
        bad.extend_from_slice(&good);
        let mut decoder = SegmentDecoder::new(SegmentForm::Plain);
        let error = decoder.decode(&mut bad).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("invalid, unrecoverable CRC mismatch detected in frame body. Read "),
            "{error}"
        );
        assert_eq!(decoder.decode(&mut bad), Err(error));
    }

    #[test]
    fn a_block_of_another_length_is_malformed() {
        for lie in [99, 101, 5_000, SEGMENT_PAYLOAD_MAX] {
            let mut segment = encoded(SegmentForm::Lz4, &[7; 100], true);
            let header = PayloadHeader {
                payload: segment.len() - 12,
                plain: lie,
                is_self_contained: true,
            };
            header.put(SegmentForm::Lz4, &mut segment[..8]);
            let error = decode(SegmentForm::Lz4, &segment).unwrap_err();
            assert!(matches!(error, SegmentError::Malformed(_)), "{error}");
        }
    }

    #[test]
    fn a_long_frame_goes_over_several_segments() {
        let max = SEGMENT_PAYLOAD_MAX;
        for form in [SegmentForm::Plain, SegmentForm::Lz4] {
            for (head, tail) in [
                (9, 0),
                (9, max - 9),
                (9, max - 8),
                (9, 3 * max - 9),
                (max + 5, 7),
                (max, 2 * max + 1),
            ] {
                let (head, tail) = (Bytes::from(noise(head)), Bytes::from(noise(tail)));
                let frame = [&head[..], &tail[..]].concat();
                let mut stream = BytesMut::from(&segments_of(form, &head, &tail).concat()[..]);
                let mut decoder = SegmentDecoder::new(form);
                let mut joined = Vec::new();
                let mut count = 0;
                while let Some(segment) = decoder.decode(&mut stream).unwrap() {
                    assert_eq!(segment.is_self_contained, frame.len() <= max);
                    joined.extend_from_slice(&segment.payload);
                    count += 1;
                }
                assert!(stream.is_empty());
                assert_eq!(count, frame.len().div_ceil(max));
                assert_eq!(joined, frame);
            }
        }
    }

    #[test]
    fn plain_segments_copy_nothing_of_a_frame() {
        let tail = Bytes::from(noise(2 * SEGMENT_PAYLOAD_MAX));
        let parts = segments_of(SegmentForm::Plain, &Bytes::from_static(b"head"), &tail);
        let shared = tail.as_ptr_range();
        let inside = parts.iter().filter(|part| shared.contains(&part.as_ptr()));
        assert_eq!(inside.map(Bytes::len).sum::<usize>(), tail.len());
    }
}

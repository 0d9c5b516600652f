//! Tests that any bytes, also those that no driver sends, are read as a message or give an error.

use bytes::{Bytes, BytesMut};
use cql::error::ErrorKind;
use cql::fuzzing;
use cql::wire::*;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies::{bytes, context, request, response, version, within};

const LIMIT: usize = 1 << 20;

pub fn frame(opcode: Opcode, flags: u8, body: Bytes) -> Frame {
    frame_in(ProtocolVersion::V4, opcode, flags, body)
}

pub fn frame_in(version: ProtocolVersion, opcode: Opcode, flags: u8, body: Bytes) -> Frame {
    Frame {
        header: FrameHeader {
            version,
            flags: FrameFlags(flags),
            stream: 0,
            opcode,
            length: body.len() as u32,
        },
        body,
    }
}

fn opcode() -> impl Strategy<Value = Opcode> {
    let opcodes: Vec<_> = (0..=16).filter_map(Opcode::from_code).collect();
    prop::sample::select(opcodes)
}

/// Changes a few bytes of a body.
fn damage(body: &[u8], changes: &[(usize, u8)]) -> Bytes {
    let mut damaged = body.to_vec();
    for &(position, byte) in changes {
        if let Some(length) = std::num::NonZero::new(damaged.len()) {
            damaged[position % length] = byte;
        }
    }
    damaged.into()
}

/// Changes for [`damage`]. Most of them write bytes that make lengths and counts extreme.
fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let byte = prop_oneof![any::<u8>(), Just(0x00), Just(0x7F), Just(0xFF)];
    vec((any::<usize>(), byte), 1..4)
}

/// The frame that a message encodes to.
fn encoded(direction: FrameDirection, encode: impl FnOnce(&mut BytesMut)) -> Frame {
    let mut out = BytesMut::new();
    encode(&mut out);
    let mut decoder = FrameDecoder::new(direction, LIMIT);
    decoder.decode(&mut out).unwrap().unwrap()
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_frames_or_errors(
        parts in vec(bytes(40), 1..10),
        limit in 0usize..1000,
        version in prop::sample::select(vec![Some(4u8), Some(0x84), Some(5), Some(0x85), None]),
    ) {
        for direction in [FrameDirection::Request, FrameDirection::Response] {
            let mut decoder = FrameDecoder::new(direction, limit);
            let mut input = BytesMut::new();
            input.extend(version);
            let mut errors = 0;
            for part in &parts {
                input.extend_from_slice(part);
                loop {
                    match decoder.decode(&mut input) {
                        Ok(Some(frame)) => prop_assert!(frame.body.len() <= limit),
                        Ok(None) => break,
                        Err(error) if error.is_fatal() => break,
                        Err(_) => errors += 1,
                    }
                    prop_assert!(errors <= 400, "no progress");
                }
            }
        }
    }

    #[test]
    fn arbitrary_bodies_are_messages_or_errors(
        version in version(),
        opcode in opcode(),
        flags in any::<u8>(),
        body in bytes(300),
    ) {
        let frame = frame_in(version, opcode, flags, body);
        fuzzing::message(FrameDirection::Request, &frame);
        fuzzing::message(FrameDirection::Response, &frame);
    }

    #[test]
    fn damaged_requests_are_requests_or_errors(
        version in version(),
        request in request(),
        changes in changes(),
    ) {
        let whole = encoded(FrameDirection::Request, |out| request.encode_in(version, 0, None, out));
        let damage = damage(&whole.body, &changes);
        let damaged = frame_in(version, whole.header.opcode, 0, damage);
        fuzzing::message(FrameDirection::Request, &damaged);
    }

    #[test]
    fn damaged_responses_are_responses_or_errors(
        context in context(),
        response in response(),
        changes in changes(),
    ) {
        let whole = encoded(FrameDirection::Response, |out| response.encode(&context, None, out));
        let FrameHeader { version, flags, opcode, .. } = whole.header;
        let damaged = frame_in(version, opcode, flags.0, damage(&whole.body, &changes));
        fuzzing::message(FrameDirection::Response, &damaged);
    }

    #[test]
    fn damaged_compression_gives_a_body_within_the_limit_or_an_error(
        body in vec(0u8..4, 0..3000),
        changes in changes(),
        limit in 0usize..4000,
    ) {
        for algorithm in Compression::EVERY {
            let damaged = damage(&algorithm.compress(&body), &changes);
            if let Ok(plain) = algorithm.decompress(&damaged, limit) {
                prop_assert!(plain.len() <= limit);
            }
        }
    }

    #[test]
    fn a_request_cut_anywhere_is_an_error(version in version(), request in request()) {
        let whole = encoded(FrameDirection::Request, |out| request.encode_in(version, 0, None, out));
        for end in 0..whole.body.len() {
            let cut = frame_in(version, whole.header.opcode, 0, whole.body.slice(..end));
            let answer = Request::decode(&cut, None, LIMIT);
            prop_assert!(
                matches!(answer, Err(DecodeError::Truncated(_))),
                "cut at {end}: {answer:?}"
            );
        }
    }

    #[test]
    fn a_response_cut_anywhere_is_an_error(context in context(), response in response()) {
        let whole = encoded(FrameDirection::Response, |out| response.encode(&context, None, out));
        let FrameHeader { version, flags, opcode, .. } = whole.header;
        // Some timeouts have a last field and some don't.
        let is_optional = |end: usize| {
            matches!(&response, Response::Error(error)
                if matches!(error.kind, ErrorKind::WriteTimeout { contentions: Some(_), .. }))
                && end + size_of::<u16>() == whole.body.len()
        };
        for end in (0..whole.body.len()).filter(|end| !is_optional(*end)) {
            let cut = frame_in(version, opcode, flags.0, whole.body.slice(..end));
            let answer = Response::decode(&cut, None, LIMIT).and_then(|(_, response)| {
                match &response {
                    Response::Rows(rows) => rows.decode().map(|_| response),
                    _ => Ok(response),
                }
            });
            prop_assert!(
                matches!(answer, Err(DecodeError::Truncated(_))),
                "cut at {end}: {answer:?}"
            );
        }
    }

    #[test]
    fn bytes_behind_a_request_are_ignored(
        version in version(),
        request in request(),
        extra in bytes(10),
    ) {
        let whole = encoded(FrameDirection::Request, |out| request.encode_in(version, 0, None, out));
        let body = [&whole.body[..], &extra].concat();
        let longer = frame_in(version, whole.header.opcode, 0, body.into());
        let expected = within(version, request);
        prop_assert_eq!(Request::decode(&longer, None, LIMIT), Ok(expected));
    }
}

#[test]
fn a_compressed_frame_without_agreed_compression_is_refused() {
    let body = Compression::Lz4.compress(b"\0\0\0\x08SELECT 1\0\x01\0");
    let frame = frame(Opcode::Query, FrameFlags::COMPRESSION.0, body.into());
    assert!(Request::decode(&frame, Some(Compression::Lz4), LIMIT).is_ok());
    assert!(Request::decode(&frame, None, LIMIT).is_err());
    assert!(Request::decode(&frame, Some(Compression::Snappy), LIMIT).is_err());
}

//! Tests that a message that one side encodes is decoded to the same message by the other.

use bytes::BytesMut;
use cql::wire::*;
use proptest::prelude::*;

use crate::strategies::{
    compression, context, request, response, response_within, version, within,
};

const LIMIT: usize = 1 << 20;

/// Decodes the frames of `stream`, which arrives `step` bytes at a time.
fn frames(direction: FrameDirection, stream: &[u8], step: usize) -> Vec<Frame> {
    let mut decoder = FrameDecoder::new(direction, LIMIT);
    let mut input = BytesMut::new();
    let mut frames = Vec::new();
    for part in stream.chunks(step) {
        input.extend_from_slice(part);
        while let Some(frame) = decoder.decode(&mut input).unwrap() {
            frames.push(frame);
        }
    }
    assert!(input.is_empty());
    frames
}

proptest! {
    #[test]
    fn requests_lead_back(
        requests in prop::collection::vec((request(), any::<i16>()), 1..4),
        version in version(),
        compression in compression(),
        step in 1usize..100,
    ) {
        let mut stream = BytesMut::new();
        for (request, id) in &requests {
            request.encode_in(version, *id, compression, &mut stream);
        }
        let frames = frames(FrameDirection::Request, &stream, step);
        prop_assert_eq!(frames.len(), requests.len());
        for (frame, (request, id)) in frames.iter().zip(&requests) {
            prop_assert_eq!(frame.header.stream, *id);
            prop_assert_eq!(frame.header.opcode, request.opcode());
            prop_assert_eq!(frame.header.version, version);
            let expected = within(version, request.clone());
            prop_assert_eq!(Request::decode(frame, compression, LIMIT).unwrap(), expected);
        }
    }

    #[test]
    fn responses_lead_back(
        responses in prop::collection::vec((context(), response()), 1..4),
        compression in compression(),
        step in 1usize..100,
    ) {
        let mut stream = BytesMut::new();
        for (context, response) in &responses {
            response.encode(context, compression, &mut stream);
        }
        let frames = frames(FrameDirection::Response, &stream, step);
        prop_assert_eq!(frames.len(), responses.len());
        for (frame, (context, response)) in frames.iter().zip(responses) {
            let expected = response_within(context.version, response);
            let decoded = Response::decode(frame, compression, LIMIT).unwrap();
            prop_assert_eq!(decoded, (context, expected));
        }
    }

    #[test]
    fn the_parts_of_a_response_are_the_whole(
        context in context(),
        response in response(),
        compression in compression(),
    ) {
        let mut whole = BytesMut::from("before");
        response.encode(&context, compression, &mut whole);
        let mut parts = BytesMut::from("before");
        let rest = response.encode_parts(&context, compression, &mut parts);
        parts.extend_from_slice(&rest);
        prop_assert_eq!(parts, whole);
    }
}

#[test]
fn a_result_too_large_for_a_frame_becomes_an_error() {
    let column = ColumnSpec {
        keyspace: "ks".into(),
        table: "t".into(),
        name: "c".into(),
        cql_type: value::CqlType::Blob,
    };
    let metadata = ColumnsMetadata {
        columns: vec![column],
    };
    let mut encoder = RowsEncoder::new(&metadata, true);
    let cell = vec![0; DEFAULT_BODY_LIMIT / 2];
    for _ in 0..2 {
        encoder.cell(Some(&cell));
        encoder.end_row();
    }
    let response = Response::Rows(encoder.finish(None));
    let mut out = BytesMut::new();
    response.encode(&ResponseContext::new(3), None, &mut out);
    let frames = frames(FrameDirection::Response, &out, out.len());
    assert_eq!(frames[0].header.stream, 3);
    match Response::decode(&frames[0], None, LIMIT).unwrap().1 {
        Response::Error(error) => assert!(error.message.contains("smaller pages"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_large_repetitive_result_is_compressed_and_a_small_one_is_not() {
    for (length, compressed) in [(10, false), (10_000, true)] {
        let mut out = BytesMut::new();
        let response = Response::SetKeyspace("k".repeat(length));
        response.encode(&ResponseContext::new(0), Some(Compression::Lz4), &mut out);
        let frame = &frames(FrameDirection::Response, &out, out.len())[0];
        assert_eq!(
            frame.header.flags.contains(FrameFlags::COMPRESSION),
            compressed
        );
        assert_eq!(out.len() < length, compressed);
    }
}

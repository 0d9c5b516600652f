//! Entry points of the fuzz targets: any bytes as frames, and any text as a statement.
//!
//! Each entry point panics if something that must hold for every input does not hold. The programs
//! of `fuzz/` call them with what libFuzzer invents, and tests call them with fixed inputs.

use bytes::BytesMut;

use crate::ast::{BatchEntry, ParsedStatement, Statement, TableName};
use crate::error::{CqlError, ErrorKind};
use crate::parser::{
    ChangedData, changed, changed_by_batch, parse_statement, parse_type, replace_calls,
    selection_text,
};
use crate::wire::{
    Compression, Frame, FrameDecoder, FrameDirection, FrameFlags, ProtocolVersion, Request,
    Response, SEGMENT_PAYLOAD_MAX, SegmentForm, StreamDecoder, glance, put_segment,
};

/// The most bytes of a frame's body.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The bytes of the segments that are made of a fuzzer's bytes.
const SEGMENT_BYTES: usize = 300;

/// The bytes of segments that are read at a time.
const READ_BYTES: usize = 100;

/// Reads bytes as the frames of a connection, once as a server and once as a client, and once more
/// as frames within segments of either form.
///
/// A message that can be read leads back to itself through its own encoding. The gateway's glances
/// at the front of a request find what the whole message has there.
pub fn frames(bytes: &[u8]) {
    for direction in [FrameDirection::Request, FrameDirection::Response] {
        let mut decoder = FrameDecoder::new(direction, BODY_BYTES_MAX);
        let mut input = BytesMut::from(bytes);
        loop {
            match decoder.decode(&mut input) {
                Ok(Some(frame)) => message(direction, &frame),
                Ok(None) => break,
                Err(error) if error.is_fatal() => break,
                Err(_) => {}
            }
        }
        for form in [SegmentForm::Plain, SegmentForm::Lz4] {
            segmented(direction, form, bytes);
            // A fuzzer does not find checksums, so it gets segments around its bytes, too.
            let mut within = BytesMut::new();
            for (at, part) in bytes.chunks(SEGMENT_BYTES).enumerate() {
                let is_self_contained = bytes.len() <= SEGMENT_BYTES || at % 3 == 2;
                put_segment(form, part, is_self_contained, &mut within);
            }
            segmented(direction, form, &within);
        }
    }
}

/// Reads bytes as segments, some at a time.
fn segmented(direction: FrameDirection, form: SegmentForm, bytes: &[u8]) {
    let mut decoder = StreamDecoder::new(direction, BODY_BYTES_MAX);
    decoder.begin_segments(form);
    let mut input = BytesMut::new();
    for part in bytes.chunks(READ_BYTES) {
        input.extend_from_slice(part);
        loop {
            match decoder.decode(&mut input) {
                Ok(Some(frame)) => assert!(frame.body.len() <= BODY_BYTES_MAX),
                Ok(None) => break,
                Err(error) if error.is_fatal() => return,
                Err(_) => {}
            }
        }
        // A segment that is not whole, and the frames of one that is.
        assert!(input.len() <= SEGMENT_PAYLOAD_MAX + 12 + READ_BYTES);
        assert!(decoder.held_bytes() <= BODY_BYTES_MAX + 2 * SEGMENT_PAYLOAD_MAX);
    }
}

/// Reads the message of a frame, by each compression that STARTUP may have chosen, and checks what
/// [`frames`] checks.
pub fn message(direction: FrameDirection, frame: &Frame) {
    assert!(frame.body.len() <= BODY_BYTES_MAX);
    let version = frame.header.version;
    let compressions = [None, Some(Compression::Lz4), Some(Compression::Snappy)];
    for compression in compressions {
        match direction {
            FrameDirection::Request => {
                if let Ok(request) = Request::decode(frame, compression, BODY_BYTES_MAX) {
                    request_leads_back(&request, version, compression);
                    let is_plain = version == ProtocolVersion::V5
                        || !frame.header.flags.contains(FrameFlags::COMPRESSION);
                    if is_plain {
                        glances_agree(&request, frame);
                    }
                }
            }
            FrameDirection::Response => {
                let response = Response::decode(frame, compression, BODY_BYTES_MAX);
                if let Ok((context, response)) = response {
                    if let Response::Rows(rows) = &response {
                        let _ = rows.decode();
                    }
                    let encode = |response: &Response| {
                        let mut out = BytesMut::new();
                        response.encode(&context, compression, &mut out);
                        out
                    };
                    let out = encode(&response);
                    let again = whole_frame(FrameDirection::Response, out.clone());
                    let again = Response::decode(&again, compression, usize::MAX);
                    let (context_again, again) = again.expect("what was written can be read");
                    assert_eq!(context_again, context);
                    assert_eq!(encode(&again), out);
                }
            }
        }
    }
    let _ = glance::statement_text(frame.header.flags, &frame.body);
    let _ = glance::executed_id(frame.header.flags, &frame.body);
    let _ = glance::custom_payload(frame.header.flags, &frame.body);
    let _ = glance::prepared_id(frame.header.flags, &frame.body);
    let _ = glance::keyspace(&frame.header, &frame.body);
    if let Ok(statements) = glance::batched(frame.header.flags, &frame.body) {
        statements.for_each(drop);
    }
}

/// The frame that a message was encoded to. What is written may be longer than what was read, as an
/// absent part may be written as an empty one, so there is no limit.
fn whole_frame(direction: FrameDirection, mut bytes: BytesMut) -> Frame {
    let mut decoder = FrameDecoder::new(direction, usize::MAX);
    let frame = decoder.decode(&mut bytes).ok().flatten();
    assert!(bytes.is_empty());
    frame.expect("a message encodes to a whole frame")
}

fn request_leads_back(
    request: &Request,
    version: ProtocolVersion,
    compression: Option<Compression>,
) {
    let encode = |request: &Request| {
        let mut out = BytesMut::new();
        request.encode_in(version, 7, compression, &mut out);
        out
    };
    let out = encode(request);
    let frame = whole_frame(FrameDirection::Request, out.clone());
    assert_eq!(frame.header.stream, 7);
    let again = Request::decode(&frame, compression, usize::MAX);
    let again = again.expect("what was written can be read");
    // Compared as bytes, as no values with names and no values are written alike.
    assert_eq!(encode(&again), out);
}

/// Compares what the gateway reads of a request with the request.
fn glances_agree(request: &Request, frame: &Frame) {
    let (flags, body) = (frame.header.flags, &frame.body[..]);
    let keyspace = match request {
        Request::Query { parameters, .. } => parameters.keyspace.as_deref(),
        Request::Prepare { keyspace, .. } => keyspace.as_deref(),
        Request::Batch(batch) => batch.keyspace.as_deref(),
        _ => None,
    };
    let keyspace = keyspace.map(str::as_bytes);
    assert_eq!(glance::keyspace(&frame.header, body), Ok(keyspace));
    match request {
        Request::Query { statement, .. } | Request::Prepare { statement, .. } => {
            assert_eq!(
                glance::statement_text(flags, body),
                Ok(statement.as_bytes())
            );
        }
        Request::Execute { id, .. } => {
            assert_eq!(glance::executed_id(flags, body), Ok(&id[..]));
        }
        Request::Batch(batch) => {
            let found: Result<Vec<_>, _> = glance::batched(flags, body)
                .expect("a batch has statements")
                .collect();
            let found = found.expect("the statements of a batch are whole");
            assert_eq!(found.len(), batch.statements.len());
        }
        _ => {}
    }
}

/// Parses bytes, as far as they are UTF-8, as a statement and as a type.
///
/// Every marker is in the tree, as a planner finds its type by walking the tree. An error is short
/// and gives a place. The outlines that the gateway reads of a statement agree with the tree. The
/// text of a type leads back to the type.
pub fn statement(bytes: &[u8]) {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    match parse_statement(text) {
        Ok(parsed) => {
            every_marker_is_in_the_tree(&parsed);
            outlines_agree(text, &parsed.statement);
        }
        Err(error) => every_error_is_short(text, &error),
    }
    let _ = replace_calls(text, |name| Some(format!("{name}_called")));
    if let Ok(selection) = selection_text(text) {
        assert!(text.contains(selection.text));
    }
    if let Ok(cql_type) = parse_type(text) {
        assert_eq!(parse_type(&cql_type.to_string()), Ok(cql_type));
    }
}

fn every_marker_is_in_the_tree(parsed: &ParsedStatement) {
    if !parsed.markers.is_empty() {
        let tree = format!("{:?}", parsed.statement);
        let met = tree.matches("Marker(BindMarker {").count();
        assert_eq!(met, parsed.markers.len(), "{tree}");
    }
}

fn every_error_is_short(text: &str, error: &CqlError) {
    match error.kind {
        ErrorKind::SyntaxError => assert!(error.message.starts_with("line "), "{error}"),
        ErrorKind::Invalid => {}
        _ => panic!("{:?} is no outcome of parsing", error.kind),
    }
    assert!(
        error.message.len() <= 2 * text.len() + 1_000,
        "a message of {} bytes about a statement of {}",
        error.message.len(),
        text.len()
    );
}

/// Compares the tables that the outlines of a statement name with those in its tree.
fn outlines_agree(text: &str, statement: &Statement) {
    let table = |table: &TableName| Some(ChangedData::Rows(table.clone()));
    let expected = match statement {
        Statement::Insert(insert) => table(&insert.table),
        Statement::Update(update) => table(&update.table),
        Statement::Delete(delete) => table(&delete.table),
        Statement::Truncate(truncate) => Some(ChangedData::All(truncate.table.clone())),
        Statement::Batch(_) => Some(ChangedData::Batch),
        _ => None,
    };
    assert_eq!(changed(text), expected);
    let tables = match statement {
        Statement::Batch(batch) => {
            let tables = batch.statements.iter().map(|entry| match entry {
                BatchEntry::Insert(insert) => insert.table.clone(),
                BatchEntry::Update(update) => update.table.clone(),
                BatchEntry::Delete(delete) => delete.table.clone(),
            });
            Some(tables.collect::<Vec<_>>())
        }
        _ => None,
    };
    assert_eq!(changed_by_batch(text), tables);
}

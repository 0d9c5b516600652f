//! Tests that frames of the official Python drivers are read as the request that the driver was
//! asked for. The drivers are cassandra-driver 3.29.2 and scylla-driver 3.29.12, which send the
//! same bytes. Those of version 5 are by cassandra-driver 3.30.0.

use bytes::{Bytes, BytesMut};
use cql::error::CqlError;
use cql::wire::*;

fn from_hex(hex: &str) -> BytesMut {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn decoder() -> FrameDecoder {
    FrameDecoder::new(FrameDirection::Request, DEFAULT_BODY_LIMIT)
}

fn read(hex: &str, compression: Option<Compression>) -> Request {
    let mut input = from_hex(hex);
    let frame = decoder().decode(&mut input).unwrap().unwrap();
    assert_eq!(frame.header.stream, 5);
    assert!(input.is_empty());
    Request::decode(&frame, compression, DEFAULT_BODY_LIMIT).unwrap()
}

fn value(bytes: &'static [u8]) -> BoundValue {
    BoundValue::Value(Bytes::from_static(bytes))
}

#[test]
fn startup_and_register() {
    let startup = read(
        "0400000501000000380003000b434f4d5052455353494f4e00036c7a34000b4452495645525f4e414d45000164000b43514c5f56455253494f4e0005332e342e35",
        None,
    );
    let Request::Startup(startup) = startup else {
        panic!("{startup:?}");
    };
    assert_eq!(
        startup.compression(ProtocolVersion::V4),
        Ok(Some(Compression::Lz4))
    );
    assert_eq!(
        startup.compression(ProtocolVersion::V5),
        Ok(Some(Compression::Lz4))
    );
    assert_eq!(startup.option("cql_version"), Some("3.4.5"));
    assert_eq!(startup.option("DRIVER_NAME"), Some("d"));
    assert_eq!(startup.option("DRIVER_VERSION"), None);

    let register = read(
        "040000050b000000310003000f544f504f4c4f47595f4348414e4745000d5354415455535f4348414e4745000d534348454d415f4348414e4745",
        None,
    );
    let events = vec![
        EventKind::TopologyChange,
        EventKind::StatusChange,
        EventKind::SchemaChange,
    ];
    assert_eq!(register, Request::Register { events });
}

#[test]
fn queries() {
    assert_eq!(
        read("04000005070000000c00000005555345206b000100", None),
        Request::Query {
            statement: "USE k".to_owned(),
            parameters: QueryParameters::default(),
        }
    );
    assert_eq!(
        read(
            "0400000507000000230000000853454c454354203100063c000013880000000270730009000000000012d687",
            None
        ),
        Request::Query {
            statement: "SELECT 1".to_owned(),
            parameters: QueryParameters {
                consistency: Consistency::LocalQuorum,
                page_size: Some(5000),
                paging_state: Some(Bytes::from_static(b"ps")),
                serial_consistency: Some(Consistency::LocalSerial),
                timestamp: Some(1_234_567),
                ..QueryParameters::default()
            },
        }
    );
    assert_eq!(
        read("04000005090000000c0000000853454c4543542031", None),
        Request::Prepare {
            statement: "SELECT 1".to_owned(),
            keyspace: None
        }
    );
}

#[test]
fn requests_of_version_5() {
    let query = read(
        "05000005070000002a0000000853454c45435420310001000000bc0000000a0000000270670008000000000000000100026b73",
        None,
    );
    assert_eq!(
        query,
        Request::Query {
            statement: "SELECT 1".to_owned(),
            parameters: QueryParameters {
                page_size: Some(10),
                paging_state: Some(Bytes::from_static(b"pg")),
                serial_consistency: Some(Consistency::Serial),
                timestamp: Some(1),
                keyspace: Some("ks".to_owned()),
                ..QueryParameters::default()
            },
        }
    );
    for (hex, keyspace) in [
        (
            "0500000509000000140000000853454c45435420310000000100026b73",
            Some("ks"),
        ),
        ("0500000509000000100000000853454c454354203100000000", None),
    ] {
        let prepare = Request::Prepare {
            statement: "SELECT 1".to_owned(),
            keyspace: keyspace.map(str::to_owned),
        };
        assert_eq!(read(hex, None), prepare);
    }
    let execute = read(
        "050000050a0000004500103031323334353637383961626364656600106665646362613938373635343332313000040000002500030000000161fffffffffffffffe0000000a0000000000000001",
        None,
    );
    assert_eq!(
        execute,
        Request::Execute {
            id: Bytes::from_static(b"0123456789abcdef"),
            result_metadata_id: Some(Bytes::from_static(b"fedcba9876543210")),
            parameters: QueryParameters {
                consistency: Consistency::Quorum,
                values: MarkerValues::Positional(vec![
                    value(b"a"),
                    BoundValue::Null,
                    BoundValue::Unset
                ]),
                page_size: Some(10),
                timestamp: Some(1),
                ..QueryParameters::default()
            },
        }
    );
    let batch = read(
        "050000050d0000002e0100020100026964000100000001780000000006494e5345525400000006000000a0000000000000006300026b73",
        None,
    );
    let Request::Batch(batch) = batch else {
        panic!("{batch:?}");
    };
    assert_eq!(batch.statements.len(), 2);
    assert_eq!(batch.keyspace.as_deref(), Some("ks"));
    assert_eq!((batch.timestamp, batch.now_in_seconds), (Some(99), None));
}

#[test]
fn an_execute_with_null_and_unset_values() {
    let execute = read(
        "040000050a0000003000103031323334353637383961626364656600042500030000000161fffffffffffffffe0000000a0000000000000001",
        None,
    );
    let parameters = QueryParameters {
        consistency: Consistency::Quorum,
        values: MarkerValues::Positional(vec![value(b"a"), BoundValue::Null, BoundValue::Unset]),
        page_size: Some(10),
        timestamp: Some(1),
        ..QueryParameters::default()
    };
    let id = Bytes::from_static(b"0123456789abcdef");
    assert_eq!(
        execute,
        Request::Execute {
            id,
            result_metadata_id: None,
            parameters
        }
    );
}

#[test]
fn a_batch() {
    let batch = read(
        "040000050d000000270100020100026964000100000001780000000006494e5345525400000006200000000000000063",
        None,
    );
    assert_eq!(
        batch,
        Request::Batch(BatchRequest {
            kind: BatchKind::Unlogged,
            statements: vec![
                BatchStatement {
                    statement: BatchedStatement::Prepared(Bytes::from_static(b"id")),
                    values: vec![value(b"x")],
                },
                BatchStatement {
                    statement: BatchedStatement::Text("INSERT".to_owned()),
                    values: Vec::new(),
                },
            ],
            consistency: Consistency::LocalQuorum,
            serial_consistency: None,
            timestamp: Some(99),
            keyspace: None,
            now_in_seconds: None,
        })
    );
}

#[test]
fn compressed_queries() {
    let expected = Request::Query {
        statement: format!("SELECT {}", "x".repeat(100)),
        parameters: QueryParameters::default(),
    };
    let lz4 = "04010005070000001a00000072cf0000006b53454c454354207801004e507878000100";
    assert_eq!(read(lz4, Some(Compression::Lz4)), expected);
    let snappy = "040100050700000018722c0000006b53454c4543542078fe01008a010008000100";
    assert_eq!(read(snappy, Some(Compression::Snappy)), expected);
}

#[test]
fn a_custom_payload_is_passed_over() {
    assert_eq!(
        read(
            "040400050700000012000100016100000001620000000151000100",
            None
        ),
        Request::Query {
            statement: "Q".to_owned(),
            parameters: QueryParameters::default(),
        }
    );
}

/// Drivers begin with the newest version they know. They go down while the answer is a frame that
/// they can read and contains "Invalid or unsupported protocol version". Apache's gocql 2 also
/// needs the answer on stream 0.
#[test]
fn newer_versions_are_answered_in_version_5() {
    for (hex, version) in [("060000050500000000", 6), ("420000050500000000", 66)] {
        let mut decoder = decoder();
        let error = decoder.decode(&mut from_hex(hex)).unwrap_err();
        assert_eq!(error.stream(), 0);
        let context = ResponseContext::new(error.stream()).at(decoder.answered_in());
        let mut out = BytesMut::new();
        Response::Error(CqlError::from(error)).encode(&context, None, &mut out);
        let text = format!(
            "Invalid or unsupported protocol version ({version}); the lowest supported version is 4 and the greatest is 5"
        );
        let body_length = 4 + 2 + text.len() as u8;
        let mut expected = vec![0x85, 0, 0, 0, 0, 0, 0, 0, body_length];
        expected.extend([0, 0, 0, 0x0A, 0, text.len() as u8]);
        expected.extend(text.bytes());
        assert_eq!(out, expected);
    }
}

//! Tests of protocol versions, of options and compression, and of a node that cannot be reached.

use std::ops::RangeInclusive;

use cql::error::{CqlError, ErrorKind};
use cql::wire::{Compression, EventKind, FrameDirection, Request, Response, Startup};

use crate::peer::{BODY_LIMIT, Peer, Setup, execute, prepare, query, raw_frame, request_bytes};

#[tokio::test]
async fn another_version_is_told_which_one_is_spoken() {
    let setup = Setup::new().await;
    for version in [3, 6, 66] {
        let (mut client, _node) = setup.connect_unauthenticated().await;
        client.send(&raw_frame(version, 0, 3, 0x05, b"")).await;
        let frame = client.frame(FrameDirection::Response).await;
        let of_answer = if version < 4 { 4 } else { 5 };
        assert_eq!(frame.header.version.number(), of_answer);
        let (context, response) = Response::decode(&frame, None, BODY_LIMIT).unwrap();
        let Response::Error(error) = response else {
            panic!("{response:?}");
        };
        assert_eq!(context.stream, 0);
        assert_eq!(error.kind, ErrorKind::ProtocolError);
        assert!(
            error.message.contains("unsupported protocol version")
                && error.message.contains("the greatest is 5"),
            "{error}"
        );
        assert_eq!(client.rest().await, "", "then the connection is closed");
    }
}

#[tokio::test]
async fn only_what_the_gateway_can_do_is_supported() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    client.ask(&Request::Options, 5, None).await;
    node.frame(FrameDirection::Request).await;
    let option = |name: &str, values: &[&str]| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        (name.to_owned(), values)
    };
    let supported = Response::Supported(vec![
        option("PROTOCOL_VERSIONS", &["3/v3", "4/v4", "5/v5", "6/v6-beta"]),
        option("COMPRESSION", &["snappy", "lz4", "zstd"]),
        option("CQL_VERSION", &["3.4.7"]),
    ]);
    node.answer(&supported, 5, None).await;
    let told = Response::Supported(vec![
        option("PROTOCOL_VERSIONS", &["4/v4", "5/v5"]),
        option("COMPRESSION", &["snappy", "lz4"]),
        option("CQL_VERSION", &["3.4.7"]),
    ]);
    assert_eq!(client.response(None).await, (5, told));
}

#[tokio::test]
async fn a_compression_that_cannot_be_read_is_refused_and_another_taken() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    let startup = |name: &str| {
        Request::Startup(Startup {
            options: vec![("COMPRESSION".to_owned(), name.to_owned())],
        })
    };
    client.ask(&startup("zstd"), 1, None).await;
    let (stream, response) = client.response(None).await;
    assert_eq!(stream, 1);
    assert!(matches!(response, Response::Error(_)), "{response:?}");
    let request = request_bytes(&startup("lz4"), 2, None);
    client.send(&request).await;
    assert_eq!(
        node.exactly(request.len()).await,
        request,
        "the node has not seen the first"
    );
    node.answer(&Response::Ready, 2, None).await;
    assert_eq!(client.response(None).await, (2, Response::Ready));
}

#[tokio::test]
async fn a_compressed_request_without_an_agreement_is_an_error() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    let compressed = Compression::Lz4.compress(b"\0\0\0\x01x\0\x01\0");
    client.send(&raw_frame(4, 1, 6, 0x07, &compressed)).await;
    let (stream, response) = client.response(None).await;
    assert_eq!(stream, 6);
    assert!(matches!(response, Response::Error(_)), "{response:?}");
    client.ask(&Request::Options, 7, None).await;
    assert_eq!(node.request(None).await, (7, Request::Options));
}

#[tokio::test]
async fn statements_are_taken_once_the_node_has_let_the_client_in() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    let startup = request_bytes(&Request::Startup(Startup::default()), 1, None);
    let statements = [
        query("INSERT INTO t"),
        prepare("INSERT INTO t"),
        execute(b"id"),
    ];
    let mut sent = Vec::new();
    for (stream, statement) in (2..).zip(&statements) {
        sent.extend(request_bytes(statement, stream, None));
    }
    // The last statement is a BATCH.
    sent.extend(raw_frame(4, 0, 5, 0x0D, &[0; 7]));
    // Those before STARTUP are refused, and so are those before the client has logged in.
    client.send(&[&sent[..], &startup, &sent].concat()).await;
    are_refused(&mut client, 2..=5).await;
    assert_eq!(node.exactly(startup.len()).await, startup);
    let authenticator = "of the node".to_owned();
    let authenticate = Response::Authenticate { authenticator };
    node.answer(&authenticate, 1, None).await;
    assert_eq!(client.response(None).await, (1, authenticate));
    are_refused(&mut client, 2..=5).await;
    let success = Response::AuthSuccess { token: None.into() };
    node.answer(&success, 1, None).await;
    assert_eq!(client.response(None).await, (1, success));
    client.ask(&statements[0], 2, None).await;
    assert_eq!(node.request(None).await, (2, statements[0].clone()));
}

/// Takes the answers on these streams, which must be errors of the protocol.
async fn are_refused(client: &mut Peer, streams: RangeInclusive<i16>) {
    for stream in streams {
        let (answered, response) = client.response(None).await;
        assert_eq!(answered, stream);
        assert!(
            matches!(&response, Response::Error(error) if error.kind == ErrorKind::ProtocolError),
            "{response:?}"
        );
    }
}

/// Clients that register hear of changes of the schema, also by the gateway.
#[tokio::test]
async fn a_client_registers_only_once_the_node_has_let_it_in() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    let register = Request::Register {
        events: vec![EventKind::SchemaChange],
    };
    client.ask(&register, 1, None).await;
    are_refused(&mut client, 1..=1).await;
    client.ask(&Request::Options, 2, None).await;
    assert_eq!(node.request(None).await, (2, Request::Options));
}

#[tokio::test]
async fn nothing_passes_behind_startup_before_its_answer() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    let startup = request_bytes(&Request::Startup(Startup::default()), 1, None);
    let behind = request_bytes(&query("SELECT a FROM b"), 2, None);
    client.send(&[&startup[..], &behind].concat()).await;
    assert_eq!(node.exactly(startup.len()).await, startup);
    node.stays_silent().await;
    node.answer(&Response::Ready, 1, None).await;
    assert_eq!(client.response(None).await, (1, Response::Ready));
    assert_eq!(node.exactly(behind.len()).await, behind);
}

#[tokio::test]
async fn a_connection_begins_once() {
    let setup = Setup::new().await;
    let startup = |name: &str| {
        Request::Startup(Startup {
            options: vec![("COMPRESSION".to_owned(), name.to_owned())],
        })
    };
    let (mut client, mut node) = setup.connect_unauthenticated().await;
    // The node may refuse a STARTUP, and then another may follow.
    for name in ["snappy", "lz4"] {
        client.ask(&startup(name), 1, None).await;
        assert_eq!(node.request(None).await, (1, startup(name)));
        let answer = match name {
            "lz4" => Response::Authenticate {
                authenticator: "of the node".to_owned(),
            },
            _ => Response::Error(CqlError::protocol("not today")),
        };
        node.answer(&answer, 1, None).await;
        assert_eq!(client.response(None).await, (1, answer));
    }
    client.ask(&startup("snappy"), 3, None).await;
    are_refused(&mut client, 3..=3).await;
    let success = Response::AuthSuccess { token: None.into() };
    node.answer(&success, 4, None).await;
    assert_eq!(client.response(None).await, (4, success));
    client
        .ask(&query("SELECT a FROM b"), 5, Some(Compression::Lz4))
        .await;
    let passed = node.request(Some(Compression::Lz4)).await;
    assert_eq!(passed, (5, query("SELECT a FROM b")));
    node.answer(&Response::Void, 5, None).await;
    assert_eq!(client.response(None).await, (5, Response::Void));
    // Nor does its version change.
    client.send(&raw_frame(5, 0, 6, 0x05, b"")).await;
    are_refused(&mut client, 6..=6).await;
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_node_that_is_not_there_is_an_error_that_says_so() {
    let gone = Setup::new().await.node.address().to_string();
    let setup = Setup::with(|options| options.cassandra = gone.clone()).await;
    let mut client = Peer::connect(setup.gateway.address()).await;
    client.ask(&Request::Options, 9, None).await;
    let (stream, response) = client.response(None).await;
    assert_eq!(stream, 9);
    let Response::Error(error) = response else {
        panic!("{response:?}");
    };
    assert_eq!(error.kind, ErrorKind::IsBootstrapping);
    assert!(
        error.message.contains("cannot reach Cassandra") && error.message.contains(&gone),
        "{error}"
    );
    assert_eq!(client.rest().await, "");
}

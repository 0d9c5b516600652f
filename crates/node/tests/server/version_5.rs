//! Version 5 of the protocol: segments, and the fields that only it has.

use bytes::{Bytes, BytesMut};
use cql::error::ErrorKind;
use cql::wire::{
    BatchKind, BatchRequest, BatchStatement, BatchedStatement, Compression, Consistency,
    DecodedRows, PreparedResponse, ProtocolVersion, QueryParameters, Request, Response,
    ResponseContext, SEGMENT_PAYLOAD_MAX, SegmentForm, put_segment, segments_of,
};

use crate::client::{Client, echoed, error, query, raw_frame, startup};
use crate::echo::start;
use crate::real::start_with_keyspace;

const FORMS: [Option<Compression>; 2] = [None, Some(Compression::Lz4)];

/// A query in the form of a frame.
fn frame(stream: i16, text: &str) -> BytesMut {
    let mut out = BytesMut::new();
    query(text).encode_in(ProtocolVersion::V5, stream, None, &mut out);
    out
}

#[tokio::test]
async fn requests_and_answers_come_within_segments() {
    let server = start(|_| {}).await;
    for compression in FORMS {
        let mut client = Client::open_v5(server.address, compression).await;
        client.assert_alive().await;
        let requests: Vec<Request> = (0..100).map(|n| query(&format!("text {n}"))).collect();
        let together: Vec<(i16, &Request)> = (0..).zip(&requests).collect();
        client.send_together(&together).await;
        let mut answered = Vec::new();
        for _ in &requests {
            let (context, response) = client.receive().await;
            assert_eq!(context.version, ProtocolVersion::V5);
            assert_eq!(response, echoed(&format!("text {}", context.stream)));
            answered.push(context.stream);
        }
        answered.sort_unstable();
        assert_eq!(answered, (0..100).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn long_messages_go_over_several_segments_both_ways() {
    let server = start(|_| {}).await;
    for compression in FORMS {
        let mut client = Client::open_v5(server.address, compression).await;
        let long = "long ".repeat(100_000);
        // The answer is a string of the protocol, which has an end.
        assert_eq!(client.ask(&long).await, echoed(&long[..65_535]));
        for bytes in [0, 20_000, SEGMENT_PAYLOAD_MAX, 3 << 20] {
            let Response::Rows(rows) = client.ask(&format!("big {bytes}")).await else {
                panic!("no rows");
            };
            let DecodedRows { rows, .. } = rows.decode().unwrap();
            let cells = rows.iter().flatten().flatten();
            assert!(cells.map(Bytes::len).sum::<usize>() >= bytes);
        }
        client.assert_alive().await;
    }
}

#[tokio::test]
async fn a_request_may_come_in_pieces_of_any_size() {
    let server = start(|_| {}).await;
    let mut client = Client::open_v5(server.address, None).await;
    let frame = frame(3, "in pieces").freeze();
    let mut bytes = BytesMut::new();
    for piece in [&frame[..9], &frame[9..10], &frame[10..]] {
        put_segment(SegmentForm::Plain, piece, false, &mut bytes);
    }
    for byte in bytes {
        client.send_bytes(&[byte]).await;
    }
    let (context, response) = client.receive().await;
    assert_eq!((context.stream, response), (3, echoed("in pieces")));
}

#[tokio::test]
async fn damaged_segments_end_the_connection() {
    let server = start(|_| {}).await;
    for compression in FORMS {
        let form = SegmentForm::of(compression);
        let mut segment = BytesMut::new();
        put_segment(form, &frame(3, "text"), true, &mut segment);
        for (at, part) in [(1, "header"), (segment.len() - 1, "body")] {
            let mut client = Client::open_v5(server.address, compression).await;
            let mut damaged = segment.clone();
            damaged[at] ^= 0x10;
            client.send_bytes(&damaged).await;
            let (context, response) = client.receive().await;
            let error = error(response);
            assert_eq!(context.stream, 0);
            assert_eq!(error.kind, ErrorKind::ProtocolError);
            let words = format!("CRC mismatch detected in frame {part}. Read ");
            assert!(error.message.contains(&words), "{error}");
            client.assert_closed().await;
        }
    }
}

#[tokio::test]
async fn frames_that_do_not_fit_their_segments_end_the_connection() {
    let server = start(|_| {}).await;
    let form = SegmentForm::Plain;
    let whole = frame(3, "text");
    let half = &whole[..whole.len() / 2];
    for first_is_self_contained in [true, false] {
        let mut client = Client::open_v5(server.address, None).await;
        let mut bytes = BytesMut::new();
        put_segment(form, half, first_is_self_contained, &mut bytes);
        put_segment(form, &whole, true, &mut bytes);
        client.send_bytes(&bytes).await;
        let error = error(client.receive().await.1);
        assert!(error.message.contains("self-contained segment"), "{error}");
        client.assert_closed().await;
    }
}

#[tokio::test]
async fn a_frame_above_the_limit_is_refused_and_skipped() {
    let server = start(|options| options.connection.frame_body_max = 300_000).await;
    let mut client = Client::open_v5(server.address, None).await;
    let long = frame(3, &"x".repeat(400_000)).freeze();
    let parts = segments_of(SegmentForm::Plain, &long, &Bytes::new());
    client.send_bytes(&parts.concat()).await;
    let (context, response) = client.receive().await;
    assert_eq!(context.stream, 3);
    assert!(error(response).message.contains("300000"));
    client.assert_alive().await;
}

#[tokio::test]
async fn the_handshake_has_no_segments_and_its_version_stays() {
    let server = start(|_| {}).await;
    let mut client = Client::connect(server.address).await;
    client.version = ProtocolVersion::V5;
    client.send(5, &Request::Options).await;
    let (context, response) = client.receive().await;
    assert!(matches!(response, Response::Supported(_)));
    assert_eq!(context.version, ProtocolVersion::V5);

    client.send(1, &startup(Some(Compression::Snappy))).await;
    let (context, response) = client.receive().await;
    assert_eq!(context.version, ProtocolVersion::V5);
    let refused = error(response);
    assert_eq!(refused.kind, ErrorKind::ProtocolError);
    assert_eq!(
        refused.message,
        "Snappy compression is not supported in protocol V5"
    );
    client.start(Some(Compression::Lz4)).await;
    client.assert_alive().await;

    let mut other = BytesMut::new();
    let of_v4 = raw_frame(4, 0, 7, 5, &[]);
    put_segment(SegmentForm::Lz4, &of_v4, true, &mut other);
    client.send_bytes(&other).await;
    let (context, response) = client.receive().await;
    assert_eq!((context.stream, context.version), (7, ProtocolVersion::V5));
    assert_eq!(
        error(response).message,
        "Invalid message version. Got 4/v4 but previous messages on this connection had version 5/v5"
    );
    client.assert_closed().await;
}

/// A client of version 5 beside a node with the keyspace `k` in use.
async fn beside(first: &Client) -> Client {
    let address = first.socket.peer_addr().unwrap();
    let mut client = Client::open_v5(address, Some(Compression::Lz4)).await;
    client.run("USE k").await;
    client
}

async fn ask(client: &mut Client, text: &str, parameters: QueryParameters) -> Response {
    let statement = text.to_owned();
    let request = Request::Query {
        statement,
        parameters,
    };
    client.request(&request).await
}

fn in_keyspace(keyspace: &str) -> QueryParameters {
    QueryParameters {
        keyspace: Some(keyspace.to_owned()),
        ..QueryParameters::default()
    }
}

async fn prepare_in(client: &mut Client, keyspace: Option<&str>, text: &str) -> PreparedResponse {
    let request = Request::Prepare {
        statement: text.to_owned(),
        keyspace: keyspace.map(str::to_owned),
    };
    match client.request(&request).await {
        Response::Prepared(prepared) => prepared,
        response => panic!("{text}: {response:?}"),
    }
}

#[tokio::test]
async fn a_request_has_a_keyspace_of_its_own() {
    let (_node, first) = start_with_keyspace().await;
    let mut client = beside(&first).await;
    client
        .run("CREATE KEYSPACE other WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .await;
    for keyspace in ["k", "other"] {
        client
            .run(&format!(
                "CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text)"
            ))
            .await;
        let insert = format!("INSERT INTO t (k, v) VALUES (1, '{keyspace}')");
        let answer = ask(&mut client, &insert, in_keyspace(keyspace)).await;
        assert_eq!(answer, Response::Void);
    }
    assert_eq!(client.rows("SELECT v FROM k.t").await, [["'k'"]]);
    assert_eq!(client.rows("SELECT v FROM other.t").await, [["'other'"]]);
    let missing = ask(&mut client, "SELECT v FROM t", in_keyspace("missing")).await;
    assert_eq!(error(missing).message, "Keyspace 'missing' does not exist");

    let batch = Request::Batch(BatchRequest {
        kind: BatchKind::Logged,
        statements: vec![BatchStatement {
            statement: BatchedStatement::Text("INSERT INTO t (k, v) VALUES (2, 'b')".to_owned()),
            values: Vec::new(),
        }],
        consistency: Consistency::One,
        serial_consistency: None,
        timestamp: None,
        keyspace: Some("other".to_owned()),
        now_in_seconds: None,
    });
    assert_eq!(client.request(&batch).await, Response::Void);
    let two = "SELECT v FROM other.t WHERE k = 2";
    assert_eq!(client.rows(two).await, [["'b'"]]);

    let select = "SELECT v FROM t WHERE k = 1";
    let here = prepare_in(&mut client, None, select).await;
    let there = prepare_in(&mut client, Some("other"), select).await;
    assert_ne!(here.id, there.id);
    assert_eq!(prepare_in(&mut client, Some("k"), select).await.id, here.id);
    // The statement keeps its keyspace, whatever its execution says.
    let answer = execute(&mut client, &there, in_keyspace("k")).await.1;
    let Response::Rows(rows) = answer else {
        panic!("{answer:?}");
    };
    let cell = rows.decode().unwrap().rows[0][0].clone();
    assert_eq!(cell.as_deref(), Some(&b"other"[..]));
}

async fn execute(
    client: &mut Client,
    prepared: &PreparedResponse,
    parameters: QueryParameters,
) -> (ResponseContext, Response) {
    let request = Request::Execute {
        id: prepared.id.clone(),
        result_metadata_id: prepared.result_metadata_id.clone(),
        parameters,
    };
    client.send(7, &request).await;
    client.receive().await
}

fn skipping() -> QueryParameters {
    QueryParameters {
        skip_metadata: true,
        ..QueryParameters::default()
    }
}

#[tokio::test]
async fn an_answer_tells_of_columns_that_have_changed() {
    let (_node, first) = start_with_keyspace().await;
    let mut client = beside(&first).await;
    client
        .run("CREATE TABLE t (k int PRIMARY KEY, v text)")
        .await;
    client.run("INSERT INTO t (k, v) VALUES (1, 'one')").await;
    let text = "SELECT * FROM t";
    let before = prepare_in(&mut client, None, text).await;
    let rows = |answer: (ResponseContext, Response)| match answer.1 {
        Response::Rows(rows) => (rows.new_metadata_id.clone(), rows.decode().unwrap()),
        other => panic!("{other:?}"),
    };
    let (new_id, decoded) = rows(execute(&mut client, &before, skipping()).await);
    assert_eq!((new_id, decoded.metadata), (None, None));

    client.run("ALTER TABLE t ADD w int").await;
    let (new_id, decoded) = rows(execute(&mut client, &before, skipping()).await);
    assert_ne!(new_id, before.result_metadata_id);
    assert_eq!(decoded.metadata.unwrap().columns.len(), 3);
    let after = PreparedResponse {
        result_metadata_id: new_id,
        ..before.clone()
    };
    let (new_id, decoded) = rows(execute(&mut client, &after, skipping()).await);
    assert_eq!((new_id, decoded.metadata), (None, None));
    assert_eq!(decoded.rows[0].len(), 3);
    let again = prepare_in(&mut client, None, text).await;
    assert_eq!(again.id, before.id);
    assert_eq!(again.result_metadata_id, after.result_metadata_id);

    // The answer of a conditional write has its columns, and does not say that they are new.
    let insert = prepare_in(
        &mut client,
        None,
        "INSERT INTO t (k) VALUES (1) IF NOT EXISTS",
    )
    .await;
    let (new_id, decoded) = rows(execute(&mut client, &insert, skipping()).await);
    assert_eq!(new_id, None);
    assert!(decoded.metadata.is_some());
}

#[tokio::test]
async fn values_expire_by_the_present_that_a_request_tells() {
    let (_node, first) = start_with_keyspace().await;
    let mut client = beside(&first).await;
    client
        .run("CREATE TABLE t (k int PRIMARY KEY, v text)")
        .await;
    let at = |seconds: u32| QueryParameters {
        now_in_seconds: Some(seconds),
        ..QueryParameters::default()
    };
    // Long ago by the clock of the machine, which forgets nothing before its time.
    let now = 4_000_000_000;
    let insert = "INSERT INTO t (k, v) VALUES (1, 'one') USING TTL 100";
    assert_eq!(ask(&mut client, insert, at(now)).await, Response::Void);
    for (seconds, left) in [(now, Some(100)), (now + 60, Some(40)), (now + 100, None)] {
        let answer = ask(&mut client, "SELECT ttl(v) FROM t", at(seconds)).await;
        let Response::Rows(rows) = answer else {
            panic!("{answer:?}");
        };
        let rows = rows.decode().unwrap().rows;
        let expected = left.map(|left: i32| Bytes::copy_from_slice(&left.to_be_bytes()));
        let found = rows.first().and_then(|row| row[0].clone());
        assert_eq!(found, expected, "{seconds}");
    }
    let again = "INSERT INTO t (k, v) VALUES (1, 'two') IF NOT EXISTS";
    for (seconds, is_applied) in [(now + 50, 0), (now + 200, 1)] {
        let answer = ask(&mut client, again, at(seconds)).await;
        let Response::Rows(rows) = answer else {
            panic!("{answer:?}");
        };
        let applied = rows.decode().unwrap().rows[0][0].clone();
        assert_eq!(applied.as_deref(), Some(&[is_applied][..]), "{seconds}");
    }
    let past = "INSERT INTO t (k, v) VALUES (3, 'late') USING TTL 10";
    assert_eq!(ask(&mut client, past, at(1_000)).await, Response::Void);
    assert_eq!(client.rows("SELECT v FROM t WHERE k = 3").await.len(), 0);
}

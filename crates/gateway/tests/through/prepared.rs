//! Tests that a prepared statement is only executed if it was prepared through the gateway.

use bytes::Bytes;
use cql::error::ErrorKind;
use cql::wire::{ColumnsMetadata, Compression, PreparedResponse, Request, Response};

use crate::peer::{Peer, Setup, execute, prepare, query, raw_frame, request_bytes};

const ID: &[u8] = b"0123456789abcdef";

fn prepared() -> Response {
    Response::Prepared(PreparedResponse {
        id: Bytes::from_static(ID),
        result_metadata_id: None,
        bind: ColumnsMetadata::default(),
        partition_key_indexes: Vec::new(),
        result: None,
    })
}

/// A statement long enough to be compressed.
fn statement() -> Request {
    prepare(&format!(
        "INSERT INTO t (id) VALUES (1) -- {}",
        "x".repeat(1_000)
    ))
}

async fn is_unprepared(client: &mut Peer, stream: i16) {
    client.ask(&execute(ID), stream, None).await;
    let (answered, response) = client.response(None).await;
    let Response::Error(error) = response else {
        panic!("{response:?}");
    };
    assert_eq!(answered, stream);
    let id = Bytes::from_static(ID);
    assert_eq!(error.kind, ErrorKind::Unprepared { id });
}

#[tokio::test]
async fn an_id_is_unknown_until_it_is_prepared_on_any_connection() {
    for compression in [None, Some(Compression::Lz4), Some(Compression::Snappy)] {
        let setup = Setup::new().await;
        let (mut client, mut node) = match compression {
            Some(compression) => setup.connect_compressed(compression).await,
            None => setup.connect().await,
        };
        let (mut other, mut other_node) = setup.connect().await;
        is_unprepared(&mut client, 1).await;
        is_unprepared(&mut other, 1).await;

        client.ask(&statement(), 2, compression).await;
        assert_eq!(node.request(compression).await, (2, statement()));
        node.answer(&prepared(), 2, compression).await;
        assert_eq!(client.response(compression).await, (2, prepared()));

        for (client, node) in [(&mut client, &mut node), (&mut other, &mut other_node)] {
            let request = request_bytes(&execute(ID), 3, None);
            client.send(&request).await;
            assert_eq!(node.exactly(request.len()).await, request);
        }
    }
}

#[tokio::test]
async fn a_statement_that_was_not_prepared_stays_unknown() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    client.ask(&prepare("INSERT INTO"), 1, None).await;
    node.request(None).await;
    let error = Response::Error(cql::error::CqlError::syntax("line 1:11 no"));
    node.answer(&error, 1, None).await;
    assert_eq!(client.response(None).await, (1, error));
    is_unprepared(&mut client, 2).await;
    // A RESULT of another kind, as the answer to a PREPARE, makes no id known either.
    client.ask(&prepare("x"), 3, None).await;
    node.request(None).await;
    node.answer(&Response::Void, 3, None).await;
    assert_eq!(client.response(None).await, (3, Response::Void));
    is_unprepared(&mut client, 4).await;
}

#[tokio::test]
async fn an_id_is_read_although_the_columns_are_of_unknown_types() {
    let setup = Setup::new().await;
    let (mut client, mut node) = setup.connect().await;
    client
        .ask(&prepare("SELECT place FROM local_shops"), 1, None)
        .await;
    node.request(None).await;
    let mut body = vec![0, 0, 0, 4, 0, 16];
    body.extend(ID);
    body.extend([0xEE; 50]);
    let response = raw_frame(0x84, 0, 1, 0x08, &body);
    node.send(&response).await;
    assert_eq!(client.exactly(response.len()).await, response);
    let request = request_bytes(&execute(ID), 2, None);
    client.send(&request).await;
    assert_eq!(node.exactly(request.len()).await, request);
    let rows = raw_frame(0x84, 0, 2, 0x08, &[0xEE; 50]);
    node.send(&rows).await;
    assert_eq!(client.exactly(rows.len()).await, rows);
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_read_leaves_nothing_expected() {
    let setup = Setup::with(|options| options.frame_body_max = 1_000).await;
    let (mut client, mut node) = setup.connect().await;
    client.ask(&prepare("SELECT 1"), 1, None).await;
    node.request(None).await;
    let long = raw_frame(0x84, 0, 1, 0x08, &[0; 2_000]);
    node.send(&long).await;
    assert_eq!(client.exactly(long.len()).await, long);
    // The next answer on that stream does not belong to the PREPARE.
    client.ask(&query("SELECT 2"), 1, None).await;
    node.request(None).await;
    node.answer(&prepared(), 1, None).await;
    assert_eq!(client.response(None).await, (1, prepared()));
    is_unprepared(&mut client, 2).await;
}

//! Tests that drivers learn the addresses of gateways in the places of the nodes' addresses.

use std::net::SocketAddr;

use bytes::Bytes;
use cql::wire::{
    ColumnSpec, ColumnsMetadata, Compression, EVENT_STREAM, PreparedResponse, ProtocolVersion,
    Request, Response, ResponseContext, RowsEncoder, ServerEvent, StatusChange,
};
use gateway::Ring;
use uuid::Uuid;
use value::{CqlType, Value};

use crate::peer::{BODY_LIMIT, Peer, Setup, execute, prepare, query, raw_frame, response_bytes};

const ID: &[u8] = b"0123456789abcdef";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

async fn setup() -> Setup {
    let ring = Ring::new([(address("10.0.0.2:9042"), address("10.0.1.2:9043"))]).unwrap();
    Setup::with(|options| options.ring = ring).await
}

fn peers_columns() -> ColumnsMetadata {
    let column = |name: &str, cql_type| ColumnSpec {
        keyspace: "system".into(),
        table: "peers_v2".into(),
        name: name.into(),
        cql_type,
    };
    ColumnsMetadata {
        columns: vec![
            column("native_address", CqlType::Inet),
            column("native_port", CqlType::Int),
            column("rack", CqlType::Text),
        ],
    }
}

/// A result of `system.peers_v2`, long enough to be compressed.
fn peers(addresses: &[&str], skip_metadata: bool) -> Response {
    let mut rows = RowsEncoder::new(&peers_columns(), skip_metadata);
    for node in addresses {
        let node = address(node);
        rows.cell(Some(&Value::Inet(node.ip()).serialize()));
        rows.cell(Some(&i32::from(node.port()).to_be_bytes()));
        rows.cell(Some(&[b'r'; 600]));
        rows.end_row();
    }
    Response::Rows(rows.finish(None))
}

const BOTH: &[&str] = &["10.0.0.2:9042", "10.0.0.3:9042"];
const TOLD: &[&str] = &["10.0.1.2:9043"];

async fn passes(client: &mut Peer, node: &mut Peer, request: &Request, stream: i16) {
    client.ask(request, stream, None).await;
    assert_eq!(node.request(None).await, (stream, request.clone()));
}

#[tokio::test]
async fn peers_are_translated_for_queries_and_prepared_statements() {
    for compression in [None, Some(Compression::Lz4)] {
        let setup = setup().await;
        let (mut client, mut node) = match compression {
            Some(compression) => setup.connect_compressed(compression).await,
            None => setup.connect().await,
        };
        let select = "SELECT native_address, native_port, rack FROM system.peers_v2";
        passes(&mut client, &mut node, &query(select), 1).await;
        node.answer(&peers(BOTH, false), 1, compression).await;
        assert_eq!(client.response(compression).await, (1, peers(TOLD, false)));

        passes(&mut client, &mut node, &prepare(select), 2).await;
        let prepared = Response::Prepared(PreparedResponse {
            id: Bytes::from_static(ID),
            result_metadata_id: None,
            bind: ColumnsMetadata::default(),
            partition_key_indexes: Vec::new(),
            result: Some(peers_columns()),
        });
        node.answer(&prepared, 2, compression).await;
        assert_eq!(client.response(compression).await, (2, prepared));
        passes(&mut client, &mut node, &execute(ID), 3).await;
        node.answer(&peers(BOTH, true), 3, compression).await;
        assert_eq!(client.response(compression).await, (3, peers(TOLD, true)));

        // A response that no request on its stream asks for is passed on unchanged.
        node.answer(&peers(BOTH, false), 3, compression).await;
        assert_eq!(client.response(compression).await, (3, peers(BOTH, false)));
    }
}

#[tokio::test]
async fn a_translated_result_keeps_its_trace_warnings_and_payload() {
    let setup = setup().await;
    let (mut client, mut node) = setup.connect().await;
    passes(
        &mut client,
        &mut node,
        &query("SELECT * FROM system.peers_v2"),
        1,
    )
    .await;
    let context = ResponseContext {
        version: ProtocolVersion::V4,
        stream: 1,
        tracing_id: Some(Uuid::from_u128(7)),
        warnings: vec!["beware".to_owned()],
        custom_payload: vec![("a".to_owned(), Some(Bytes::from_static(b"b")))],
    };
    let mut sent = bytes::BytesMut::new();
    peers(BOTH, false).encode(&context, None, &mut sent);
    node.send(&sent).await;
    let frame = client.frame(cql::wire::FrameDirection::Response).await;
    let told = Response::decode(&frame, None, BODY_LIMIT).unwrap();
    assert_eq!(told, (context, peers(TOLD, false)));
}

#[tokio::test]
async fn errors_and_other_tables_pass_although_they_were_suspected() {
    let setup = setup().await;
    let (mut client, mut node) = setup.connect().await;
    let select = query("SELECT * FROM local_shops");
    let unreadable = raw_frame(0x84, 0, 1, 0x08, &[0xEE; 100]);
    let error = Response::Error(cql::error::CqlError::invalid("no such table"));
    let error = response_bytes(&error, 1, None);
    for response in [unreadable, error.to_vec()] {
        passes(&mut client, &mut node, &select, 1).await;
        node.send(&response).await;
        assert_eq!(client.exactly(response.len()).await, response);
    }
}

#[tokio::test]
async fn events_are_of_gateways() {
    let setup = setup().await;
    let (mut client, mut node) = setup.connect().await;
    let up = |node: &str| {
        Response::Event(ServerEvent::StatusChange {
            change: StatusChange::Up,
            node: address(node),
        })
    };
    for told in BOTH {
        node.answer(&up(told), EVENT_STREAM, None).await;
    }
    node.answer(&Response::Ready, 1, None).await;
    let event = (EVENT_STREAM, up("10.0.1.2:9043"));
    assert_eq!(client.response(None).await, event);
    assert_eq!(client.response(None).await, (1, Response::Ready));
}

//! Writes to logged tables on a whole connection, between a client and a node that are both played by the test.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BatchedStatement, BoundValue, Compression, Consistency, Direction, Frame, FrameHeader,
    HEADER_LENGTH, Metadata, Prepared, QueryParameters, Request, Response, ResponseContext,
    Startup, Values,
};
use store_api::Client as Stores;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::requests::Requests;
use super::responses::Responses;
use super::session::Session;
use super::work::Workshop;
use super::writes::write_memory;
use crate::catalog::{Catalog, Snapshot};
use crate::clients::Client;
use crate::inquiry::{AnswerMemory, Inquirer, gateway_memory};
use crate::prepared::PreparedStatements;
use crate::ring::Ring;
use crate::writes::ChangeLog;
use crate::writes::test_tables::{events, products};

const BODY_MAX: usize = 64 << 20;
const PIPE: usize = 64 << 10;

/// What gateways share, with a snapshot of logged tables.
struct Shared {
    catalog: Arc<Catalog>,
    prepared: Arc<PreparedStatements>,
    log: Arc<ChangeLog>,
}

impl Shared {
    fn new(snapshot: Snapshot) -> Shared {
        Shared {
            catalog: Arc::new(Catalog::new(snapshot)),
            prepared: Arc::new(PreparedStatements::new(1 << 20)),
            log: Arc::new(ChangeLog::new(5 << 10)),
        }
    }

    /// A client that the node has let in, and the node.
    async fn connect_with(&self, compression: Option<Compression>) -> (Peer, Peer) {
        let (mut client, mut node) = self.connect();
        let chosen = compression.map(|chosen| ("COMPRESSION".to_owned(), chosen.name().to_owned()));
        let options = chosen.into_iter().collect();
        client.ask(&Request::Startup(Startup { options }), 0).await;
        node.request().await;
        node.answer(&Response::Ready, 0).await;
        client.response().await;
        client.compression = compression;
        node.compression = compression;
        (client, node)
    }

    /// A client and its node.
    fn connect(&self) -> (Peer, Peer) {
        let (client, of_client) = duplex(PIPE);
        let (node, of_node) = duplex(PIPE);
        let own_address = "127.0.0.1:9043".parse().unwrap();
        let (answers_sender, answers) = mpsc::channel(16);
        let known_as = Arc::new(Client::new(answers_sender.downgrade()));
        let session = Arc::new(Session::new(own_address, BODY_MAX, known_as));
        let (inquirer, inquiries) = Inquirer::new();
        let (steps_sender, steps) = mpsc::unbounded_channel();
        let requests = Requests {
            session: session.clone(),
            prepared: self.prepared.clone(),
            catalog: self.catalog.clone(),
            log: self.log.clone(),
            steps,
            write_memory: write_memory(),
            workshop: Workshop::new(
                inquirer,
                Stores::disabled(),
                self.prepared.clone(),
                answers_sender,
                CancellationToken::new(),
            ),
            inquiries,
            stop: CancellationToken::new(),
            handshake_timeout: Duration::from_secs(20),
            drain_timeout: Duration::from_secs(20),
        };
        let responses = Responses {
            session,
            prepared: self.prepared.clone(),
            ring: Arc::new(Ring::default()),
            catalog: self.catalog.clone(),
            answers,
            answer_memory: AnswerMemory::new(gateway_memory()),
            steps: steps_sender,
            drain_timeout: Duration::from_secs(20),
        };
        let (mut from_client, mut to_client) = split(of_client);
        let (mut from_node, mut to_node) = split(of_node);
        tokio::spawn(async move {
            tokio::join!(requests.run(&mut from_client, &mut to_node), async {
                responses.run(&mut from_node, &mut to_client).await;
                to_client.shutdown().await.unwrap();
            })
        });
        (Peer::new(client), Peer::new(node))
    }
}

/// A snapshot with `shop.products` and `shop.events` logged.
fn snapshot() -> Snapshot {
    Snapshot::new([Arc::new(products()), Arc::new(events())], [])
}

/// One end of a connection.
struct Peer {
    socket: DuplexStream,
    input: BytesMut,
    compression: Option<Compression>,
}

impl Peer {
    fn new(socket: DuplexStream) -> Peer {
        Peer {
            socket,
            input: BytesMut::new(),
            compression: None,
        }
    }

    async fn ask(&mut self, request: &Request, stream: i16) -> Bytes {
        let mut out = BytesMut::new();
        request.encode(stream, self.compression, &mut out);
        self.socket.write_all(&out).await.unwrap();
        out.freeze()
    }

    async fn answer(&mut self, response: &Response, stream: i16) {
        let mut out = BytesMut::new();
        response.encode(&ResponseContext::new(stream), self.compression, &mut out);
        self.socket.write_all(&out).await.unwrap();
    }

    async fn frame(&mut self, direction: Direction) -> Frame {
        loop {
            if let Some(header) = FrameHeader::read(&self.input, direction, BODY_MAX).unwrap() {
                let length = HEADER_LENGTH + header.length as usize;
                if self.input.len() >= length {
                    let body = self.input.split_to(length).freeze().slice(HEADER_LENGTH..);
                    return Frame { header, body };
                }
            }
            let read = soon(self.socket.read_buf(&mut self.input)).await.unwrap();
            assert!(read > 0, "closed");
        }
    }

    async fn request(&mut self) -> (i16, Request) {
        let frame = self.frame(Direction::Request).await;
        let request = Request::decode(&frame, self.compression, BODY_MAX).unwrap();
        (frame.header.stream, request)
    }

    /// The next request, which must be a batch of so many statements.
    async fn batch(&mut self, statements: usize) -> i16 {
        let (stream, request) = self.request().await;
        let Request::Batch(batch) = request else {
            panic!("{request:?}");
        };
        assert_eq!(batch.statements.len(), statements);
        stream
    }

    async fn response(&mut self) -> (i16, Response) {
        let frame = self.frame(Direction::Response).await;
        let (context, response) = Response::decode(&frame, self.compression, BODY_MAX).unwrap();
        (context.stream, response)
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what)
        .await
        .expect("it should be done by now")
}

async fn rest(mut socket: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut rest = Vec::new();
    soon(socket.read_to_end(&mut rest)).await.unwrap();
    rest
}

fn query(text: &str) -> Request {
    Request::Query {
        statement: text.to_owned(),
        parameters: QueryParameters::default(),
    }
}

fn prepare(text: &str) -> Request {
    Request::Prepare {
        statement: text.to_owned(),
    }
}

fn execute(id: &'static [u8], values: Vec<BoundValue>) -> Request {
    Request::Execute {
        id: Bytes::from_static(id),
        parameters: QueryParameters {
            values: Values::Positional(values),
            ..QueryParameters::default()
        },
    }
}

fn prepared_as(id: &'static [u8]) -> Response {
    Response::Prepared(Prepared {
        id: Bytes::from_static(id),
        bind: Metadata::default(),
        partition_key_indexes: Vec::new(),
        result: None,
    })
}

fn is_prepare(request: &(i16, Request)) -> bool {
    matches!(request.1, Request::Prepare { .. })
}

const INSERT: &str = "INSERT INTO shop.products (id, name) VALUES (1, 'tea')";

#[tokio::test]
async fn nothing_is_written_once_what_is_known_has_run_out() {
    let shared = Shared::new(snapshot());
    let (mut client, mut node) = shared.connect_with(None).await;
    shared.catalog.prolong(Instant::now());
    let texts = [
        INSERT,
        "TRUNCATE shop.products",
        "TRUNCATE TABLE shop.other",
    ];
    for text in texts {
        client.ask(&query(text), 1).await;
        let (_, response) = client.response().await;
        let Response::Error(error) = response else {
            panic!("{text}: {response:?}");
        };
        assert_eq!(error.kind, ErrorKind::IsBootstrapping, "{text}");
    }
    client.ask(&query("SELECT * FROM shop.products"), 1).await;
    assert_eq!(node.request().await.0, 1);
}

#[tokio::test]
async fn writes_and_other_requests_go_side_by_side() {
    let shared = Shared::new(snapshot());
    let (mut client, mut node) = shared.connect();
    client.ask(&query(INSERT), 1).await;
    client
        .ask(&query("SELECT name FROM shop.products"), 2)
        .await;
    client.ask(&query(INSERT), 3).await;
    let first = node.request().await;
    assert!(is_prepare(&first) && first.0 == 1);
    assert_eq!(node.request().await.0, 2);
    assert!(is_prepare(&node.request().await));
    node.answer(&prepared_as(b"log"), 3).await;
    assert_eq!(node.batch(2).await, 3);
    node.answer(&Response::Void, 2).await;
    assert_eq!(client.response().await, (2, Response::Void));
    node.answer(&prepared_as(b"log"), 1).await;
    assert_eq!(node.batch(2).await, 1);
    for stream in [1, 3] {
        node.answer(&Response::Void, stream).await;
        assert_eq!(client.response().await, (stream, Response::Void));
    }
}

#[tokio::test]
async fn a_statement_prepared_before_its_table_was_logged_is_prepared_again() {
    let shared = Shared::new(Snapshot::default());
    let (mut client, mut node) = shared.connect();
    let text = "DELETE FROM shop.products WHERE id = ?";
    client.ask(&prepare(text), 1).await;
    node.request().await;
    node.answer(&prepared_as(b"delete"), 1).await;
    client.response().await;
    let key = BoundValue::Value(Bytes::from_static(&[0, 0, 0, 7]));
    let delete = execute(b"delete", vec![key]);
    client.ask(&delete, 2).await;
    assert_eq!(node.request().await, (2, delete.clone()), "as it came");

    shared.catalog.replace(snapshot());
    let in_a_batch = Request::Batch(cql::wire::Batch {
        kind: cql::wire::BatchKind::Logged,
        statements: vec![cql::wire::BatchStatement {
            statement: BatchedStatement::Prepared(Bytes::from_static(b"delete")),
            values: vec![],
        }],
        consistency: Consistency::One,
        serial_consistency: None,
        timestamp: None,
    });
    for request in [&delete, &in_a_batch] {
        client.ask(request, 3).await;
        let (_, response) = client.response().await;
        let unprepared = ErrorKind::Unprepared {
            id: Bytes::from_static(b"delete"),
        };
        assert!(
            matches!(&response, Response::Error(error) if error.kind == unprepared),
            "{response:?}"
        );
    }
    client.ask(&prepare(text), 4).await;
    assert_eq!(node.request().await, (4, prepare(text)), "as it came");
    node.answer(&prepared_as(b"delete"), 4).await;
    assert_eq!(client.response().await, (4, prepared_as(b"delete")));
    client.ask(&delete, 5).await;
    assert!(is_prepare(&node.request().await));
    node.answer(&prepared_as(b"log"), 5).await;
    assert_eq!(node.batch(2).await, 5);
}

#[tokio::test]
async fn names_without_a_keyspace_are_in_that_of_the_last_use() {
    let shared = Shared::new(snapshot());
    let (mut client, mut node) = shared.connect();
    let insert = query("INSERT INTO products (id) VALUES (1)");
    for (keyspace, is_logged) in [("other", false), ("shop", true), ("other", false)] {
        client.ask(&query(&format!("USE {keyspace}")), 1).await;
        node.request().await;
        node.answer(&Response::SetKeyspace(keyspace.to_owned()), 1)
            .await;
        client.response().await;
        client.ask(&insert, 2).await;
        let request = node.request().await;
        assert_eq!(is_prepare(&request), is_logged, "{request:?}");
        if is_logged {
            let refusal = Response::Error(CqlError::invalid("unconfigured table"));
            node.answer(&refusal, 2).await;
            assert_eq!(client.response().await, (2, refusal));
        }
    }
}

#[tokio::test]
async fn compressed_requests_are_understood_and_compressed_answers_pass() {
    let shared = Shared::new(snapshot());
    let (mut client, mut node) = shared.connect_with(Some(Compression::Lz4)).await;
    let long = format!("{INSERT} -- {}", "x".repeat(2_000));
    client.ask(&query(&long), 1).await;
    node.request().await;
    node.answer(&prepared_as(b"log"), 1).await;
    assert_eq!(node.batch(2).await, 1);
    let answer = Response::Error(CqlError::invalid("y".repeat(2_000)));
    node.answer(&answer, 1).await;
    assert_eq!(client.response().await, (1, answer));
    // One that goes alone is compressed as it came.
    let conditional = format!("{INSERT} IF NOT EXISTS -- {}", "x".repeat(2_000));
    let asked = client.ask(&query(&conditional), 2).await;
    node.batch(1).await;
    node.answer(&Response::Void, 2).await;
    let frame = node.frame(Direction::Request).await;
    assert_eq!([&frame.header.to_bytes()[..], &frame.body].concat(), asked);
}

#[tokio::test]
async fn a_write_under_way_is_finished_for_a_client_that_asks_nothing_more() {
    let shared = Shared::new(snapshot());
    let (mut client, mut node) = shared.connect();
    client
        .ask(&query(&format!("{INSERT} IF NOT EXISTS")), 1)
        .await;
    assert!(is_prepare(&node.request().await));
    client.socket.shutdown().await.unwrap();
    node.answer(&prepared_as(b"log"), 1).await;
    node.batch(1).await;
    node.answer(&Response::Void, 1).await;
    assert!(matches!(node.request().await, (1, Request::Query { .. })));
    let unknown = Response::Error(CqlError::server("who knows"));
    node.answer(&unknown, 1).await;
    node.batch(1).await;
    node.answer(&Response::Void, 1).await;
    assert_eq!(client.response().await, (1, unknown));
    assert_eq!(rest(client.socket).await, b"");
}

#[tokio::test]
async fn writes_that_hold_much_memory_wait_for_one_another() {
    let shared = Shared::new(snapshot());
    let (mut client, mut node) = shared.connect_with(None).await;
    let large = query(&format!("{INSERT} -- {}", "x".repeat(5 << 20)));
    let sending = async {
        for stream in 1..=3 {
            client.ask(&large, stream).await;
        }
        client
    };
    let playing = async {
        assert!(is_prepare(&node.request().await));
        // The second is read but not begun: nothing of it comes.
        let early = tokio::time::timeout(Duration::from_millis(200), node.request());
        assert!(early.await.is_err());
        for stream in 1..=3 {
            if stream == 1 {
                node.answer(&prepared_as(b"log"), stream).await;
            }
            assert_eq!(node.batch(1).await, stream);
            node.answer(&Response::Void, stream).await;
            assert!(matches!(node.request().await.1, Request::Query { .. }));
            node.answer(&Response::Void, stream).await;
            assert_eq!(node.batch(1).await, stream);
            node.answer(&Response::Void, stream).await;
        }
    };
    let (mut client, ()) = soon(async { tokio::join!(sending, playing) }).await;
    for stream in 1..=3 {
        assert_eq!(client.response().await, (stream, Response::Void));
    }
}

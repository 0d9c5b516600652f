//! Tests of nearest-neighbour queries on a whole connection. The client, the node and the index
//! service are all scripted by the test.

mod as_text;
mod filters;
mod freshness;
mod maintenance;
mod slow_searches;
mod words;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BoundValue, ColumnSpec, ColumnsMetadata, Consistency, EncodedRows, Frame, FrameDirection,
    FrameFlags, FrameHeader, HEADER_LENGTH, MarkerValues, PreparedResponse, QueryParameters,
    Request, Response, ResponseContext, RowsEncoder, Startup,
};
use http_server::{MetricsHistory, MetricsRegistry};
use net::pending_connections::ConnectionAdmission;
use store_api::binary::ANSWER_MEDIA_TYPE;
use store_api::types::{EXACT_HEADER, SHORT_HEADER};
use store_api::{ClientOptions, StoreClient};
pub(super) use test_support::soon;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;
use value::{CqlType, join_elements};

use super::serve;
use crate::catalog::{IndexCatalog, IndexCatalogSnapshot};
use crate::clients::OpenConnections;
use crate::node_requests::AnswerMemory;
use crate::options::{FreshnessOptions, GatewayOptions, WhenBehind};
use crate::prepared::StatementsById;
use crate::ring::Ring;
use crate::shared::ServingState;
use crate::vector_search::fixtures::{column, keeping, snapshot, snapshot_of, table};
use crate::writes::ChangeLog;

const BODY_MAX: usize = 1 << 20;

/// One end of a connection.
pub(super) struct Peer {
    socket: TcpStream,
    input: BytesMut,
}

impl Peer {
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        soon(self.socket.write_all(bytes)).await.unwrap();
    }

    pub(super) async fn ask(&mut self, request: &Request, stream: i16) {
        let mut out = BytesMut::new();
        request.encode(stream, None, &mut out);
        self.send(&out).await;
    }

    pub(super) async fn answer(&mut self, response: &Response, context: &ResponseContext) {
        let mut out = BytesMut::new();
        response.encode(context, None, &mut out);
        self.send(&out).await;
    }

    async fn frame(&mut self, direction: FrameDirection) -> Frame {
        loop {
            let header = FrameHeader::read(&self.input, direction, BODY_MAX).unwrap();
            if let Some(header) = header {
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

    pub(super) async fn request(&mut self) -> (i16, Request) {
        let frame = self.frame(FrameDirection::Request).await;
        let request = Request::decode(&frame, None, BODY_MAX).unwrap();
        (frame.header.stream, request)
    }

    pub(super) async fn response(&mut self) -> (ResponseContext, Response) {
        let frame = self.frame(FrameDirection::Response).await;
        Response::decode(&frame, None, BODY_MAX).unwrap()
    }
}

/// A scripted index service, which knows exact searches. The bodies of requests come out of one
/// channel, and the answers to them go into the other.
pub(super) struct Store {
    uri: String,
    pub(super) searches: mpsc::Receiver<String>,
    answers: mpsc::Sender<StoreAnswer>,
}

/// An answer of the index service.
struct StoreAnswer {
    status: &'static str,
    content_type: &'static str,
    is_short: bool,
    body: Bytes,
}

impl Store {
    async fn start() -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let (search_in, searches) = mpsc::channel(8);
        let (answers, mut to_answer) = mpsc::channel::<StoreAnswer>(8);
        tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let mut socket = BufReader::new(socket);
            while let Some(body) = http_body(&mut socket).await {
                let exact = match body.contains("\"exact\":true") {
                    true => format!("{EXACT_HEADER}: true\r\n"),
                    false => String::new(),
                };
                search_in.send(body).await.unwrap();
                let StoreAnswer {
                    status,
                    content_type,
                    is_short,
                    body,
                } = to_answer.recv().await.unwrap();
                let short = match is_short {
                    true => format!("{SHORT_HEADER}: true\r\n"),
                    false => String::new(),
                };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n{exact}{short}content-length: {length}\r\n\r\n"
                );
                let answer = [head.as_bytes(), &body].concat();
                socket.get_mut().write_all(&answer).await.unwrap();
            }
        });
        Store {
            uri,
            searches,
            answers,
        }
    }

    pub(super) async fn answer(
        &mut self,
        status: &'static str,
        body: &'static str,
    ) -> serde_json::Value {
        let body = Bytes::from_static(body.as_bytes());
        self.say(status, "application/json", false, body).await
    }

    /// Answers the next request with status 200 and this body, which names the neighbours.
    pub(super) async fn neighbours(&mut self, body: &'static str) -> serde_json::Value {
        self.answer("200 OK", body).await
    }

    /// Answers the next request with status 200 and this body in the binary form.
    pub(super) async fn binary(&mut self, body: Bytes) -> serde_json::Value {
        self.say("200 OK", ANSWER_MEDIA_TYPE, false, body).await
    }

    /// Answers the next request with this body in the binary form, which may lack rows.
    pub(super) async fn short(&mut self, body: Bytes) -> serde_json::Value {
        self.say("200 OK", ANSWER_MEDIA_TYPE, true, body).await
    }

    async fn say(
        &mut self,
        status: &'static str,
        content_type: &'static str,
        is_short: bool,
        body: Bytes,
    ) -> serde_json::Value {
        let search = soon(self.searches.recv()).await.unwrap();
        let answer = StoreAnswer {
            status,
            content_type,
            is_short,
            body,
        };
        self.answers.send(answer).await.ok().unwrap();
        serde_json::from_str(&search).unwrap()
    }
}

/// Reads the next HTTP request, and returns its body.
async fn http_body(socket: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line).await.unwrap() == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            let mut body = vec![0; length];
            socket.read_exact(&mut body).await.unwrap();
            return Some(String::from_utf8(body).unwrap());
        }
    }
}

pub(super) struct Setup {
    pub(super) client: Peer,
    pub(super) node: Peer,
    pub(super) store: Store,
    pub(super) log: Arc<ChangeLog>,
    /// The id of the table `films`.
    pub(super) table: Uuid,
}

/// Connects a client that uses `shop`, where `films` has a vector index.
async fn setup() -> Setup {
    setup_with(FreshnessOptions::default()).await
}

async fn setup_with(freshness: FreshnessOptions) -> Setup {
    let options = GatewayOptions {
        freshness,
        ..GatewayOptions::default()
    };
    setup_of(options, snapshot()).await
}

/// Connects a client to a gateway of these options and definitions, which has its node and its
/// index service from the test.
pub(super) async fn setup_of(options: GatewayOptions, snapshot: IndexCatalogSnapshot) -> Setup {
    let store = Store::start().await;
    let node = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stores = StoreClient::new(ClientOptions {
        base_uris: vec![store.uri.clone()],
        ..ClientOptions::default()
    });
    let options = GatewayOptions {
        cassandra: node.local_addr().unwrap().to_string(),
        stores: stores.unwrap().into(),
        ..options
    };
    let log = Arc::new(ChangeLog::new(
        5 << 10,
        Duration::MAX,
        Arc::default(),
        Arc::default(),
    ));
    let shared = ServingState {
        answer_cache: Arc::default(),
        metrics: Arc::default(),
        registry: MetricsRegistry::default(),
        history: MetricsHistory::new(MetricsRegistry::default()),
        client_tls: arc_swap::ArcSwapOption::default(),
        connections: arc_swap::ArcSwap::from_pointee(CancellationToken::new()),
        ring: Arc::new(Ring::default()),
        prepared: Arc::new(StatementsById::new(1 << 20)),
        catalog: Arc::new(IndexCatalog::new(snapshot)),
        log: log.clone(),
        clients: Arc::new(OpenConnections::default()),
        answer_memory: AnswerMemory::new(64 << 20),
        stop: CancellationToken::new(),
        kill: CancellationToken::new(),
        tasks: TaskTracker::new(),
        options,
        refused: Default::default(),
    };
    let table = shared.catalog.snapshot().logged_table("shop", "films");
    let table = table.unwrap().id;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(address).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    tokio::spawn(serve(
        accepted,
        Arc::new(shared),
        ConnectionAdmission::default(),
    ));
    let peer = |socket| Peer {
        socket,
        input: BytesMut::new(),
    };
    let (mut client, mut node) = (peer(client), peer(soon(node.accept()).await.unwrap().0));
    for (request, response) in [
        (Request::Startup(Startup::default()), Response::Ready),
        (query("USE shop"), Response::SetKeyspace("shop".to_owned())),
    ] {
        client.ask(&request, 0).await;
        node.request().await;
        node.answer(&response, &ResponseContext::new(0)).await;
        client.response().await;
    }
    Setup {
        client,
        node,
        store,
        log,
        table,
    }
}

pub(super) fn query(statement: &str) -> Request {
    Request::Query {
        statement: statement.to_owned(),
        parameters: QueryParameters::default(),
    }
}

const SELECT: &str = "SELECT name, v FROM films ORDER BY v ANN OF ? LIMIT ?";
const READ: &str = "SELECT name, v \n, \"id\" FROM \"shop\".\"films\" WHERE \"id\" IN ?";

fn columns() -> ColumnsMetadata {
    ColumnsMetadata {
        columns: vec![column("name"), column("v"), column("id")],
    }
}

/// Makes rows from a name, an id, and whether the row has a vector.
fn rows(rows: &[(&str, &str, bool)], skip_metadata: bool) -> EncodedRows {
    let mut encoder = RowsEncoder::new(&columns(), skip_metadata);
    for (name, id, has_vector) in rows {
        encoder.cell(Some(name.as_bytes()));
        encoder.cell(has_vector.then_some(&[0; 12]));
        encoder.cell(Some(id.as_bytes()));
        encoder.end_row();
    }
    encoder.finish(None)
}

fn names(response: &Response) -> Vec<String> {
    let Response::Rows(rows) = response else {
        panic!("{response:?}")
    };
    let rows = rows.decode().unwrap().rows;
    let cells = rows.into_iter().map(|row| row[0].clone().unwrap().to_vec());
    cells.map(|cell| String::from_utf8(cell).unwrap()).collect()
}

impl Setup {
    /// Prepares [`SELECT`] and returns its id.
    async fn prepare(&mut self) -> Bytes {
        let statement = SELECT.to_owned();
        let keyspace = None;
        let request = Request::Prepare {
            statement,
            keyspace,
        };
        self.client.ask(&request, 7).await;
        let (stream, request) = self.node.request().await;
        let statement = READ.to_owned();
        let keyspace = None;
        let expected = Request::Prepare {
            statement,
            keyspace,
        };
        assert_eq!(request, expected);
        let read = PreparedResponse {
            id: Bytes::from_static(b"the node's own"),
            result_metadata_id: None,
            bind: ColumnsMetadata {
                columns: vec![column("id")],
            },
            partition_key_indexes: vec![0],
            result: Some(columns()),
        };
        let context = ResponseContext::new(stream);
        self.node.answer(&Response::Prepared(read), &context).await;
        let (context, told) = self.client.response().await;
        let Response::Prepared(told) = told else {
            panic!("{told:?}")
        };
        assert_eq!(context.stream, 7);
        let spec = |name: &str, cql_type| ColumnSpec {
            cql_type,
            ..column(name)
        };
        let vector = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: 3,
        };
        let bind = vec![spec("v", vector), spec("[limit]", CqlType::Int)];
        assert_eq!(told.bind.columns, bind);
        assert_eq!(told.result.unwrap().columns, [column("name"), column("v")]);
        assert!(told.partition_key_indexes.is_empty());
        told.id
    }
}

fn execute(id: &Bytes, limit: i32) -> Request {
    let vector = [1.0f32, 0.5, -2.0].map(f32::to_be_bytes).concat();
    Request::Execute {
        id: id.clone(),
        result_metadata_id: None,
        parameters: QueryParameters {
            consistency: Consistency::Two,
            values: MarkerValues::Positional(vec![
                BoundValue::Value(vector.into()),
                BoundValue::Value(Bytes::copy_from_slice(&limit.to_be_bytes())),
            ]),
            skip_metadata: true,
            page_size: Some(2),
            ..QueryParameters::default()
        },
    }
}

#[tokio::test]
async fn a_prepared_query_is_answered_in_the_order_of_the_neighbours() {
    let mut setup = setup().await;
    let id = setup.prepare().await;
    setup.client.ask(&execute(&id, 3), 9).await;
    let search = setup
        .store
        .neighbours(r#"{"primary_keys":{"id":["b","x","a"]},"similarity_scores":[1,0.9,0.8]}"#)
        .await;
    assert_eq!(
        search,
        serde_json::json!({"vector":[1.0, 0.5, -2.0],"limit":3})
    );
    let (stream, read) = setup.node.request().await;
    let keys = [&b"b"[..], b"x", b"a"];
    let expected = Request::Execute {
        id: Bytes::from_static(b"the node's own"),
        result_metadata_id: None,
        parameters: QueryParameters {
            consistency: Consistency::Two,
            values: MarkerValues::Positional(vec![BoundValue::Value(join_elements(
                keys.into_iter(),
            ))]),
            skip_metadata: true,
            ..QueryParameters::default()
        },
    };
    assert_eq!(read, expected);
    let stored = [
        ("Alien", "a", true),
        ("Brazil", "b", true),
        ("Gone", "x", false),
    ];
    let mut said = ResponseContext::new(stream);
    said.warnings = vec!["beware".to_owned()];
    let answer = Response::Rows(rows(&stored, true));
    setup.node.answer(&answer, &said).await;

    // One row was deleted, so the next neighbour takes its place.
    let search = setup
        .store
        .neighbours(
            r#"{"primary_keys":{"id":["b","x","a","c","d"]},"similarity_scores":[1,0.9,0.8,0.7,0.6]}"#,
        )
        .await;
    assert_eq!(search["limit"], 7);
    let (stream, read) = setup.node.request().await;
    let Request::Execute { parameters, .. } = read else {
        panic!("{read:?}")
    };
    let unread = join_elements([&b"c"[..]].into_iter());
    let values = MarkerValues::Positional(vec![BoundValue::Value(unread)]);
    assert_eq!(parameters.values, values);
    let answer = Response::Rows(rows(&[("Casablanca", "c", true)], true));
    let context = ResponseContext::new(stream);
    setup.node.answer(&answer, &context).await;
    let (context, told) = setup.client.response().await;
    assert_eq!(names(&told), ["Brazil", "Alien", "Casablanca"]);
    assert_eq!(context.stream, 9);
    assert_eq!(
        context.warnings.len(),
        2,
        "the node's, and that there are no pages"
    );
    assert_eq!(context.warnings[0], "beware");
}

#[tokio::test]
async fn a_query_may_have_a_custom_payload() {
    const PAYLOAD: &[u8] = b"\0\x01\0\x01a\0\0\0\x02xy";
    let mut setup = setup().await;
    let id = setup.prepare().await;
    let mut frame = BytesMut::new();
    execute(&id, 1).encode(9, None, &mut frame);
    let body = frame.split_off(HEADER_LENGTH);
    let length = u32::try_from(PAYLOAD.len() + body.len()).unwrap();
    frame[1] = FrameFlags::CUSTOM_PAYLOAD.0;
    frame[HEADER_LENGTH - 4..].copy_from_slice(&length.to_be_bytes());
    setup.client.send(&[&frame, PAYLOAD, &body].concat()).await;
    let found = r#"{"primary_keys":{"id":["b"]},"similarity_scores":[1]}"#;
    setup.store.neighbours(found).await;
    let (stream, _) = setup.node.request().await;
    let answer = Response::Rows(rows(&[("Brazil", "b", true)], true));
    let context = ResponseContext::new(stream);
    setup.node.answer(&answer, &context).await;
    assert_eq!(names(&setup.client.response().await.1), ["Brazil"]);
}
const UNAVAILABLE: &str = "503 Service Unavailable";

#[tokio::test]
async fn nothing_waits_behind_a_search() {
    let mut setup = setup().await;
    let id = setup.prepare().await;
    setup.client.ask(&execute(&id, 1), 1).await;
    setup.client.ask(&query("SELECT name FROM films"), 2).await;
    assert_eq!(setup.node.request().await.0, 2);
    let void = Response::Void;
    setup.node.answer(&void, &ResponseContext::new(2)).await;
    assert_eq!(setup.client.response().await.0.stream, 2);

    let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    setup.store.neighbours(body).await;
    let (own, _) = setup.node.request().await;
    // The client chooses the very stream that the gateway uses, so its request waits until that one
    // is answered.
    setup
        .client
        .ask(&query("SELECT name FROM films"), own)
        .await;
    let early = tokio::time::timeout(Duration::from_millis(50), setup.node.request()).await;
    assert!(early.is_err());
    let answer = Response::Rows(rows(&[("Alien", "a", true)], true));
    setup.node.answer(&answer, &ResponseContext::new(own)).await;
    let (context, told) = setup.client.response().await;
    assert_eq!((context.stream, names(&told).len()), (1, 1));
    assert_eq!(setup.node.request().await.0, own);
    setup.node.answer(&void, &ResponseContext::new(own)).await;
    assert_eq!(setup.client.response().await.0.stream, own);
}

#[tokio::test]
async fn a_search_ends_though_the_client_asks_nothing_more() {
    let mut setup = setup().await;
    let id = setup.prepare().await;
    setup.client.ask(&execute(&id, 1), 1).await;
    setup.client.socket.shutdown().await.unwrap();
    let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    setup.store.neighbours(body).await;
    let (stream, _) = setup.node.request().await;
    let answer = Response::Rows(rows(&[("Alien", "a", true)], true));
    setup
        .node
        .answer(&answer, &ResponseContext::new(stream))
        .await;
    assert_eq!(names(&setup.client.response().await.1), ["Alien"]);
    let mut rest = Vec::new();
    soon(setup.client.socket.read_to_end(&mut rest))
        .await
        .unwrap();
    assert!(rest.is_empty());
}

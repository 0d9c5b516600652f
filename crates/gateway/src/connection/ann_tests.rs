//! Tests of nearest-neighbour queries on a whole connection. The client, the node and the index
//! service are all scripted by the test.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BoundValue, ColumnSpec, Consistency, Direction, Flags, Frame, FrameHeader, HEADER_LENGTH,
    Metadata, Prepared, QueryParameters, Request, Response, ResponseContext, Rows, RowsEncoder,
    Startup, Values,
};
use net::strangers::Guest;
use store_api::binary::ANSWER_MEDIA_TYPE;
use store_api::types::{EXACT_HEADER, SHORT_HEADER};
use store_api::{Client, ClientOptions};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;
use value::{CqlType, join_elements};

use super::serve;
use crate::ann::fixtures::{column, keeping, snapshot, snapshot_of, table};
use crate::catalog::{Catalog, Snapshot};
use crate::clients::Clients;
use crate::inquiry::AnswerMemory;
use crate::options::{FreshnessOptions, GatewayOptions, WhenBehind};
use crate::prepared::PreparedStatements;
use crate::ring::Ring;
use crate::shared::Shared;
use crate::writes::ChangeLog;

const BODY_MAX: usize = 1 << 20;

/// Fails the test if `what` takes longer than 20 s.
pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(Duration::from_secs(20), what).await;
    done.expect("it should be done by now")
}

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

    async fn frame(&mut self, direction: Direction) -> Frame {
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
        let frame = self.frame(Direction::Request).await;
        let request = Request::decode(&frame, None, BODY_MAX).unwrap();
        (frame.header.stream, request)
    }

    pub(super) async fn response(&mut self) -> (ResponseContext, Response) {
        let frame = self.frame(Direction::Response).await;
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
pub(super) async fn setup_of(options: GatewayOptions, snapshot: Snapshot) -> Setup {
    let store = Store::start().await;
    let node = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stores = Client::new(ClientOptions {
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
    let shared = Shared {
        kept_answers: Arc::default(),
        metrics: Arc::default(),
        client_tls: arc_swap::ArcSwapOption::default(),
        connections: arc_swap::ArcSwap::from_pointee(CancellationToken::new()),
        ring: Arc::new(Ring::default()),
        prepared: Arc::new(PreparedStatements::new(1 << 20)),
        catalog: Arc::new(Catalog::new(snapshot)),
        log: log.clone(),
        clients: Arc::new(Clients::default()),
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
    tokio::spawn(serve(accepted, Arc::new(shared), Guest::default()));
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

fn columns() -> Metadata {
    Metadata {
        columns: vec![column("name"), column("v"), column("id")],
    }
}

/// Makes rows from a name, an id, and whether the row has a vector.
fn rows(rows: &[(&str, &str, bool)], skip_metadata: bool) -> Rows {
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
        let read = Prepared {
            id: Bytes::from_static(b"the node's own"),
            result_metadata_id: None,
            bind: Metadata {
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
            values: Values::Positional(vec![
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
            values: Values::Positional(vec![BoundValue::Value(join_elements(keys.into_iter()))]),
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
    let values = Values::Positional(vec![BoundValue::Value(unread)]);
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
    frame[1] = Flags::CUSTOM_PAYLOAD.0;
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

/// Rows of a name, an id and the name once more, which is read to be checked.
fn checked_rows(rows: &[(&str, &str)]) -> Response {
    let metadata = Metadata {
        columns: vec![column("id"), column("name")],
    };
    let mut encoder = RowsEncoder::new(&metadata, false);
    for (id, name) in rows {
        encoder.cell(Some(id.as_bytes()));
        encoder.cell(Some(name.as_bytes()));
        encoder.end_row();
    }
    Response::Rows(encoder.finish(None))
}

#[tokio::test]
async fn where_is_a_filter_of_the_index_and_a_check_of_each_row() {
    let mut setup = setup().await;
    let text = "SELECT id FROM films WHERE id > 'a' AND name = 'Alien' ORDER BY v ANN OF [1, 2, 3] LIMIT 2 \
                ALLOW FILTERING";
    setup.client.ask(&query(text), 3).await;
    // The index keeps the key, but not the name.
    let body = r#"{"primary_keys":{"id":["b","c"]},"similarity_scores":[1,0.9]}"#;
    let search = setup.store.neighbours(body).await;
    let restrictions = serde_json::json!([{"type":">","lhs":"id","rhs":"a"}]);
    assert_eq!(search["filter"]["restrictions"], restrictions);
    assert_eq!(search["filter"]["allow_filtering"], true);
    let (stream, request) = setup.node.request().await;
    const READ: &str = "SELECT id \n, \"name\" FROM \"shop\".\"films\" WHERE \"id\" IN ?";
    assert!(matches!(request, Request::Query { statement, .. } if statement == READ));
    let context = ResponseContext::new(stream);
    let answer = checked_rows(&[("b", "Brazil"), ("c", "Alien")]);
    setup.node.answer(&answer, &context).await;

    // One row is another film by now, so more neighbours are requested, and the index has no more.
    let body = r#"{"primary_keys":{"id":["b","c","d"]},"similarity_scores":[1,0.9,0.8]}"#;
    let search = setup.store.neighbours(body).await;
    assert_eq!(search["filter"]["restrictions"], restrictions);
    assert!(search["limit"].as_u64() > Some(3));
    let (stream, _) = setup.node.request().await;
    let context = ResponseContext::new(stream);
    let answer = checked_rows(&[("d", "Alien")]);
    setup.node.answer(&answer, &context).await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["c", "d"]);
    let Response::Rows(told) = told else {
        panic!("{told:?}")
    };
    let columns = told.decode().unwrap().metadata.unwrap().columns;
    assert_eq!(
        columns,
        [column("id")],
        "the name was read to be checked alone"
    );
}

#[tokio::test]
async fn a_column_with_an_index_of_cassandras_own_is_searched_by_once_the_service_keeps_it() {
    let mut films = table(&["id"], &[]);
    films.sai_columns.push("name".to_owned());
    let index = keeping(&films, &[]);
    let mut setup = setup_of(GatewayOptions::default(), snapshot_of(films, [index])).await;
    let text = "SELECT id FROM films WHERE id > 'a' AND name = 'Alien' ORDER BY v ANN OF [1, 2, 3] LIMIT 1";
    let by_id = serde_json::json!({"type":">","lhs":"id","rhs":"a"});
    let by_name = serde_json::json!({"type":"==","lhs":"name","rhs":"Alien"});
    let one = r#"{"primary_keys":{"id":["b"]},"similarity_scores":[1]}"#;
    let two = r#"{"primary_keys":{"id":["b","c"]},"similarity_scores":[1,0.9]}"#;
    let building = r#"{"reason":"INDEX_BUILDING","message":"40%"}"#;
    for refusal in [
        None,
        Some(("400 Bad Request", "column name is not part of the index")),
        Some((UNAVAILABLE, building)),
    ] {
        setup.client.ask(&query(text), 3).await;
        let Some((status, body)) = refusal else {
            let search = setup.store.neighbours(one).await;
            let both = serde_json::json!([by_id, by_name]);
            assert_eq!(search["filter"]["restrictions"], both);
            let (stream, _) = setup.node.request().await;
            let answer = checked_rows(&[("b", "Alien")]);
            let context = ResponseContext::new(stream);
            setup.node.answer(&answer, &context).await;
            assert_eq!(names(&setup.client.response().await.1), ["b"]);
            continue;
        };
        // The rows that the others leave are checked, and more are requested without another
        // refusal.
        setup.store.answer(status, body).await;
        for (body, row) in [(one, ("b", "Brazil")), (two, ("c", "Alien"))] {
            let search = setup.store.neighbours(body).await;
            let one = serde_json::json!([by_id]);
            assert_eq!(search["filter"]["restrictions"], one);
            let (stream, _) = setup.node.request().await;
            let context = ResponseContext::new(stream);
            setup.node.answer(&checked_rows(&[row]), &context).await;
        }
        assert_eq!(names(&setup.client.response().await.1), ["c"]);
    }
}

const BEHIND: &str = r#"{"reason":"INDEX_BEHIND","message":"not yet"}"#;
const UNAVAILABLE: &str = "503 Service Unavailable";

/// The time that searches wait in these tests is longer than a test may take.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_search_asks_for_the_newest_acknowledged_write() {
    let mut setup = setup_with(FreshnessOptions {
        wait: LONG,
        when_behind: WhenBehind::Error,
    })
    .await;
    let id = setup.prepare().await;
    setup.log.newest.note(setup.table, 3_000);
    setup.log.newest.note(setup.table, 1_000);
    setup.client.ask(&execute(&id, 1), 1).await;
    let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    let search = setup.store.neighbours(body).await;
    assert_eq!(search["min_time_us"], 3_000);
    let (stream, _) = setup.node.request().await;
    let answer = Response::Rows(rows(&[("Alien", "a", true)], true));
    let context = ResponseContext::new(stream);
    setup.node.answer(&answer, &context).await;
    let (context, told) = setup.client.response().await;
    assert_eq!((names(&told).len(), context.warnings.len()), (1, 0));
}

#[tokio::test]
async fn without_a_wait_a_search_asks_for_no_write() {
    let mut setup = setup_with(FreshnessOptions {
        wait: Duration::ZERO,
        when_behind: WhenBehind::Error,
    })
    .await;
    let id = setup.prepare().await;
    setup.log.newest.note(setup.table, 3_000);
    setup.client.ask(&execute(&id, 1), 1).await;
    let search = setup.store.answer("404 Not Found", "missing index").await;
    assert_eq!(search["min_time_us"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_search_that_waits_in_vain_answers_what_the_index_knows_or_fails() {
    for when_behind in [WhenBehind::Stale, WhenBehind::Error] {
        let mut setup = setup_with(FreshnessOptions {
            wait: LONG,
            when_behind,
        })
        .await;
        let id = setup.prepare().await;
        setup.log.newest.note(setup.table, 3_000);
        setup.client.ask(&execute(&id, 1), 1).await;
        let search = setup.store.answer(UNAVAILABLE, BEHIND).await;
        assert_eq!(search["min_time_us"], 3_000);
        if when_behind == WhenBehind::Error {
            let (_, told) = setup.client.response().await;
            let is_overload = |error: &CqlError| error.kind == ErrorKind::Overloaded;
            assert!(
                matches!(&told, Response::Error(error) if is_overload(error)),
                "{told:?}"
            );
            continue;
        }
        let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
        let search = setup.store.neighbours(body).await;
        assert_eq!(search["min_time_us"], serde_json::Value::Null);
        let (stream, _) = setup.node.request().await;
        let answer = Response::Rows(rows(&[("Alien", "a", true)], true));
        let context = ResponseContext::new(stream);
        setup.node.answer(&answer, &context).await;
        let (context, told) = setup.client.response().await;
        assert_eq!(names(&told), ["Alien"]);
        let has_warning = context.warnings.iter().any(|one| one.contains("may lack"));
        assert!(has_warning, "{:?}", context.warnings);
    }
}

#[tokio::test]
async fn an_answer_that_may_lack_rows_for_want_of_room_comes_with_a_warning() {
    for (more, is_short) in [("", false), (r#","short":true"#, true)] {
        let mut setup = setup().await;
        let id = setup.prepare().await;
        setup.client.ask(&execute(&id, 1), 1).await;
        let body = format!(r#"{{"primary_keys":{{"id":["a"]}},"similarity_scores":[1]{more}}}"#);
        setup.store.neighbours(body.leak()).await;
        let (stream, _) = setup.node.request().await;
        let answer = Response::Rows(rows(&[("Alien", "a", true)], true));
        let context = ResponseContext::new(stream);
        setup.node.answer(&answer, &context).await;
        let (context, told) = setup.client.response().await;
        assert_eq!(names(&told), ["Alien"]);
        let warned = context.warnings.iter().any(|one| one.contains("no room"));
        assert_eq!(warned, is_short, "{:?}", context.warnings);
    }
}

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
async fn a_query_as_text_needs_no_preparing_unless_there_is_no_neighbour() {
    let mut setup = setup().await;
    let text = "SELECT name, v FROM shop.films ORDER BY v ANN OF [1, 2, 3] LIMIT 2";
    setup.client.ask(&query(text), 3).await;
    let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    setup.store.neighbours(body).await;
    let (stream, request) = setup.node.request().await;
    assert!(matches!(request, Request::Query { statement, .. } if statement == READ));
    let answer = Response::Rows(rows(&[("Alien", "a", true)], false));
    setup
        .node
        .answer(&answer, &ResponseContext::new(stream))
        .await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["Alien"]);

    setup.client.ask(&query(text), 4).await;
    let body = r#"{"primary_keys":{"id":[]},"similarity_scores":[]}"#;
    setup.store.neighbours(body).await;
    let (stream, request) = setup.node.request().await;
    assert!(matches!(request, Request::Prepare { .. }));
    let read = Prepared {
        id: Bytes::from_static(b"id"),
        result_metadata_id: None,
        bind: Metadata::default(),
        partition_key_indexes: Vec::new(),
        result: Some(columns()),
    };
    let context = ResponseContext::new(stream);
    setup.node.answer(&Response::Prepared(read), &context).await;
    let (context, Response::Rows(told)) = setup.client.response().await else {
        panic!("no rows")
    };
    let told = told.decode().unwrap();
    assert_eq!((context.stream, told.rows.len()), (4, 0));
    assert_eq!(
        told.metadata.unwrap().columns,
        [column("name"), column("v")]
    );
}

#[tokio::test]
async fn an_exact_search_reaches_the_index_service_and_the_node_sees_nothing_of_it() {
    let mut setup = setup().await;
    let text = "SELECT name, v FROM films ORDER BY v ANN OF [1, 2, 3] LIMIT 1 WITH ann_options = {'exact': true}";
    setup.client.ask(&query(text), 3).await;
    let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    let search = setup.store.neighbours(body).await;
    assert_eq!(search["exact"], true);
    let (stream, request) = setup.node.request().await;
    assert!(matches!(request, Request::Query { statement, .. } if statement == READ));
    let answer = Response::Rows(rows(&[("Alien", "a", true)], false));
    let context = ResponseContext::new(stream);
    setup.node.answer(&answer, &context).await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["Alien"]);

    // What is wrong with the options is said here, as the node would not understand any.
    let wrong = text.replace("'exact'", "'exactly'");
    setup.client.ask(&query(&wrong), 4).await;
    let (_, told) = setup.client.response().await;
    let Response::Error(error) = told else {
        panic!("{told:?}")
    };
    assert!(error.message.contains("'exactly'"), "{error}");
}

#[tokio::test]
async fn options_of_searches_by_the_clusters_own_indexes_pass() {
    let mut setup = setup().await;
    let text = "SELECT name FROM films ORDER BY w ANN OF [1, 2, 3] LIMIT 1 WITH ann_options = {'rerank_k': 9}";
    setup.client.ask(&query(text), 3).await;
    let (stream, request) = setup.node.request().await;
    assert_eq!(request, query(text));
    let answer = Response::Rows(rows(&[("Alien", "a", true)], false));
    let context = ResponseContext::new(stream);
    setup.node.answer(&answer, &context).await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["Alien"]);
}

#[tokio::test]
async fn errors_say_who_made_them() {
    let mut setup = setup().await;
    let id = setup.prepare().await;
    let invalid = |response: Response| match response {
        Response::Error(CqlError {
            kind: ErrorKind::Invalid,
            message,
        }) => message,
        other => panic!("{other:?}"),
    };
    setup.client.ask(&execute(&id, 1001), 1).await;
    let (_, told) = setup.client.response().await;
    assert!(invalid(told).contains("not greater than 1000"));

    setup.client.ask(&execute(&id, 1), 1).await;
    let building = r#"{"reason":"INDEX_BUILDING","message":"still being constructed"}"#;
    setup
        .store
        .answer("503 Service Unavailable", building)
        .await;
    let (_, told) = setup.client.response().await;
    assert_eq!(
        invalid(told),
        "Vector Store error: HTTP status 503 Service Unavailable, message: still being constructed"
    );

    setup.client.ask(&execute(&id, 1), 1).await;
    setup
        .store
        .answer("503 Service Unavailable", "too many searches")
        .await;
    match setup.client.response().await.1 {
        Response::Error(CqlError { kind, message }) => {
            assert_eq!(kind, ErrorKind::Overloaded);
            assert!(message.ends_with("message: too many searches"), "{message}");
        }
        other => panic!("{other:?}"),
    }

    // The index is not new, so the service will not know it soon.
    setup.client.ask(&execute(&id, 1), 1).await;
    setup.store.answer("404 Not Found", "missing index").await;
    let (_, told) = setup.client.response().await;
    assert_eq!(
        invalid(told),
        "Vector Store error: HTTP status 404 Not Found, message: missing index"
    );

    for kind in [
        ErrorKind::Unauthorized,
        ErrorKind::Unprepared { id: Bytes::new() },
    ] {
        setup.client.ask(&execute(&id, 1), 1).await;
        let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
        setup.store.neighbours(body).await;
        let (stream, _) = setup.node.request().await;
        let error = Response::Error(CqlError::new(kind.clone(), "no"));
        setup
            .node
            .answer(&error, &ResponseContext::new(stream))
            .await;
        let (context, Response::Error(told)) = setup.client.response().await else {
            panic!("no error")
        };
        assert_eq!(context.stream, 1);
        match kind {
            // The id must be the client's, or its driver would not know which statement to prepare.
            ErrorKind::Unprepared { .. } => {
                assert_eq!(told.kind, ErrorKind::Unprepared { id: id.clone() });
            }
            kind => assert_eq!((told.kind, told.message.as_str()), (kind, "no")),
        }
    }
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

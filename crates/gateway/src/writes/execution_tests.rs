//! Tests of executions, from bytes to bytes: the requests to the node that a client's frame gives,
//! and the steps that follow from the node's answers.

mod around_a_write;
mod refusals;
mod silent_batch_log;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BatchKind, BatchRequest, BatchStatement, BatchedStatement, BoundValue, ColumnSpec,
    ColumnsMetadata, Compression, Consistency, Frame, FrameDirection, FrameFlags, FrameHeader,
    HEADER_LENGTH, MarkerValues, PreparedResponse, ProtocolVersion, QueryParameters, Request,
    Response, ResponseContext, RowsEncoder,
};
use value::{CqlType, join_elements};

use super::frames::encode;
use super::test_tables::{events, products};
use super::*;
use crate::catalog::IndexCatalogSnapshot;

const STREAM: i16 = 77;
const BODY_MAX: usize = 1 << 20;
const LOG_ID: &[u8] = b"id of the insert";
/// A custom payload of one entry.
const PAYLOAD: &[u8] = b"\0\x01\0\x01a\0\0\0\x02xy";

/// A gateway's state with `shop.products` and `shop.events` logged.
struct Setup {
    log: Arc<ChangeLog>,
    snapshot: IndexCatalogSnapshot,
    prepared: Vec<(&'static [u8], Arc<PreparedWrite>)>,
}

impl Setup {
    fn new() -> Setup {
        Setup {
            log: Arc::new(ChangeLog::new(
                5 << 10,
                Duration::MAX,
                Arc::default(),
                Arc::default(),
            )),
            snapshot: IndexCatalogSnapshot::new([Arc::new(products()), Arc::new(events())], []),
            prepared: Vec::new(),
        }
    }

    /// A [`Setup`] in which the inserts into both logs are prepared.
    fn prepared() -> Setup {
        let setup = Setup::new();
        for table in [products(), events()] {
            setup.log.inserts.remember(&table, LOG_ID);
        }
        setup
    }

    fn prepare(&mut self, id: &'static [u8], text: &str, names: &[&str]) {
        let write = read(text, Some("shop"), &self.snapshot).unwrap().unwrap();
        let write = PreparedWrite {
            text: write.has_changing_calls().then(|| text.to_owned()),
            write: Arc::new(write),
            keyspace: Some("shop".into()),
            names: names.iter().map(|name| Arc::from(*name)).collect(),
        };
        self.prepared.push((id, Arc::new(write)));
    }

    fn known(&self, id: &[u8]) -> Option<Arc<PreparedWrite>> {
        let entry = self.prepared.iter().find(|(known, _)| *known == id);
        entry.map(|(_, write)| write.clone())
    }

    /// Takes a client's frame, as a connection does.
    fn take(&self, frame: &Bytes) -> Result<Option<WriteExecution>, CqlError> {
        let header = header(frame, FrameDirection::Request);
        let request = ClientRequest {
            header: &header,
            body: &frame[HEADER_LENGTH..],
            plain: &frame[HEADER_LENGTH..],
            keyspace: Some("shop"),
            snapshot: &self.snapshot,
        };
        match decoded(frame) {
            Request::Query { statement, .. } => {
                match read(&statement, Some("shop"), &self.snapshot)? {
                    Some(write) => request.query(&write, &self.log),
                    None => Ok(None),
                }
            }
            Request::Execute { id, .. } => {
                request.execute(&self.known(&id).expect("a prepared statement"), &self.log)
            }
            Request::Batch(batch) => {
                let known = |statement: &BatchStatement| match &statement.statement {
                    BatchedStatement::Prepared(id) => self.known(id),
                    BatchedStatement::Text(_) => None,
                };
                let known = batch.statements.iter().map(known).collect();
                request.batch(known, &self.log)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The execution of a client's frame, with its first request.
    fn begin(&self, frame: &Bytes) -> (Bytes, WriteExecution) {
        self.take(frame).unwrap().expect("a logged write").begin()
    }
}

fn header(frame: &Bytes, direction: FrameDirection) -> FrameHeader {
    FrameHeader::read(frame, direction, BODY_MAX)
        .unwrap()
        .unwrap()
}

fn decoded(frame: &Bytes) -> Request {
    let header = header(frame, FrameDirection::Request);
    assert_eq!(header.length as usize, frame.len() - HEADER_LENGTH);
    assert_eq!(header.stream, STREAM);
    let frame = Frame {
        header,
        body: frame.slice(HEADER_LENGTH..),
    };
    Request::decode(&frame, None, BODY_MAX).unwrap()
}

fn batch_of(frame: &Bytes) -> BatchRequest {
    match decoded(frame) {
        Request::Batch(batch) => batch,
        other => panic!("{other:?}"),
    }
}

fn frame(request: &Request) -> Bytes {
    frame_in(ProtocolVersion::V4, request)
}

fn frame_in(version: ProtocolVersion, request: &Request) -> Bytes {
    encode(request, version, STREAM, FrameFlags::default(), &[])
}

fn query(text: &str, parameters: QueryParameters) -> Bytes {
    frame(&Request::Query {
        statement: text.to_owned(),
        parameters,
    })
}

fn plain_query(text: &str) -> Bytes {
    query(text, QueryParameters::default())
}

fn execute(id: &'static [u8], values: MarkerValues) -> Bytes {
    frame(&Request::Execute {
        id: Bytes::from_static(id),
        result_metadata_id: None,
        parameters: QueryParameters {
            values,
            ..QueryParameters::default()
        },
    })
}

fn int(number: i32) -> BoundValue {
    BoundValue::Value(Bytes::copy_from_slice(&number.to_be_bytes()))
}

fn text(text: &str) -> BoundValue {
    BoundValue::Value(Bytes::copy_from_slice(text.as_bytes()))
}

fn by_text(text: &str, values: Vec<BoundValue>) -> BatchStatement {
    BatchStatement {
        statement: BatchedStatement::Text(text.to_owned()),
        values,
    }
}

fn by_id(id: &'static [u8], values: Vec<BoundValue>) -> BatchStatement {
    BatchStatement {
        statement: BatchedStatement::Prepared(Bytes::from_static(id)),
        values,
    }
}

fn batch(kind: BatchKind, statements: Vec<BatchStatement>) -> Bytes {
    frame(&Request::Batch(BatchRequest {
        kind,
        statements,
        consistency: Consistency::Quorum,
        serial_consistency: None,
        timestamp: Some(5),
        keyspace: None,
        now_in_seconds: None,
    }))
}

/// The `cdc$operation` and the key of a log row.
fn log_row(statement: &BatchStatement) -> (u8, Vec<BoundValue>) {
    let id = Bytes::from_static(LOG_ID);
    assert_eq!(statement.statement, BatchedStatement::Prepared(id));
    let BoundValue::Value(operation) = &statement.values[3] else {
        panic!("{statement:?}");
    };
    (operation[0], statement.values[5..].to_vec())
}

fn log_rows_of(frame: &Bytes) -> Vec<(u8, Vec<BoundValue>)> {
    let batch = batch_of(frame);
    assert_eq!(batch.kind, BatchKind::Unlogged);
    batch.statements.iter().map(log_row).collect()
}

fn response(response: &Response) -> Frame {
    let mut out = BytesMut::new();
    response.encode(&ResponseContext::new(STREAM), None, &mut out);
    let out = out.freeze();
    Frame {
        header: header(&out, FrameDirection::Response),
        body: out.slice(HEADER_LENGTH..),
    }
}

fn bytes_of(frame: &Frame) -> Bytes {
    [&frame.header.to_bytes()[..], &frame.body].concat().into()
}

fn error(kind: ErrorKind, message: &str) -> Response {
    Response::Error(CqlError::new(kind, message))
}

fn timeout() -> Response {
    let kind = ErrorKind::WriteTimeout {
        consistency: 1,
        received: 0,
        block_for: 1,
        write_type: "CAS",
        contentions: None,
    };
    error(kind, "late")
}

fn unprepared(id: &'static [u8]) -> Response {
    let id = Bytes::from_static(id);
    error(ErrorKind::Unprepared { id }, "what is that")
}

fn prepared_as(id: &'static [u8]) -> Response {
    Response::Prepared(PreparedResponse {
        id: Bytes::from_static(id),
        result_metadata_id: None,
        bind: ColumnsMetadata::default(),
        partition_key_indexes: Vec::new(),
        result: None,
    })
}

/// The node's answer to a condition.
fn applied(applied: bool) -> Response {
    let column = ColumnSpec {
        keyspace: "shop".into(),
        table: "products".into(),
        name: "[applied]".into(),
        cql_type: CqlType::Boolean,
    };
    let columns = vec![column];
    let mut rows = RowsEncoder::new(&ColumnsMetadata { columns }, false);
    rows.cell(Some(&[u8::from(applied)]));
    rows.end_row();
    Response::Rows(rows.finish(None))
}

fn answered(execution: WriteExecution, answer: &Response) -> NextWriteAction {
    execution.answered(&response(answer), None::<Compression>, BODY_MAX)
}

/// The next request. Fails the test if there is none.
fn goes_on(execution: WriteExecution, answer: &Response) -> (Bytes, WriteExecution) {
    match answered(execution, answer) {
        NextWriteAction::Ask(request, execution) => (request, *execution),
        other => panic!("{other:?}"),
    }
}

fn is_the_answer(execution: WriteExecution, answer: &Response) {
    let next = answered(execution, answer);
    assert!(matches!(next, NextWriteAction::Answer), "{next:?}");
}

const INSERT: &str = "INSERT INTO products (id, name) VALUES (7, 'tea')";

#[test]
fn a_query_becomes_a_logged_batch_with_its_log_row() {
    let setup = Setup::new();
    let (request, execution) = setup.begin(&plain_query(INSERT));
    let Request::Prepare { statement, .. } = decoded(&request) else {
        panic!("{request:?}");
    };
    assert!(statement.starts_with("INSERT INTO \"shop\".\"products_scylla_cdc_log\" ("));
    let (request, execution) = goes_on(execution, &prepared_as(LOG_ID));
    let batch = batch_of(&request);
    assert_eq!(batch.kind, BatchKind::Logged);
    assert_eq!(batch.statements[0], by_text(INSERT, vec![]));
    assert_eq!(log_row(&batch.statements[1]), (2, vec![int(7)]));
    assert_eq!(batch.statements.len(), 2);
    is_the_answer(execution, &Response::Void);

    let (request, _) = setup.begin(&plain_query(INSERT));
    assert!(
        matches!(decoded(&request), Request::Batch(_)),
        "it is prepared once"
    );
}

#[test]
fn a_write_of_version_5_goes_in_version_5_with_its_keyspace() {
    let setup = Setup::prepared();
    let insert = |now_in_seconds| Request::Query {
        statement: INSERT.to_owned(),
        parameters: QueryParameters {
            keyspace: Some("shop".to_owned()),
            now_in_seconds,
            ..QueryParameters::default()
        },
    };
    let (request, _) = setup.begin(&frame_in(ProtocolVersion::V5, &insert(None)));
    let batch = batch_of(&request);
    assert_eq!(
        header(&request, FrameDirection::Request).version,
        ProtocolVersion::V5
    );
    assert_eq!(batch.kind, BatchKind::Logged);
    assert_eq!(batch.keyspace.as_deref(), Some("shop"));

    // Log rows must not expire by the present that a client sends, so they don't share its batch.
    let sent = frame_in(ProtocolVersion::V5, &insert(Some(7)));
    let (request, execution) = setup.begin(&sent);
    assert_eq!(batch_of(&request).now_in_seconds, None);
    assert_eq!(log_rows_of(&request), [(2, vec![int(7)])]);
    let (request, _) = goes_on(execution, &Response::Void);
    assert_eq!(request, sent);
}

#[test]
fn warnings_and_payloads_of_a_write_are_preserved() {
    let setup = Setup::prepared();
    let parameters = QueryParameters {
        consistency: Consistency::EachQuorum,
        serial_consistency: Some(Consistency::LocalSerial),
        timestamp: Some(123),
        values: MarkerValues::Named(vec![
            ("name".to_owned(), BoundValue::Unset),
            ("id".to_owned(), int(7)),
        ]),
        page_size: Some(100),
        ..QueryParameters::default()
    };
    let request = Request::Query {
        statement: "INSERT INTO products (id, name) VALUES (:id, :name) USING TTL 5".to_owned(),
        parameters,
    };
    let flags = FrameFlags::TRACING.with(FrameFlags::CUSTOM_PAYLOAD);
    let (request, _) = setup.begin(&encode(
        &request,
        ProtocolVersion::V4,
        STREAM,
        flags,
        PAYLOAD,
    ));
    assert_eq!(header(&request, FrameDirection::Request).flags, flags);
    assert_eq!(&request[HEADER_LENGTH..][..PAYLOAD.len()], PAYLOAD);
    let batch = batch_of(&request);
    assert_eq!(batch.consistency, Consistency::EachQuorum);
    assert_eq!(batch.serial_consistency, Some(Consistency::LocalSerial));
    assert_eq!(batch.timestamp, Some(123));
    assert_eq!(batch.statements[0].values, [int(7), BoundValue::Unset]);
}

#[test]
fn an_acknowledged_write_is_the_newest_of_its_table_and_a_refused_one_is_not() {
    let setup = Setup::new();
    let table = products().id;
    let (_, execution) = setup.begin(&plain_query(INSERT));
    let (_, execution) = goes_on(execution, &prepared_as(LOG_ID));
    assert_eq!(setup.log.newest.of(table), None);
    is_the_answer(execution, &Response::Void);
    let newest = setup.log.newest.of(table);
    assert!(newest.is_some());
    let (_, execution) = setup.begin(&plain_query(INSERT));
    is_the_answer(execution, &timeout());
    assert_eq!(setup.log.newest.of(table), newest);
    let (_, execution) = setup.begin(&plain_query(INSERT));
    is_the_answer(execution, &Response::Void);
    assert!(setup.log.newest.of(table) > newest);
}

#[test]
fn an_execution_goes_by_its_own_id_with_its_own_values() {
    let mut setup = Setup::prepared();
    let update = "UPDATE products SET name = ? WHERE id = ?";
    setup.prepare(b"update", update, &["name", "id"]);
    let named = vec![("id".to_owned(), int(7)), ("name".to_owned(), text("tea"))];
    for values in [
        MarkerValues::Positional(vec![text("tea"), int(7)]),
        MarkerValues::Named(named),
    ] {
        let (request, execution) = setup.begin(&execute(b"update", values));
        let batch = batch_of(&request);
        assert_eq!(
            batch.statements[0],
            by_id(b"update", vec![text("tea"), int(7)])
        );
        assert_eq!(log_row(&batch.statements[1]), (1, vec![int(7)]));
        // The client has to learn that the node has forgotten the client's own statement.
        is_the_answer(execution, &unprepared(b"update"));
    }
}

#[test]
fn a_request_is_refused_before_it_needs_too_many_log_rows() {
    let mut setup = Setup::prepared();
    setup.prepare(
        b"delete",
        "DELETE FROM events WHERE tenant IN ? AND day IN ?",
        &[],
    );
    // Empty elements name very many rows with a few bytes.
    let empty = vec![&[][..]; 70];
    let list = BoundValue::Value(join_elements(empty.into_iter()));
    let rows = "1, ".repeat(4_899);
    let of = |more: &str| {
        let text = format!("DELETE FROM products WHERE id IN ({rows} 1{more})");
        let delete = by_id(b"delete", vec![list.clone(), list.clone()]);
        batch(
            BatchKind::Logged,
            vec![
                delete,
                by_text(&text, vec![]),
                by_text("INSERT INTO others (id) VALUES (1)", vec![]),
            ],
        )
    };
    assert!(setup.take(&of("")).is_ok());
    let in_a_text = format!(
        "BEGIN BATCH {} APPLY BATCH",
        format!("DELETE FROM products WHERE id IN ({rows} 1); ").repeat(3)
    );
    for client_frame in [of(&", 1".repeat(300)), plain_query(&in_a_text)] {
        let error = setup.take(&client_frame).unwrap_err();
        assert!(error.message.contains("more than 10000 rows"), "{error}");
    }
}

#[test]
fn a_batch_gets_the_rows_of_its_logged_tables_once_each() {
    let mut setup = Setup::prepared();
    let delete = "DELETE FROM events WHERE tenant = ? AND day = ?";
    setup.prepare(b"delete", delete, &["tenant", "day"]);
    let statements = vec![
        by_text("INSERT INTO others (id) VALUES (1)", vec![]),
        by_text(INSERT, vec![]),
        by_id(b"delete", vec![int(1), int(2)]),
        by_id(b"unknown here", vec![int(3)]),
        by_text(INSERT, vec![]),
    ];
    for kind in [BatchKind::Logged, BatchKind::Unlogged] {
        let (request, execution) = setup.begin(&batch(kind, statements.clone()));
        let batch = batch_of(&request);
        assert_eq!(batch.kind, BatchKind::Logged);
        assert_eq!(
            (batch.consistency, batch.timestamp),
            (Consistency::Quorum, Some(5))
        );
        assert_eq!(batch.statements[..5], statements);
        let rows: Vec<_> = batch.statements[5..].iter().map(log_row).collect();
        let expected = [
            (2, vec![int(7)]),
            (
                4,
                vec![int(1), int(2), BoundValue::Unset, BoundValue::Unset],
            ),
        ];
        assert_eq!(rows, expected);
        is_the_answer(execution, &timeout());
    }
    // A batch of counters passes unchanged, and so does one that Cassandra refuses.
    assert!(
        setup
            .take(&batch(BatchKind::Counter, statements))
            .unwrap()
            .is_none()
    );
    let null_key = vec![by_id(b"delete", vec![BoundValue::Null, int(2)])];
    assert!(
        setup
            .take(&batch(BatchKind::Logged, null_key))
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_statement_has_no_warning_of_a_batch_that_the_client_did_not_send() {
    let setup = Setup::prepared();
    let warned = |warnings: &[&str]| {
        let context = ResponseContext {
            stream: STREAM,
            warnings: warnings.iter().map(|text| (*text).to_owned()).collect(),
            ..ResponseContext::default()
        };
        let mut out = BytesMut::new();
        Response::Void.encode(&context, None, &mut out);
        let out = out.freeze();
        Frame {
            header: header(&out, FrameDirection::Response),
            body: out.slice(HEADER_LENGTH..),
        }
    };
    let of_size = "Batch for [shop.products, shop.products_scylla_cdc_log] is of size 6.0KiB";
    let answer = warned(&["one", of_size]);
    let begin = |client_frame: &Bytes| setup.begin(client_frame).1;
    match begin(&plain_query(INSERT)).answered(&answer, None, BODY_MAX) {
        NextWriteAction::AnswerWith(told) => assert_eq!(told, bytes_of(&warned(&["one"]))),
        other => panic!("{other:?}"),
    }
    let its_own = batch(BatchKind::Logged, vec![by_text(INSERT, vec![])]);
    let next = begin(&its_own).answered(&answer, None, BODY_MAX);
    assert!(matches!(next, NextWriteAction::Answer), "{next:?}");
}

#[test]
fn now_in_a_key_is_the_same_in_the_row_and_in_its_log_row() {
    let mut table = products();
    table.columns[0].cql_type = Some(CqlType::Timeuuid);
    let mut setup = Setup::prepared();
    setup.snapshot = IndexCatalogSnapshot::new([Arc::new(table)], []);
    let insert = "INSERT INTO products (id, name) VALUES (now(), ?)";
    setup.prepare(b"insert", insert, &["name"]);
    let values = || MarkerValues::Positional(vec![text("tea")]);
    let parameters = QueryParameters {
        values: values(),
        ..QueryParameters::default()
    };
    let in_a_batch = vec![by_id(b"insert", vec![text("tea")])];
    for client_frame in [
        query(insert, parameters.clone()),
        execute(b"insert", values()),
        batch(BatchKind::Unlogged, in_a_batch),
    ] {
        let (request, _) = setup.begin(&client_frame);
        let batch = batch_of(&request);
        let [written, row] = &batch.statements[..] else {
            panic!("{batch:?}");
        };
        let BatchedStatement::Text(told) = &written.statement else {
            panic!("{written:?}");
        };
        assert_eq!(written.values, [text("tea")]);
        let (_, key) = log_row(row);
        let BoundValue::Value(id) = &key[0] else {
            panic!("{key:?}");
        };
        let id = uuid::Uuid::from_slice(id).unwrap();
        let expected = format!("INSERT INTO products (id, name) VALUES ((timeuuid){id}, ?)");
        assert_eq!(*told, expected);
    }
    // When the write goes around, the request without log rows has the value too.
    let conditional = query(&format!("{insert} IF NOT EXISTS"), parameters);
    let (request, execution) = setup.begin(&conditional);
    let (_, key) = &log_rows_of(&request)[0];
    let (request, _) = goes_on(execution, &Response::Void);
    let Request::Query {
        statement,
        parameters,
    } = decoded(&request)
    else {
        panic!("{request:?}");
    };
    assert_eq!(parameters.values, values());
    let BoundValue::Value(id) = &key[0] else {
        panic!("{key:?}");
    };
    let id = uuid::Uuid::from_slice(id).unwrap();
    assert!(statement.contains(&id.to_string()), "{statement} {id}");
}

//! Tests of queries that a gateway answers without rows. The client, the node and the index service
//! are all scripted by the test (`ann_tests`).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    ColumnsMetadata, Consistency, QueryParameters, Request, Response, ResponseContext, RowsEncoder,
};
use store_api::binary::AnswerWriter;

use super::vector_search_tests::{Setup, query, setup_of, soon};
use crate::options::{FreshnessOptions, GatewayOptions, WhenBehind};
use crate::vector_search::fixtures::{column, keeping, snapshot_of, table};

const SELECT: &str =
    "SELECT id, name AS title FROM films WHERE name > 'A' ORDER BY v ANN OF [1, 2, 3] LIMIT 2";
const PROBE: &str = "SELECT \"id\" FROM \"shop\".\"films\" WHERE \"id\" IN ()";
const READ: &str = "SELECT id, name AS title \n FROM \"shop\".\"films\" WHERE \"id\" IN ?";

/// A gateway whose table `films` has an index that keeps the names.
async fn gateway(answer_from_index: bool, when_behind: WhenBehind) -> Setup {
    let films = table(&["id"], &[]);
    let index = keeping(&films, &["name"]);
    let options = GatewayOptions {
        answer_from_index,
        freshness: FreshnessOptions {
            wait: Duration::from_secs(3600),
            when_behind,
        },
        ..GatewayOptions::default()
    };
    setup_of(options, snapshot_of(films, [index])).await
}

fn at(statement: &str, consistency: Consistency) -> Request {
    Request::Query {
        statement: statement.to_owned(),
        parameters: QueryParameters {
            consistency,
            ..QueryParameters::default()
        },
    }
}

/// An answer of the index service: the keys `b` and `a`, of which the second has no name.
fn neighbours() -> Bytes {
    let mut writer = AnswerWriter::new([(0.0f32, 1.0f32), (1.0, 0.5)].into_iter(), 1, 0);
    writer.column("id", 13, [&b"b"[..], b"a"].into_iter());
    writer.returned_column("name", 13, [Some(&b"Brazil"[..]), None].into_iter());
    writer.finish()
}

/// Rows of these columns, each of texts.
fn rows(columns: &[&str], rows: &[&[Option<&str>]]) -> Response {
    let columns = ColumnsMetadata {
        columns: columns.iter().map(|name| column(name)).collect(),
    };
    let mut encoder = RowsEncoder::new(&columns, false);
    for row in rows {
        for cell in *row {
            encoder.cell(cell.map(str::as_bytes));
        }
        encoder.end_row();
    }
    Response::Rows(encoder.finish(None))
}

/// The names of the columns of an answer, and its rows.
fn decoded_rows(response: &Response) -> (Vec<String>, Vec<Vec<Option<String>>>) {
    let Response::Rows(rows) = response else {
        panic!("{response:?}")
    };
    let rows = rows.decode().unwrap();
    let columns = rows.metadata.unwrap().columns;
    let text = |cell: &Option<Bytes>| {
        let cell = cell.as_ref()?;
        Some(String::from_utf8(cell.to_vec()).unwrap())
    };
    let rows = rows.rows.iter().map(|row| row.iter().map(text).collect());
    let names = columns.iter().map(|column| column.name.to_string());
    (names.collect(), rows.collect())
}

impl Setup {
    /// The node's next request is a query, which gets this response. Returns its text and level.
    async fn node_answers(&mut self, response: &Response) -> (String, Consistency) {
        let (stream, request) = self.node.request().await;
        let Request::Query {
            statement,
            parameters,
        } = request
        else {
            panic!("{request:?}")
        };
        let context = ResponseContext::new(stream);
        self.node.answer(response, &context).await;
        (statement, parameters.consistency)
    }

    /// The client's query is answered by rows that are read.
    async fn reads_rows(&mut self, read: &str) {
        let body = r#"{"primary_keys":{"id":["b"]},"similarity_scores":[1]}"#;
        let search = self.store.neighbours(body).await;
        assert!(search.get("return_columns").is_none(), "{search}");
        // The name is read once more where it is not selected as it is.
        let columns = ["id", "title", "name"];
        let row = ["b", "Brazil", "Brazil"].map(Some);
        let width = if read == READ { 2 } else { 3 };
        let answer = rows(&columns[..width], &[&row[..width]]);
        assert_eq!(self.node_answers(&answer).await.0, read);
        let (_, answer) = self.client.response().await;
        assert_eq!(decoded_rows(&answer).1[0][1].as_deref(), Some("Brazil"));
    }
}

#[tokio::test]
async fn the_index_answers_alone_once_the_node_lets_the_client_read() {
    for consistency in [Consistency::One, Consistency::LocalOne] {
        let mut setup = gateway(true, WhenBehind::Stale).await;
        setup.client.ask(&at(SELECT, consistency), 3).await;
        let asked = setup.node_answers(&rows(&["id"], &[])).await;
        assert_eq!(asked, (PROBE.to_owned(), consistency));
        let search = setup.store.binary(neighbours()).await;
        assert_eq!(search["return_columns"], serde_json::json!(["name"]));
        let restrictions = serde_json::json!([{"type":">","lhs":"name","rhs":"A"}]);
        assert_eq!(search["filter"]["restrictions"], restrictions);
        let (context, answer) = setup.client.response().await;
        assert_eq!((context.stream, context.warnings.len()), (3, 0));
        let text = |text: &str| Some(text.to_owned());
        let expected = vec![vec![text("b"), text("Brazil")], vec![text("a"), None]];
        let columns = ["id", "title"].map(str::to_owned).to_vec();
        assert_eq!(decoded_rows(&answer), (columns, expected));
        // The node got no other request.
        let next = query("SELECT name FROM films");
        setup.client.ask(&next, 4).await;
        assert_eq!(setup.node.request().await, (4, next));
    }
}

#[tokio::test]
async fn a_client_that_may_not_read_the_table_gets_the_nodes_error() {
    let mut setup = gateway(true, WhenBehind::Stale).await;
    setup.client.ask(&query(SELECT), 3).await;
    let error = Response::Error(CqlError::new(
        ErrorKind::Unauthorized,
        "no SELECT permission",
    ));
    assert_eq!(setup.node_answers(&error).await.0, PROBE);
    let (context, answer) = setup.client.response().await;
    assert_eq!((context.stream, answer), (3, error));
    assert!(setup.store.searches.try_recv().is_err());
}

#[tokio::test]
async fn rows_are_read_where_the_gateway_or_the_query_asks_for_them() {
    let other = SELECT.replace("name AS", "CAST(name AS text) AS");
    let other_read = READ.replace(
        "name AS title \n",
        "CAST(name AS text) AS title \n, \"name\"",
    );
    for (option, select, read, consistency) in [
        (false, SELECT, READ, Consistency::One),
        (true, SELECT, READ, Consistency::Quorum),
        (true, SELECT, READ, Consistency::LocalQuorum),
        (true, &other, &other_read, Consistency::One),
    ] {
        let mut setup = gateway(option, WhenBehind::Stale).await;
        setup.client.ask(&at(select, consistency), 3).await;
        setup.reads_rows(read).await;
    }
}

#[tokio::test]
async fn a_trace_is_one_of_reading_rows() {
    let mut setup = gateway(true, WhenBehind::Stale).await;
    let mut frame = BytesMut::new();
    query(SELECT).encode(3, None, &mut frame);
    // The flag of tracing.
    frame[1] |= 0x02;
    setup.client.send(&frame).await;
    setup.reads_rows(READ).await;
}

#[tokio::test]
async fn rows_are_read_where_the_service_does_not_tell_the_values() {
    for (status, body) in [
        (
            "400 Bad Request",
            "the values of return_columns take more than 64 MiB",
        ),
        (
            "200 OK",
            r#"{"primary_keys":{"id":["b"]},"similarity_scores":[1]}"#,
        ),
        (
            "200 OK",
            r#"{"primary_keys":{"id":["b"]},"similarity_scores":[1],"column_values":{"name":["Brazil"]}}"#,
        ),
    ] {
        let mut setup = gateway(true, WhenBehind::Stale).await;
        setup.client.ask(&query(SELECT), 3).await;
        setup.node_answers(&rows(&["id"], &[])).await;
        let search = setup.store.answer(status, body).await;
        assert_eq!(search["return_columns"], serde_json::json!(["name"]));
        setup.reads_rows(READ).await;
    }
}

#[tokio::test]
async fn the_answer_knows_the_newest_write_through_this_gateway_or_says_so() {
    const BEHIND: &str = r#"{"reason":"INDEX_BEHIND","message":"not yet"}"#;
    for when_behind in [WhenBehind::Stale, WhenBehind::Error] {
        let mut setup = gateway(true, when_behind).await;
        setup.log.newest.note(setup.table, 3_000);
        setup.client.ask(&query(SELECT), 3).await;
        setup.node_answers(&rows(&["id"], &[])).await;
        let search = setup.store.answer("503 Service Unavailable", BEHIND).await;
        assert_eq!(search["min_time_us"], 3_000);
        if when_behind == WhenBehind::Stale {
            let search = setup.store.binary(neighbours()).await;
            assert_eq!(search["return_columns"], serde_json::json!(["name"]));
        }
        let (context, answer) = soon(setup.client.response()).await;
        match when_behind {
            WhenBehind::Stale => {
                assert_eq!(decoded_rows(&answer).1.len(), 2);
                assert!(context.warnings.iter().any(|one| one.contains("may lack")));
            }
            WhenBehind::Error => assert!(
                matches!(&answer, Response::Error(error) if error.kind == ErrorKind::Overloaded),
                "{answer:?}"
            ),
        }
    }
}

#[tokio::test]
async fn an_answer_without_rows_that_may_lack_some_says_so() {
    let mut setup = gateway(true, WhenBehind::Stale).await;
    setup.client.ask(&query(SELECT), 3).await;
    setup.node_answers(&rows(&["id"], &[])).await;
    setup.store.short(neighbours()).await;
    let (context, answer) = soon(setup.client.response()).await;
    assert_eq!(decoded_rows(&answer).1.len(), 2);
    assert!(context.warnings.iter().any(|one| one.contains("no room")));
}

//! Tests of writes to logged tables on a whole connection. The client and the node are scripted by
//! the test.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BatchedStatement, BoundValue, Compression, Consistency, FrameDirection, Request, Response,
};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use value::join_elements;

use super::test_connection::{
    SharedFixture, execute, is_prepare, prepare, prepared_as, query, rest, snapshot, soon,
};
use crate::catalog::IndexCatalogSnapshot;
use crate::writes::test_tables::products;

const INSERT: &str = "INSERT INTO shop.products (id, name) VALUES (1, 'tea')";

#[tokio::test]
async fn no_write_is_made_once_the_snapshot_has_lapsed() {
    let shared = SharedFixture::new(snapshot());
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
    let shared = SharedFixture::new(snapshot());
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
async fn slow_writes_are_logged_without_their_literals() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    client.ask(&query(INSERT), 1).await;
    assert!(is_prepare(&node.request().await));
    node.answer(&prepared_as(b"log"), 1).await;
    assert_eq!(node.batch(2).await, 1);
    node.answer(&Response::Void, 1).await;
    client.response().await;
    let batch = Request::Batch(cql::wire::BatchRequest {
        kind: cql::wire::BatchKind::Logged,
        statements: vec![cql::wire::BatchStatement {
            statement: BatchedStatement::Text(INSERT.to_owned()),
            values: vec![],
        }],
        consistency: Consistency::One,
        serial_consistency: None,
        timestamp: None,
        keyspace: None,
        now_in_seconds: None,
    });
    client.ask(&batch, 2).await;
    assert_eq!(node.batch(2).await, 2);
    node.answer(&Response::Void, 2).await;
    client.response().await;
    // The cluster logs statements that pass.
    client
        .ask(&query("SELECT name FROM shop.products"), 3)
        .await;
    node.request().await;
    node.answer(&Response::Void, 3).await;
    client.response().await;
    let [single, batch] = &shared.slow_queries.entries()[..] else {
        panic!("two writes");
    };
    let shown = "INSERT INTO shop.products (id, name) VALUES (?, ?)";
    assert_eq!(single.statement, shown);
    assert_eq!(batch.statement, "BEGIN BATCH ON shop.products");
    for slow in [single, batch] {
        assert_eq!(slow.keyspace.as_deref(), Some("shop"));
        assert_eq!(slow.client.to_string(), "127.0.0.1:7");
    }
}

#[tokio::test]
async fn a_write_that_has_begun_goes_on_during_maintenance() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    client.ask(&query(INSERT), 1).await;
    assert!(is_prepare(&node.request().await));
    shared.maintenance.set(true);
    client.ask(&query(INSERT), 2).await;
    let (stream, refusal) = client.response().await;
    assert_eq!(stream, 2);
    assert!(
        matches!(&refusal, Response::Error(error) if error.kind == ErrorKind::IsBootstrapping),
        "{refusal:?}"
    );
    node.answer(&prepared_as(b"log"), 1).await;
    assert_eq!(node.batch(2).await, 1);
    node.answer(&Response::Void, 1).await;
    assert_eq!(client.response().await, (1, Response::Void));
}

#[tokio::test]
async fn a_statement_prepared_before_its_table_was_logged_is_prepared_again() {
    let shared = SharedFixture::new(IndexCatalogSnapshot::default());
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
    let in_a_batch = Request::Batch(cql::wire::BatchRequest {
        kind: cql::wire::BatchKind::Logged,
        statements: vec![cql::wire::BatchStatement {
            statement: BatchedStatement::Prepared(Bytes::from_static(b"delete")),
            values: vec![],
        }],
        consistency: Consistency::One,
        serial_consistency: None,
        timestamp: None,
        keyspace: None,
        now_in_seconds: None,
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
async fn prepared_statements_outlive_definitions_of_other_tables() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    let statements: [(&[u8], &str); 3] = [
        (b"select", "SELECT name FROM shop.other WHERE id = ?"),
        (b"log", "SELECT * FROM shop.products_scylla_cdc_log"),
        (b"insert", "INSERT INTO shop.other (id) VALUES (?)"),
    ];
    for (id, text) in statements {
        client.ask(&prepare(text), 1).await;
        node.request().await;
        node.answer(&prepared_as(id), 1).await;
        client.response().await;
    }
    let delete = "DELETE FROM shop.products WHERE id = ?";
    client.ask(&prepare(delete), 1).await;
    node.request().await;
    node.answer(&prepared_as(b"delete"), 1).await;
    client.response().await;

    let other_definitions = [vec![Arc::new(products())], vec![]];
    for tables in other_definitions.clone() {
        shared
            .catalog
            .replace(IndexCatalogSnapshot::new(tables, []));
        for (id, text) in statements {
            let request = execute(id, vec![]);
            client.ask(&request, 2).await;
            assert_eq!(node.request().await, (2, request), "{text}");
            node.answer(&Response::Void, 2).await;
            client.response().await;
        }
    }
    shared
        .catalog
        .replace(IndexCatalogSnapshot::new(other_definitions[0].clone(), []));
    let key = BoundValue::Value(Bytes::from_static(&[0, 0, 0, 7]));
    client.ask(&execute(b"delete", vec![key]), 3).await;
    assert!(is_prepare(&node.request().await));
    node.answer(&prepared_as(b"log"), 3).await;
    assert_eq!(node.batch(2).await, 3);
}

#[tokio::test]
async fn names_without_a_keyspace_are_in_that_of_the_last_use() {
    let shared = SharedFixture::new(snapshot());
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
        let refusal = Response::Error(CqlError::invalid("unconfigured table"));
        node.answer(&refusal, 2).await;
        assert_eq!(client.response().await, (2, refusal));
    }
}

#[tokio::test]
async fn compressed_requests_are_understood_and_compressed_answers_pass() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect_with(Some(Compression::Lz4)).await;
    let long = format!("{INSERT} -- {}", "x".repeat(2_000));
    client.ask(&query(&long), 1).await;
    node.request().await;
    node.answer(&prepared_as(b"log"), 1).await;
    assert_eq!(node.batch(2).await, 1);
    let answer = Response::Error(CqlError::invalid("y".repeat(2_000)));
    node.answer(&answer, 1).await;
    assert_eq!(client.response().await, (1, answer));
    // A write that is sent apart from its log rows is compressed as it came.
    let conditional = format!("{INSERT} IF NOT EXISTS -- {}", "x".repeat(2_000));
    let sent = client.ask(&query(&conditional), 2).await;
    node.batch(1).await;
    node.answer(&Response::Void, 2).await;
    let frame = node.frame(FrameDirection::Request).await;
    assert_eq!([&frame.header.to_bytes()[..], &frame.body].concat(), sent);
}

#[tokio::test]
async fn a_write_under_way_is_finished_for_a_client_that_asks_nothing_more() {
    let shared = SharedFixture::new(snapshot());
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
    let shared = SharedFixture::new(snapshot());
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
        // The second write is read but not begun, so the node gets nothing of it.
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

#[tokio::test]
async fn log_rows_are_memory_too() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    client
        .ask(&prepare("DELETE FROM shop.products WHERE id IN ?"), 0)
        .await;
    node.request().await;
    node.answer(&prepared_as(b"delete"), 0).await;
    client.response().await;
    let ids: Vec<[u8; 4]> = (0..10_000u32).map(u32::to_be_bytes).collect();
    let list = BoundValue::Value(join_elements(ids.iter().map(|id| &id[..])));
    let delete = execute(b"delete", vec![list]);
    let sending = async {
        for stream in 1..=7 {
            client.ask(&delete, stream).await;
        }
        client
    };
    let playing = async {
        for stream in 1..=6 {
            let request = node.request().await;
            assert!(request.0 == stream && is_prepare(&request), "{request:?}");
        }
        node.receives_nothing().await;
        let refusal = Response::Error(CqlError::invalid("no such log"));
        node.answer(&refusal, 3).await;
        assert_eq!(node.request().await.0, 7);
    };
    soon(async { tokio::join!(sending, playing) }).await;
}

#[tokio::test]
async fn a_statement_that_names_its_keyspace_is_executed_in_any() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    for (stream, keyspace) in [(1, "shop"), (2, "other")] {
        client.ask(&query(&format!("USE {keyspace}")), stream).await;
        node.request().await;
        let in_use = Response::SetKeyspace(keyspace.to_owned());
        node.answer(&in_use, stream).await;
        client.response().await;
        if keyspace == "other" {
            continue;
        }
        for (id, table) in [
            (&b"qualified"[..], "shop.products"),
            (b"of shop", "products"),
        ] {
            let text = format!("INSERT INTO {table} (id, name) VALUES (uuid(), ?)");
            client.ask(&prepare(&text), 3).await;
            node.request().await;
            node.answer(&prepared_as(id), 3).await;
            client.response().await;
        }
    }
    let name = BoundValue::Value(Bytes::from_static(b"tea"));
    client
        .ask(&execute(b"of shop", vec![name.clone()]), 3)
        .await;
    let (_, refusal) = client.response().await;
    assert!(
        matches!(&refusal, Response::Error(error) if error.message.contains("another keyspace")),
        "{refusal:?}"
    );
    client.ask(&execute(b"qualified", vec![name]), 4).await;
    assert!(is_prepare(&node.request().await));
    node.answer(&prepared_as(b"log"), 4).await;
    assert_eq!(node.batch(2).await, 4);
}

#[tokio::test]
async fn a_truncate_whose_table_cannot_be_determined_is_refused() {
    let shared = SharedFixture::new(snapshot());
    let (mut client, mut node) = shared.connect();
    client.ask(&query("TRUNCATE 'products'"), 1).await;
    let (_, refusal) = client.response().await;
    assert!(matches!(refusal, Response::Error(_)), "{refusal:?}");
    client.ask(&query("TRUNCATE shop.others"), 1).await;
    assert_eq!(node.request().await.0, 1);
}

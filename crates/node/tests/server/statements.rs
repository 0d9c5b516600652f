//! Statements in every form of the protocol: QUERY, PREPARE and EXECUTE, BATCH.

use bytes::Bytes;
use cql::error::ErrorKind;
use cql::wire::{
    BatchKind, BatchRequest, BatchStatement, BatchedStatement, BoundValue, Consistency, FrameFlags,
    MarkerValues, QueryParameters, Request, Response,
};

use crate::client::{Client, error, int, literals, positional, text};
use crate::real::start_with_keyspace;

#[tokio::test]
async fn written_rows_are_read() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int, c text, v list<int>, PRIMARY KEY (p, c))")
        .await;
    client
        .run("INSERT INTO t (p, c, v) VALUES (1, 'a', [3, 1])")
        .await;
    client.run("INSERT INTO t (p, c) VALUES (1, 'b')").await;
    assert_eq!(
        client.rows("SELECT * FROM t").await,
        [["1", "'a'", "[3, 1]"], ["1", "'b'", "null"]]
    );
    client.run("DELETE FROM t WHERE p = 1 AND c = 'a'").await;
    assert_eq!(client.rows("SELECT count(*) FROM t").await, [["1"]]);
    client.run("TRUNCATE t").await;
    assert!(client.rows("SELECT * FROM t").await.is_empty());
}

#[tokio::test]
async fn values_come_by_position_and_by_name() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int PRIMARY KEY, v text)")
        .await;
    let insert = |statement: &str, values| Request::Query {
        statement: statement.to_owned(),
        parameters: QueryParameters {
            values,
            ..QueryParameters::default()
        },
    };
    let by_name = MarkerValues::Named(vec![
        ("v".to_owned(), text("one")),
        ("p".to_owned(), int(1)),
    ]);
    let request = insert("INSERT INTO t (p, v) VALUES (?, ?)", by_name);
    assert_eq!(client.request(&request).await, Response::Void);
    let markers = MarkerValues::Named(vec![
        ("key".to_owned(), int(2)),
        ("value".to_owned(), text("two")),
    ]);
    let request = insert("INSERT INTO t (p, v) VALUES (:key, :value)", markers);
    assert_eq!(client.request(&request).await, Response::Void);
    let rows = client.rows("SELECT p, v FROM t WHERE p IN (1, 2)").await;
    assert_eq!(rows, [["1", "'one'"], ["2", "'two'"]]);

    let too_few = insert(
        "INSERT INTO t (p, v) VALUES (?, ?)",
        MarkerValues::Positional(vec![int(1)]),
    );
    let refused = error(client.request(&too_few).await);
    assert_eq!(refused.kind, ErrorKind::Invalid);
}

#[tokio::test]
async fn prepared_statements_are_told_and_executed() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (a int, b text, v int, PRIMARY KEY ((a, b)))")
        .await;
    let insert = client
        .prepare("INSERT INTO t (v, b, a) VALUES (?, ?, ?)")
        .await;
    let names: Vec<&str> = insert
        .bind
        .columns
        .iter()
        .map(|column| &*column.name)
        .collect();
    assert_eq!(names, ["v", "b", "a"]);
    assert_eq!(insert.partition_key_indexes, [2, 1]);
    assert!(insert.result.is_none_or(|result| result.columns.is_empty()));
    let parameters = positional([int(9), text("x"), int(1)]);
    assert_eq!(client.execute(&insert.id, parameters).await, Response::Void);
    // An unset value leaves its column as it is.
    let parameters = positional([BoundValue::Unset, text("x"), int(1)]);
    assert_eq!(client.execute(&insert.id, parameters).await, Response::Void);

    let select = client
        .prepare("SELECT v FROM t WHERE a = ? AND b = ?")
        .await;
    assert_eq!(select.result.unwrap().columns[0].name.as_ref(), "v");
    let answer = client
        .execute(&select.id, positional([int(1), text("x")]))
        .await;
    assert_eq!(
        literals(answer),
        (vec!["v".to_owned()], vec![vec!["9".to_owned()]])
    );

    let again = client
        .prepare("SELECT v FROM t WHERE a = ? AND b = ?")
        .await;
    assert_eq!(again.id, select.id);
    let unknown = Bytes::from_static(&[9; 16]);
    let refused = error(client.execute(&unknown, positional([])).await);
    assert_eq!(refused.kind, ErrorKind::Unprepared { id: unknown });
}

#[tokio::test]
async fn a_statement_prepared_on_one_connection_serves_all() {
    let (node, mut client) = start_with_keyspace().await;
    client.run("CREATE TABLE t (p int PRIMARY KEY)").await;
    let insert = client.prepare("INSERT INTO t (p) VALUES (?)").await;
    // The other connection has no keyspace. The statement keeps the keyspace in which it was
    // prepared.
    let mut other = Client::open(node.address).await;
    let answer = other.execute(&insert.id, positional([int(5)])).await;
    assert_eq!(answer, Response::Void);
    assert_eq!(client.rows("SELECT p FROM t").await, [["5"]]);
    assert_eq!(other.fail("SELECT p FROM t").await.kind, ErrorKind::Invalid);
}

#[tokio::test]
async fn a_prepared_statement_follows_the_schema() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int PRIMARY KEY, a int)")
        .await;
    client.run("INSERT INTO t (p, a) VALUES (1, 2)").await;
    let select = client.prepare("SELECT * FROM t").await;
    let without_metadata = || QueryParameters {
        skip_metadata: true,
        ..QueryParameters::default()
    };
    let Response::Rows(rows) = client.execute(&select.id, without_metadata()).await else {
        panic!("no rows");
    };
    assert_eq!(rows.decode().unwrap().metadata, None);

    client.run("ALTER TABLE t ADD b text").await;
    client
        .assert_unprepared(&select.id, without_metadata())
        .await;
    assert_eq!(client.prepare("SELECT * FROM t").await.id, select.id);
    // Another client may still know the old columns, so the answer has its metadata although the
    // client asks for none.
    let (names, rows) = literals(client.execute(&select.id, without_metadata()).await);
    assert_eq!(names, ["p", "a", "b"]);
    assert_eq!(rows, [["1", "2", "null"]]);

    client.run("DROP TABLE t").await;
    client
        .assert_unprepared(&select.id, without_metadata())
        .await;
    client.run("CREATE TABLE t (p text PRIMARY KEY)").await;
    client
        .assert_unprepared(&select.id, without_metadata())
        .await;
    client.prepare("SELECT * FROM t").await;
    let (names, _) = literals(client.execute(&select.id, without_metadata()).await);
    assert_eq!(names, ["p"]);
}

/// A prepared statement is executed only against the table and the types that its client was told
/// of.
#[tokio::test]
async fn a_prepared_statement_does_not_outlive_its_table() {
    const STATEMENTS: [&str; 7] = [
        "INSERT INTO t (p, b) VALUES (?, ?)",
        "INSERT INTO t (p, b) VALUES (?, ?) IF NOT EXISTS",
        "UPDATE t SET b = ? WHERE p = ?",
        "BEGIN BATCH INSERT INTO t (p, b) VALUES (?, ?) APPLY BATCH",
        "SELECT b FROM t WHERE p = ? AND b = ? ALLOW FILTERING",
        "DELETE b FROM t WHERE p = 1",
        "TRUNCATE t",
    ];
    const ANEW_WITH: [(&str, &str); 3] = [("b", "text"), ("b", "int"), ("other", "int")];
    for (name, cql_type) in ANEW_WITH {
        let (_node, mut client) = start_with_keyspace().await;
        client
            .run("CREATE TABLE t (p int PRIMARY KEY, b int)")
            .await;
        let mut ids = Vec::new();
        for statement in STATEMENTS {
            ids.push(client.prepare(statement).await.id);
        }
        client.run("DROP TABLE t").await;
        for id in &ids {
            client
                .assert_unprepared(id, positional([int(65), int(65)]))
                .await;
        }
        client
            .run(&format!(
                "CREATE TABLE t (p int PRIMARY KEY, {name} {cql_type})"
            ))
            .await;
        client.run("INSERT INTO t (p) VALUES (1)").await;
        for id in &ids {
            client
                .assert_unprepared(id, positional([int(65), int(65)]))
                .await;
        }
        assert_eq!(client.rows("SELECT p FROM t").await, [["1"]]);

        // Values of the old type are not accepted under the old id after the text was prepared
        // again.
        if cql_type == "text" {
            let again = client.prepare(STATEMENTS[0]).await;
            assert_ne!(again.id, ids[0]);
            client
                .assert_unprepared(&ids[0], positional([int(65), int(65)]))
                .await;
            assert_eq!(client.rows("SELECT p FROM t").await, [["1"]]);
        }
    }
}

/// A client need not prepare a statement again after a change that leaves everything it was told as
/// it was.
#[tokio::test]
async fn a_prepared_statement_outlives_changes_that_are_not_its_own() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int PRIMARY KEY, b int, c int)")
        .await;
    let insert = client.prepare("INSERT INTO t (p, b) VALUES (?, ?)").await;
    for change in [
        "CREATE TABLE other (p int PRIMARY KEY)",
        "ALTER TABLE t ADD d text",
        "ALTER TABLE t DROP c",
    ] {
        client.run(change).await;
        let answer = client
            .execute(&insert.id, positional([int(1), int(2)]))
            .await;
        assert_eq!(answer, Response::Void, "{change}");
    }
    client.run("ALTER TABLE t RENAME p TO q").await;
    client
        .assert_unprepared(&insert.id, positional([int(1), int(2)]))
        .await;
}

#[tokio::test]
async fn pages_follow_each_other() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int, c int, PRIMARY KEY (p, c))")
        .await;
    let insert = client.prepare("INSERT INTO t (p, c) VALUES (1, ?)").await;
    for c in 0..25 {
        client.execute(&insert.id, positional([int(c)])).await;
    }
    let select = client.prepare("SELECT c FROM t").await;
    let mut read = Vec::new();
    let mut pages = 0;
    let mut paging_state = None;
    loop {
        let parameters = QueryParameters {
            page_size: Some(10),
            paging_state: paging_state.take(),
            ..QueryParameters::default()
        };
        let Response::Rows(rows) = client.execute(&select.id, parameters).await else {
            panic!("no rows");
        };
        paging_state = rows.paging_state.clone();
        read.extend(literals(Response::Rows(rows)).1);
        pages += 1;
        if paging_state.is_none() {
            break;
        }
    }
    let expected: Vec<Vec<String>> = (0..25).map(|c| vec![c.to_string()]).collect();
    assert_eq!(read, expected);
    assert_eq!(pages, 3);
}

#[tokio::test]
async fn a_batch_takes_texts_and_prepared_statements() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int PRIMARY KEY, v text)")
        .await;
    client.run("INSERT INTO t (p, v) VALUES (3, 'old')").await;
    let insert = client.prepare("INSERT INTO t (p, v) VALUES (?, ?)").await;
    let batch = |statements| {
        Request::Batch(BatchRequest {
            kind: BatchKind::Logged,
            statements,
            consistency: Consistency::One,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        })
    };
    let prepared = |values| BatchStatement {
        statement: BatchedStatement::Prepared(insert.id.clone()),
        values,
    };
    let of_text = |statement: &str, values| BatchStatement {
        statement: BatchedStatement::Text(statement.to_owned()),
        values,
    };
    let request = batch(vec![
        prepared(vec![int(1), text("one")]),
        of_text("INSERT INTO t (p, v) VALUES (?, 'two')", vec![int(2)]),
        of_text("DELETE FROM t WHERE p = 3", vec![]),
    ]);
    assert_eq!(client.request(&request).await, Response::Void);
    let rows = client.rows("SELECT p, v FROM t WHERE p IN (1, 2, 3)").await;
    assert_eq!(rows, [["1", "'one'"], ["2", "'two'"]]);

    for (bad, kind) in [
        (vec![of_text("SELECT * FROM t", vec![])], ErrorKind::Invalid),
        (vec![of_text("INSERT INTO", vec![])], ErrorKind::SyntaxError),
        (vec![prepared(vec![int(1)])], ErrorKind::Invalid),
        (
            vec![BatchStatement {
                statement: BatchedStatement::Prepared(Bytes::from_static(b"?")),
                values: vec![],
            }],
            ErrorKind::Unprepared {
                id: Bytes::from_static(b"?"),
            },
        ),
    ] {
        // A batch is executed as a whole or not at all.
        let mut statements = vec![of_text("INSERT INTO t (p) VALUES (7)", vec![])];
        statements.extend(bad);
        assert_eq!(error(client.request(&batch(statements)).await).kind, kind);
    }
    assert!(client.rows("SELECT p FROM t WHERE p = 7").await.is_empty());
}

#[tokio::test]
async fn the_keyspace_in_use_is_a_connections_own() {
    let (node, mut client) = start_with_keyspace().await;
    client.run("CREATE TABLE t (p int PRIMARY KEY)").await;
    let mut other = Client::open(node.address).await;
    let refused = other.fail("SELECT * FROM t").await;
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert_eq!(
        other.run("USE system").await,
        Response::SetKeyspace("system".to_owned())
    );
    assert_eq!(other.rows("SELECT key FROM local").await, [["'local'"]]);
    assert!(client.rows("SELECT * FROM t").await.is_empty());
    assert_eq!(other.fail("USE nowhere").await.kind, ErrorKind::Invalid);
    assert_eq!(other.rows("SELECT key FROM local").await, [["'local'"]]);
}

#[tokio::test]
async fn a_text_too_large_to_parse_in_passing_is_parsed_all_the_same() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int PRIMARY KEY, v text)")
        .await;
    let long = "x".repeat(1 << 20);
    client
        .run(&format!("INSERT INTO t (p, v) VALUES (1, '{long}')"))
        .await;
    let rows = client.rows("SELECT v FROM t WHERE p = 1").await;
    assert_eq!(rows[0][0].len(), long.len() + 2);
    let refused = client
        .fail(&format!("INSERT INTO t (p, v) VALUES (1, '{long}'"))
        .await;
    assert_eq!(refused.kind, ErrorKind::SyntaxError);
}

#[tokio::test]
async fn a_traced_statement_has_a_trace() {
    let (_node, mut client) = start_with_keyspace().await;
    let mut frame = bytes::BytesMut::new();
    crate::client::query("SELECT key FROM system.local").encode(3, None, &mut frame);
    frame[1] |= FrameFlags::TRACING.0;
    client.send_bytes(&frame).await;
    let (context, response) = client.receive().await;
    assert_eq!(literals(response).1, [["'local'"]]);
    let id = context.tracing_id.expect("an id");
    assert!(context.warnings.is_empty());
    let session =
        format!("SELECT request, parameters FROM system_traces.sessions WHERE session_id = {id}");
    let rows = client.rows(&session).await;
    assert_eq!(rows[0][0], "'Execute CQL3 query'");
    assert!(
        rows[0][1].contains("SELECT key FROM system.local"),
        "{rows:?}"
    );
    let events = format!("SELECT activity FROM system_traces.events WHERE session_id = {id}");
    let activities = client.rows(&events).await.concat();
    assert!(
        activities.contains(&"'Preparing statement'".to_owned()),
        "{activities:?}"
    );
    let other = format!(
        "SELECT * FROM system_traces.events WHERE session_id = {}",
        uuid::Uuid::nil()
    );
    assert!(client.rows(&other).await.is_empty());
}

#[tokio::test]
async fn requests_are_counted() {
    let (node, mut client) = start_with_keyspace().await;
    client.fail("SELECT nonsense").await;
    let [(name, counted)] = node.node.counters()[..] else {
        panic!("one listener");
    };
    assert_eq!(name, "public");
    // CREATE KEYSPACE, USE and the statement that failed. The handshake does not count as a
    // request.
    assert_eq!((counted.requests, counted.requests_failed), (3, 1));
    assert_eq!((counted.connections_open, counted.panics), (1, 0));
    assert!(counted.bytes_read > 0 && counted.bytes_written > 0);
}

#[tokio::test]
async fn levels_that_make_no_sense_are_refused() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int PRIMARY KEY, v int)")
        .await;
    let plain = "INSERT INTO t (p, v) VALUES (1, 1)";
    let conditional = "INSERT INTO t (p, v) VALUES (1, 1) IF NOT EXISTS";
    let read = "SELECT v FROM t";
    use Consistency::{Any, LocalSerial, One, Quorum, Serial};
    for (statement, level, serial, refused) in [
        (conditional, One, None, None),
        (conditional, One, Some(LocalSerial), None),
        (
            conditional,
            One,
            Some(One),
            Some("Invalid consistency for conditional update"),
        ),
        (
            conditional,
            One,
            Some(Quorum),
            Some("Invalid consistency for conditional update"),
        ),
        (
            conditional,
            Serial,
            None,
            Some("SERIAL is not supported as conditional update commit consistency"),
        ),
        (plain, Any, Some(One), None),
        (
            plain,
            LocalSerial,
            None,
            Some("You must use conditional updates"),
        ),
        (read, Serial, None, None),
        (read, Any, None, Some("only supported for writes")),
    ] {
        let parameters = || QueryParameters {
            consistency: level,
            serial_consistency: serial,
            ..QueryParameters::default()
        };
        let query = Request::Query {
            statement: statement.to_owned(),
            parameters: parameters(),
        };
        let id = client.prepare(statement).await.id;
        let answers = [
            client.request(&query).await,
            client.execute(&id, parameters()).await,
        ];
        for answer in answers {
            match (&answer, refused) {
                (Response::Error(error), Some(text)) => {
                    assert_eq!(error.kind, ErrorKind::Invalid);
                    assert!(error.message.contains(text), "{error}");
                }
                (Response::Error(_), None) | (_, Some(_)) => {
                    panic!("{statement} at {level}, {serial:?}: {answer:?}")
                }
                _ => {}
            }
        }
    }
}

//! Statements of all kinds.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use futures_util::TryStreamExt;
use scylla::client::session::Session;
use scylla::errors::DbError;
use scylla::response::PagingState;
use scylla::response::query_result::QueryResult;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::{Consistency, SerialConsistency, Statement};
use scylla::value::{Counter, CqlValue, Row};
use sections::{equal, eventually};

use crate::session::{refusal, refused, rows, run, select, with};

pub async fn prepare(session: &Session) {
    run(
        session,
        "CREATE TABLE prepared (a int, b int, c int, d text, PRIMARY KEY ((a, b), c))",
    )
    .await;
    let insert = session
        .prepare("INSERT INTO prepared (d, c, b, a) VALUES (:d, :c, :b, :a)")
        .await;
    let insert = insert.expect("it is prepared");
    let names: Vec<String> = insert
        .get_variable_col_specs()
        .iter()
        .map(|one| one.name().to_owned())
        .collect();
    equal(names, ["d", "c", "b", "a"], "names");
    let token = insert.calculate_token(&("four", 3, 2, 1)).expect("a token");
    session
        .execute_unpaged(&insert, ("four", 3, 2, 1))
        .await
        .expect("it is written");
    let tokens: Vec<(i64,)> = select(session, "SELECT token(a, b) FROM prepared").await;
    equal(
        token.map(|token| token.value()),
        Some(tokens[0].0),
        "the token of a partition",
    );

    let select = session
        .prepare("SELECT * FROM prepared WHERE a = ? AND b = ? AND c IN ?")
        .await;
    let select = select.expect("it is prepared");
    let read = async || -> Vec<Row> {
        rows(
            session
                .execute_unpaged(&select, (1, 2, vec![3, 4]))
                .await
                .expect("it is read"),
        )
    };
    equal(read().await[0].columns.len(), 4, "columns");
    run(session, "ALTER TABLE prepared ADD e int").await;
    let row = read().await.remove(0);
    equal(row.columns.len(), 5, "columns after one came");
    equal(
        &row.columns[3],
        Some(CqlValue::Text("four".to_owned())),
        "a value after the table has changed",
    );
    let nowhere = session
        .query_unpaged("SELECT * FROM nowhere WHERE k = ?", (1,))
        .await;
    equal(
        refused(nowhere).0,
        DbError::Invalid,
        "a table that is not there",
    );
}

pub async fn batches(session: &Session) {
    run(
        session,
        "CREATE TABLE batched (k int, c int, v text, PRIMARY KEY (k, c))",
    )
    .await;
    run(
        session,
        "CREATE TABLE counted (k int PRIMARY KEY, n counter)",
    )
    .await;
    let insert = "INSERT INTO batched (k, c, v) VALUES (?, ?, ?)";
    let prepared = session.prepare(insert).await.expect("it is prepared");
    for (kind, name, time) in [
        (BatchType::Logged, "logged", 5),
        (BatchType::Unlogged, "unlogged", 6),
    ] {
        let mut batch = Batch::new(kind);
        batch.append_statement(prepared.clone());
        batch.append_statement(insert);
        batch.append_statement("DELETE FROM batched WHERE k = 3");
        batch.set_timestamp(Some(time));
        session
            .batch(&batch, ((1, 1, name), (2, 1, name), ()))
            .await
            .expect("a batch");
        let found: Vec<(String, i64)> =
            select(session, "SELECT v, writetime(v) FROM batched WHERE k = 2").await;
        equal(found, [(name, time)], "a row of a batch");
    }
    let add = "UPDATE counted SET n = n + ? WHERE k = ?";
    let mut batch = Batch::new(BatchType::Counter);
    batch.append_statement(add);
    batch.append_statement(add);
    let five = (Counter(5), 1);
    session
        .batch(&batch, (five, (Counter(-2), 1)))
        .await
        .expect("a batch of counters");
    let found: Vec<(Counter,)> = select(session, "SELECT n FROM counted WHERE k = 1").await;
    equal(found, [(Counter(3),)], "a counter");
    let mut mixed = Batch::new(BatchType::Logged);
    mixed.append_statement(add);
    equal(
        refused(session.batch(&mixed, (five,)).await).0,
        DbError::Invalid,
        "counters in a logged batch",
    );
}

/// Whether a condition held, and the value of a column of the row that is answered.
fn outcome(result: QueryResult, column: usize) -> (bool, Option<CqlValue>) {
    let row: Row = rows(result).remove(0);
    let applied = row.columns[0] == Some(CqlValue::Boolean(true));
    (applied, row.columns.into_iter().nth(column).flatten())
}

pub async fn conditions(session: &Session) {
    run(
        session,
        "CREATE TABLE lwt (k int, c int, s text static, v text, PRIMARY KEY (k, c))",
    )
    .await;
    let text = |text: &str| Some(CqlValue::Text(text.to_owned()));
    let insert = "INSERT INTO lwt (k, c, v) VALUES (?, ?, ?) IF NOT EXISTS";
    let first = outcome(with(session, insert, (1, 1, "first")).await, 4);
    equal(first.0, true, "the first is applied");
    let second = outcome(with(session, insert, (1, 1, "second")).await, 4);
    equal(second, (false, text("first")), "the second finds the first");
    let update = "UPDATE lwt SET v = ? WHERE k = ? AND c = ? IF v = ?";
    let found = outcome(with(session, update, ("x", 1, 1, "other")).await, 1);
    equal(found, (false, text("first")), "the value that is there");
    let one_of = "UPDATE lwt SET v = ? WHERE k = ? AND c = ? IF v IN ?";
    let found = outcome(
        with(session, one_of, ("new", 1, 1, vec!["a", "first"])).await,
        1,
    );
    equal(found.0, true, "IN");
    let exists = run(
        session,
        "UPDATE lwt SET v = 'x' WHERE k = 9 AND c = 1 IF EXISTS",
    )
    .await;
    equal(outcome(exists, 0).0, false, "IF EXISTS");
    let missing = run(session, "UPDATE lwt SET s = 'x' WHERE k = 1 IF s = null").await;
    equal(outcome(missing, 0).0, true, "a static column");
    let mut batch = Batch::new(BatchType::Logged);
    batch.append_statement(insert);
    batch.append_statement("INSERT INTO lwt (k, c, v) VALUES (1, 2, 'with')");
    batch.set_serial_consistency(Some(SerialConsistency::LocalSerial));
    let refused = session
        .batch(&batch, ((1, 1, "third"), ()))
        .await
        .expect("an answer");
    equal(
        outcome(refused, 2),
        (false, Some(CqlValue::Int(1))),
        "a batch finds a row",
    );
    let mut read = Statement::new("SELECT v FROM lwt WHERE k = 1 AND c = 1");
    read.set_consistency(Consistency::Serial);
    let read = session
        .query_unpaged(read, ())
        .await
        .expect("a serial read");
    equal(rows::<(String,)>(read), [("new",)], "a value");
}

pub async fn counters(session: &Session) {
    run(
        session,
        "CREATE TABLE visits (k int PRIMARY KEY, n counter, m counter)",
    )
    .await;
    let add = "UPDATE visits SET n += ?, m -= ? WHERE k = ?";
    with(session, add, (Counter(i64::MAX), Counter(1), 1)).await;
    with(session, add, (Counter(-1), Counter(1), 1)).await;
    let found: Vec<(Counter, Counter)> =
        select(session, "SELECT n, m FROM visits WHERE k = 1").await;
    equal(found, [(Counter(i64::MAX - 1), Counter(-2))], "counters");
    let (error, text) = refusal(session, "INSERT INTO visits (k, n) VALUES (1, 2)").await;
    assert!(
        error == DbError::Invalid && text.contains("counter"),
        "{error}: {text}"
    );
}

pub async fn paging(session: &Session) {
    const ROWS: i32 = 100;
    run(
        session,
        "CREATE TABLE paged (k int, c int, PRIMARY KEY (k, c))",
    )
    .await;
    for n in 0..ROWS {
        with(
            session,
            "INSERT INTO paged (k, c) VALUES (?, ?)",
            (n % 3, n),
        )
        .await;
    }
    let expected: BTreeSet<(i32,)> = (0..ROWS).map(|n| (n,)).collect();
    let in_pages = async |text: &str, size: i32| -> Vec<(i32,)> {
        let pages = session.query_iter(Statement::new(text).with_page_size(size), ());
        let rows = pages.await.expect("a page").rows_stream::<(i32,)>();
        rows.expect("ints").try_collect().await.expect("pages")
    };
    for size in [1, 7, 50, 100, 5000] {
        let found = in_pages("SELECT c FROM paged", size).await;
        equal(found.len(), ROWS, "rows");
        equal(BTreeSet::from_iter(found), &expected, "rows by pages");
    }
    let limited = in_pages("SELECT c FROM paged LIMIT 25", 10).await;
    equal(limited.len(), 25, "rows up to a LIMIT");
    let select = Statement::new("SELECT c FROM paged WHERE k IN (0, 1, 2)").with_page_size(9);
    let select = session.prepare(select).await.expect("it is prepared");
    let (mut found, mut state) = (Vec::new(), PagingState::start());
    for pages in 1.. {
        let page = session.execute_single_page(&select, (), state).await;
        let (page, next) = page.expect("a page");
        found.extend(rows::<(i32,)>(page));
        assert!(pages < 20, "pages without end");
        let ControlFlow::Continue(next) = next.into_paging_control_flow() else {
            break;
        };
        // A program may keep the state somewhere else.
        let bytes = next.as_bytes_slice().expect("a state").to_vec();
        state = PagingState::new_from_raw_bytes(bytes);
    }
    equal(found.len(), ROWS, "rows of pages that are resumed");
    equal(
        BTreeSet::from_iter(found),
        &expected,
        "rows of pages that are resumed",
    );
}

pub async fn errors(session: &Session, keyspace: &str) {
    run(session, "CREATE TABLE here (k int PRIMARY KEY, v text)").await;
    for (statement, expected, part) in [
        ("SELEKT * FROM here", DbError::SyntaxError, "SELEKT"),
        ("SELECT * FROM nowhere", DbError::Invalid, "nowhere"),
        (
            "SELECT nothing FROM here",
            DbError::Invalid,
            "Undefined column name nothing",
        ),
        (
            "SELECT * FROM here WHERE v = 'a'",
            DbError::Invalid,
            "ALLOW FILTERING",
        ),
        (
            "SELECT * FROM elsewhere.here",
            DbError::Invalid,
            "does not exist",
        ),
        (
            "CREATE KEYSPACE bad WITH replication = {'class': 'NoSuchStrategy'}",
            DbError::ConfigError,
            "NoSuchStrategy",
        ),
    ] {
        let (error, text) = refusal(session, statement).await;
        assert!(
            error == expected && text.contains(part),
            "{statement}: {error:?}: {text}"
        );
    }
    let exists = |table: &str| DbError::AlreadyExists {
        keyspace: keyspace.to_owned(),
        table: table.to_owned(),
    };
    let (error, _) = refusal(session, "CREATE TABLE here (k int PRIMARY KEY)").await;
    equal(error, exists("here"), "a table again");
    let again = format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    );
    equal(
        refusal(session, &again).await.0,
        exists(""),
        "a keyspace again",
    );
    let badly = session
        .query_unpaged("SELECT * FROM here WHERE k = ?", ("no number",))
        .await;
    assert!(badly.is_err(), "the driver knows the type of a variable");
}

pub async fn vectors(session: &Session) {
    run(
        session,
        "CREATE TABLE near (k int PRIMARY KEY, v vector<float, 3>)",
    )
    .await;
    run(
        session,
        "CREATE CUSTOM INDEX near_v ON near (v) USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'euclidean'}",
    )
    .await;
    let at = |x: f32| vec![x, 0.0, 1.0];
    for k in 0..20 {
        with(
            session,
            "INSERT INTO near (k, v) VALUES (?, ?)",
            (k, at(k as f32)),
        )
        .await;
    }
    let ann = "SELECT k FROM near ORDER BY v ANN OF ? LIMIT ?";
    let nearest = async |to: f32| -> Vec<(i32,)> {
        // An index that is being built refuses to answer.
        let found = session.query_unpaged(ann, (at(to), 3)).await;
        found.map_or_else(|_| Vec::new(), rows)
    };
    eventually("the index serves", async || nearest(7.1).await.len() == 3).await;
    equal(nearest(7.1).await, [(7,), (8,), (6,)], "the nearest rows");
    let distances = "SELECT k, v, similarity_euclidean(v, ?) FROM near ORDER BY v ANN OF ? LIMIT 1";
    let found: Vec<(i32, Vec<f32>, f32)> = rows(with(session, distances, (at(3.0), at(3.0))).await);
    equal(found, [(3, at(3.0), 1.0_f32)], "a row with its similarity");
}

//! Statements of all kinds.

use std::collections::BTreeSet;

use cdrs_tokio::cluster::PagerState;
use cdrs_tokio::consistency::Consistency;
use cdrs_tokio::frame::message_batch::BatchType;
use cdrs_tokio::frame::message_error::{AlreadyExistsError, ErrorType};
use cdrs_tokio::query::{BatchQueryBuilder, QueryValues};
use cdrs_tokio::query_values;
use cdrs_tokio::statement::StatementParamsBuilder;
use cdrs_tokio::types::ByName;
use cdrs_tokio::types::rows::Row;
use cdrs_tokio::types::value::Value;
use sections::{equal, eventually};

use crate::session::{Client, refusal, refused, rows, run, select, with};

fn text(row: &Row, column: &str) -> String {
    row.r_by_name(column).expect("a text")
}

fn int(row: &Row, column: &str) -> i32 {
    row.r_by_name(column).expect("an int")
}

pub async fn prepare(client: &Client) {
    run(
        client,
        "CREATE TABLE prepared (a int, b int, c int, d text, PRIMARY KEY ((a, b), c))",
    )
    .await;
    let insert = client
        .prepare("INSERT INTO prepared (d, c, b, a) VALUES (:d, :c, :b, :a)")
        .await;
    let insert = insert.expect("it is prepared");
    let written = client
        .exec_with_values(&insert, query_values!("four", 3, 2, 1))
        .await;
    written.expect("it is written");
    let by_name = query_values!("a" => 1, "b" => 2, "c" => 4, "d" => "by name");
    client
        .exec_with_values(&insert, by_name)
        .await
        .expect("it is written");
    // An unset value leaves what is there.
    let unset = query_values!(Value::NotSet, 3, 2, 1);
    client
        .exec_with_values(&insert, unset)
        .await
        .expect("it is written");

    let select = client
        .prepare("SELECT * FROM prepared WHERE a = ? AND b = ? AND c IN ?")
        .await;
    let select = select.expect("it is prepared");
    let read = async || {
        let values = query_values!(1, 2, vec![3, 4, 5]);
        rows(
            client
                .exec_with_values(&select, values)
                .await
                .expect("it is read"),
        )
    };
    let found = read().await;
    equal(
        found.iter().map(|row| text(row, "d")).collect::<Vec<_>>(),
        ["four", "by name"],
        "values",
    );
    assert!(!found[0].contains_column("e"), "a column before it came");
    run(client, "ALTER TABLE prepared ADD e int").await;
    let found = read().await;
    equal(
        text(&found[0], "d"),
        "four",
        "a value after the table has changed",
    );
    assert!(found[0].contains_column("e"), "a column after it came");
    let nowhere = client
        .query_with_values("SELECT * FROM nowhere WHERE k = ?", query_values!(1))
        .await;
    equal(
        refused(nowhere).0,
        ErrorType::Invalid,
        "a table that is not there",
    );
}

pub async fn batches(client: &Client) {
    run(
        client,
        "CREATE TABLE batched (k int, c int, v text, PRIMARY KEY (k, c))",
    )
    .await;
    run(
        client,
        "CREATE TABLE counted (k int PRIMARY KEY, n counter)",
    )
    .await;
    let insert = "INSERT INTO batched (k, c, v) VALUES (?, ?, ?)";
    let prepared = client.prepare(insert).await.expect("it is prepared");
    for (kind, name, time) in [
        (BatchType::Logged, "logged", 5),
        (BatchType::Unlogged, "unlogged", 6),
    ] {
        let batch = BatchQueryBuilder::new()
            .with_batch_type(kind)
            .add_query_prepared(&prepared, query_values!(1, 1, name))
            .add_query(insert, query_values!(2, 1, name))
            .add_query("DELETE FROM batched WHERE k = 3", query_values!())
            .with_timestamp(time);
        client
            .batch(batch.build().expect("a batch"))
            .await
            .expect("it is written");
        let found = select(
            client,
            "SELECT v, writetime(v) AS at FROM batched WHERE k = 2",
        )
        .await;
        let at: i64 = found[0].r_by_name("at").expect("a time");
        equal((text(&found[0], "v"), at), (name, time), "a row of a batch");
    }
    let add = "UPDATE counted SET n = n + ? WHERE k = ?";
    let batch = BatchQueryBuilder::new()
        .with_batch_type(BatchType::Counter)
        .add_query(add, query_values!(5_i64, 1))
        .add_query(add, query_values!(-2_i64, 1));
    client
        .batch(batch.build().expect("a batch"))
        .await
        .expect("counters");
    let found = select(client, "SELECT n FROM counted WHERE k = 1").await;
    equal(
        found[0].r_by_name::<i64>("n").expect("a counter"),
        3,
        "a counter",
    );
    let mixed = BatchQueryBuilder::new().add_query(add, query_values!(5_i64, 1));
    let mixed = client.batch(mixed.build().expect("a batch")).await;
    equal(
        refused(mixed).0,
        ErrorType::Invalid,
        "counters in a logged batch",
    );
}

fn applied(row: &Row) -> bool {
    row.r_by_name("[applied]").expect("whether it is applied")
}

pub async fn conditions(client: &Client) {
    run(
        client,
        "CREATE TABLE lwt (k int, c int, s text static, v text, PRIMARY KEY (k, c))",
    )
    .await;
    let one = async |statement: &str, values: QueryValues| {
        rows(with(client, statement, values).await).remove(0)
    };
    let insert = "INSERT INTO lwt (k, c, v) VALUES (?, ?, ?) IF NOT EXISTS";
    assert!(
        applied(&one(insert, query_values!(1, 1, "first")).await),
        "the first is applied"
    );
    let second = one(insert, query_values!(1, 1, "second")).await;
    equal(
        (applied(&second), text(&second, "v")),
        (false, "first"),
        "the second finds the first",
    );
    let update = "UPDATE lwt SET v = ? WHERE k = ? AND c = ? IF v = ?";
    let found = one(update, query_values!("x", 1, 1, "other")).await;
    equal(
        (applied(&found), text(&found, "v")),
        (false, "first"),
        "the value that is there",
    );
    let one_of = "UPDATE lwt SET v = ? WHERE k = ? AND c = ? IF v IN ?";
    assert!(
        applied(&one(one_of, query_values!("new", 1, 1, vec!["a", "first"])).await),
        "IN"
    );
    let exists = "UPDATE lwt SET v = 'x' WHERE k = 9 AND c = 1 IF EXISTS";
    assert!(!applied(&one(exists, query_values!()).await), "IF EXISTS");
    let missing = "UPDATE lwt SET s = 'x' WHERE k = 1 IF s = null";
    assert!(
        applied(&one(missing, query_values!()).await),
        "a static column"
    );
    let batch = BatchQueryBuilder::new()
        .add_query(insert, query_values!(1, 1, "third"))
        .add_query(
            "INSERT INTO lwt (k, c, v) VALUES (1, 2, 'with')",
            query_values!(),
        )
        .with_serial_consistency(Consistency::LocalSerial);
    let batch = client.batch(batch.build().expect("a batch")).await;
    let found = rows(batch.expect("an answer")).remove(0);
    equal(
        (applied(&found), int(&found, "c")),
        (false, 1),
        "a batch finds a row",
    );
    let serial = StatementParamsBuilder::new().with_consistency(Consistency::Serial);
    let read = client
        .query_with_params("SELECT v FROM lwt WHERE k = 1", serial.build())
        .await;
    equal(
        text(&rows(read.expect("a serial read"))[0], "v"),
        "new",
        "a value",
    );
}

pub async fn counters(client: &Client) {
    run(
        client,
        "CREATE TABLE visits (k int PRIMARY KEY, n counter, m counter)",
    )
    .await;
    let add = "UPDATE visits SET n += ?, m -= ? WHERE k = ?";
    with(client, add, query_values!(i64::MAX, 1_i64, 1)).await;
    with(client, add, query_values!(-1_i64, 1_i64, 1)).await;
    let found = select(client, "SELECT n, m FROM visits WHERE k = 1").await;
    let of = |column: &str| found[0].r_by_name::<i64>(column).expect("a counter");
    equal((of("n"), of("m")), (i64::MAX - 1, -2), "counters");
    let (error, text) = refusal(client, "INSERT INTO visits (k, n) VALUES (1, 2)").await;
    assert!(
        error == ErrorType::Invalid && text.contains("counter"),
        "{error:?}: {text}"
    );
}

pub async fn paging(client: &Client) {
    const ROWS: i32 = 100;
    run(
        client,
        "CREATE TABLE paged (k int, c int, PRIMARY KEY (k, c))",
    )
    .await;
    for n in 0..ROWS {
        with(
            client,
            "INSERT INTO paged (k, c) VALUES (?, ?)",
            query_values!(n % 3, n),
        )
        .await;
    }
    let expected: BTreeSet<i32> = (0..ROWS).collect();
    for size in [1, 7, 50, 100, 5000] {
        let mut pager = client.paged(size);
        let mut pages = pager.query("SELECT c FROM paged");
        let mut found = Vec::new();
        for _ in 0..=ROWS {
            found.extend(
                pages
                    .next()
                    .await
                    .expect("a page")
                    .iter()
                    .map(|row| int(row, "c")),
            );
            if !pages.has_more() {
                break;
            }
        }
        equal(found.len(), ROWS, "rows");
        equal(BTreeSet::from_iter(found), &expected, "rows by pages");
    }
    let select = client
        .prepare("SELECT c FROM paged WHERE k IN (0, 1, 2)")
        .await;
    let select = select.expect("it is prepared");
    let (mut found, mut state) = (Vec::new(), PagerState::new());
    for pages in 1.. {
        let mut pager = client.paged(9);
        let mut page = pager.exec_with_pager_state(&select, state);
        found.extend(
            page.next()
                .await
                .expect("a page")
                .iter()
                .map(|row| int(row, "c")),
        );
        assert!(pages < 20, "pages without end");
        if !page.has_more() {
            break;
        }
        state =
            PagerState::new_with_cursor(page.into_pager_state().into_cursor().expect("a state"));
    }
    equal(found.len(), ROWS, "rows of pages that are resumed");
    equal(
        BTreeSet::from_iter(found),
        &expected,
        "rows of pages that are resumed",
    );
}

pub async fn errors(client: &Client, keyspace: &str) {
    run(client, "CREATE TABLE here (k int PRIMARY KEY, v text)").await;
    for (statement, expected, part) in [
        ("SELEKT * FROM here", ErrorType::Syntax, "SELEKT"),
        ("SELECT * FROM nowhere", ErrorType::Invalid, "nowhere"),
        (
            "SELECT nothing FROM here",
            ErrorType::Invalid,
            "Undefined column name nothing",
        ),
        (
            "SELECT * FROM here WHERE v = 'a'",
            ErrorType::Invalid,
            "ALLOW FILTERING",
        ),
        (
            "SELECT * FROM elsewhere.here",
            ErrorType::Invalid,
            "does not exist",
        ),
        (
            "CREATE KEYSPACE bad WITH replication = {'class': 'NoSuchStrategy'}",
            ErrorType::Config,
            "NoSuchStrategy",
        ),
    ] {
        let (error, text) = refusal(client, statement).await;
        assert!(
            error == expected && text.contains(part),
            "{statement}: {error:?}: {text}"
        );
    }
    let exists = |table: &str| {
        ErrorType::AlreadyExists(AlreadyExistsError {
            ks: keyspace.to_owned(),
            table: table.to_owned(),
        })
    };
    let again = refusal(client, "CREATE TABLE here (k int PRIMARY KEY)").await;
    equal(again.0, exists("here"), "a table again");
    let again = format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    );
    equal(
        refusal(client, &again).await.0,
        exists(""),
        "a keyspace again",
    );
    let badly = client
        .query_with_values("SELECT * FROM here WHERE k = ?", query_values!("no number"))
        .await;
    equal(
        refused(badly).0,
        ErrorType::Invalid,
        "a value of another type",
    );
}

pub async fn vectors(client: &Client) {
    run(
        client,
        "CREATE TABLE near (k int PRIMARY KEY, v vector<float, 3>)",
    )
    .await;
    run(
        client,
        "CREATE CUSTOM INDEX near_v ON near (v) USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'euclidean'}",
    )
    .await;
    // The driver reads vectors of floats, and writes none: a program encodes them.
    let at = |x: f32| Value::Some([x, 0.0, 1.0].iter().flat_map(|x| x.to_be_bytes()).collect());
    for k in 0..20 {
        with(
            client,
            "INSERT INTO near (k, v) VALUES (?, ?)",
            query_values!(k, at(k as f32)),
        )
        .await;
    }
    let ann = client
        .prepare("SELECT k FROM near ORDER BY v ANN OF ? LIMIT ?")
        .await;
    let ann = ann.expect("it is prepared");
    let nearest = async || -> Vec<i32> {
        // An index that is being built refuses to answer.
        let found = client
            .exec_with_values(&ann, query_values!(at(7.1), 3))
            .await;
        found.map_or_else(
            |_| Vec::new(),
            |found| rows(found).iter().map(|row| int(row, "k")).collect(),
        )
    };
    eventually("the index serves", async || nearest().await.len() == 3).await;
    equal(nearest().await, [7, 8, 6], "the nearest rows");
}

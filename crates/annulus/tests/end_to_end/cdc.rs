//! The official `scylla-cdc` crate reads the log of a table, in a keyspace with tablets and in one
//! without. It finds every write once, as the right operation, and misses none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, SystemClock};
use scylla::client::session::Session;

use crate::log::{self, Following, LogRow};
use crate::server::Server;

/// Runs a test with a server that has an empty keyspace `k`, first with one kind of stream and then
/// with the other.
async fn in_both_kinds_of_keyspace(test: impl AsyncFn(Arc<Session>)) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(&directory.path().join("data"));
    let session = Arc::new(server.connect().await);
    for tablets in [true, false] {
        eprintln!("tablets: {tablets}");
        let keyspace = format!(
            "CREATE KEYSPACE k WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}} \
             AND tablets = {{'enabled': {tablets}}}"
        );
        execute(&session, &keyspace).await;
        test(Arc::clone(&session)).await;
        execute(&session, "DROP KEYSPACE k").await;
    }
}

async fn execute(session: &Session, statement: &str) {
    if let Err(error) = session.query_unpaged(statement, ()).await {
        panic!("{statement}: {error}");
    }
}

/// Executes each statement and checks that the log has these rows, and no others, in this order.
async fn check(session: &Arc<Session>, table: &str, steps: &[(&str, &[&str])]) {
    let since = log::now();
    execute(session, table).await;
    for (statement, _) in steps {
        execute(session, statement).await;
    }
    let rows = log::read(session, "k", "t", since).await;
    let mut found = rows.iter();
    for (statement, expected) in steps {
        for line in *expected {
            let row = found.next();
            assert_eq!(row.map(|row| row.text.as_str()), Some(*line), "{statement}");
        }
    }
    assert_eq!(
        found.next().map(|row| &row.text),
        None,
        "more than was written"
    );
    check_batches(&rows);
    execute(session, "DROP TABLE k.t").await;
}

/// Checks that the rows of one write are numbered from 0, and that only the last is marked as the
/// end.
fn check_batches(rows: &[LogRow]) {
    let mut batches: BTreeMap<_, Vec<(i32, bool)>> = BTreeMap::new();
    for row in rows {
        batches
            .entry((&row.stream, row.time))
            .or_default()
            .push((row.batch_sequence, row.end_of_batch));
    }
    for (batch, rows) in batches {
        let last = rows.len() as i32 - 1;
        let expected: Vec<_> = (0..=last).map(|number| (number, number == last)).collect();
        assert_eq!(rows, expected, "{batch:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_write_is_logged_as_what_it_was() {
    in_both_kinds_of_keyspace(async |session| {
        check(
            &session,
            "CREATE TABLE k.t (p int, c int, x text, n int, s set<int>, m map<text, int>, l list<int>, \
             f frozen<list<int>>, v vector<float, 2>, st int STATIC, PRIMARY KEY (p, c)) \
             WITH cdc = {'enabled': true}",
            &[
                ("INSERT INTO k.t (p, c, x, n) VALUES (1, 1, 'a', 5)", &["insert c=1 n=5 p=1 x=a"]),
                ("UPDATE k.t SET x = 'b' WHERE p = 1 AND c = 1", &["update c=1 p=1 x=b"]),
                ("UPDATE k.t SET x = null, n = 6 WHERE p = 1 AND c = 1", &["update c=1 n=6 p=1 -x"]),
                ("DELETE n FROM k.t WHERE p = 1 AND c = 1", &["update c=1 -n p=1"]),
                ("INSERT INTO k.t (p, c) VALUES (1, 2)", &["insert c=2 p=1"]),
                ("INSERT INTO k.t (p, c, x) VALUES (1, 3, null)", &["insert c=3 p=1 -x"]),
                // Collections.
                ("UPDATE k.t SET s = s + {2, 1} WHERE p = 1 AND c = 1", &["update c=1 p=1 s={1,2}"]),
                ("UPDATE k.t SET s = s - {1} WHERE p = 1 AND c = 1", &["update c=1 p=1 s-{1}"]),
                ("UPDATE k.t SET s = {7} WHERE p = 1 AND c = 1", &["update c=1 p=1 -s s={7}"]),
                ("UPDATE k.t SET s = {} WHERE p = 1 AND c = 1", &["update c=1 p=1 -s"]),
                ("INSERT INTO k.t (p, c, s) VALUES (1, 4, {3})", &["insert c=4 p=1 -s s={3}"]),
                ("UPDATE k.t SET m['k'] = 1 WHERE p = 1 AND c = 1", &["update c=1 m={k:1} p=1"]),
                ("DELETE m['k'] FROM k.t WHERE p = 1 AND c = 1", &["update c=1 m-{k} p=1"]),
                ("UPDATE k.t SET m = {'z': 2} WHERE p = 1 AND c = 1", &["update c=1 -m m={z:2} p=1"]),
                ("UPDATE k.t SET l = l + [4, 5] WHERE p = 1 AND c = 1", &["update c=1 l={?:4,?:5} p=1"]),
                ("UPDATE k.t SET l[0] = 9 WHERE p = 1 AND c = 1", &["update c=1 l={?:9} p=1"]),
                ("UPDATE k.t SET l = l - [5] WHERE p = 1 AND c = 1", &["update c=1 l-{?} p=1"]),
                ("UPDATE k.t SET f = [2, 1] WHERE p = 1 AND c = 1", &["update c=1 f=[2,1] p=1"]),
                ("UPDATE k.t SET v = [1, 2.5] WHERE p = 1 AND c = 1", &["update c=1 p=1 v=[1,2.5]"]),
                // Static columns.
                ("UPDATE k.t SET st = 9 WHERE p = 1", &["update p=1 st=9"]),
                // TTL.
                ("UPDATE k.t USING TTL 100 SET n = 1 WHERE p = 1 AND c = 1", &["update c=1 n=1 p=1 ttl=100"]),
                ("INSERT INTO k.t (p, c, n) VALUES (1, 5, 1) USING TTL 200", &["insert c=5 n=1 p=1 ttl=200"]),
                // Conditions.
                ("INSERT INTO k.t (p, c, n) VALUES (1, 6, 1) IF NOT EXISTS", &["insert c=6 n=1 p=1"]),
                ("INSERT INTO k.t (p, c, n) VALUES (1, 6, 2) IF NOT EXISTS", &[]),
                // Timestamps in the past and in the future do not change the order.
                ("INSERT INTO k.t (p, c, n) VALUES (1, 7, 1) USING TIMESTAMP 1", &["insert c=7 n=1 p=1"]),
                (
                    "INSERT INTO k.t (p, c, n) VALUES (1, 8, 1) USING TIMESTAMP 4611686018427387904",
                    &["insert c=8 n=1 p=1"],
                ),
                // A batch.
                (
                    "BEGIN BATCH INSERT INTO k.t (p, c, n) VALUES (1, 10, 1); \
                     UPDATE k.t SET n = 2 WHERE p = 1 AND c = 11; DELETE FROM k.t WHERE p = 1 AND c = 12; APPLY BATCH",
                    &["insert c=10 n=1 p=1", "update c=11 n=2 p=1", "delete-row c=12 p=1"],
                ),
                // Deletes.
                ("DELETE FROM k.t WHERE p = 1 AND c = 1", &["delete-row c=1 p=1"]),
                ("DELETE FROM k.t WHERE p = 1 AND c >= 2 AND c < 5", &["delete-from c=2 p=1", "delete-before c=5 p=1"]),
                ("DELETE FROM k.t WHERE p = 1 AND c > 5 AND c <= 6", &["delete-after c=5 p=1", "delete-to c=6 p=1"]),
                ("DELETE FROM k.t WHERE p = 1 AND c > 7", &["delete-after c=7 p=1", "delete-to p=1"]),
                ("DELETE FROM k.t WHERE p = 1", &["delete-partition p=1"]),
                ("DELETE FROM k.t WHERE p = 77", &["delete-partition p=77"]),
            ],
        )
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_by_the_whole_key_is_a_partition_delete_without_clustering_columns() {
    in_both_kinds_of_keyspace(async |session| {
        check(
            &session,
            "CREATE TABLE k.t (a int, b text, n int, PRIMARY KEY ((a, b))) WITH cdc = {'enabled': true}",
            &[
                ("INSERT INTO k.t (a, b, n) VALUES (1, 'x', 5)", &["insert a=1 b=x n=5"]),
                ("UPDATE k.t SET n = 6 WHERE a = 1 AND b = 'x'", &["update a=1 b=x n=6"]),
                ("DELETE FROM k.t WHERE a = 1 AND b = 'x'", &["delete-partition a=1 b=x"]),
            ],
        )
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_show_the_row_before_and_after() {
    in_both_kinds_of_keyspace(async |session| {
        check(
            &session,
            "CREATE TABLE k.t (p int, c int, x text, n int, s set<int>, PRIMARY KEY (p, c)) \
             WITH cdc = {'enabled': true, 'preimage': true, 'postimage': true}",
            &[
                (
                    "INSERT INTO k.t (p, c, x, n) VALUES (1, 1, 'a', 5)",
                    &["insert c=1 n=5 p=1 x=a", "after c=1 n=5 p=1 x=a"],
                ),
                (
                    "UPDATE k.t SET x = 'b' WHERE p = 1 AND c = 1",
                    &[
                        "before c=1 p=1 x=a",
                        "update c=1 p=1 x=b",
                        "after c=1 n=5 p=1 x=b",
                    ],
                ),
                (
                    "UPDATE k.t SET n = null WHERE p = 1 AND c = 1",
                    &[
                        "before c=1 n=5 p=1",
                        "update c=1 -n p=1",
                        "after c=1 p=1 x=b",
                    ],
                ),
                (
                    "UPDATE k.t SET s = s + {1}, n = 7 WHERE p = 1 AND c = 1",
                    &[
                        "before c=1 p=1",
                        "update c=1 n=7 p=1 s={1}",
                        "after c=1 n=7 p=1 s={1} x=b",
                    ],
                ),
                (
                    "UPDATE k.t SET s = s + {2} WHERE p = 1 AND c = 1",
                    &[
                        "before c=1 p=1 s={1}",
                        "update c=1 p=1 s={2}",
                        "after c=1 n=7 p=1 s={1,2} x=b",
                    ],
                ),
                (
                    "DELETE FROM k.t WHERE p = 1 AND c = 1",
                    &["before c=1 n=7 p=1 s={1,2} x=b", "delete-row c=1 p=1"],
                ),
            ],
        )
        .await;
        check(
            &session,
            "CREATE TABLE k.t (p int PRIMARY KEY, x text, n int) \
             WITH cdc = {'enabled': true, 'preimage': 'full', 'delta': 'keys'}",
            &[
                (
                    "INSERT INTO k.t (p, x, n) VALUES (1, 'a', 5)",
                    &["insert p=1"],
                ),
                (
                    "UPDATE k.t SET x = 'b' WHERE p = 1",
                    &["before n=5 p=1 x=a", "update p=1"],
                ),
            ],
        )
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_an_index_alone_names_keys() {
    in_both_kinds_of_keyspace(async |session| {
        let since = log::now();
        for statement in [
            "CREATE TABLE k.t (p int, c int, x text, v vector<float, 2>, PRIMARY KEY (p, c))",
            "INSERT INTO k.t (p, c, x) VALUES (0, 0, 'before there is a log')",
            "CREATE CUSTOM INDEX i ON k.t (v) USING 'vector_index'",
            "INSERT INTO k.t (p, c, x, v) VALUES (1, 2, 'x', [1, 2])",
            "UPDATE k.t SET v = null WHERE p = 1 AND c = 2",
            "DELETE FROM k.t WHERE p = 1 AND c = 2",
            "DELETE FROM k.t WHERE p = 1",
        ] {
            execute(&session, statement).await;
        }
        let rows = log::read(&session, "k", "t", since).await;
        let found: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        let expected = [
            "insert c=2 p=1",
            "update c=2 p=1",
            "delete-row c=2 p=1",
            "delete-partition p=1",
        ];
        assert_eq!(found, expected);
    })
    .await;
}

const WRITERS: i32 = 8;
const WRITES: i32 = 500;
const PARTITIONS: i32 = 16;
const HOUR_MICROS: i64 = 3_600_000_000;
const AHEAD_MICROS: i64 = 300_000;

/// Makes every kind of write, each to a row of its own. Returns the rows that the log must have.
async fn write(session: Arc<Session>, writer: i32) -> Vec<String> {
    let prepare = async |text: &str| session.prepare(text).await.expect(text);
    let insert = prepare("INSERT INTO k.t (p, c, n) VALUES (?, ?, ?) USING TIMESTAMP ?").await;
    let update = prepare("UPDATE k.t USING TIMESTAMP ? SET n = ? WHERE p = ? AND c = ?").await;
    let delete = prepare("DELETE FROM k.t USING TIMESTAMP ? WHERE p = ? AND c = ?").await;
    let unstamped = prepare("INSERT INTO k.t (p, c, n) VALUES (?, ?, ?)").await;
    let mut expected = Vec::new();
    for n in 0..WRITES {
        let (p, c) = (n % PARTITIONS, writer * WRITES + n);
        let now = SystemClock.now_micros();
        let timestamp = match n % 5 {
            0 => now - HOUR_MICROS,
            1 => now + HOUR_MICROS,
            2 => 1_000_000,
            3 => now + AHEAD_MICROS,
            _ => now - 300_000,
        };
        let (result, text) = match n % 4 {
            0 => (
                session.execute_unpaged(&insert, (p, c, n, timestamp)).await,
                format!("insert c={c} n={n} p={p}"),
            ),
            1 => (
                session.execute_unpaged(&update, (timestamp, n, p, c)).await,
                format!("update c={c} n={n} p={p}"),
            ),
            2 => (
                session.execute_unpaged(&delete, (timestamp, p, c)).await,
                format!("delete-row c={c} p={p}"),
            ),
            _ => (
                session.execute_unpaged(&unstamped, (p, c, n)).await,
                format!("insert c={c} n={n} p={p}"),
            ),
        };
        result.expect("a write");
        expected.push(text);
    }
    expected
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_or_seen_twice_beside_concurrent_writers_of_any_timestamp() {
    in_both_kinds_of_keyspace(async |session| {
        let since = log::now();
        execute(
            &session,
            "CREATE TABLE k.t (p int, c int, n int, PRIMARY KEY (p, c)) WITH cdc = {'enabled': true}",
        )
        .await;
        let following = Following::start(&session, "k", "t", since).await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write(Arc::clone(&session), writer)))
            .collect();
        let mut expected = Vec::new();
        for writer in writers {
            expected.extend(writer.await.expect("the writer ends"));
        }
        assert!(following.count() > 100, "the reader only came after the writers");
        // Log rows of deletions may be dated ahead, and are read when their time has come.
        let rows = following.finish_after(Duration::from_micros(AHEAD_MICROS.unsigned_abs())).await;
        let mut found: Vec<String> = rows.iter().map(|row| row.text.clone()).collect();
        found.sort();
        expected.sort();
        let missed: Vec<_> = expected.iter().filter(|line| found.binary_search(line).is_err()).collect();
        assert!(missed.is_empty(), "{} missed: {missed:?}", missed.len());
        assert_eq!(found, expected);
        check_batches(&rows);
    })
    .await;
}

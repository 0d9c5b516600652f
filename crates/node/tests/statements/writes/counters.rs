//! Counters: updates, deletions and batches of them, and what they refuse.

use cql::ast::TextBatchKind;
use node::modify;
use node::planner::StatementPlan;
use node::statement::{BoundValue, ExecutionParameters};

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, c int, n counter, m counter, s counter static, PRIMARY KEY (k, c))",
        "CREATE TABLE u (k int PRIMARY KEY, n counter)",
        "CREATE TABLE plain (k int PRIMARY KEY, v int)",
    ])
}

#[test]
fn a_counter_is_null_until_it_is_added_to() {
    let f = fixture().with(&[
        "UPDATE t SET n = n + 5 WHERE k = 1 AND c = 1",
        "UPDATE t SET n -= 7, s += 1 WHERE k = 1 AND c = 1",
        "UPDATE t SET m = m + 1, m = m - 1 WHERE k = 1 AND c = 2",
        "UPDATE t SET s = s - 3 WHERE k = 2",
    ]);
    assert_eq!(
        f.rows("SELECT k, c, s, n, m FROM t"),
        [
            "1 | 1 | 1 | -2 | null",
            "1 | 2 | 1 | null | 0",
            "2 | null | -3 | null | null"
        ]
    );
}

#[test]
fn values_are_bound() {
    let f = fixture();
    let add = |value: BoundValue| {
        let parameters = ExecutionParameters {
            values: vec![value],
            ..ExecutionParameters::default()
        };
        f.execute("UPDATE u SET n = n - ? WHERE k = 1", parameters)
    };
    let bigint =
        |number: i64| BoundValue::Value(bytes::Bytes::copy_from_slice(&number.to_be_bytes()));
    add(bigint(5)).unwrap();
    add(BoundValue::Unset).unwrap();
    assert_eq!(f.rows("SELECT n FROM u"), ["-5"]);
    let refused = |value| add(value).unwrap_err().message;
    assert_eq!(
        refused(BoundValue::Null),
        "Invalid null value for counter decrement"
    );
    assert!(refused(bigint(i64::MIN)).contains("overflows supported counter precision"));
}

#[test]
fn an_update_after_a_deletion_starts_from_zero() {
    for deletion in [
        "DELETE n FROM t WHERE k = 1 AND c = 1",
        "DELETE FROM t WHERE k = 1 AND c = 1",
        "DELETE FROM t WHERE k = 1 AND c > 0",
        "DELETE FROM t WHERE k = 1",
        "TRUNCATE t",
    ] {
        let f = fixture().with(&["UPDATE t SET n = n + 5 WHERE k = 1 AND c = 1", deletion]);
        assert!(f.rows("SELECT * FROM t").is_empty(), "{deletion}");
        f.run("UPDATE t SET n = n + 2 WHERE k = 1 AND c = 1");
        assert_eq!(f.rows("SELECT n FROM t"), ["2"], "{deletion}");
    }
}

#[test]
fn a_batch_counts_each_of_its_updates() {
    let f = fixture().with(&[
        "BEGIN COUNTER BATCH UPDATE u SET n = n + 1 WHERE k = 1; UPDATE u SET n = n + 2 WHERE k = \
         1; UPDATE t SET s = s + 1 WHERE k = 1; APPLY BATCH",
        "BEGIN UNLOGGED BATCH UPDATE u SET n = n + 10 WHERE k IN (1, 2); APPLY BATCH",
    ]);
    assert_eq!(f.rows("SELECT k, n FROM u"), ["1 | 13", "2 | 10"]);
    assert_eq!(f.rows("SELECT k, s FROM t"), ["1 | 1"]);
}

#[test]
fn a_batch_of_the_protocol_is_of_counters_or_not() {
    let f = fixture();
    let count = f.plan("UPDATE u SET n = n + 4 WHERE k = 1").unwrap();
    let plain = f.plan("INSERT INTO plain (k, v) VALUES (1, 1)").unwrap();
    let (StatementPlan::Modify(count), StatementPlan::Modify(plain)) = (&count, &plain) else {
        panic!("they write");
    };
    let execute = |kind, plans: &[&_]| {
        let entries = plans.iter().map(|plan| (*plan, Vec::new()));
        // A client's timestamp does not count.
        let dated = ExecutionParameters {
            timestamp_micros: Some(1),
            ..ExecutionParameters::default()
        };
        let batch = modify::execute_batch(&f.database, kind, entries.collect(), &dated);
        crate::block_on(batch).map_err(|error| error.message)
    };
    execute(TextBatchKind::Counter, &[count, count]).unwrap();
    execute(TextBatchKind::Unlogged, &[count]).unwrap();
    assert_eq!(f.rows("SELECT n FROM u"), ["12"]);
    for (kind, plans, message) in [
        (
            TextBatchKind::Counter,
            [count, plain],
            "Cannot include non-counter statement in a counter batch",
        ),
        (
            TextBatchKind::Logged,
            [plain, count],
            "Cannot include a counter statement in a logged batch",
        ),
        (
            TextBatchKind::Unlogged,
            [plain, count],
            "Counter and non-counter mutations cannot exist in the same batch",
        ),
    ] {
        assert_eq!(execute(kind, &plans).unwrap_err(), message);
    }
    assert!(f.rows("SELECT * FROM plain").is_empty());
}

#[test]
fn counters_are_only_added_to() {
    let f = fixture();
    let set = "Cannot set the value of counter column n (counters can only be \
               incremented/decremented, not set)";
    let insert = "INSERT statements are not allowed on counter tables, use UPDATE instead";
    let timestamp = "Cannot provide custom timestamp for counter updates";
    let conditional = "Conditions on counters are not supported";
    for (statement, message) in [
        ("UPDATE u SET n = 5 WHERE k = 1", set),
        ("INSERT INTO u (k, n) VALUES (1, 5)", insert),
        ("INSERT INTO u JSON '{\"k\": 1}'", insert),
        (
            "UPDATE u USING TIMESTAMP 5 SET n = n + 1 WHERE k = 1",
            timestamp,
        ),
        ("DELETE FROM u USING TIMESTAMP 5 WHERE k = 1", timestamp),
        (
            "UPDATE u USING TTL 5 SET n = n + 1 WHERE k = 1",
            "Cannot provide custom TTL for counter updates",
        ),
        ("UPDATE u SET n = n + 1 WHERE k = 1 IF n = 1", conditional),
        ("DELETE FROM u WHERE k = 1 IF EXISTS", conditional),
        (
            "BEGIN COUNTER BATCH USING TIMESTAMP 5 UPDATE u SET n = n + 1 WHERE k = 1; APPLY BATCH",
            "Cannot provide custom timestamp for a BATCH containing counters",
        ),
    ] {
        assert_eq!(f.refused(statement, &[]), message, "{statement}");
    }
    assert!(f.rows("SELECT * FROM u").is_empty());
}

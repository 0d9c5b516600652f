//! Write timestamps and times to live: the write that wins, and the time for which it lives.

use node::statement::ExecutionParameters;

use crate::fixture::{Fixture, int};

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int PRIMARY KEY, v int)",
        "CREATE TABLE short (k int PRIMARY KEY, v int) WITH default_time_to_live = 100",
    ])
}

#[test]
fn the_statement_goes_before_the_client_and_the_client_before_the_clock() {
    let f = fixture();
    let client = |timestamp: i64| ExecutionParameters {
        timestamp_micros: Some(timestamp),
        ..ExecutionParameters::default()
    };
    f.execute("INSERT INTO t (k, v) VALUES (1, 1)", client(1000))
        .unwrap();
    assert_eq!(f.rows("SELECT v, writetime(v) FROM t"), ["1 | 1000"]);
    f.execute(
        "INSERT INTO t (k, v) VALUES (1, 2) USING TIMESTAMP 999",
        client(5000),
    )
    .unwrap();
    assert_eq!(f.rows("SELECT v, writetime(v) FROM t"), ["1 | 1000"]);
    f.execute(
        "UPDATE t USING TIMESTAMP 1001 SET v = 3 WHERE k = 1",
        client(5),
    )
    .unwrap();
    assert_eq!(f.rows("SELECT v, writetime(v) FROM t"), ["3 | 1001"]);
    f.run("INSERT INTO t (k, v) VALUES (1, 4)");
    assert_eq!(f.rows("SELECT v FROM t"), ["4"]);
    f.run("DELETE FROM t USING TIMESTAMP 2000 WHERE k = 1");
    assert_eq!(f.rows("SELECT v FROM t"), ["4"]);
}

#[test]
fn one_after_another_each_write_wins() {
    let f = fixture();
    for value in 0..200 {
        f.run(&format!("INSERT INTO t (k, v) VALUES (1, {value})"));
    }
    assert_eq!(f.rows("SELECT v FROM t"), ["199"]);
}

#[test]
fn ttl_is_the_statements_else_the_tables() {
    let f = fixture().with(&[
        "INSERT INTO t (k, v) VALUES (1, 1) USING TTL 50",
        "INSERT INTO t (k, v) VALUES (2, 1)",
        "INSERT INTO short (k, v) VALUES (1, 1)",
        "INSERT INTO short (k, v) VALUES (2, 1) USING TTL 0",
        "UPDATE short USING TTL 1000 SET v = 1 WHERE k = 3",
    ]);
    let ttl = |table: &str, k: i32| {
        let cell = &f.rows(&format!("SELECT ttl(v) FROM {table} WHERE k = {k}"))[0];
        cell.parse::<i32>().ok()
    };
    let about = |ttl: Option<i32>, expected: i32| {
        assert!(
            ttl.is_some_and(|ttl| (expected - 10..=expected).contains(&ttl)),
            "{ttl:?} is not about {expected}"
        );
    };
    about(ttl("t", 1), 50);
    assert_eq!(ttl("t", 2), None);
    about(ttl("short", 1), 100);
    assert_eq!(ttl("short", 2), None);
    about(ttl("short", 3), 1000);
}

#[test]
fn ttl_and_timestamp_may_be_bound() {
    let f = fixture();
    assert_eq!(
        f.variables("INSERT INTO t (k, v) VALUES (1, 1) USING TTL ? AND TIMESTAMP :when"),
        ["[ttl] int", "when bigint"]
    );
    let execute = |value| {
        let parameters = ExecutionParameters {
            values: vec![value],
            ..ExecutionParameters::default()
        };
        f.execute("UPDATE t USING TTL ? SET v = 1 WHERE k = 1", parameters)
            .map_err(|error| error.message)
    };
    for (ttl, message) in [
        (-1, "A TTL must be greater or equal to 0, but was -1"),
        (
            630_720_001,
            "ttl is too large. requested (630720001) maximum (630720000)",
        ),
    ] {
        assert_eq!(execute(int(ttl)).unwrap_err(), message);
    }
    for none in [
        node::statement::BoundValue::Unset,
        node::statement::BoundValue::Null,
    ] {
        execute(int(1000)).unwrap();
        execute(none).unwrap();
        assert_eq!(f.rows("SELECT ttl(v) FROM t"), ["null"]);
    }
    execute(int(630_720_000)).unwrap();
    assert_ne!(f.rows("SELECT ttl(v) FROM t"), ["null"]);
}

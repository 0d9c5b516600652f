//! Reads of a CDC log, as the CDC library sends them.

use node::statement::BoundValue;
use storage::clock::{Clock, ManualClock, SystemClock};
use value::Value;

use crate::fixture::Fixture;

fn timestamp(millis: i64) -> BoundValue {
    BoundValue::Value(Value::Timestamp(millis).serialize())
}

#[test]
fn a_window_of_the_log_holds_every_write_before_its_end() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int PRIMARY KEY, v int) WITH cdc = {'enabled': true}",
        "INSERT INTO t (p, v) VALUES (1, 2)",
        "UPDATE t SET v = 3 WHERE p = 1",
    ]);
    let now = SystemClock.now_micros() / 1_000;
    let streams: Vec<Value> = fixture
        .rows("SELECT DISTINCT \"cdc$stream_id\" FROM t_scylla_cdc_log")
        .iter()
        .map(|literal| {
            let bytes: Vec<u8> = (2..literal.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&literal[at..at + 2], 16).unwrap())
                .collect();
            Value::Blob(bytes.into())
        })
        .collect();
    assert!(!streams.is_empty());
    let streams = BoundValue::Value(Value::List(streams).serialize());
    let query = "SELECT \"cdc$operation\", p, v FROM t_scylla_cdc_log WHERE \"cdc$stream_id\" IN ? \
                 AND \"cdc$time\" >= minTimeuuid(?) AND \"cdc$time\" < minTimeuuid(?) BYPASS CACHE";
    assert_eq!(
        fixture.variables(query),
        [
            "in(cdc$stream_id) list<blob>",
            "arg0(system.mintimeuuid) timestamp",
            "arg0(system.mintimeuuid) timestamp",
        ]
    );
    let window = |from: i64, to: i64| {
        fixture.bound(query, &[streams.clone(), timestamp(from), timestamp(to)])
    };
    assert_eq!(
        window(now - 60_000, now + 60_000),
        ["2 | 1 | 2", "1 | 1 | 3"]
    );
    assert_eq!(window(now - 60_000, now - 50_000), Vec::<String>::new());
    assert_eq!(window(now + 60_000, now - 60_000), Vec::<String>::new());
}

/// The log row of a write gets a time behind the reads before it, even if the write has an earlier
/// timestamp.
#[test]
fn no_row_comes_to_lie_in_a_window_that_was_read() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int PRIMARY KEY, v int) WITH cdc = {'enabled': true}",
        "INSERT INTO t (p, v) VALUES (1, 1)",
    ]);
    let all = "SELECT toUnixTimestamp(\"cdc$time\"), v FROM t_scylla_cdc_log";
    let first = fixture.rows(all);
    assert_eq!(first.len(), 1);
    let read_at = SystemClock.now_micros() / 1_000;
    fixture.rows(all);
    fixture.run("INSERT INTO t (p, v) VALUES (1, 2) USING TIMESTAMP 1000000");
    let late = fixture
        .rows(all)
        .into_iter()
        .find(|row| row.ends_with("| 2"))
        .unwrap();
    let time: i64 = late.split(' ').next().unwrap().parse().unwrap();
    assert!(time >= read_at, "{time} lies before {read_at}");
}

/// A deletion that a client with a clock ahead has dated carries that time in the log, and is read
/// when its time has come. Other rows carry the time of their commit.
#[test]
fn a_deletion_dated_a_little_ahead_is_read_when_its_time_has_come() {
    const SECOND: i64 = 1_000_000;
    let start = SystemClock.now_micros() / SECOND * SECOND;
    let clock = ManualClock::new(start);
    let fixture = Fixture::at(clock.clone()).with(&[
        "CREATE TABLE t (p int, c int, v int, PRIMARY KEY (p, c)) WITH cdc = {'enabled': true}",
    ]);
    let ahead = start + 3 * SECOND;
    for statement in [
        format!("INSERT INTO t (p, c, v) VALUES (1, 1, 1) USING TIMESTAMP {ahead}"),
        format!(
            "DELETE FROM t USING TIMESTAMP {} WHERE p = 1 AND c = 1",
            ahead + 1
        ),
        format!(
            "DELETE FROM t USING TIMESTAMP {} WHERE p = 2",
            start + 6 * SECOND
        ),
        format!(
            "DELETE v FROM t USING TIMESTAMP {} WHERE p = 3 AND c = 1",
            ahead + 2
        ),
    ] {
        fixture.run(&statement);
    }
    let log = |bound: &str| {
        let time = "toUnixTimestamp(\"cdc$time\")";
        let select = format!("SELECT p, \"cdc$operation\", {time} FROM t_scylla_cdc_log {bound}");
        let mut rows = fixture.rows(&select);
        rows.sort();
        rows
    };
    let start_ms = start / 1_000;
    let now = [
        format!("1 | 2 | {start_ms}"),
        format!("2 | 4 | {start_ms}"),
        format!("3 | 1 | {start_ms}"),
    ];
    let ends_later = format!(
        "WHERE \"cdc$time\" < maxTimeuuid({}) ALLOW FILTERING",
        start_ms + 60_000
    );
    for bound in ["", &ends_later] {
        assert_eq!(log(bound), now, "{bound}");
    }
    let behind = format!(
        "WHERE \"cdc$time\" > maxTimeuuid({}) ALLOW FILTERING",
        start_ms + 1_000
    );
    assert!(log(&behind).is_empty());
    // Rows that come later do not lie behind it.
    clock.advance_micros(SECOND);
    fixture.run("INSERT INTO t (p, c, v) VALUES (4, 1, 1)");
    let fourth = format!("4 | 2 | {}", start_ms + 1_000);
    assert!(log("").contains(&fourth));
    clock.advance_micros(3 * SECOND);
    let deleted = format!("1 | 3 | {}", start_ms + 3_000);
    assert_eq!(log("").len(), 5);
    assert!(log("").contains(&deleted) && log(&behind).contains(&deleted));
}

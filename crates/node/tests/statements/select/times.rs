//! Write times and times to live.

use storage::clock::{Clock, ManualClock, SystemClock};

use crate::fixture::Fixture;

#[test]
fn write_times_are_those_of_the_writes() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, c int, s int static, v int, w frozen<list<int>>, PRIMARY KEY (p, c))",
        "INSERT INTO t (p, c, v) VALUES (1, 1, 5) USING TIMESTAMP 1000",
        "UPDATE t USING TIMESTAMP 2000 SET w = [1], s = 3 WHERE p = 1 AND c = 1",
        "UPDATE t USING TIMESTAMP 500 SET v = 9 WHERE p = 1 AND c = 1",
    ]);
    assert_eq!(
        fixture.rows("SELECT v, writetime(v), writetime(w), writetime(s), ttl(v) FROM t"),
        ["5 | 1000 | 2000 | 2000 | null"]
    );
}

#[test]
fn times_to_live_count_down() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int PRIMARY KEY, v int, w int)",
        "INSERT INTO t (p, v) VALUES (1, 5) USING TTL 1000",
        "UPDATE t SET w = 6 WHERE p = 1",
    ]);
    let rows = fixture.rows("SELECT ttl(v), ttl(w) FROM t WHERE p = 1");
    let (ttl, none) = rows[0].split_once(" | ").unwrap();
    assert!((990..=1000).contains(&ttl.parse::<i32>().unwrap()), "{ttl}");
    assert_eq!(none, "null");
}

#[test]
fn expired_rows_are_gone() {
    let clock = ManualClock::new(SystemClock.now_micros());
    let fixture = Fixture::at(clock.clone()).with(&[
        "CREATE TABLE t (p int PRIMARY KEY, v int)",
        "INSERT INTO t (p, v) VALUES (1, 5) USING TTL 10",
        "INSERT INTO t (p, v) VALUES (2, 6)",
    ]);
    clock.advance_seconds(9);
    assert_eq!(fixture.rows("SELECT p, v FROM t"), ["1 | 5", "2 | 6"]);
    clock.advance_seconds(2);
    assert_eq!(fixture.rows("SELECT p, v FROM t"), ["2 | 6"]);
}

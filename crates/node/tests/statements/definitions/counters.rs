//! Tables of counters: what they may have beside them, and how the schema shows them.

use cql::error::ErrorKind;

use super::describe::described;
use super::{all_invalid, error};
use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, c int, n counter, s counter static, PRIMARY KEY (k, c))",
        "CREATE TABLE plain (k int PRIMARY KEY, v int)",
    ])
}

#[test]
fn counters_stand_alone() {
    let mixed = "Cannot mix counter and non counter columns in the same table";
    let nested = "Counters are not allowed inside collections";
    let indexed = "Secondary indexes on counter tables aren't supported";
    all_invalid(
        &fixture(),
        &[
            (
                "CREATE TABLE x (k int PRIMARY KEY, n counter, v int)",
                mixed,
            ),
            (
                "CREATE TABLE x (k int PRIMARY KEY, v int, n counter)",
                mixed,
            ),
            (
                "CREATE TABLE x (k int, c int, n counter, v int static, PRIMARY KEY (k, c))",
                mixed,
            ),
            (
                "CREATE TABLE x (k counter PRIMARY KEY)",
                "counter type is not supported for PRIMARY KEY column 'k'",
            ),
            (
                "CREATE TABLE x (k int PRIMARY KEY, n list<counter>)",
                nested,
            ),
            (
                "CREATE TABLE x (k int PRIMARY KEY, n counter) WITH default_time_to_live = 10",
                "Cannot set default_time_to_live on a table with counters",
            ),
            (
                "CREATE TABLE x (k int PRIMARY KEY, n counter) WITH cdc = {'enabled': true}",
                "A table of counters has no CDC log: leave the option cdc out",
            ),
            (
                "ALTER TABLE t WITH default_time_to_live = 10",
                "Cannot set default_time_to_live on a table with counters",
            ),
            ("CREATE INDEX ON t (n)", indexed),
            ("CREATE CUSTOM INDEX ON t (c) USING 'sai'", indexed),
        ],
    );
}

#[test]
fn a_table_stays_what_it_is() {
    let f = fixture();
    for (statement, message) in [
        (
            "ALTER TABLE t ADD v int",
            "ks.t: Cannot have a non counter column (\"v\") in a counter table",
        ),
        (
            "ALTER TABLE plain ADD n counter",
            "ks.plain: Cannot have a counter column (\"n\") in a non counter table",
        ),
    ] {
        let error = error(&f, statement);
        assert_eq!(error.message, message);
        assert_eq!(error.kind, ErrorKind::ConfigError, "{statement}");
    }
    f.run("ALTER TABLE t ADD m counter");
    f.run("UPDATE t SET m = m + 1 WHERE k = 1 AND c = 1");
    assert_eq!(f.rows("SELECT m, n FROM t"), ["1 | null"]);
    // Its counters dropped, it takes no other columns yet, nor a counter that it had.
    for column in ["m", "n", "s"] {
        f.run(&format!("ALTER TABLE t DROP {column}"));
    }
    assert_eq!(
        error(&f, "ALTER TABLE t ADD n counter").message,
        "Cannot re-add previously dropped counter column n"
    );
    assert_eq!(
        error(&f, "ALTER TABLE t ADD v int").kind,
        ErrorKind::ConfigError
    );
    f.run("ALTER TABLE t ADD z counter");
}

#[test]
fn the_schema_shows_them() {
    let f = fixture();
    let columns = "SELECT column_name, kind, type FROM system_schema.columns WHERE keyspace_name = \
                   'ks' AND table_name = 't'";
    assert_eq!(
        f.rows(columns),
        [
            "'c' | 'clustering' | 'int'",
            "'k' | 'partition_key' | 'int'",
            "'n' | 'regular' | 'counter'",
            "'s' | 'static' | 'counter'"
        ]
    );
    let statement = described(&f, "DESCRIBE TABLE t").remove(0).remove(3);
    assert!(statement.contains("n counter"), "{statement}");
    assert!(statement.contains("s counter static"), "{statement}");
}

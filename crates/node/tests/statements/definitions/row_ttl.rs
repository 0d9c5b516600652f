//! The column that tells when its row expires.

use std::sync::Arc;

use storage::clock::ManualClock;
use test_support::blocking::eventually;

use super::all_invalid;
use super::describe::described;
use crate::fixture::Fixture;

/// 2023-11-14.
const START_S: i64 = 1_700_000_000;

fn described_table(f: &Fixture, table: &str) -> String {
    let rows = described(f, &format!("DESCRIBE TABLE {table}"));
    rows[0][3].clone()
}

#[test]
fn a_table_has_it_from_the_start_or_gets_it_later() {
    let f = Fixture::new().with(&[
        "CREATE TABLE t (id int PRIMARY KEY, x text, expiration timestamp TTL)",
        "CREATE TABLE later (p int, c int, s int static, \"At\" bigint, n int, PRIMARY KEY (p, c))",
    ]);
    assert!(described_table(&f, "t").contains("\n    expiration timestamp TTL,\n"));
    let refused = |cql: &str| f.refused(cql, &[]);
    assert_eq!(
        refused("ALTER TABLE t TTL x"),
        "Column x can't become the TTL column of table 'ks.t', as expiration is: ALTER TABLE t TTL \
         NULL first"
    );
    assert_eq!(
        refused("ALTER TABLE t DROP expiration"),
        "Cannot drop column expiration, as it is the TTL column: ALTER TABLE t TTL NULL first"
    );
    f.run("ALTER TABLE t TTL NULL");
    assert_eq!(
        refused("ALTER TABLE t TTL NULL"),
        "Table 'ks.t' has no TTL column"
    );
    assert!(!described_table(&f, "t").contains("TTL"));
    f.run("ALTER TABLE t DROP expiration");
    f.run("ALTER TABLE later TTL \"At\"");
    assert!(described_table(&f, "later").contains("\n    \"At\" bigint TTL,\n"));
}

#[test]
fn a_column_that_can_not_be_the_ttl_is_refused() {
    let f = Fixture::new().with(&[
        "CREATE TABLE t (p int, c timestamp, s timestamp static, x text, n int, l bigint, PRIMARY KEY (p, c))",
    ]);
    all_invalid(
        &f,
        &[
            (
                "ALTER TABLE t TTL p",
                "PRIMARY KEY column p can't be the TTL column: take a regular one",
            ),
            (
                "ALTER TABLE t TTL c",
                "PRIMARY KEY column c can't be the TTL column: take a regular one",
            ),
            (
                "ALTER TABLE t TTL s",
                "Static column s can't be the TTL column: take a regular one",
            ),
            (
                "ALTER TABLE t TTL x",
                "The TTL column x has to be a timestamp, or a bigint or int of seconds since the epoch (got text)",
            ),
            (
                "ALTER TABLE t TTL y",
                "Column y was not found in table 'ks.t'",
            ),
            (
                "ALTER TABLE t ADD z int TTL",
                "Column z can't become the TTL column as it is added: add it without TTL, then ALTER TABLE t TTL z",
            ),
            (
                "CREATE TABLE u (k int PRIMARY KEY, a int TTL, b bigint TTL)",
                "A table has at most one TTL column, got a and b",
            ),
            (
                "CREATE TABLE u (k int PRIMARY KEY, a double TTL)",
                "The TTL column a has to be a timestamp, or a bigint or int of seconds since the epoch (got double)",
            ),
            (
                "CREATE TABLE u (k timestamp TTL PRIMARY KEY, a int)",
                "PRIMARY KEY column k can't be the TTL column: take a regular one",
            ),
        ],
    );
}

#[test]
fn printed_statements_make_the_same_table() {
    let f = Fixture::new().with(&[
        "CREATE TABLE t (id int PRIMARY KEY, x text, \"At\" int)",
        "ALTER TABLE t DROP \"At\" USING TIMESTAMP 5",
        "ALTER TABLE t ADD \"At\" int",
        "ALTER TABLE t TTL \"At\"",
    ]);
    for statement in ["DESCRIBE TABLE t", "DESCRIBE TABLE t WITH INTERNALS"] {
        let text = described(&f, statement)[0][3].clone();
        f.run("DROP TABLE t");
        for one in text.split_inclusive(';') {
            f.run(one);
        }
        assert_eq!(described(&f, statement)[0][3], text);
        assert!(text.contains("TTL"), "{text}");
    }
}

#[test]
fn rows_go_by_it() {
    let clock = ManualClock::new(START_S * 1_000_000);
    let f = Fixture::at(Arc::<ManualClock>::clone(&clock)).with(&[
        "CREATE TABLE t (k int PRIMARY KEY, x int, at bigint TTL)",
        "CREATE INDEX ON t (x)",
    ]);
    for k in 0..10 {
        let at = START_S + 100 * k;
        f.run(&format!("INSERT INTO t (k, x, at) VALUES ({k}, 1, {at})"));
    }
    f.run(&format!(
        "UPDATE t SET at = {} WHERE k = 3",
        START_S + 10_000
    ));
    f.run("DELETE at FROM t WHERE k = 4");
    clock.advance_seconds(500);
    eventually("rows expire", || f.rows("SELECT k FROM t").len() <= 6);
    let mut left = f.rows("SELECT k FROM t WHERE x = 1");
    left.sort();
    assert_eq!(left, ["3", "4", "6", "7", "8", "9"]);
}

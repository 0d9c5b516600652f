//! The rows that a statement leaves in the CDC log of its table.

use crate::fixture::Fixture;

#[test]
fn every_kind_of_write_has_its_code() {
    let f = Fixture::new().with(&[
        "CREATE TABLE t (k int, c int, s int static, v int, PRIMARY KEY (k, c)) WITH cdc = \
         {'enabled': true}",
        "CREATE TABLE one (k int PRIMARY KEY, v int) WITH cdc = {'enabled': true}",
    ]);
    for (k, (statement, codes)) in [
        ("INSERT INTO t (k, c, v) VALUES ({k}, 1, 1)", &[2][..]),
        ("UPDATE t SET v = 1 WHERE k = {k} AND c = 1", &[1]),
        ("UPDATE t SET v = 1 WHERE k = {k} AND c IN (1, 2)", &[1, 1]),
        ("DELETE v FROM t WHERE k = {k} AND c = 1", &[1]),
        ("UPDATE t SET s = 1 WHERE k = {k}", &[1]),
        ("DELETE FROM t WHERE k = {k} AND c = 1", &[3]),
        ("DELETE FROM t WHERE k = {k}", &[4]),
        ("DELETE FROM t WHERE k = {k} AND c >= 1 AND c < 5", &[5, 8]),
        ("DELETE FROM t WHERE k = {k} AND c > 1 AND c <= 5", &[6, 7]),
        ("INSERT INTO one (k) VALUES ({k})", &[2]),
        ("DELETE FROM one WHERE k = {k}", &[4]),
        (
            "BEGIN BATCH INSERT INTO t (k, c) VALUES ({k}, 1); DELETE FROM t WHERE k = {k} AND c \
             = 2; APPLY BATCH",
            &[2, 3],
        ),
        ("INSERT INTO t (k, c) VALUES ({k}, 1) IF NOT EXISTS", &[2]),
    ]
    .into_iter()
    .enumerate()
    {
        f.run(&statement.replace("{k}", &k.to_string()));
        let table = if statement.contains("one") {
            "one"
        } else {
            "t"
        };
        let mut logged = f.rows(&format!(
            "SELECT \"cdc$operation\" FROM {table}_scylla_cdc_log WHERE k = {k} ALLOW FILTERING"
        ));
        logged.sort();
        let codes: Vec<String> = codes.iter().map(i32::to_string).collect();
        assert_eq!(logged, codes, "{statement}");
    }
}

#[test]
fn a_conditional_write_that_is_not_applied_leaves_nothing() {
    let f = Fixture::new().with(&[
        "CREATE TABLE t (k int PRIMARY KEY) WITH cdc = {'enabled': true}",
        "INSERT INTO t (k) VALUES (1) IF NOT EXISTS",
        "INSERT INTO t (k) VALUES (1) IF NOT EXISTS",
    ]);
    assert_eq!(f.rows("SELECT count(*) FROM t_scylla_cdc_log"), ["1"]);
}

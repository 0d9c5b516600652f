//! Writes with conditions.

use node::query::{Outcome, Parameters};

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, c int, s int static, v int, m map<int, text>, PRIMARY KEY (k, c))",
        "CREATE TABLE one (k int PRIMARY KEY, v int)",
    ])
}

/// The names of the answer's columns, and its row.
fn answer(f: &Fixture, cql: &str) -> (String, String) {
    let names = match f.execute(cql, Parameters::default()).unwrap().outcome {
        Outcome::Rows(rows) => {
            let names: Vec<&str> = rows.columns.iter().map(|c| &*c.name).collect();
            names.join(" ")
        }
        other => panic!("{other:?}"),
    };
    // The row comes from a second execution, which is refused because the row exists now.
    (names, f.rows(cql).remove(0))
}

#[test]
fn it_is_applied_once_and_then_shows_what_stands_there() {
    let f = fixture();
    let insert = "INSERT INTO t (k, c, v, m) VALUES (1, 1, 5, {1: 'a', 2: 'b'}) IF NOT EXISTS";
    let (names, second) = answer(&f, insert);
    assert_eq!(names, "[applied]");
    assert_eq!(second, "false | 1 | 1 | null | {1: 'a', 2: 'b'} | 5");
    let other = "INSERT INTO t (k, c, v) VALUES (1, 1, 6) IF NOT EXISTS";
    assert_eq!(answer(&f, other).0, "[applied] k c s m v");
    assert_eq!(f.rows("SELECT v FROM t"), ["5"]);
    assert_eq!(
        f.rows("INSERT INTO t (k, c, v) VALUES (1, 2, 6) IF NOT EXISTS"),
        ["true"]
    );
    assert_eq!(
        f.rows("INSERT INTO one (k) VALUES (1) IF NOT EXISTS"),
        ["true"]
    );
    assert_eq!(
        f.rows("INSERT INTO one (k, v) VALUES (1, 2) IF NOT EXISTS"),
        ["false | 1 | null"]
    );
}

#[test]
fn a_deleted_row_does_not_stand_in_the_way() {
    let f = fixture().with(&[
        "INSERT INTO one (k, v) VALUES (1, 1)",
        "DELETE FROM one WHERE k = 1",
    ]);
    assert_eq!(
        f.rows("INSERT INTO one (k, v) VALUES (1, 2) IF NOT EXISTS"),
        ["true"]
    );
    assert_eq!(f.rows("SELECT * FROM one"), ["1 | 2"]);
}

#[test]
fn it_wins_over_a_deletion_of_the_future() {
    let f = fixture().with(&["DELETE FROM one USING TIMESTAMP 9000000000000000 WHERE k = 1"]);
    assert_eq!(
        f.rows("INSERT INTO one (k, v) VALUES (1, 2) IF NOT EXISTS"),
        ["true"]
    );
    assert_eq!(f.rows("SELECT * FROM one"), ["1 | 2"]);
}

#[test]
fn statics_alone_stand_for_themselves() {
    let f = fixture().with(&["INSERT INTO t (k, c) VALUES (1, 1)"]);
    let insert = "INSERT INTO t (k, s) VALUES (1, 7) IF NOT EXISTS";
    assert_eq!(f.rows(insert), ["true"]);
    assert!(f.rows(insert)[0].starts_with("false | 1 | "));
}

#[test]
fn one_of_many_at_the_same_time_is_applied() {
    let f = fixture();
    let insert = f
        .plan("INSERT INTO one (k, v) VALUES (1, 1) IF NOT EXISTS")
        .unwrap();
    let applied = crate::block_on(async {
        let attempts = (0..50).map(|_| insert.execute(&f.database, Parameters::default()));
        futures::future::join_all(attempts).await
    });
    let winners = applied
        .into_iter()
        .filter(|answer| match &answer.as_ref().unwrap().outcome {
            Outcome::Rows(rows) => rows.body[..] == [0, 0, 0, 1, 1],
            other => panic!("{other:?}"),
        })
        .count();
    assert_eq!(winners, 1);
}

#[test]
fn a_condition_on_values_holds_or_shows_them() {
    let f = fixture().with(&["INSERT INTO t (k, c, v, s) VALUES (1, 1, 5, 7)"]);
    let update = "UPDATE t SET v = 6 WHERE k = 1 AND c = 1 IF v = 5 AND s = 7";
    let (names, second) = answer(&f, update);
    assert_eq!((&names[..], &second[..]), ("[applied]", "false | 6 | 7"));
    assert_eq!(answer(&f, update).0, "[applied] v s");
    assert_eq!(f.rows("SELECT v FROM t"), ["6"]);
}

#[test]
fn a_write_of_nothing_is_checked_too() {
    let f = fixture().with(&["INSERT INTO one (k, v) VALUES (1, 1)"]);
    let update = "UPDATE one SET v = ? WHERE k = 1 IF v = 2";
    let unset = [node::query::BoundValue::Unset];
    assert_eq!(f.bound(update, &unset), ["false | 1"]);
}

#[test]
fn what_is_applied_wins_in_every_row_that_is_written() {
    let future = "USING TIMESTAMP 9000000000000000";
    let f = fixture().with(&[
        &format!("INSERT INTO t (k, c, v, s) VALUES (1, 1, 1, 1) {future}"),
        &format!("INSERT INTO t (k, c, v) VALUES (1, 2, 1) {future}"),
        &format!("DELETE FROM t {future} WHERE k = 1 AND c = 3"),
    ]);
    let batch = "BEGIN BATCH UPDATE t SET v = 2, s = 2 WHERE k = 1 AND c = 1 IF v = 1; \
                 UPDATE t SET v = 2 WHERE k = 1 AND c = 2; \
                 INSERT INTO t (k, c, v) VALUES (1, 3, 2); APPLY BATCH";
    assert_eq!(f.rows(batch), ["true"]);
    let seen = ["1 | 2 | 2", "2 | 2 | 2", "3 | 2 | 2"];
    assert_eq!(f.rows("SELECT c, v, s FROM t WHERE k = 1"), seen);
}

#[test]
fn one_condition_that_fails_stops_a_whole_batch() {
    let f = fixture().with(&["INSERT INTO t (k, c, v) VALUES (1, 1, 1)"]);
    let batch = "BEGIN BATCH UPDATE t SET v = 2 WHERE k = 1 AND c = 1 IF v = 1; \
                 INSERT INTO t (k, c, v) VALUES (1, 2, 2); \
                 UPDATE t SET v = 2 WHERE k = 1 AND c = 3 IF EXISTS; APPLY BATCH";
    assert_eq!(f.rows(batch), ["false | 1 | 1 | null | null | 1"]);
    assert_eq!(f.rows("SELECT c, v FROM t"), ["1 | 1"]);
}

#[test]
fn null_is_equal_to_null_and_differs_from_all_else() {
    let f = fixture().with(&["INSERT INTO t (k, c) VALUES (1, 1)"]);
    let set = |condition: &str| {
        let update = format!("UPDATE t SET v = null WHERE k = 1 AND c = 1 IF {condition}");
        f.rows(&update)[0].starts_with("true")
    };
    for holds in [
        "v = null",
        "v != 1",
        "v IN (1, null)",
        "m = null",
        "m = {}",
        "m[1] = null",
    ] {
        assert!(set(holds), "{holds}");
    }
    for fails in [
        "v = 1",
        "v != null",
        "v > 1",
        "v <= 1",
        "v IN (1)",
        "m != null",
        "m CONTAINS 'a'",
    ] {
        assert!(!set(fails), "{fails}");
    }
}

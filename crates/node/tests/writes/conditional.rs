//! INSERT ... IF NOT EXISTS.

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

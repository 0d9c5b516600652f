//! Writes with conditions.

use node::statement::{BoundValue, ExecutionOutcome, ExecutionParameters};

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, c int, s int static, v int, m map<int, text>, PRIMARY KEY (k, c))",
        "CREATE TABLE one (k int PRIMARY KEY, v int)",
    ])
}

/// The names of the answer's columns, and its row.
fn answer(f: &Fixture, cql: &str) -> (String, String) {
    let names = match f
        .execute(cql, ExecutionParameters::default())
        .unwrap()
        .outcome
    {
        ExecutionOutcome::Rows(rows) => {
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
        let attempts = (0..50).map(|_| insert.execute(&f.database, ExecutionParameters::default()));
        futures::future::join_all(attempts).await
    });
    let winners = applied
        .into_iter()
        .filter(|answer| match &answer.as_ref().unwrap().outcome {
            ExecutionOutcome::Rows(rows) => rows.body[..] == [0, 0, 0, 1, 1],
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
    let unset = [BoundValue::Unset];
    assert_eq!(f.bound(update, &unset), ["false | 1"]);
}

#[test]
fn an_applied_batch_wins_in_every_row_that_it_writes() {
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

/// A list of these elements as the protocol writes it; a null has the length -1.
fn list(elements: &[Option<&[u8]>]) -> BoundValue {
    let mut bytes = (elements.len() as i32).to_be_bytes().to_vec();
    for element in elements {
        let length = element.map_or(-1, |element| element.len() as i32);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(element.unwrap_or_default());
    }
    BoundValue::Value(bytes.into())
}

#[test]
fn a_list_bound_to_a_condition_may_hold_null() {
    let columns = [
        ("ascii", false),
        ("bigint", true),
        ("blob", false),
        ("boolean", true),
        ("date", false),
        ("decimal", true),
        ("double", true),
        ("duration", false),
        ("float", true),
        ("inet", true),
        ("int", true),
        ("smallint", false),
        ("text", false),
        ("time", false),
        ("timestamp", true),
        ("timeuuid", true),
        ("tinyint", false),
        ("uuid", true),
        ("varint", true),
        ("frozen<list<int>>", false),
        ("frozen<tuple<int, int>>", false),
        ("set<int>", false),
        ("vector<float, 2>", false),
    ];
    let definitions: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(i, (cql_type, _))| format!("c{i} {cql_type}"))
        .collect();
    let f = Fixture::new().with(&[
        &format!(
            "CREATE TABLE job (id int PRIMARY KEY, n int, m map<text, int>, {})",
            definitions.join(", ")
        ),
        "INSERT INTO job (id, n, m) VALUES (1, 0, {'b': 1})",
    ]);
    let applied = |column: &str, values: BoundValue| {
        let update = format!("UPDATE job SET n = 1 WHERE id = 1 IF {column} IN ?");
        f.bound(&update, &[values])[0].starts_with("true")
    };
    for (i, (cql_type, empty_is_null)) in columns.iter().enumerate() {
        let column = format!("c{i}");
        assert!(applied(&column, list(&[None])), "{cql_type}");
        assert!(!applied(&column, list(&[])), "{cql_type}");
        if *empty_is_null {
            assert!(applied(&column, list(&[Some(b"")])), "{cql_type}");
        }
    }
    // What is no null stays what it is: the empty text is one.
    assert!(!applied("c12", list(&[Some(b"")])));
    assert!(applied("m['a']", list(&[None])));
    assert!(applied("m['a']", list(&[Some(b"")])));
    assert!(!applied("m['b']", list(&[Some(b""), None])));
    let one = 1_i32.to_be_bytes();
    assert!(applied("m['b']", list(&[None, Some(&one)])));
    assert!(applied("n", list(&[None, Some(&one)])));
    assert!(!applied("n", list(&[None, Some(b"")])));
    assert!(!applied("c10", list(&[Some(&one)])));
    // A set without elements is null, as a column.
    assert!(applied("c21", list(&[Some(&[0; 4])])));
    // A null key is no key in WHERE.
    let select = "SELECT n FROM job WHERE id IN ?";
    let refused = f.refused(select, &[list(&[None])]);
    assert!(refused.contains("null"), "{refused}");
}

#[test]
fn a_conditional_write_that_a_later_deletion_hides_is_refused() {
    let greatest = i64::MAX;
    for delete in [
        "DELETE FROM t USING TIMESTAMP ? WHERE k = 1 AND c = 1",
        "DELETE FROM t USING TIMESTAMP ? WHERE k = 1 AND c > 0",
        "DELETE FROM t USING TIMESTAMP ? WHERE k = 1",
        "DELETE v FROM t USING TIMESTAMP ? WHERE k = 1 AND c = 1",
    ] {
        let timestamp = BoundValue::Value(greatest.to_be_bytes().to_vec().into());
        let f = fixture();
        let parameters = ExecutionParameters {
            values: vec![timestamp],
            ..ExecutionParameters::default()
        };
        f.execute(delete, parameters).unwrap();
        for write in [
            "INSERT INTO t (k, c, v) VALUES (1, 1, 5) IF NOT EXISTS",
            "UPDATE t SET v = 5 WHERE k = 1 AND c = 1 IF v = null",
            "BEGIN BATCH INSERT INTO t (k, c, v) VALUES (1, 1, 5); \
             UPDATE t SET s = 1 WHERE k = 1 IF s = null; APPLY BATCH",
        ] {
            let refused = f.refused(write, &[]);
            assert!(
                refused.contains("timestamp 9223372036854775807"),
                "{refused}"
            );
        }
        assert!(f.rows("SELECT * FROM t").is_empty(), "{delete}");
        // Another row of the partition may be written, unless the deletion covers it.
        let other = "INSERT INTO t (k, c, v) VALUES (1, -1, 5) IF NOT EXISTS";
        if delete.contains("c ") {
            assert_eq!(f.rows(other), ["true"]);
        }
    }
    // One timestamp less leaves room.
    let f = fixture().with(&[&format!(
        "DELETE FROM t USING TIMESTAMP {} WHERE k = 1 AND c = 1",
        greatest - 1
    )]);
    let insert = "INSERT INTO t (k, c, v) VALUES (1, 1, 5) IF NOT EXISTS";
    assert_eq!(f.rows(insert), ["true"]);
    assert_eq!(f.rows("SELECT v FROM t"), ["5"]);
    // A deletion wins over what has its timestamp.
    f.run(&format!(
        "INSERT INTO t (k, c, v) VALUES (1, 2, 5) USING TIMESTAMP {greatest}"
    ));
    let delete = "DELETE FROM t WHERE k = 1 AND c = 2 IF EXISTS";
    assert_eq!(f.rows(delete), ["true"]);
    assert_eq!(f.rows("SELECT c FROM t"), ["1"]);
}

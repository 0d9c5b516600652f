//! INSERT: rows, static columns, and the effects of null and unset.

use node::statement::{BoundValue, ExecutionParameters};

use crate::fixture::{Fixture, int};

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, c int, s int static, v int, w text, PRIMARY KEY (k, c))",
        "CREATE TABLE one (k int PRIMARY KEY, v int)",
    ])
}

#[test]
fn an_insert_overwrites_what_it_names() {
    let f = fixture().with(&[
        "INSERT INTO t (k, c, v, w) VALUES (1, 1, 10, 'a')",
        "INSERT INTO t (k, c, v) VALUES (1, 1, 20)",
        "INSERT INTO t (k, c, s) VALUES (1, 2, 7)",
    ]);
    assert_eq!(
        f.rows("SELECT * FROM t"),
        ["1 | 1 | 7 | 20 | 'a'", "1 | 2 | 7 | null | null"]
    );
}

#[test]
fn a_row_lives_without_values() {
    let f = fixture().with(&[
        "INSERT INTO t (k, c, v) VALUES (1, 1, null)",
        "INSERT INTO one (k) VALUES (5)",
    ]);
    assert_eq!(f.rows("SELECT * FROM t"), ["1 | 1 | null | null | null"]);
    assert_eq!(f.rows("SELECT * FROM one"), ["5 | null"]);
}

#[test]
fn statics_alone_make_no_row() {
    let f = fixture().with(&["INSERT INTO t (k, s) VALUES (1, 7)"]);
    assert_eq!(f.rows("SELECT * FROM t"), ["1 | null | 7 | null | null"]);
    f.run("INSERT INTO t (k, c) VALUES (1, 1)");
    assert_eq!(f.rows("SELECT * FROM t"), ["1 | 1 | 7 | null | null"]);
}

#[test]
fn null_deletes_and_unset_leaves() {
    let f = fixture().with(&["INSERT INTO t (k, c, v, w) VALUES (1, 1, 10, 'a')"]);
    let parameters = ExecutionParameters {
        values: vec![int(1), int(1), BoundValue::Unset, BoundValue::Null],
        ..ExecutionParameters::default()
    };
    f.execute("INSERT INTO t (k, c, v, w) VALUES (?, ?, ?, ?)", parameters)
        .unwrap();
    assert_eq!(f.rows("SELECT v, w FROM t"), ["10 | null"]);
}

#[test]
fn every_type_survives_the_way_in_and_out() {
    let columns = [
        ("ascii", "'a'"),
        ("bigint", "-9223372036854775808"),
        ("blob", "0x00ff"),
        ("boolean", "true"),
        ("date", "'2020-02-29'"),
        ("decimal", "1.50"),
        ("double", "0.1"),
        ("duration", "1mo2d3s"),
        ("float", "-0.5"),
        ("inet", "'::1'"),
        ("int", "7"),
        ("smallint", "-7"),
        ("text", "'it''s'"),
        ("time", "'01:02:03.000000004'"),
        ("timestamp", "'2020-02-29T12:00:00.000Z'"),
        ("timeuuid", "50554d6e-29bb-11e5-b345-feff819cdc9f"),
        ("tinyint", "-128"),
        ("uuid", "123e4567-e89b-42d3-a456-426614174000"),
        ("varint", "123456789012345678901234567890"),
        ("list<int>", "[2, 1, 2]"),
        ("set<text>", "{'a', 'b'}"),
        ("map<text, int>", "{'a': 1}"),
        ("frozen<list<int>>", "[2, 1, 2]"),
        ("frozen<map<int, frozen<set<int>>>>", "{1: {2, 3}}"),
        ("tuple<int, text>", "(1, null)"),
        ("vector<float, 3>", "[0.5, 1.0, -2.0]"),
        ("vector<text, 2>", "['a', '']"),
    ];
    let definitions: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, (cql_type, _))| format!("c{at} {cql_type}"))
        .collect();
    let names: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let values: Vec<&str> = columns.iter().map(|(_, value)| *value).collect();
    let f = Fixture::new().with(&[
        &format!(
            "CREATE TABLE all_types (k int PRIMARY KEY, {})",
            definitions.join(", ")
        ),
        &format!(
            "INSERT INTO all_types (k, {}) VALUES (1, {})",
            names.join(", "),
            values.join(", ")
        ),
    ]);
    assert_eq!(
        f.rows(&format!("SELECT {} FROM all_types", names.join(", "))),
        [values.join(" | ")]
    );
}

#[test]
fn functions_are_evaluated_when_the_statement_runs() {
    let f = Fixture::new().with(&[
        "CREATE TABLE f (k int PRIMARY KEY, a timeuuid, b timeuuid, u uuid)",
        "INSERT INTO f (k, a, b, u) VALUES (1, now(), now(), uuid())",
    ]);
    assert!(f.rows("SELECT * FROM f WHERE k = 1 AND u = 123e4567-e89b-42d3-a456-426614174000 ALLOW FILTERING").is_empty());
    let row = &f.rows("SELECT a, b, u FROM f")[0];
    let cells: Vec<&str> = row.split(" | ").collect();
    assert_ne!(cells[0], cells[1], "each now() is another");
    assert!(cells.iter().all(|cell| *cell != "null"), "{row}");
}

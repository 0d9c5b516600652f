//! Functions in selections and in conditions.

use crate::fixture::{Fixture, int, vector};

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (p int PRIMARY KEY, v vector<float, 2>, w vector<float, 2>, u timeuuid, d date, b blob, x text)",
        "INSERT INTO t (p, v, w, u, d, b, x) VALUES (1, [1, 0], [0, 1], 50554d6e-29bb-11e5-b345-feff819cdc9f, \
         '2015-07-14', 0x00000007, 'hi')",
        "INSERT INTO t (p, v) VALUES (2, [0, 0])",
    ])
}

/// Asserts that each of these queries returns these rows.
fn returns(cases: &[(&str, &[&str])]) {
    let fixture = fixture();
    for (query, expected) in cases {
        assert_eq!(fixture.rows(query), *expected, "{query}");
    }
}

#[test]
fn similarities_are_computed() {
    returns(&[
        (
            "SELECT similarity_cosine(v, w) FROM t WHERE p = 1",
            &["0.5"],
        ),
        (
            "SELECT similarity_cosine(v, [1, 0]) FROM t WHERE p = 1",
            &["1.0"],
        ),
        (
            "SELECT similarity_euclidean([4, 4], w) FROM t WHERE p = 1",
            &["0.03846154"],
        ),
        (
            "SELECT similarity_dot_product(v, [3, 9]) FROM t WHERE p = 1",
            &["2.0"],
        ),
        (
            "SELECT similarity_cosine(v, w) FROM t WHERE p = 2",
            &["null"],
        ),
        (
            "SELECT similarity_cosine(v, [1, 1]) FROM t WHERE p = 2",
            &["NaN"],
        ),
        (
            "SELECT similarity_cosine(v, null) FROM t WHERE p = 1",
            &["null"],
        ),
        (
            "SELECT similarity_euclidean([1, 2], [1, 2]) FROM t WHERE p = 1",
            &["1.0"],
        ),
    ]);
}

#[test]
fn times_casts_and_tokens_are_computed() {
    returns(&[
        (
            "SELECT toDate(u), toUnixTimestamp(u) FROM t WHERE p = 1",
            &["'2015-07-14' | 1436832018805"],
        ),
        (
            "SELECT to_unix_timestamp(d) FROM t WHERE p = 1",
            &["1436832000000"],
        ),
        (
            "SELECT blobAsInt(b), intAsBlob(p), textAsBlob(x) FROM t WHERE p = 1",
            &["7 | 0x00000001 | 0x6869"],
        ),
        (
            "SELECT cast(p as text), cast(p as double), cast(d as text) FROM t WHERE p = 1",
            &["'1' | 1.0 | '2015-07-14'"],
        ),
        (
            "SELECT (bigint)7, 'x', 3, 1.5, true FROM t WHERE p = 1",
            &["7 | 'x' | 3 | 1.5 | true"],
        ),
        (
            "SELECT p FROM t WHERE u > minTimeuuid('2015-07-13 00:00+0000') AND u < maxTimeuuid('2015-07-15 00:00+0000') ALLOW FILTERING",
            &["1"],
        ),
        ("SELECT p FROM t WHERE p = blobAsInt(0x00000002)", &["2"]),
        (
            "SELECT token(p), token(1), token(p) FROM t WHERE p = 1",
            &["-4069959284402364209 | -4069959284402364209 | -4069959284402364209"],
        ),
        (
            "SELECT token(2) FROM t WHERE p = 1",
            &["-3248873570005575792"],
        ),
    ]);
}

#[test]
fn arguments_may_be_bound() {
    let fixture = fixture();
    assert_eq!(
        fixture.bound(
            "SELECT similarity_cosine(v, ?), (int)? FROM t WHERE p = ?",
            &[vector(&[0.0, 2.0]), int(9), int(1)]
        ),
        ["0.5 | 9"]
    );
}

#[test]
fn every_row_gets_its_own_now() {
    let fixture = fixture();
    let rows = fixture.rows("SELECT now(), uuid(), currentTimestamp(), currentDate() FROM t");
    assert_eq!(rows.len(), 2);
    assert_ne!(rows[0], rows[1]);
}

#[test]
fn wrong_calls_are_explained() {
    let fixture = fixture();
    let cases = [
        (
            "SELECT similarity_cosine(v, [1, 2, 3]) FROM t",
            "All arguments must have the same vector dimensions, but found vector<float, 2> and vector<float, 3>",
        ),
        (
            "SELECT similarity_cosine(?, ?) FROM t",
            "Cannot infer type of argument ? in call to function system.similarity_cosine(vector<float, n>, vector<float, n>): use type casts to disambiguate",
        ),
        (
            "SELECT similarity_cosine(v) FROM t",
            "Invalid number of arguments for function system.similarity_cosine(vector<float, n>, vector<float, n>)",
        ),
        (
            "SELECT similarity_cosine(v, p) FROM t",
            "Function system.similarity_cosine requires a float vector argument, but found argument p of type int",
        ),
        (
            "SELECT sum(x) FROM t",
            "Invalid call to function system.sum: its argument must be a number, but is of type text",
        ),
        (
            "SELECT token() FROM t",
            "Invalid number of arguments in call to function system.token: 1 required but 0 provided",
        ),
        (
            "SELECT token(x) FROM t",
            "Type error: x cannot be passed as argument 0 of function system.token of type int",
        ),
    ];
    let given = cases.map(|(query, _)| (query, fixture.refused(query, &[])));
    assert_eq!(given, cases.map(|(query, text)| (query, text.to_owned())));
    fixture.run("UPDATE t SET b = 0x07 WHERE p = 1");
    assert!(
        fixture
            .refused("SELECT blobAsInt(b) FROM t WHERE p = 1", &[])
            .starts_with("In call to function system.blobasint, the blob is no value of type int"),
    );
}

#[test]
fn composed_values_of_a_row_are_bounded() {
    let fixture = fixture();
    let text = "x".repeat(1 << 20);
    fixture.run(&format!("INSERT INTO t (p, x) VALUES (9, '{text}')"));
    let list = |parts: usize| {
        format!(
            "SELECT [{}] FROM t WHERE p = 9",
            vec!["[x]"; parts].join(", ")
        )
    };
    // Each part counts as a list of one, and as a part of the list.
    assert_eq!(fixture.rows(&list(7)).len(), 1);
    let refused = fixture.refused(&list(9), &[]);
    assert!(
        refused.starts_with("The composed values of a row"),
        "{refused}"
    );
    let maxima: Vec<String> = (0..70).map(|n| format!("max([x, '{n}'])")).collect();
    let query = format!("SELECT {} FROM t WHERE p = 9", maxima.join(", "));
    let refused = fixture.refused(&query, &[]);
    assert!(
        refused.starts_with("The composed values of a row"),
        "{refused}"
    );
    assert_eq!(
        fixture.refused("SELECT (vector<float, 2>) [v, v] FROM t", &[]),
        "Cannot assign value v to v of type float"
    );
}

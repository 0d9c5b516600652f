//! The rows that a WHERE clause finds.

use node::statement::{BoundValue, ExecutionParameters};

use crate::fixture::{Fixture, int, ints, text};

/// A table with partitions 1 to 3, `a` from 0 to 2 ascending, and `b` from 0 to 2 descending. `r`
/// is 100 p + 10 a + b.
fn grid() -> Fixture {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE grid (p int, a int, b int, r int, PRIMARY KEY (p, a, b)) WITH CLUSTERING ORDER BY (a ASC, b DESC)",
    ]);
    for p in 1..=3 {
        for a in 0..=2 {
            for b in 0..=2 {
                let r = 100 * p + 10 * a + b;
                fixture.run(&format!(
                    "INSERT INTO grid (p, a, b, r) VALUES ({p}, {a}, {b}, {r})"
                ));
            }
        }
    }
    fixture
}

#[test]
fn in_lists_of_both_parts_of_the_key_multiply() {
    let grid = grid();
    let select = |partitions: i32, rows: i32| {
        let list = |count: i32| ints(&(0..count).collect::<Vec<_>>());
        let parameters = ExecutionParameters {
            values: vec![list(partitions), list(rows)],
            ..ExecutionParameters::default()
        };
        let cql = "SELECT r FROM grid WHERE p IN ? AND a IN ? AND b = 1";
        let page = grid.page(cql, parameters);
        page.map(|page| page.rows.len())
            .map_err(|error| error.message)
    };
    assert_eq!(select(100, 100), Ok(9));
    assert_eq!(
        select(101, 100),
        Err(
            "The IN restrictions name 10100 slices, which is more than the 10000 allowed; ask for fewer in one query"
                .to_owned()
        )
    );
    let all = select(10_000, 10_000);
    assert!(all.is_err_and(|error| error.contains("name 100000000 slices")));
}

#[test]
fn key_restrictions_find_their_rows_in_the_order_of_the_disk() {
    let grid = grid();
    let cases: &[(&str, &str)] = &[
        ("p = 2 AND a = 1 AND b = 1", "211"),
        ("p = 2 AND a = 1 AND b = 7", ""),
        ("p = 9", ""),
        ("p = 2 AND a = 1", "212 211 210"),
        ("p = 1", "102 101 100 112 111 110 122 121 120"),
        ("p = 1 AND a > 0 AND a <= 1", "112 111 110"),
        ("p = 1 AND a > 1", "122 121 120"),
        ("p = 1 AND a < 1", "102 101 100"),
        ("p = 1 AND a >= 1 AND a < 2", "112 111 110"),
        ("p = 1 AND a > 1 AND a < 1", ""),
        ("p = 1 AND a = 1 AND b > 0", "112 111"),
        ("p = 1 AND a = 1 AND b <= 1", "111 110"),
        ("p = 1 AND a IN (2, 0, 2)", "102 101 100 122 121 120"),
        ("p = 1 AND a IN (2, 0) AND b IN (0, 2)", "102 100 122 120"),
        ("p = 1 AND a IN (2, 0) AND b > 1", "102 122"),
        ("p = 1 AND a IN ()", ""),
        ("p IN (3, 1, 3) AND a = 1 AND b = 1", "111 311"),
        ("p IN () AND a = 1", ""),
        ("p = 1 AND (a, b) = (1, 2)", "112"),
        ("p = 1 AND (a, b) > (1, 1)", "112 122 121 120"),
        ("p = 1 AND (a, b) >= (1, 1)", "112 111 122 121 120"),
        ("p = 1 AND (a, b) < (1, 1)", "102 101 100 110"),
        (
            "p = 1 AND (a, b) <= (1, 1) AND (a, b) > (0, 1)",
            "102 111 110",
        ),
        ("p = 1 AND (a, b) > (0, 1) AND (a) < (1)", "102"),
        ("p = 1 AND (a) > (1)", "122 121 120"),
        ("p = 1 AND a = 2 AND (b) >= (1)", "122 121"),
        ("p = 1 AND (a, b) IN ((2, 0), (0, 1), (7, 7))", "101 120"),
        ("p IN (1, 2) AND a = 0 AND b = 0", "100 200"),
    ];
    for (condition, expected) in cases {
        let rows = grid.rows(&format!("SELECT r FROM grid WHERE {condition}"));
        assert_eq!(rows.join(" "), *expected, "{condition}");
    }
}

#[test]
fn filters_find_their_rows() {
    let grid = grid();
    let cases: &[(&str, &str)] = &[
        ("r = 211", "211"),
        ("r IN (100, 322, 5)", "100 322"),
        ("r >= 320", "322 321 320"),
        ("p = 1 AND r > 120", "122 121"),
        ("a = 1 AND b = 1", "111 211 311"),
        ("b = 0 AND a > 1", "120 220 320"),
        ("p = 1 AND b = 2", "102 112 122"),
        ("p > 2 AND a = 0 AND b = 0", "300"),
        ("p >= 1 AND p < 2 AND a = 0", "102 101 100"),
        ("p = 1 AND a > 0 AND b = 1", "111 121"),
        ("(a, b) >= (2, 2)", "122 222 322"),
        ("(a, b) IN ((0, 0)) AND r < 200", "100"),
    ];
    for (condition, expected) in cases {
        let mut rows = grid.rows(&format!(
            "SELECT r FROM grid WHERE {condition} ALLOW FILTERING"
        ));
        // Partitions come in token order, so they are sorted. Within each the order of the disk
        // counts.
        rows.sort_by_key(|row| row[..1].to_owned());
        assert_eq!(rows.join(" "), *expected, "{condition}");
    }
}

#[test]
fn markers_stand_for_values_tuples_and_lists() {
    let grid = grid();
    let tuple = |a: i32, b: i32| {
        let mut bytes = Vec::new();
        for value in [a, b] {
            bytes.extend(4_i32.to_be_bytes());
            bytes.extend(value.to_be_bytes());
        }
        BoundValue::Value(bytes.into())
    };
    let cases: &[(&str, Vec<BoundValue>, &str)] = &[
        (
            "p = ? AND a = ? AND b = ?",
            vec![int(1), int(2), int(0)],
            "120",
        ),
        ("p IN ? AND a = 0 AND b = 0", vec![ints(&[3, 1])], "100 300"),
        (
            "p IN (?, ?) AND a = 0 AND b = 0",
            vec![int(2), int(1)],
            "100 200",
        ),
        ("p = 1 AND (a, b) = (?, ?)", vec![int(0), int(0)], "100"),
        ("p = 1 AND (a, b) > ?", vec![tuple(2, 0)], "122 121"),
        (
            "p = 1 AND a IN ? AND b IN ?",
            vec![ints(&[2]), ints(&[0, 1])],
            "121 120",
        ),
        ("p = :p AND a = :a AND b = 0", vec![int(3), int(1)], "310"),
    ];
    for (condition, values, expected) in cases {
        let rows = grid.bound(&format!("SELECT r FROM grid WHERE {condition}"), values);
        assert_eq!(rows.join(" "), *expected, "{condition}");
    }
}

#[test]
fn token_ranges_cut_the_ring_without_gaps_or_overlaps() {
    let grid = grid();
    let all = grid.rows("SELECT r FROM grid");
    assert_eq!(all.len(), 27);
    let tokens: Vec<i64> = grid
        .rows("SELECT DISTINCT token(p), p FROM grid")
        .iter()
        .map(|row| row.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(tokens.is_sorted());
    for cut in tokens.iter().copied().chain([i64::MIN + 1, 0, i64::MAX]) {
        let mut parts = grid.rows(&format!("SELECT r FROM grid WHERE token(p) <= {cut}"));
        parts.extend(grid.rows(&format!("SELECT r FROM grid WHERE token(p) > {cut}")));
        assert_eq!(parts, all, "cut at {cut}");
        let mut parts = grid.rows(&format!("SELECT r FROM grid WHERE token(p) < {cut}"));
        parts.extend(grid.rows(&format!("SELECT r FROM grid WHERE token(p) >= {cut}")));
        assert_eq!(parts, all, "cut before {cut}");
    }
    let first = tokens[0];
    let whole = format!(
        "SELECT r FROM grid WHERE token(p) >= -9223372036854775807 AND token(p) <= {first} BYPASS CACHE"
    );
    assert_eq!(grid.rows(&whole).len(), 9);
    assert_eq!(
        grid.rows(
            "SELECT r FROM grid WHERE token(p) > token(?)"
                .replace('?', "2")
                .as_str()
        ),
        grid.rows(&format!(
            "SELECT r FROM grid WHERE token(p) > {}",
            grid.rows("SELECT token(p) FROM grid WHERE p = 2 LIMIT 1")[0]
        ))
    );
    for nothing in [
        "token(p) > 5 AND token(p) < 5",
        "token(p) > 7 AND token(p) <= 7",
        "token(p) >= 9 AND token(p) <= 3",
    ] {
        assert!(
            grid.rows(&format!("SELECT r FROM grid WHERE {nothing}"))
                .is_empty(),
            "{nothing}"
        );
    }
    // As an upper bound, the least token stands for the end of the ring.
    assert_eq!(
        grid.rows("SELECT r FROM grid WHERE token(p) <= -9223372036854775808"),
        all
    );
    assert_eq!(
        grid.rows("SELECT r FROM grid WHERE p IN (1, 2, 3) AND token(p) > 9223372036854775806"),
        Vec::<String>::new()
    );
}

#[test]
fn limits_count_rows_and_rows_of_partitions() {
    let grid = grid();
    assert_eq!(grid.rows("SELECT r FROM grid LIMIT 4").len(), 4);
    assert_eq!(
        grid.rows("SELECT r FROM grid WHERE p = 1 LIMIT 2"),
        ["102", "101"]
    );
    assert_eq!(
        grid.rows("SELECT r FROM grid WHERE p IN (1, 3) PER PARTITION LIMIT 2"),
        ["102", "101", "302", "301"]
    );
    assert_eq!(
        grid.rows("SELECT r FROM grid WHERE p IN (1, 3) PER PARTITION LIMIT 2 LIMIT 3"),
        ["102", "101", "302"]
    );
    assert_eq!(
        grid.bound(
            "SELECT r FROM grid WHERE p = 1 LIMIT ?",
            &[BoundValue::Unset]
        )
        .len(),
        9
    );
    let mut first =
        grid.rows("SELECT r FROM grid WHERE r >= 110 PER PARTITION LIMIT 1 ALLOW FILTERING");
    first.sort();
    assert_eq!(first, ["112", "202", "302"]);
    assert_eq!(
        grid.rows("SELECT DISTINCT p FROM grid WHERE p IN (3, 2)"),
        ["2", "3"]
    );
    let mut partitions = grid.rows("SELECT DISTINCT p FROM grid");
    partitions.sort();
    assert_eq!(partitions, ["1", "2", "3"]);
}

#[test]
fn compound_partition_keys_take_every_combination() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (a int, b text, v int, PRIMARY KEY ((a, b)))",
        "INSERT INTO t (a, b, v) VALUES (1, 'x', 1)",
        "INSERT INTO t (a, b, v) VALUES (1, 'y', 2)",
        "INSERT INTO t (a, b, v) VALUES (2, 'x', 3)",
    ]);
    let cases: &[(&str, &str)] = &[
        ("a = 1 AND b = 'x'", "1"),
        ("b IN ('y', 'x') AND a IN (2, 1)", "1 2 3"),
        ("a = 1 AND b IN ('y', 'z')", "2"),
        ("a = 1 AND b = ''", ""),
        ("a = 1 ALLOW FILTERING", "1 2"),
        ("a = 1 AND b > 'x' ALLOW FILTERING", "2"),
        (
            "b = 'x' AND token(a, b) >= -9223372036854775807 ALLOW FILTERING",
            "1 3",
        ),
    ];
    for (condition, expected) in cases {
        let mut rows = fixture.rows(&format!("SELECT v FROM t WHERE {condition}"));
        rows.sort();
        assert_eq!(rows.join(" "), *expected, "{condition}");
    }
    assert_eq!(
        fixture.bound(
            "SELECT v FROM t WHERE a = ? AND b = ?",
            &[int(2), text("x")]
        ),
        ["3"]
    );
}

#[test]
fn values_are_compared_by_their_type() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, c varint, d decimal, PRIMARY KEY (p, c))",
        "INSERT INTO t (p, c, d) VALUES (1, -300, 1.50)",
        "INSERT INTO t (p, c, d) VALUES (1, 2, -7)",
        "INSERT INTO t (p, c, d) VALUES (1, 100000000000000000000, 1e3)",
        "INSERT INTO t (p, c) VALUES (1, 5)",
    ]);
    let cases: &[(&str, &str)] = &[
        ("p = 1 AND c > -301 AND c < 100", "-300 2 5"),
        ("p = 1 AND c >= 5", "5 100000000000000000000"),
        ("d = 1.5 ALLOW FILTERING", "-300"),
        ("d < 1.6 ALLOW FILTERING", "-300 2"),
        ("d >= 1000 ALLOW FILTERING", "100000000000000000000"),
    ];
    for (condition, expected) in cases {
        let rows = fixture.rows(&format!("SELECT c FROM t WHERE {condition}"));
        assert_eq!(rows.join(" "), *expected, "{condition}");
    }
}

#[test]
fn patterns_filter_texts_wherever_they_stand() {
    let f = Fixture::new().with(&[
        "CREATE TABLE t (k text, c ascii, v text, n int, s text static, PRIMARY KEY (k, c))",
        "INSERT INTO t (k, c, v, s) VALUES ('ab', 'x1', 'hello', 'one')",
        "INSERT INTO t (k, c, v) VALUES ('ab', 'x2', 'help')",
        "INSERT INTO t (k, c, v, s) VALUES ('cb', 'y1', 'yell', 'two')",
        "INSERT INTO t (k, c) VALUES ('cb', 'y2')",
    ]);
    for (condition, found) in [
        ("v LIKE 'hel%'", "x1 x2"),
        ("v LIKE '%ll%'", "x1 y1"),
        ("v LIKE 'hel_'", "x2"),
        ("v LIKE '%'", "x1 x2 y1"),
        ("v LIKE 'HEL%'", ""),
        ("v LIKE 'h%' AND v LIKE '%p'", "x2"),
        ("k LIKE 'a%'", "x1 x2"),
        ("c LIKE '_1'", "x1 y1"),
        ("s LIKE 't%'", "y1 y2"),
        ("k = 'ab' AND c LIKE '%2'", "x2"),
        ("k = 'ab' AND c > 'x1' AND v LIKE 'h%'", "x2"),
    ] {
        let query = format!("SELECT c FROM t WHERE {condition} ALLOW FILTERING");
        let mut rows = f.rows(&query);
        rows.sort();
        let found: Vec<String> = found.split_whitespace().map(|c| format!("'{c}'")).collect();
        assert_eq!(rows, found, "{condition}");
        let refused = f.refused(&format!("SELECT c FROM t WHERE {condition}"), &[]);
        assert!(
            refused.contains("ALLOW FILTERING"),
            "{condition}: {refused}"
        );
    }
    let select = "SELECT c FROM t WHERE v LIKE ? ALLOW FILTERING";
    assert_eq!(f.bound(select, &[text("%p")]), ["'x2'"]);
    let of_number = "SELECT c FROM t WHERE n LIKE '1%' ALLOW FILTERING";
    let message = "LIKE is allowed only on string types, which n is not";
    assert_eq!(f.refused(of_number, &[]), message);
    let indexed = f.with(&["CREATE CUSTOM INDEX ON t (v) USING 'sai'"]);
    assert_eq!(
        indexed.rows("SELECT c FROM t WHERE v LIKE 'y%' ALLOW FILTERING"),
        ["'y1'"]
    );
}

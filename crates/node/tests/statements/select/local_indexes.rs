//! Local secondary indexes, which find rows within the partition that a query names.

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, q text, a int, b int, v int, \"W w\" text, m map<text, int>, st int static, \
         PRIMARY KEY ((p, q), a, b))",
        "CREATE TABLE plain (p int, q text, a int, b int, v int, \"W w\" text, m map<text, int>, st int static, \
         PRIMARY KEY ((p, q), a, b))",
        "INSERT INTO t (p, q, a, b, v) VALUES (1, 'x', 100, 100, 1)",
        "CREATE INDEX ON t ((p, q), v)",
        "CREATE INDEX by_w ON t ((q, p), \"W w\")",
        "CREATE INDEX by_b ON t ((p, q), b)",
        "CREATE INDEX by_key ON t ((p, q), keys(m))",
        "DELETE FROM t WHERE p = 1 AND q = 'x' AND a = 100 AND b = 100",
    ]);
    for table in ["t", "plain"] {
        for p in 0..3 {
            for a in 0..6 {
                for b in 0..4 {
                    let (v, w) = ((a + b) % 3, a % 2);
                    fixture.run(&format!(
                        "INSERT INTO {table} (p, q, a, b, v, \"W w\", m) VALUES \
                         ({p}, 'x', {a}, {b}, {v}, 'w{w}', {{'k{v}': 1, 'all': 2}})"
                    ));
                }
            }
        }
        fixture.run(&format!(
            "DELETE FROM {table} WHERE p = 1 AND q = 'x' AND a = 3"
        ));
        fixture.run(&format!(
            "UPDATE {table} SET v = 7 WHERE p = 1 AND q = 'x' AND a = 2 AND b = 1"
        ));
    }
    fixture
}

#[test]
fn rows_of_the_named_partition_are_found_as_by_filtering() {
    let fixture = fixture();
    for relations in [
        "v = 1",
        "v = 7",
        "v = 9",
        "\"W w\" = 'w1'",
        "m CONTAINS KEY 'k2'",
        "b = 2",
        "a = 2 AND v = 1",
        "a > 1 AND v = 1",
        "a IN (1, 2, 5) AND v = 2",
        "(a, b) > (1, 2) AND v = 0",
    ] {
        let of = |table: &str, more: &str| {
            let query = "SELECT a, b, v FROM";
            format!("{query} {table} WHERE p = 1 AND q = 'x' AND {relations}{more}")
        };
        let found = fixture.rows(&of("t", ""));
        assert_eq!(
            found,
            fixture.rows(&of("plain", " ALLOW FILTERING")),
            "{relations}"
        );
        assert_eq!(fixture.paged(&of("t", ""), &[], 3), found, "{relations}");
        let plan = fixture.explain(&of("t", ""));
        assert!(plan.contains("rows by local index"), "{plan}");
    }
    assert_eq!(
        fixture.rows("SELECT count(*) FROM t WHERE p = 1 AND q = 'x' AND v = 1"),
        fixture
            .rows("SELECT count(*) FROM plain WHERE p = 1 AND q = 'x' AND v = 1 ALLOW FILTERING")
    );
    let both = "p = 1 AND q = 'x' AND v = 1 AND b = 2";
    assert_eq!(
        fixture.rows(&format!(
            "SELECT a, b FROM t WHERE {both} LIMIT 2 ALLOW FILTERING"
        )),
        fixture.rows(&format!(
            "SELECT a, b FROM plain WHERE {both} LIMIT 2 ALLOW FILTERING"
        ))
    );
}

#[test]
fn without_the_partition_key_a_local_index_serves_nothing() {
    let fixture = fixture();
    for relations in [
        "v = 1",
        "p = 1 AND v = 1",
        "p = 1 AND q IN ('x', 'y') AND v = 1",
        "p = 1 AND q = 'x' AND v > 1",
        "p = 1 AND q = 'x' AND v = 1 AND \"W w\" = 'w1'",
    ] {
        let query = format!("SELECT a FROM t WHERE {relations}");
        let refused = fixture.refused(&query, &[]);
        assert!(
            refused.ends_with("use ALLOW FILTERING"),
            "{relations}: {refused}"
        );
        let twin = query.replace("FROM t", "FROM plain");
        assert_eq!(
            fixture.rows(&format!("{query} ALLOW FILTERING")),
            fixture.rows(&format!("{twin} ALLOW FILTERING")),
            "{relations}"
        );
    }
}

#[test]
fn a_local_index_shows_as_in_scylladb() {
    let fixture = fixture();
    assert_eq!(
        fixture.rows(
            "SELECT index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = 'ks' AND \
             table_name = 't'"
        ),
        [
            r#"'by_b' | 'COMPOSITES' | {'target': '{"pk":["p","q"],"ck":["b"]}'}"#,
            r#"'by_key' | 'COMPOSITES' | {'target': '{"pk":["p","q"],"ck":["keys(m)"]}'}"#,
            r#"'by_w' | 'COMPOSITES' | {'target': '{"pk":["p","q"],"ck":["W w"]}'}"#,
            r#"'t_v_idx' | 'COMPOSITES' | {'target': '{"pk":["p","q"],"ck":["v"]}'}"#,
        ]
    );
    for (name, list) in [
        ("by_w", "(p, q), \"W w\""),
        ("by_key", "(p, q), keys(m)"),
        ("t_v_idx", "(p, q), v"),
    ] {
        let described = fixture.rows(&format!("DESCRIBE INDEX {name}"));
        assert!(
            described[0].ends_with(&format!("| 'CREATE INDEX {name} ON ks.t ({list});'")),
            "{described:?}"
        );
    }
}

#[test]
fn wrong_local_indexes_are_refused() {
    let fixture = fixture();
    for (statement, message) in [
        (
            "CREATE INDEX ON t ((p), v)",
            "Local index definition must contain full partition key only. Missing column: q",
        ),
        (
            "CREATE INDEX ON t ((p, q, a), v)",
            "Local index definition must contain full partition key only. Redundant column: a",
        ),
        (
            "CREATE INDEX ON t ((p, q, p), v)",
            "Local index definition must contain full partition key only. Redundant column: p",
        ),
        (
            "CREATE INDEX ON t ((p, q), v)",
            "Index t_v_idx_1 is a duplicate of existing index t_v_idx",
        ),
        (
            "CREATE INDEX ON t ((p, q), st)",
            "Local indexes are on regular and clustering columns: all rows of a partition have the same st",
        ),
        (
            "CREATE INDEX ON t ((p, q), v, b)",
            "Only CUSTOM indexes support multiple columns",
        ),
        (
            "CREATE INDEX ON t ((p, q))",
            "A local index needs a column behind the partition key",
        ),
        (
            "CREATE INDEX ON t (a) WITH nonsense = 1",
            "Unknown property 'nonsense'",
        ),
        (
            "CREATE INDEX ON t (a) WITH default_time_to_live = 5",
            "Cannot set default_time_to_live for an index: it follows its table",
        ),
        (
            "CREATE INDEX ON t (a) WITH CLUSTERING ORDER BY (a DESC)",
            "CLUSTERING ORDER BY of an index is not supported: leave it out. Rows come in the order of the table",
        ),
        (
            "CREATE CUSTOM INDEX ON t (a) USING 'sai' WITH comment = 'x'",
            "An index of the class 'sai' takes OPTIONS alone, not comment",
        ),
    ] {
        assert_eq!(fixture.refused(statement, &[]), message, "{statement}");
    }
    // Beside the local one there may be one of the whole table.
    fixture.run("CREATE INDEX ON t (v)");
    assert_eq!(fixture.rows("SELECT p FROM t WHERE v = 7"), ["1"]);
}

#[test]
fn options_of_a_view_are_taken_and_said_to_have_no_effect() {
    let fixture = fixture();
    let statement = "CREATE INDEX ON t (a) WITH comment = 'x' AND gc_grace_seconds = 7";
    let answer = fixture.execute(statement, Default::default()).unwrap();
    assert_eq!(
        answer.warnings,
        [
            "Options of an index without effect here, as it has no table of its own: comment, gc_grace_seconds"
        ]
    );
}

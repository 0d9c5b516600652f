//! The plans of queries, as text.

use crate::fixture::Fixture;

#[test]
#[expect(clippy::too_many_lines, reason = "one table: each query with its plan")]
fn plans_tell_what_is_served_and_what_is_filtered() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, q int, a int, b int, c int, s int static, r int, v vector<float, 2>, \
         PRIMARY KEY ((p, q), a, b, c)) WITH CLUSTERING ORDER BY (a DESC, b ASC, c ASC)",
        "CREATE CUSTOM INDEX old ON t (v) USING 'vector_index'",
        "CREATE CUSTOM INDEX new ON t (v) USING 'vector_index' WITH OPTIONS = {'quantization': 'i8', 'oversampling': '2.5', 'rescoring': 'true', 'similarity_function': 'euclidean'}",
    ]);
    let cases: &[(&str, &[&str])] = &[
        (
            "SELECT r FROM t",
            &[
                "select r from ks.t",
                "all partitions",
                "with partitions of static columns only",
            ],
        ),
        (
            "SELECT r FROM t WHERE b = 3 AND q = ? AND a = 1 AND p = 1 AND c > 5 AND c <= ? ORDER BY a ASC LIMIT 3",
            &[
                "select r from ks.t",
                "partitions by key: p = 1 and q = ?",
                "slices of: a = 1 and b = 3",
                "slices between: c > 5 and c <= ?",
                "against the order of the disk",
                "limit",
            ],
        ),
        (
            "SELECT r FROM t WHERE p = 1 AND q IN (1, 2) AND a > 1 AND b = 3 AND r = 5 ORDER BY a ASC ALLOW FILTERING",
            &[
                "select r from ks.t",
                "partitions by key: p = 1 and q IN (1, 2)",
                "slices between: a > 1",
                "filter: b = 3 and r = 5",
                "against the order of the disk",
            ],
        ),
        (
            "SELECT r FROM t WHERE p = 1 AND token(p, q) > 5 AND (a, b) IN ((1, 2)) AND c = 4 PER PARTITION LIMIT 1 ALLOW FILTERING",
            &[
                "select r from ks.t",
                "partitions by token: token(p, q) > 5",
                "slices of: (a, b) IN ((1, 2)) and c = 4",
                "filter: p = 1",
                "limit a partition",
            ],
        ),
        (
            "SELECT DISTINCT p, q, s FROM t WHERE s = 1 ALLOW FILTERING",
            &[
                "select p, q, s from ks.t",
                "all partitions",
                "filter: s = 1",
                "with partitions of static columns only",
                "one row a partition",
            ],
        ),
        (
            "SELECT key FROM system.local",
            &[
                "select key from system.local (made)",
                "all partitions",
                "with partitions of static columns only",
            ],
        ),
        (
            "SELECT r FROM t ORDER BY v ANN OF ? LIMIT ?",
            &[
                "select r from ks.t",
                "nearest v by index new",
                "oversampling 2.5",
                "rescoring by Euclidean",
            ],
        ),
        (
            "SELECT r FROM t ORDER BY v ANN OF ? LIMIT ? WITH ann_options = {'exact': true}",
            &[
                "select r from ks.t",
                "nearest v by index new",
                "exactly",
                "oversampling 2.5",
                "rescoring by Euclidean",
            ],
        ),
    ];
    for (query, expected) in cases {
        let plan = fixture.explain(query);
        let lines: Vec<&str> = plan.lines().collect();
        assert_eq!(lines, *expected, "{query}");
    }
}

//! The names and types of result columns and bind markers.

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (q text, p int, b int, a int, z int static, y int static, r int, m map<text, int>, \
         v vector<float, 2>, PRIMARY KEY ((p, q), a, b))",
        "CREATE TABLE one (p timeuuid PRIMARY KEY, l list<int>)",
    ])
}

#[test]
fn columns_are_named_as_cassandra_names_them() {
    let fixture = fixture();
    let cases: &[(&str, &[&str])] = &[
        (
            "SELECT * FROM t",
            &[
                "p int",
                "q text",
                "a int",
                "b int",
                "y int",
                "z int",
                "m map<text, int>",
                "r int",
                "v vector<float, 2>",
            ],
        ),
        ("SELECT r AS \"X y\", r FROM t", &["X y int", "r int"]),
        ("SELECT count(*) FROM t", &["count bigint"]),
        (
            "SELECT count(1), count(r) AS n FROM t",
            &["count bigint", "n bigint"],
        ),
        (
            "SELECT COUNT(r), max(r) FROM t",
            &["system.count(r) bigint", "system.max(r) int"],
        ),
        (
            "SELECT writetime(r), ttl(r) FROM t",
            &["writetime(r) bigint", "ttl(r) int"],
        ),
        ("SELECT maxWriteTime(r) FROM t", &["maxwritetime(r) bigint"]),
        ("SELECT now() FROM t", &["system.now() timeuuid"]),
        (
            "SELECT toTimestamp(now()) FROM t",
            &["system.totimestamp(system.now()) timestamp"],
        ),
        (
            "SELECT similarity_cosine(v, [1, 2]), similarity_cosine(v, ?) FROM t",
            &[
                "system.similarity_cosine(v, [1, 2]) float",
                "system.similarity_cosine(v, ?) float",
            ],
        ),
        ("SELECT cast(r as text) FROM t", &["cast(r as text) text"]),
        ("SELECT cast(r as int) FROM t", &["r int"]),
        ("SELECT m['x'] FROM t", &["m['x'] int"]),
        ("SELECT token(p, q) FROM t", &["system.token(p, q) bigint"]),
        ("SELECT (int)? FROM t", &["(int)? int"]),
        (
            "SELECT sum(cast(r as varint)) FROM t",
            &["system.sum(cast(r as varint)) varint"],
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(fixture.columns(query), *expected, "{query}");
    }
}

#[test]
fn markers_are_named_as_cassandra_names_them() {
    let fixture = fixture();
    let cases: &[(&str, &[&str])] = &[
        (
            "SELECT * FROM t WHERE p = ? AND q IN ? AND a > ? LIMIT ?",
            &["p int", "in(q) list<text>", "a int", "[limit] int"],
        ),
        (
            "SELECT * FROM t WHERE p = :key AND q = ?",
            &["key int", "q text"],
        ),
        (
            "SELECT * FROM t WHERE token(p, q) > ? PER PARTITION LIMIT ?",
            &["partition key token bigint", "[per_partition_limit] int"],
        ),
        (
            "SELECT * FROM t WHERE token(p, q) > token(?, ?)",
            &["arg0(system.token) int", "arg1(system.token) text"],
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = '' AND (a, b) > ? ",
            &["(a,b) frozen<tuple<int, int>>"],
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = '' AND (a, b) IN ?",
            &["in(a,b) list<frozen<tuple<int, int>>>"],
        ),
        (
            "SELECT * FROM t WHERE m CONTAINS ? AND m CONTAINS KEY ? ALLOW FILTERING",
            &["value(m) int", "key(m) text"],
        ),
        (
            "SELECT * FROM t WHERE m[?] = ? ALLOW FILTERING",
            &["key(m) text", "value(m) int"],
        ),
        (
            "SELECT similarity_cosine(v, ?) FROM t WHERE r = ? ALLOW FILTERING",
            &["[selection] vector<float, 2>", "r int"],
        ),
        (
            "SELECT * FROM one WHERE p > minTimeuuid(?) ALLOW FILTERING",
            &["arg0(system.mintimeuuid) timestamp"],
        ),
        (
            "SELECT * FROM one WHERE l CONTAINS ? ALLOW FILTERING",
            &["value(l) int"],
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(fixture.variables(query), *expected, "{query}");
    }
}

#[test]
fn markers_that_make_up_the_partition_key_are_told() {
    let fixture = fixture();
    let cases: &[(&str, &[u16])] = &[
        ("SELECT * FROM t WHERE q = ? AND a = ? AND p = ?", &[2, 0]),
        ("SELECT * FROM t WHERE p = ? AND q = 'x'", &[]),
        ("SELECT * FROM t WHERE p = ? AND q IN ?", &[]),
        ("SELECT * FROM t WHERE p = ? ALLOW FILTERING", &[]),
        ("SELECT * FROM one WHERE p = ?", &[0]),
        ("SELECT * FROM one", &[]),
    ];
    for (query, expected) in cases {
        let plan = fixture.plan(query).unwrap();
        assert_eq!(plan.partition_key_variables(), *expected, "{query}");
    }
}

#[test]
fn names_beyond_ascii_come_first_of_their_kind_as_in_cassandra() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (k int PRIMARY KEY, \"A%\" int, b int, \"日本\" int, \"é\" int, \"abcdefg\" int, \
         \"abcdefé\" int, \"éclair2\" int)",
        "CREATE TABLE cells (k int, c int, m map<int, int>, \"ä\" int, b int, \"ö\" set<int>, z int, s int static, \
         \"ß\" int static, PRIMARY KEY (k, c))",
    ]);
    let names = |table: &str| {
        let columns = fixture.columns(&format!("SELECT * FROM {table}"));
        let names = columns
            .iter()
            .map(|column| column.split(' ').next().unwrap_or_default());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("t"), "k é éclair2 日本 A% abcdefg abcdefé b");
    assert_eq!(names("cells"), "k c ß s ä b m z ö");
}

//! System tables are read like any other.

use crate::fixture::{Fixture, text};

#[test]
fn drivers_questions_are_answered() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int PRIMARY KEY, v vector<float, 3>)",
        "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'",
    ]);
    let cases: &[(&str, &[&str])] = &[
        (
            "SELECT rpc_address FROM system.local WHERE key = 'local'",
            &["'127.0.0.1'"],
        ),
        ("SELECT key FROM system.local", &["'local'"]),
        ("SELECT count(*) FROM system.peers", &["0"]),
        (
            "SELECT type FROM system_schema.columns WHERE keyspace_name = 'ks' AND table_name = 't' AND column_name = 'v'",
            &["'vector<float, 3>'"],
        ),
        (
            "SELECT keyspace_name, index_name FROM system_schema.indexes WHERE kind = 'CUSTOM' ALLOW FILTERING",
            &["'ks' | 'i'"],
        ),
        (
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks' ORDER BY table_name DESC",
            &["'t_scylla_cdc_log'", "'t'"],
        ),
        (
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name > 't'",
            &["'t_scylla_cdc_log'"],
        ),
        (
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name IN ('ks', 'nope') LIMIT 1",
            &["'t'"],
        ),
        (
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name IN ('t', 't_scylla_cdc_log')",
            &["'t'", "'t_scylla_cdc_log'"],
        ),
        (
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name >= 't' AND table_name <= 't'",
            &["'t'"],
        ),
        (
            "SELECT table_name FROM system_schema.columns WHERE keyspace_name = 'ks' AND (table_name, column_name) > ('t', 'p') AND (table_name, column_name) < ('t_scylla_cdc_log', 'a')",
            &["'t'"],
        ),
        (
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'nope' AND table_name = 't'",
            &[],
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(fixture.rows(query), *expected, "{query}");
    }
    assert_eq!(
        fixture.bound(
            "SELECT column_name FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?",
            &[text("ks"), text("t")]
        ),
        ["'p'", "'v'"]
    );
    let newest = "SELECT state_id FROM system.group0_history WHERE key = 'history' ORDER BY state_id DESC LIMIT 1";
    let before = fixture.rows(newest);
    fixture.run("DROP INDEX i");
    assert_ne!(fixture.rows(newest), before);
}

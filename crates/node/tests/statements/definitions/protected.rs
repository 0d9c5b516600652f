//! Keyspaces and tables that clients may not change.

use cql::error::ErrorKind;

use super::error;
use crate::fixture::Fixture;

#[test]
fn system_keyspaces_and_logs_are_not_the_clients() {
    let f =
        Fixture::new().with(&["CREATE TABLE t (k int PRIMARY KEY) WITH cdc = {'enabled': true}"]);
    for (cql, message) in [
        (
            "CREATE KEYSPACE system WITH replication = {'class': 'X'}",
            "system keyspace is not user-modifiable.",
        ),
        (
            "DROP KEYSPACE system_schema",
            "system_schema keyspace is not user-modifiable.",
        ),
        (
            "ALTER KEYSPACE system WITH durable_writes = false",
            "system keyspace is not user-modifiable.",
        ),
        (
            "CREATE TABLE system.t (k int PRIMARY KEY)",
            "system keyspace is not user-modifiable.",
        ),
        (
            "ALTER TABLE system.local ADD x int",
            "system keyspace is not user-modifiable.",
        ),
        (
            "DROP TABLE system.local",
            "system keyspace is not user-modifiable.",
        ),
        (
            "DROP TABLE t_scylla_cdc_log",
            "Cannot modify ks.t_scylla_cdc_log: a CDC log is changed and dropped with its table \
             alone",
        ),
        (
            "ALTER TABLE t_scylla_cdc_log ADD x int",
            "Cannot modify ks.t_scylla_cdc_log: a CDC log is changed and dropped with its table \
             alone",
        ),
    ] {
        let error = error(&f, cql);
        assert_eq!(error.message, message, "{cql}");
        assert_eq!(error.kind, ErrorKind::Unauthorized, "{cql}");
    }
}

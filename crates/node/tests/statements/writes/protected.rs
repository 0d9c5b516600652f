//! Tables that clients may not write to.

use cql::error::ErrorKind;
use node::statement::ExecutionParameters;

use crate::fixture::Fixture;

#[test]
fn system_tables_and_logs_are_not_the_clients() {
    let f =
        Fixture::new().with(&["CREATE TABLE t (k int PRIMARY KEY) WITH cdc = {'enabled': true}"]);
    for cql in [
        "INSERT INTO system.local (key) VALUES ('x')",
        "UPDATE system_schema.tables SET comment = 'x' WHERE keyspace_name = 'ks' AND table_name \
         = 't'",
        "DELETE FROM system.peers WHERE peer = '127.0.0.1'",
        "TRUNCATE system.local",
        "BEGIN BATCH INSERT INTO ks.t (k) VALUES (1); DELETE FROM system.local WHERE key = 'x'; \
         APPLY BATCH",
        "DELETE FROM t_scylla_cdc_log WHERE \"cdc$stream_id\" = 0x00",
        "TRUNCATE t_scylla_cdc_log",
    ] {
        let error = f.execute(cql, ExecutionParameters::default()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unauthorized, "{cql}: {error}");
    }
}

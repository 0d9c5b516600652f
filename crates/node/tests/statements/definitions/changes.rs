//! The schema changes that statements report to clients.

use node::statement::{ChangedObject, ExecutionOutcome, ExecutionParameters};

use crate::fixture::Fixture;

#[test]
fn every_change_is_told_and_no_change_is_not() {
    let f = Fixture::new();
    for (cql, expected) in [
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'EverywhereStrategy'}",
            "Created a",
        ),
        (
            "CREATE KEYSPACE IF NOT EXISTS a WITH replication = {'class': 'EverywhereStrategy'}",
            "nothing",
        ),
        ("ALTER KEYSPACE a WITH durable_writes = false", "Updated a"),
        (
            "CREATE TABLE a.t (k int PRIMARY KEY, v vector<float, 2>)",
            "Created a.t",
        ),
        (
            "CREATE TABLE IF NOT EXISTS a.t (k int PRIMARY KEY)",
            "nothing",
        ),
        ("ALTER TABLE a.t ADD x int", "Updated a.t"),
        (
            "CREATE CUSTOM INDEX i ON a.t (v) USING 'vector_index'",
            "Updated a.t",
        ),
        (
            "CREATE CUSTOM INDEX IF NOT EXISTS i ON a.t (v) USING 'vector_index'",
            "nothing",
        ),
        ("DROP INDEX a.i", "Updated a.t"),
        ("DROP INDEX IF EXISTS a.i", "nothing"),
        ("DROP TABLE a.t", "Dropped a.t"),
        ("DROP TABLE IF EXISTS a.t", "nothing"),
        ("ALTER TABLE IF EXISTS a.t ADD y int", "nothing"),
        ("CREATE TYPE a.u (x int)", "Created a.u"),
        ("CREATE TYPE IF NOT EXISTS a.u (x int)", "nothing"),
        ("ALTER TYPE a.u ADD y text", "Updated a.u"),
        ("ALTER TYPE a.u RENAME y TO z", "Updated a.u"),
        ("ALTER TYPE IF EXISTS a.v ADD y text", "nothing"),
        ("DROP TYPE a.u", "Dropped a.u"),
        ("DROP TYPE IF EXISTS a.u", "nothing"),
        ("DROP KEYSPACE a", "Dropped a"),
        ("DROP KEYSPACE IF EXISTS a", "nothing"),
    ] {
        let before = f.database.storage.catalog().version;
        let told = match f
            .execute(cql, ExecutionParameters::default())
            .unwrap()
            .outcome
        {
            ExecutionOutcome::Void => "nothing".to_owned(),
            ExecutionOutcome::SchemaChange(change) => match change.object {
                ChangedObject::Table(name) | ChangedObject::Type(name) => {
                    format!("{:?} {}.{name}", change.kind, change.keyspace)
                }
                ChangedObject::Keyspace => format!("{:?} {}", change.kind, change.keyspace),
            },
            other => panic!("{cql}: {other:?}"),
        };
        assert_eq!(told, expected, "{cql}");
        let version = f.database.storage.catalog().version;
        assert_eq!(version == before, expected == "nothing", "{cql}");
    }
}

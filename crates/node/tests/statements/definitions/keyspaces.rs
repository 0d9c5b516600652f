//! CREATE, ALTER and DROP KEYSPACE.

use cql::error::ErrorKind;
use node::statement::ExecutionParameters;

use super::{all_invalid, error};
use crate::fixture::Fixture;

const SIMPLE: &str = "{'class': 'SimpleStrategy', 'replication_factor': 1}";

#[test]
fn given_options_are_remembered() {
    let f = Fixture::new().with(&[
        "CREATE KEYSPACE a WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 3} \
         AND durable_writes = false AND tablets = {'enabled': false}",
        "CREATE KEYSPACE b WITH replication = {'class': 'EverywhereStrategy'} AND tablets = \
         {'initial': 8}",
        "CREATE KEYSPACE c WITH replication = {'class': 'NetworkTopologyStrategy', \
         'replication_factor': 2}",
        "CREATE KEYSPACE d WITH replication = {'class': \
         'org.apache.cassandra.locator.NetworkTopologyStrategy'}",
    ]);
    let catalog = f.database.storage.catalog();
    let a = catalog.keyspace("a").unwrap();
    let replication: Vec<String> = a
        .replication
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(
        replication,
        ["class=NetworkTopologyStrategy", "datacenter1=3"]
    );
    assert!(!a.durable_writes && !a.tablets);
    let b = catalog.keyspace("b").unwrap();
    assert!(b.durable_writes && b.tablets);
    assert_eq!(b.replication["class"], "EverywhereStrategy");
    // Drivers expect to be told the replicas of tablets, so a keyspace has tablets only if asked
    // for.
    let c = catalog.keyspace("c").unwrap();
    assert!(!c.tablets);
    assert_eq!(
        f.rows("SELECT keyspace_name, initial_tablets FROM system_schema.scylla_keyspaces WHERE keyspace_name IN ('b', 'c')"),
        ["'b' | 0", "'c' | null"]
    );
    assert_eq!(
        f.rows("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name IN ('c', 'd')"),
        [
            "{'class': 'org.apache.cassandra.locator.NetworkTopologyStrategy', 'datacenter1': '2'}",
            "{'class': 'org.apache.cassandra.locator.NetworkTopologyStrategy', 'datacenter1': '1'}",
        ]
    );
}

#[test]
fn factors_beyond_one_node_are_warned_of() {
    let f = Fixture::new();
    let warnings = |cql: &str| {
        f.execute(cql, ExecutionParameters::default())
            .unwrap()
            .warnings
    };
    let three = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 3}";
    assert_eq!(
        warnings(&format!("CREATE KEYSPACE a WITH replication = {three}")),
        ["Your replication factor 3 for keyspace a is higher than the number of nodes 1"]
    );
    assert!(warnings(&format!("ALTER KEYSPACE a WITH replication = {SIMPLE}")).is_empty());
    assert_eq!(
        warnings(&format!("ALTER KEYSPACE a WITH replication = {three}")).len(),
        1
    );
}

#[test]
fn if_not_exists_leaves_what_is_there() {
    let f = Fixture::new().with(&[
        &format!("CREATE KEYSPACE a WITH replication = {SIMPLE}"),
        "CREATE KEYSPACE IF NOT EXISTS a WITH replication = {'class': 'EverywhereStrategy'}",
    ]);
    let catalog = f.database.storage.catalog();
    assert_eq!(
        catalog.keyspace("a").unwrap().replication["class"],
        "SimpleStrategy"
    );
    let error = error(
        &f,
        &format!("CREATE KEYSPACE a WITH replication = {SIMPLE}"),
    );
    assert_eq!(error.message, "Cannot add existing keyspace \"a\"");
    assert_eq!(
        error.kind,
        ErrorKind::AlreadyExists {
            keyspace: "a".to_owned(),
            table: String::new(),
        }
    );
}

#[test]
fn alter_changes_what_it_names() {
    let f = Fixture::new().with(&[
        &format!("CREATE KEYSPACE a WITH replication = {SIMPLE}"),
        "CREATE TABLE a.t (k int PRIMARY KEY)",
        "ALTER KEYSPACE a WITH durable_writes = false",
        "ALTER KEYSPACE a WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3} \
         AND tablets = {'enabled': false}",
        "ALTER KEYSPACE IF EXISTS nowhere WITH durable_writes = false",
    ]);
    let catalog = f.database.storage.catalog();
    let a = catalog.keyspace("a").unwrap();
    assert!(!a.durable_writes);
    assert_eq!(a.replication["replication_factor"], "3");
    assert!(a.tables.contains_key("t"));
}

#[test]
fn drop_takes_the_tables_along() {
    let f = Fixture::new().with(&[
        &format!("CREATE KEYSPACE a WITH replication = {SIMPLE}"),
        "CREATE TABLE a.t (k int PRIMARY KEY) WITH cdc = {'enabled': true}",
        "INSERT INTO a.t (k) VALUES (1)",
        "DROP KEYSPACE a",
        "DROP KEYSPACE IF EXISTS a",
    ]);
    assert!(f.database.storage.catalog().keyspace("a").is_none());
    assert_eq!(
        f.refused("SELECT * FROM a.t", &[]),
        "keyspace a does not exist"
    );
    f.run(&format!("CREATE KEYSPACE a WITH replication = {SIMPLE}"));
    f.run("CREATE TABLE a.t (k int PRIMARY KEY)");
    assert!(f.rows("SELECT * FROM a.t").is_empty());
}

#[test]
fn keyspaces_that_cannot_be_changed_are_explained() {
    let f = Fixture::new();
    all_invalid(
        &f,
        &[
            (
                "ALTER KEYSPACE nowhere WITH durable_writes = true",
                "Keyspace 'nowhere' doesn't exist",
            ),
            ("DROP KEYSPACE nowhere", "Keyspace 'nowhere' doesn't exist"),
            (
                "ALTER KEYSPACE ks WITH tablets = {'enabled': true}",
                "Cannot switch tablets on or off for the existing keyspace 'ks': the CDC streams \
                 of its tables depend on it",
            ),
        ],
    );
}

/// Asserts that each of these statements is refused with this error.
fn refuses(cases: &[(&str, ErrorKind, &str)]) {
    let f = Fixture::new();
    for (cql, kind, message) in cases {
        let error = error(&f, cql);
        assert_eq!(error.message, *message, "{cql}");
        assert_eq!(error.kind, *kind, "{cql}");
    }
}

#[test]
fn wrong_replication_is_explained() {
    refuses(&[
        (
            "CREATE KEYSPACE a WITH durable_writes = true",
            ErrorKind::Invalid,
            "Missing mandatory option 'replication'",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'replication_factor': 1}",
            ErrorKind::ConfigError,
            "Missing replication strategy class",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': \
             'x'}",
            ErrorKind::ConfigError,
            "Replication factor must be numeric and non-negative, found 'x' for 'datacenter1'",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'NetworkTopologyStrategy', 'dc9': 1}",
            ErrorKind::ConfigError,
            "Unrecognized strategy option {dc9} passed to NetworkTopologyStrategy for keyspace a: \
             the one data centre here is 'datacenter1', and annulus serve --datacenter gives it \
             another name",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1, \
             'Replication_factor': 1}",
            ErrorKind::ConfigError,
            "Unrecognized strategy option {Replication_factor} passed to SimpleStrategy for keyspace a",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'X', 'x': 1}",
            ErrorKind::ConfigError,
            "Unable to find replication strategy class 'X': there are SimpleStrategy, \
             NetworkTopologyStrategy and EverywhereStrategy",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'LocalStrategy'}",
            ErrorKind::Invalid,
            "Unable to use given strategy class: LocalStrategy is reserved for internal use.",
        ),
    ]);
}

#[test]
fn wrong_names_and_options_are_explained() {
    refuses(&[
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'EverywhereStrategy'} AND tablets = {'enabled': \
             'maybe'}",
            ErrorKind::ConfigError,
            "Invalid value 'maybe' for 'enabled' of property 'tablets'",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'EverywhereStrategy'} AND foo = 1",
            ErrorKind::SyntaxError,
            "Unknown property 'foo'",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'X', 'class': 'Y'}",
            ErrorKind::SyntaxError,
            "Multiple definition for key 'class' of property 'replication'",
        ),
        (
            "CREATE KEYSPACE \"a-b\" WITH replication = {'class': 'X'}",
            ErrorKind::Invalid,
            "Keyspace name must not be empty and must contain alphanumeric or underscore characters only (got \"a-b\")",
        ),
    ]);
}

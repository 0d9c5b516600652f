//! CREATE, ALTER and DROP KEYSPACE.

use cql::error::ErrorKind;

use crate::fixture::Fixture;
use crate::{all_invalid, error};

const SIMPLE: &str = "{'class': 'SimpleStrategy', 'replication_factor': 1}";

#[test]
fn what_is_given_is_remembered() {
    let f = Fixture::new().with(&[
        "CREATE KEYSPACE a WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3, \
         'dc2': 2} AND durable_writes = false AND tablets = {'enabled': false}",
        "CREATE KEYSPACE b WITH replication = {'class': 'my.own.Strategy', 'x': 'y'} AND tablets \
         = {'initial': 8}",
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
        ["class=NetworkTopologyStrategy", "dc1=3", "dc2=2"]
    );
    assert!(!a.durable_writes && !a.tablets);
    let b = catalog.keyspace("b").unwrap();
    assert!(b.durable_writes && b.tablets);
    assert_eq!(b.replication["class"], "my.own.Strategy");
}

#[test]
fn if_not_exists_leaves_what_is_there() {
    let f = Fixture::new().with(&[
        &format!("CREATE KEYSPACE a WITH replication = {SIMPLE}"),
        "CREATE KEYSPACE IF NOT EXISTS a WITH replication = {'class': 'Other'}",
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
         AND tablets = {'enabled': true}",
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
        "Keyspace 'a' does not exist"
    );
    f.run(&format!("CREATE KEYSPACE a WITH replication = {SIMPLE}"));
    f.run("CREATE TABLE a.t (k int PRIMARY KEY)");
    assert!(f.rows("SELECT * FROM a.t").is_empty());
}

#[test]
fn mistakes_are_explained() {
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
                "ALTER KEYSPACE ks WITH tablets = {'enabled': false}",
                "Cannot switch tablets on or off for the existing keyspace 'ks': the CDC streams \
                 of its tables depend on it",
            ),
        ],
    );
    for (cql, kind, message) in [
        (
            "CREATE KEYSPACE a WITH durable_writes = true",
            ErrorKind::ConfigError,
            "Missing mandatory replication strategy class",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'replication_factor': 1}",
            ErrorKind::ConfigError,
            "Missing mandatory replication strategy class",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy'}",
            ErrorKind::ConfigError,
            "SimpleStrategy requires a replication_factor strategy option.",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': \
             'x'}",
            ErrorKind::ConfigError,
            "Replication factor must be numeric and non-negative, found 'x' for 'dc1'",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'X'} AND tablets = {'enabled': \
             'maybe'}",
            ErrorKind::ConfigError,
            "Invalid value 'maybe' for 'enabled' of property 'tablets'",
        ),
        (
            "CREATE KEYSPACE a WITH replication = {'class': 'X'} AND foo = 1",
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
            "Keyspace name must not be empty, more than 48 characters long, or contain \
             non-alphanumeric-underscore characters (got \"a-b\")",
        ),
    ] {
        let error = error(&f, cql);
        assert_eq!(error.message, message, "{cql}");
        assert_eq!(error.kind, kind, "{cql}");
    }
}

//! CREATE TABLE and DROP TABLE.

use cql::error::ErrorKind;
use schema::ColumnKind;

use super::{all_invalid, error};
use crate::fixture::Fixture;

#[test]
fn columns_are_what_the_statement_says() {
    let f = Fixture::new().with(&[
        "CREATE TABLE t (v vector<float, 3>, b text, a int, d int, c int, s set<int> static, \
         PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC) AND comment = \
         'it''s' AND default_time_to_live = 60 AND gc_grace_seconds = 5 AND compaction = \
         {'class': 'LeveledCompactionStrategy'} AND bloom_filter_fp_chance = 0.1",
    ]);
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", "t").unwrap();
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let kind = match column.kind {
                ColumnKind::PartitionKey { position } => format!("partition {position}"),
                ColumnKind::Clustering {
                    position,
                    descending,
                } => format!(
                    "clustering {position} {}",
                    if descending { "DESC" } else { "ASC" }
                ),
                ColumnKind::Static => "static".to_owned(),
                ColumnKind::Regular => "regular".to_owned(),
            };
            format!("{} {} {kind}", column.name, column.cql_type)
        })
        .collect();
    assert_eq!(
        columns,
        [
            "v vector<float, 3> regular",
            "b text partition 1",
            "a int partition 0",
            "d int clustering 1 ASC",
            "c int clustering 0 DESC",
            "s set<int> static",
        ]
    );
    assert_eq!(table.default_ttl_s, 60);
    assert_eq!(table.gc_grace_s, 5);
    assert_eq!(table.options["comment"], "'it''s'");
    assert_eq!(
        table.options["compaction"],
        "{'class': 'org.apache.cassandra.db.compaction.LeveledCompactionStrategy', \
         'max_threshold': '32', 'min_threshold': '4'}"
    );
    assert_eq!(table.options["bloom_filter_fp_chance"], "0.1");
    assert!(table.log.is_none());
}

#[test]
fn options_not_given_have_cassandras_defaults() {
    let f = Fixture::new().with(&["CREATE TABLE t (k int PRIMARY KEY)"]);
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", "t").unwrap();
    assert_eq!((table.default_ttl_s, table.gc_grace_s), (0, 864_000));
    assert!(table.options.is_empty() && table.cdc.is_none());
    assert_eq!(
        f.rows(
            "SELECT bloom_filter_fp_chance, gc_grace_seconds, speculative_retry, caching FROM \
             system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 't'"
        ),
        ["0.01 | 864000 | '99p' | {'keys': 'ALL', 'rows_per_partition': 'NONE'}"]
    );
}

#[test]
fn a_table_made_again_is_another() {
    let f = Fixture::new().with(&[
        "CREATE TABLE t (k int PRIMARY KEY)",
        "INSERT INTO t (k) VALUES (1)",
    ]);
    let old = f.plan("INSERT INTO t (k) VALUES (2)").unwrap();
    let id = f.database.storage.catalog().table("ks", "t").unwrap().id;
    f.run("DROP TABLE t");
    f.run("DROP TABLE IF EXISTS t");
    f.run("CREATE TABLE t (k int PRIMARY KEY)");
    f.run("CREATE TABLE IF NOT EXISTS t (other text PRIMARY KEY)");
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", "t").unwrap();
    assert_ne!(table.id, id);
    assert!(table.column("k").is_some());
    assert!(f.rows("SELECT * FROM t").is_empty());
    // A plan for the dropped table does not write into the new table of the same name.
    let error = crate::block_on(old.execute(&f.database, Default::default())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    assert!(f.rows("SELECT * FROM t").is_empty());
}

#[test]
fn an_id_may_be_given_once() {
    let id = "5a1c395e-b41f-11e5-9f22-ba0be0483c18";
    let f = Fixture::new().with(&[&format!(
        "CREATE TABLE t (k int PRIMARY KEY) WITH ID = {id}"
    )]);
    let catalog = f.database.storage.catalog();
    assert_eq!(catalog.table("ks", "t").unwrap().id.0.to_string(), id);
    assert_eq!(
        error(
            &f,
            &format!("CREATE TABLE u (k int PRIMARY KEY) WITH ID = {id}")
        )
        .message,
        format!("Another table has the ID {id} already")
    );
}

#[test]
fn existing_tables_are_named() {
    let f = Fixture::new().with(&["CREATE TABLE t (k int PRIMARY KEY)"]);
    let error = error(&f, "CREATE TABLE t (k int PRIMARY KEY)");
    assert_eq!(
        error.message,
        "Cannot add already existing table \"t\" to keyspace \"ks\""
    );
    assert_eq!(
        error.kind,
        ErrorKind::AlreadyExists {
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
        }
    );
}

#[test]
fn wrong_primary_keys_are_explained() {
    let f = Fixture::new();
    all_invalid(
        &f,
        &[
            (
                "CREATE TABLE t (k int)",
                "No PRIMARY KEY specified for table 'ks.t' (exactly one required)",
            ),
            (
                "CREATE TABLE t (k int, PRIMARY KEY (k, x))",
                "Unknown column 'x' referenced in PRIMARY KEY for table 't'",
            ),
            (
                "CREATE TABLE t (k int, PRIMARY KEY (k, k))",
                "Duplicate column 'k' in PRIMARY KEY clause for table 't'",
            ),
            (
                "CREATE TABLE t (k int, s int static, PRIMARY KEY (k, s))",
                "Static column 's' cannot be part of the PRIMARY KEY",
            ),
            (
                "CREATE TABLE t (k int PRIMARY KEY, s int static)",
                "Static columns are only useful (and thus allowed) if the table has at least one \
                 clustering column",
            ),
            (
                "CREATE TABLE t (k list<int> PRIMARY KEY)",
                "Invalid non-frozen collection type list<int> for PRIMARY KEY column 'k'",
            ),
            (
                "CREATE TABLE t (k int, d duration, PRIMARY KEY (k, d))",
                "duration type is not supported for PRIMARY KEY column 'd'",
            ),
            (
                "CREATE TABLE t (k int, a int, b int, PRIMARY KEY (k, a, b)) WITH CLUSTERING \
                 ORDER BY (b DESC, a DESC)",
                "Clustering key columns must exactly match columns in CLUSTERING ORDER BY \
                 directive",
            ),
            (
                "CREATE TABLE t (k int, a int, b int, PRIMARY KEY (k, a, b)) WITH CLUSTERING \
                 ORDER BY (b DESC)",
                "Clustering key columns must exactly match columns in CLUSTERING ORDER BY \
                 directive",
            ),
        ],
    );
}

#[test]
fn wrong_names_and_columns_are_explained() {
    let f = Fixture::new();
    all_invalid(
        &f,
        &[
            (
                "CREATE TABLE nowhere.t (k int PRIMARY KEY)",
                "Keyspace 'nowhere' doesn't exist",
            ),
            ("DROP TABLE nothing", "Table 'ks.nothing' doesn't exist"),
            ("DROP TABLE nowhere.t", "Keyspace 'nowhere' doesn't exist"),
            (
                "CREATE TABLE t (k int PRIMARY KEY, v int, v text)",
                "Duplicate column 'v' declaration for table 't'",
            ),
            (
                "CREATE TABLE t (k int PRIMARY KEY, n counter, v int)",
                "Cannot mix counter and non counter columns in the same table",
            ),
            (
                "CREATE TABLE t (k int PRIMARY KEY, \"cdc$time\" int)",
                "Column names that begin with cdc$ are reserved for CDC logs (got \"cdc$time\")",
            ),
            (
                "CREATE TABLE t_scylla_cdc_log (k int PRIMARY KEY)",
                "Table names that end with _scylla_cdc_log are reserved for CDC logs (got \
                 \"t_scylla_cdc_log\")",
            ),
            (
                "CREATE TABLE t (k int PRIMARY KEY) WITH COMPACT STORAGE",
                "COMPACT STORAGE is not supported by Annulus: it lays rows out for clients of \
                 Thrift, which is gone; leave the option out, and CQL reads and writes the table \
                 as before",
            ),
        ],
    );
}

#[test]
fn wrong_options_have_their_error_codes() {
    let f = Fixture::new();
    for (cql, kind, message) in [
        (
            "CREATE TABLE t (k int PRIMARY KEY) WITH foo = 1",
            ErrorKind::SyntaxError,
            "Unknown property 'foo'",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY) WITH gc_grace_seconds = -1",
            ErrorKind::ConfigError,
            "gc_grace_seconds must be greater than or equal to 0 (got -1)",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY) WITH min_index_interval = 256 AND \
             max_index_interval = 255",
            ErrorKind::ConfigError,
            "max_index_interval must be greater than or equal to min_index_interval (256) (got \
             255).",
        ),
        (
            "CREATE TABLE \"a b\" (k int PRIMARY KEY)",
            ErrorKind::ConfigError,
            "ks.a b: Table name must not be empty or not contain non-alphanumeric-underscore characters (got \"a b\")",
        ),
    ] {
        let error = error(&f, cql);
        assert_eq!(error.message, message, "{cql}");
        assert_eq!(error.kind, kind, "{cql}");
    }
}

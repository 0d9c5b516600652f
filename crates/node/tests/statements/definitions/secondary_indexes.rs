//! CREATE INDEX on columns that are no vectors, of the class SAI and without a class.

use std::collections::BTreeMap;

use cql::error::ErrorKind;
use schema::IndexedPart;

use super::describe::described;
use super::{all_invalid, error};
use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, k2 int, c int, v vector<float, 3>, n int, b text, s text static, \
         m map<text, text>, l list<int>, f frozen<set<int>>, d duration, vs set<frozen<vector<int, 2>>>, \"F 1\" uuid, \
         PRIMARY KEY ((k, k2), c))",
        "CREATE TABLE single (k int PRIMARY KEY, n int)",
    ])
}

/// The indexes of a table: their parts by name.
fn parts(f: &Fixture, table: &str) -> BTreeMap<String, IndexedPart> {
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", table).unwrap();
    let indexes = table.secondary_indexes.values();
    indexes
        .map(|index| (index.name.clone(), index.part))
        .collect()
}

#[test]
fn every_spelling_makes_an_index() {
    for class in [
        "sai",
        "SAI",
        "storageattachedindex",
        "org.apache.cassandra.index.sai.StorageAttachedIndex",
    ] {
        let f = fixture().with(&[&format!("CREATE CUSTOM INDEX ON t (n) USING '{class}'")]);
        let expected = BTreeMap::from([("t_n_idx".to_owned(), IndexedPart::Value)]);
        assert_eq!(parts(&f, "t"), expected);
    }
    let f = fixture().with(&["CREATE INDEX ON t (n) USING 'sai'"]);
    assert_eq!(parts(&f, "t").len(), 1);
}

#[test]
fn an_index_shows_in_the_schema_as_in_cassandra() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX ON t (m) USING 'sai'",
        "CREATE CUSTOM INDEX IF NOT EXISTS eidx ON ks.t (ENTRIES(m)) USING \
         'org.apache.cassandra.index.sai.StorageAttachedIndex'",
        "CREATE CUSTOM INDEX ON t (keys(m)) USING 'sai'",
        "CREATE CUSTOM INDEX ON t (full(f)) USING 'sai'",
        "CREATE CUSTOM INDEX named ON t (\"F 1\") USING 'sai'",
        "CREATE CUSTOM INDEX text ON t (b) USING 'SAI' WITH OPTIONS = {'case_sensitive': 'false'}",
    ]);
    assert_eq!(
        f.rows(
            "SELECT index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = \
             'ks' AND table_name = 't'"
        ),
        [
            "'eidx' | 'CUSTOM' | {'class_name': \
             'org.apache.cassandra.index.sai.StorageAttachedIndex', 'target': 'entries(m)'}",
            "'named' | 'CUSTOM' | {'class_name': 'sai', 'target': '\"F 1\"'}",
            "'t_f_idx' | 'CUSTOM' | {'class_name': 'sai', 'target': 'full(f)'}",
            "'t_m_idx' | 'CUSTOM' | {'class_name': 'sai', 'target': 'values(m)'}",
            "'t_m_idx_1' | 'CUSTOM' | {'class_name': 'sai', 'target': 'keys(m)'}",
            "'text' | 'CUSTOM' | {'case_sensitive': 'false', 'class_name': 'SAI', 'target': 'b'}",
        ]
    );
    let shown = described(&f, "DESCRIBE INDEX ks.eidx");
    assert_eq!(
        shown[0][3],
        "CREATE CUSTOM INDEX eidx ON ks.t(entries(m)) USING \
         'org.apache.cassandra.index.sai.StorageAttachedIndex';"
    );
    assert_eq!(described(&f, "DESCRIBE TABLE t").len(), 7);
    // What DESCRIBE writes makes the same index.
    let again = described(&f, "DESCRIBE INDEX ks.text")[0][3].clone();
    f.run("DROP INDEX ks.text");
    f.run(again.trim_end_matches(';'));
    assert_eq!(described(&f, "DESCRIBE INDEX ks.text")[0][3], again);
}

#[test]
fn a_secondary_index_needs_no_log_and_no_vector() {
    let f = fixture().with(&["CREATE CUSTOM INDEX i ON single (n) USING 'sai'"]);
    let catalog = f.database.storage.catalog();
    assert!(catalog.table("ks", "single_scylla_cdc_log").is_none());
    // An index on vectors is no secondary one, whatever the spelling.
    f.run("CREATE CUSTOM INDEX j ON t (v) USING 'sai'");
    assert!(parts(&f, "t").is_empty());
}

#[test]
fn indexes_of_a_column_differ_in_their_parts() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX i ON t (n) USING 'sai'",
        "CREATE CUSTOM INDEX IF NOT EXISTS i ON t (b) USING 'sai'",
        "CREATE CUSTOM INDEX IF NOT EXISTS ON t (n) USING 'StorageAttachedIndex'",
        "CREATE CUSTOM INDEX vectors ON t (v) USING 'sai'",
    ]);
    assert_eq!(parts(&f, "t").into_keys().collect::<Vec<_>>(), ["i"]);
    all_invalid(
        &f,
        &[
            (
                "CREATE CUSTOM INDEX i ON t (b) USING 'sai'",
                "Index 'i' already exists",
            ),
            (
                "CREATE CUSTOM INDEX vectors ON t (b) USING 'sai'",
                "Index 'vectors' already exists",
            ),
            (
                "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'",
                "Index 'i' already exists",
            ),
            (
                "CREATE CUSTOM INDEX ON t (n) USING 'sai'",
                "Index t_n_idx is a duplicate of existing index i",
            ),
            (
                "CREATE CUSTOM INDEX other ON t (n) USING 'sai'",
                "Cannot create more than one storage-attached index on the same column: n",
            ),
        ],
    );
}

#[test]
fn columns_that_can_not_be_indexed_are_explained() {
    let f = fixture();
    all_invalid(
        &f,
        &[
            (
                "CREATE CUSTOM INDEX ON single (k) USING 'sai'",
                "Cannot create secondary index on the only partition key column k",
            ),
            (
                "CREATE CUSTOM INDEX ON t (gone) USING 'sai'",
                "Undefined column name gone in table ks.t",
            ),
            (
                "CREATE CUSTOM INDEX ON t (d) USING 'sai'",
                "Secondary indexes are not supported on duration columns",
            ),
            (
                "CREATE CUSTOM INDEX ON t (vs) USING 'sai'",
                "Unsupported type: vector<int, 2>",
            ),
            (
                "CREATE CUSTOM INDEX ON t (f) USING 'sai'",
                "Cannot create values() index on frozen column f. Frozen collections are \
                 immutable and must be fully indexed by using the 'full(f)' modifier",
            ),
            (
                "CREATE CUSTOM INDEX ON t (n, b) USING 'sai'",
                "A storage-attached index cannot be created over multiple columns: n,b",
            ),
            (
                "CREATE CUSTOM INDEX ON t (c) USING 'sai' WITH OPTIONS = {'ascii': 'true'}",
                "Analysis options are not supported on primary key columns, but found {'ascii': \
                 'true'}",
            ),
            (
                "CREATE CUSTOM INDEX ON nothing (n) USING 'sai'",
                "Table 'ks.nothing' doesn't exist",
            ),
        ],
    );
    let unknown = error(
        &f,
        "CREATE CUSTOM INDEX ON t (b) USING 'sai' WITH OPTIONS = {'index_analyzer': 'standard'}",
    );
    assert_eq!(unknown.kind, ErrorKind::ConfigError);
    assert_eq!(
        unknown.message,
        "Properties specified [index_analyzer] are not understood by StorageAttachedIndex"
    );
    assert!(parts(&f, "t").is_empty());
}

#[test]
fn parts_of_the_primary_key_can_be_indexed() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX ON t (k2) USING 'sai'",
        "CREATE CUSTOM INDEX ON t (c) USING 'sai'",
        "CREATE CUSTOM INDEX ON t (s) USING 'sai'",
    ]);
    // The index follows its column, not the name.
    f.run("ALTER TABLE t RENAME c TO renamed");
    let options = f.rows("SELECT options FROM system_schema.indexes WHERE keyspace_name = 'ks'");
    assert!(
        options
            .iter()
            .any(|options| options.contains("'target': 'renamed'"))
    );
}

#[test]
fn an_indexed_column_is_dropped_after_its_index() {
    let f = fixture().with(&["CREATE CUSTOM INDEX i ON t (n) USING 'sai'"]);
    all_invalid(
        &f,
        &[(
            "ALTER TABLE t DROP n",
            "Cannot drop column n because it has dependent secondary indexes (i)",
        )],
    );
    f.run("DROP INDEX i");
    f.run("DROP INDEX IF EXISTS i");
    assert!(parts(&f, "t").is_empty());
    f.run("ALTER TABLE t DROP n");
}

#[test]
fn an_index_without_a_class_shows_as_in_cassandra() {
    let f = fixture().with(&[
        "CREATE INDEX \"N\" ON t (n)",
        "CREATE INDEX ON t (m)",
        "CREATE INDEX IF NOT EXISTS ON t (keys(m)) USING 'LEGACY_local_table'",
        "CREATE INDEX IF NOT EXISTS other ON t (n)",
        "CREATE CUSTOM INDEX attached ON t (n) USING 'sai'",
    ]);
    assert_eq!(
        f.rows(
            "SELECT index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = \
             'ks' AND table_name = 't'"
        ),
        [
            "'N' | 'COMPOSITES' | {'target': 'n'}",
            "'attached' | 'CUSTOM' | {'class_name': 'sai', 'target': 'n'}",
            "'t_m_idx' | 'COMPOSITES' | {'target': 'values(m)'}",
            "'t_m_idx_1' | 'COMPOSITES' | {'target': 'keys(m)'}",
        ]
    );
    let shown = described(&f, "DESCRIBE INDEX ks.t_m_idx_1")[0][3].clone();
    assert_eq!(shown, "CREATE INDEX t_m_idx_1 ON ks.t (keys(m));");
    f.run("DROP INDEX ks.t_m_idx_1");
    f.run(shown.trim_end_matches(';'));
    assert_eq!(described(&f, "DESCRIBE INDEX ks.t_m_idx_1")[0][3], shown);
    all_invalid(
        &f,
        &[
            (
                "CREATE INDEX ON t (n)",
                "Index t_n_idx is a duplicate of existing index N",
            ),
            (
                "CREATE INDEX other ON t (n)",
                "Index other is a duplicate of existing index N",
            ),
            (
                "CREATE INDEX attached ON t (b)",
                "Index 'attached' already exists",
            ),
            (
                "CREATE INDEX ON t (b) WITH OPTIONS = {'case_sensitive': 'false'}",
                "Cannot specify options for a non-CUSTOM index",
            ),
            (
                "CREATE INDEX ON t (n, b)",
                "Only CUSTOM indexes support multiple columns",
            ),
        ],
    );
}

#[test]
fn an_index_without_a_class_serves_one_equality() {
    let f = fixture().with(&[
        "CREATE INDEX ON t (n)",
        "CREATE INDEX ON t (b)",
        "CREATE INDEX ON t (keys(m))",
        "INSERT INTO t (k, k2, c, n, b, m) VALUES (1, 1, 1, 5, 'x', {'a': 'b', 'c': 'd'})",
        "INSERT INTO t (k, k2, c, n, b) VALUES (1, 2, 1, 6, 'x')",
        "INSERT INTO t (k, k2, c, n, b) VALUES (2, 1, 1, 5, 'y')",
    ]);
    let select = |condition: &str| format!("SELECT k, k2 FROM t WHERE {condition}");
    assert_eq!(f.rows(&select("b = 'y'")), ["2 | 1"]);
    assert_eq!(f.rows(&select("m CONTAINS KEY 'a'")), ["1 | 1"]);
    assert_eq!(f.rows(&select("k = 1 AND k2 = 1 AND n = 5")), ["1 | 1"]);
    for (condition, found) in [
        ("n > 5", "1 | 2"),
        ("n = 5 AND b = 'x'", "1 | 1"),
        ("k = 2 AND n = 5", "2 | 1"),
        ("m CONTAINS KEY 'a' AND m CONTAINS KEY 'c'", "1 | 1"),
        ("k = 1 AND k2 = 1 AND n = 5 AND b = 'x'", "1 | 1"),
    ] {
        let refused = error(&f, &select(condition)).message;
        assert!(
            refused.contains("ALLOW FILTERING"),
            "{condition}: {refused}"
        );
        let allowed = format!("{} ALLOW FILTERING", select(condition));
        assert_eq!(f.rows(&allowed), [found], "{condition}");
    }
    // Storage-attached indexes serve such relations, also where there are others.
    f.run("CREATE CUSTOM INDEX ON t (n) USING 'sai'");
    assert_eq!(f.rows(&select("n > 5")), ["1 | 2"]);
    assert!(
        error(&f, &select("n = 5 AND b = 'x'"))
            .message
            .contains("ALLOW FILTERING")
    );
    f.run("CREATE CUSTOM INDEX ON t (b) USING 'sai'");
    assert_eq!(f.rows(&select("n = 5 AND b = 'x'")), ["1 | 1"]);
}

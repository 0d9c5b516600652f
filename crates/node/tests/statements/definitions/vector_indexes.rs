//! CREATE CUSTOM INDEX ... USING 'vector_index' and DROP INDEX.

use uuid::Uuid;

use super::all_invalid;
use super::describe::described;
use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, c int, v vector<float, 3>, w vector<float, 2>, n int, i \
         vector<int, 3>, d vector<text, 2>, sv vector<float, 3> static, s text static, \
         m map<text, text>, \"F 1\" uuid, PRIMARY KEY (k, c))",
        "CREATE TABLE keyed (k vector<float, 2> PRIMARY KEY, v vector<float, 3>)",
        "CREATE TABLE other (k int PRIMARY KEY, v vector<float, 3>)",
    ])
}

/// The names of a table's indexes.
fn names(f: &Fixture, table: &str) -> Vec<String> {
    let catalog = f.database.storage.catalog();
    catalog
        .table("ks", table)
        .unwrap()
        .indexes
        .keys()
        .cloned()
        .collect()
}

/// The statements that describe the table `t` and what belongs to it.
fn statements_of_table(f: &Fixture) -> Vec<String> {
    let rows = described(f, "DESCRIBE TABLE t");
    rows.into_iter().map(|mut row| row.remove(3)).collect()
}

fn version(f: &Fixture, name: &str) -> Uuid {
    let catalog = f.database.storage.catalog();
    catalog.table("ks", "t").unwrap().indexes[name].version
}

#[test]
fn an_index_shows_in_the_schema_and_makes_a_log() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX ann ON t (v) USING 'vector_index' WITH OPTIONS = \
         {'similarity_function': 'EUCLIDEAN', 'maximum_node_connections': '32'}",
    ]);
    let version = version(&f, "ann");
    assert_eq!(version.get_version_num(), 1);
    assert_eq!(
        f.rows(
            "SELECT index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = \
             'ks' AND table_name = 't'"
        ),
        [format!(
            "'ann' | 'CUSTOM' | {{'class_name': 'vector_index', 'index_version': '{version}', \
             'maximum_node_connections': '32', 'similarity_function': 'EUCLIDEAN', 'target': 'v'}}"
        )]
    );
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", "t").unwrap();
    assert!(table.cdc.is_none(), "the option stays unset");
    let log = catalog.table("ks", "t_scylla_cdc_log").unwrap();
    assert_eq!(log.log_of, Some(table.id));
    f.run("DROP INDEX ann");
    let catalog = f.database.storage.catalog();
    assert!(catalog.table("ks", "t_scylla_cdc_log").is_none());
}

#[test]
fn every_spelling_makes_a_vector_index() {
    for class in [
        "vector_index",
        "Vector_Index",
        "sai",
        "SAI",
        "storageattachedindex",
        "StorageAttachedIndex",
        "org.apache.cassandra.index.sai.StorageAttachedIndex",
    ] {
        let f = fixture().with(&[&format!("CREATE CUSTOM INDEX i ON t (v) USING '{class}'")]);
        let catalog = f.database.storage.catalog();
        let index = &catalog.table("ks", "t").unwrap().indexes["i"];
        assert_eq!(index.class_name, "vector_index", "{class}");
    }
    let f = fixture().with(&["CREATE INDEX ON t (v) USING 'vector_index'"]);
    assert_eq!(names(&f, "t"), ["t_v_idx"]);
}

#[test]
fn tablets_are_not_needed() {
    let f = Fixture::new().with(&[
        "CREATE KEYSPACE vnodes WITH replication = {'class': 'SimpleStrategy', \
         'replication_factor': 1} AND tablets = {'enabled': false}",
        "CREATE TABLE vnodes.t (k int PRIMARY KEY, v vector<float, 3>)",
        "CREATE CUSTOM INDEX ON vnodes.t (v) USING 'vector_index'",
    ]);
    let catalog = f.database.storage.catalog();
    let table = catalog.table("vnodes", "t").unwrap();
    assert!(table.indexes.contains_key("t_v_idx"));
    assert!(table.log.as_ref().is_some_and(|log| log.streams.is_none()));
}

#[test]
fn names_are_unique_in_the_keyspace() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX ON t (v) USING 'vector_index'",
        "CREATE CUSTOM INDEX second ON t (v) USING 'vector_index'",
        "CREATE CUSTOM INDEX IF NOT EXISTS second ON other (v) USING 'vector_index'",
        "CREATE CUSTOM INDEX IF NOT EXISTS ON t (v) USING 'vector_index'",
    ]);
    assert_eq!(names(&f, "t"), ["second", "t_v_idx"]);
    assert!(names(&f, "other").is_empty());
    all_invalid(
        &f,
        &[
            (
                "CREATE CUSTOM INDEX second ON other (v) USING 'vector_index'",
                "Index 'second' already exists",
            ),
            (
                "CREATE CUSTOM INDEX ON t (v) USING 'vector_index'",
                "Index t_v_idx_1 is a duplicate of existing index second",
            ),
            (
                "CREATE CUSTOM INDEX \"a b\" ON t (v) USING 'vector_index'",
                "Illegal index name a b",
            ),
        ],
    );
}

#[test]
fn a_default_name_that_is_taken_gets_a_number() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX other_v_idx ON t (v) USING 'vector_index'",
        "CREATE CUSTOM INDEX ON other (v) USING 'vector_index'",
    ]);
    assert_eq!(names(&f, "other"), ["other_v_idx_1"]);
}

#[test]
fn an_index_made_again_has_another_version_and_an_altered_table_the_same() {
    let create = "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'";
    let f = fixture().with(&[create]);
    let first = version(&f, "i");
    f.run("ALTER TABLE t ADD x int");
    assert_eq!(version(&f, "i"), first);
    f.run("DROP INDEX ks.i");
    f.run("DROP INDEX IF EXISTS i");
    f.run(create);
    assert_ne!(version(&f, "i"), first);
}

#[test]
fn columns_that_cannot_be_indexed_are_explained() {
    all_invalid(
        &fixture(),
        &[
            (
                "CREATE CUSTOM INDEX ON t (x) USING 'vector_index'",
                "No column definition found for column x",
            ),
            (
                "CREATE CUSTOM INDEX ON t (n) USING 'vector_index'",
                "Vector indexes are only supported on columns of vectors of floats (column n is \
                 of type int)",
            ),
            (
                "CREATE CUSTOM INDEX ON t (i) USING 'vector_index'",
                "Vector indexes are only supported on columns of vectors of floats (column i is \
                 of type vector<int, 3>)",
            ),
            (
                "CREATE CUSTOM INDEX ON t (i) USING 'sai'",
                "Vector indexes are only supported on columns of vectors of floats (column i is \
                 of type vector<int, 3>)",
            ),
            (
                "CREATE CUSTOM INDEX ON t (d) USING 'vector_index'",
                "Vector indexes are only supported on columns of vectors of floats (column d is \
                 of type vector<text, 2>)",
            ),
            (
                "CREATE CUSTOM INDEX ON t (ENTRIES(m)) USING 'vector_index'",
                "Vector indexes are only supported on columns of vectors of floats, not on \
                 entries(m)",
            ),
            (
                "CREATE CUSTOM INDEX ON t (sv) USING 'vector_index'",
                "Vector indexes are not supported on static columns (column sv)",
            ),
            (
                "CREATE CUSTOM INDEX ON keyed (k) USING 'vector_index'",
                "Vector indexes are not supported on PRIMARY KEY columns (column k)",
            ),
        ],
    );
}

#[test]
fn filter_columns_and_local_keys_show_in_the_schema() {
    for (list, name, target, shown) in [
        ("v", "t_v_idx", "v", "v"),
        (
            "v, n, k, s, M",
            "t_v_idx",
            r#"{"tc":"v","fc":["n","k","s","m"]}"#,
            "v, n, k, s, m",
        ),
        ("(k), v", "t_v_idx", r#"{"tc":"v","pk":["k"]}"#, "(k), v"),
        (
            "(c, n), v, \"F 1\"",
            "t_v_idx",
            r#"{"tc":"v","pk":["c","n"],"fc":["F 1"]}"#,
            "(c, n), v, \"F 1\"",
        ),
    ] {
        let create = format!("CREATE CUSTOM INDEX ON t({list}) USING 'vector_index'");
        let f = fixture().with(&[&create]);
        let options = f.rows("SELECT options FROM system_schema.indexes");
        assert!(
            options[0].contains(&format!("'target': '{target}'")),
            "{list}: {options:?}"
        );
        let described = described(&f, &format!("DESCRIBE INDEX {name}"));
        let expected = format!("CREATE CUSTOM INDEX {name} ON ks.t({shown}) USING 'vector_index';");
        assert_eq!(described[0][3], expected);
        let table: Vec<String> = statements_of_table(&f);
        assert!(table.contains(&expected), "{table:?}");
        // The description makes the same index again.
        f.run(&format!("DROP INDEX {name}"));
        f.run(&expected);
        assert!(f.rows("SELECT options FROM system_schema.indexes")[0].contains(target));
    }
}

#[test]
fn an_unnamed_index_is_a_duplicate_if_another_has_its_key() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX ON t (v) USING 'vector_index'",
        "CREATE CUSTOM INDEX ON t ((k), v) USING 'vector_index'",
        "CREATE CUSTOM INDEX ON t ((k, c), v) USING 'vector_index'",
        "CREATE CUSTOM INDEX IF NOT EXISTS ON t ((k), v, n) USING 'vector_index'",
        "CREATE CUSTOM INDEX named ON t (v, n) USING 'vector_index'",
    ]);
    assert_eq!(
        names(&f, "t"),
        ["named", "t_v_idx", "t_v_idx_1", "t_v_idx_2"]
    );
    all_invalid(
        &f,
        &[
            (
                "CREATE CUSTOM INDEX ON t (v, s) USING 'vector_index'",
                "Index t_v_idx_3 is a duplicate of existing index named",
            ),
            (
                "CREATE CUSTOM INDEX ON t ((k), v, n) USING 'vector_index'",
                "Index t_v_idx_3 is a duplicate of existing index t_v_idx_1",
            ),
        ],
    );
}

#[test]
fn a_column_that_an_index_needs_stays_and_follows_its_new_name() {
    let f =
        fixture().with(&["CREATE CUSTOM INDEX i ON t ((k, n), v, c, s, m) USING 'vector_index'"]);
    for column in ["v", "n", "s", "m"] {
        all_invalid(
            &f,
            &[(
                &*format!("ALTER TABLE t DROP {column}"),
                &*format!(
                    "Cannot drop column {column} because it has dependent secondary indexes (i)"
                ),
            )],
        );
    }
    f.run("ALTER TABLE t DROP w");
    f.run("ALTER TABLE t RENAME k TO \"K\" AND c TO place");
    assert_eq!(
        described(&f, "DESCRIBE INDEX i")[0][3],
        "CREATE CUSTOM INDEX i ON ks.t((\"K\", n), v, place, s, m) USING 'vector_index';"
    );
    let catalog = f.database.storage.catalog();
    let index = &catalog.table("ks", "t").unwrap().indexes["i"];
    assert_eq!(
        index.target,
        r#"{"tc":"v","pk":["K","n"],"fc":["place","s","m"]}"#
    );
    assert_eq!(index.local_key, ["K", "n"]);
    assert_eq!(index.filter_columns, ["place", "s", "m"]);
    f.run("DROP INDEX i");
    f.run("ALTER TABLE t DROP (n, s, m)");
}

#[test]
fn lists_that_are_no_target_are_explained() {
    all_invalid(
        &fixture(),
        &[
            (
                "CREATE CUSTOM INDEX ON t (v, x) USING 'vector_index'",
                "No column definition found for column x",
            ),
            (
                "CREATE CUSTOM INDEX ON t (v, w) USING 'vector_index'",
                "Unsupported vector index filtering column w of type vector<float, 2>",
            ),
            (
                "CREATE CUSTOM INDEX ON t ((m), v) USING 'vector_index'",
                "Unsupported vector index filtering column m of type map<text, text>",
            ),
            (
                "CREATE CUSTOM INDEX ON t ((s), v) USING 'vector_index'",
                "Unsupported vector index filtering column s: a static column can't be in the key \
                 of a local index",
            ),
            (
                "CREATE CUSTOM INDEX ON t ((k)) USING 'vector_index'",
                "An index needs a column to index",
            ),
            (
                "CREATE CUSTOM INDEX ON t ((k), n) USING 'vector_index'",
                "Vector indexes are only supported on columns of vectors of floats (column n is \
                 of type int)",
            ),
            (
                "CREATE CUSTOM INDEX ON t (v, v) USING 'vector_index'",
                "Duplicate column v in index target list",
            ),
            (
                "CREATE CUSTOM INDEX ON t ((k, k), v) USING 'vector_index'",
                "Duplicate column definition in local vector index: k",
            ),
        ],
    );
}

#[test]
fn classes_that_are_not_there_are_explained() {
    all_invalid(
        &fixture(),
        &[
            (
                "CREATE INDEX ON t (v)",
                "An index on vectors (v) needs a class: CREATE CUSTOM INDEX ... USING \
                 'vector_index'",
            ),
            (
                "CREATE CUSTOM INDEX ON t (v)",
                "CUSTOM index requires specifying the index class",
            ),
            (
                "CREATE CUSTOM INDEX ON t (v) USING 'org.example.Index'",
                "Non-supported custom class 'org.example.Index' provided: use 'sai', \
                 'vector_index' on a column of vectors, or 'fulltext_index' on a column of text",
            ),
            (
                "CREATE CUSTOM INDEX ON t (v) USING 'ORG.apache.cassandra.index.sai.StorageAttachedIndex'",
                "Non-supported custom class \
                 'ORG.apache.cassandra.index.sai.StorageAttachedIndex' provided: use 'sai', \
                 'vector_index' on a column of vectors, or 'fulltext_index' on a column of text",
            ),
        ],
    );
}

#[test]
fn wrong_options_are_explained() {
    all_invalid(
        &fixture(),
        &[
            (
                "CREATE CUSTOM INDEX ON t (v) USING 'vector_index' WITH OPTIONS = \
                 {'quantization': 'f8'}",
                "Invalid value in option 'quantization' for vector index: 'f8'. Supported are \
                 case insensitive: f32, f16, bf16, i8, b1",
            ),
            (
                "CREATE CUSTOM INDEX ON t (v) USING 'vector_index' WITH OPTIONS = {'m': '16'}",
                "Unsupported option m for vector index",
            ),
            (
                "CREATE CUSTOM INDEX ON t (v) USING 'vector_index' WITH OPTIONS = \
                 {'index_version': 'x'}",
                "Cannot specify index_version as a CUSTOM option",
            ),
        ],
    );
}

#[test]
fn tables_and_indexes_that_do_not_exist_are_explained() {
    all_invalid(
        &fixture(),
        &[
            (
                "CREATE CUSTOM INDEX ON nothing (v) USING 'vector_index'",
                "Table 'ks.nothing' doesn't exist",
            ),
            ("DROP INDEX nothing", "Index 'ks.nothing' doesn't exist"),
        ],
    );
}

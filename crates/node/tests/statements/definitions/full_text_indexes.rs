//! CREATE CUSTOM INDEX ... USING 'fulltext_index'.

use super::describe::described;
use super::{all_invalid, error};
use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (tenant text, c text, body text, title ascii, note text static, year int, \
         tags set<text>, v vector<float, 3>, PRIMARY KEY (tenant, c))",
        "CREATE TABLE other (k int PRIMARY KEY, body varchar)",
        "CREATE TABLE counters (k int PRIMARY KEY, n counter)",
    ])
}

/// The options of all indexes, as `system_schema.indexes` has them.
fn options(f: &Fixture) -> Vec<String> {
    f.rows("SELECT kind, options FROM system_schema.indexes")
}

#[test]
fn an_index_shows_in_the_schema_and_makes_a_log() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX words ON t (body) USING 'fulltext_index' WITH OPTIONS = \
         {'analyzer': 'English', 'positions': 'false'}",
    ]);
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", "t").unwrap();
    let index = &table.indexes["words"];
    assert!(index.is_full_text());
    assert_eq!(index.version.get_version_num(), 1);
    assert_eq!(
        options(&f),
        [format!(
            "'CUSTOM' | {{'analyzer': 'English', 'class_name': 'fulltext_index', 'index_version': \
             '{}', 'positions': 'false', 'target': 'body'}}",
            index.version
        )]
    );
    let named: Vec<&str> = table
        .full_text_indexes_on("body")
        .map(|index| index.name.as_str())
        .collect();
    assert_eq!(named, ["words"]);
    assert_eq!(table.vector_indexes_on("body").count(), 0);
    assert!(table.cdc.is_none(), "the option stays unset");
    let log = catalog.table("ks", "t_scylla_cdc_log").unwrap();
    assert_eq!(log.log_of, Some(table.id));
    assert_eq!(
        described(&f, "DESCRIBE INDEX words")[0][3],
        "CREATE CUSTOM INDEX words ON ks.t(body) USING 'fulltext_index' WITH OPTIONS = \
         {'analyzer': 'English', 'positions': 'false'};"
    );
    f.run("DROP INDEX words");
    let catalog = f.database.storage.catalog();
    assert!(catalog.table("ks", "t_scylla_cdc_log").is_none());
}

#[test]
fn every_form_of_the_list_is_stored_and_described() {
    for (list, name, target) in [
        ("body", "t_body_idx", "body"),
        ("title", "t_title_idx", "title"),
        ("note", "t_note_idx", "note"),
        ("c", "t_c_idx", "c"),
        (
            "body, year, tags",
            "t_body_idx",
            r#"{"tc":"body","fc":["year","tags"]}"#,
        ),
        (
            "(tenant), body",
            "t_body_idx",
            r#"{"tc":"body","pk":["tenant"]}"#,
        ),
        (
            "(tenant, year), body, c, note",
            "t_body_idx",
            r#"{"tc":"body","pk":["tenant","year"],"fc":["c","note"]}"#,
        ),
    ] {
        let create = format!("CREATE INDEX ON t({list}) USING 'FullText_Index'");
        let f = fixture().with(&[&create]);
        assert!(
            options(&f)[0].contains(&format!("'target': '{target}'")),
            "{list}"
        );
        let statement = described(&f, &format!("DESCRIBE INDEX {name}"))[0][3].clone();
        let expected =
            format!("CREATE CUSTOM INDEX {name} ON ks.t({list}) USING 'fulltext_index';");
        assert_eq!(statement, expected);
        // The description makes the same index again.
        f.run(&format!("DROP INDEX {name}"));
        f.run(&expected);
        assert!(options(&f)[0].contains(target));
    }
}

#[test]
fn an_index_of_each_class_may_be_on_a_table() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX ON t (body) USING 'fulltext_index'",
        "CREATE CUSTOM INDEX second ON t (body) USING 'fulltext_index'",
        "CREATE CUSTOM INDEX ON t ((tenant), body) USING 'fulltext_index'",
        "CREATE CUSTOM INDEX exact ON t (body) USING 'sai'",
        "CREATE CUSTOM INDEX nearest ON t (v, body) USING 'vector_index'",
        "CREATE CUSTOM INDEX IF NOT EXISTS second ON other (body) USING 'fulltext_index'",
        "CREATE CUSTOM INDEX IF NOT EXISTS ON t (body, year) USING 'fulltext_index'",
    ]);
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", "t").unwrap();
    let names: Vec<&String> = table.indexes.keys().collect();
    assert_eq!(names, ["nearest", "second", "t_body_idx", "t_body_idx_1"]);
    assert_eq!(table.vector_indexes_on("v").count(), 1);
    assert_eq!(table.full_text_indexes_on("body").count(), 3);
    assert!(table.secondary_indexes.contains_key("exact"));
    all_invalid(
        &f,
        &[
            (
                "CREATE CUSTOM INDEX nearest ON other (body) USING 'fulltext_index'",
                "Index 'nearest' already exists",
            ),
            (
                "CREATE CUSTOM INDEX ON t ((tenant), body, c) USING 'fulltext_index'",
                "Index t_body_idx_2 is a duplicate of existing index t_body_idx_1",
            ),
        ],
    );
}

#[test]
fn columns_that_cannot_have_their_place_are_explained() {
    all_invalid(
        &fixture(),
        &[
            (
                "CREATE CUSTOM INDEX ON t (x) USING 'fulltext_index'",
                "No column definition found for column x",
            ),
            (
                "CREATE CUSTOM INDEX ON t (year) USING 'fulltext_index'",
                "Full-text indexes are only supported on columns of text, varchar or ascii \
                 (column year is of type int)",
            ),
            (
                "CREATE CUSTOM INDEX ON t (tags) USING 'fulltext_index'",
                "Full-text indexes are only supported on columns of text, varchar or ascii \
                 (column tags is of type set<text>)",
            ),
            (
                "CREATE CUSTOM INDEX ON t (VALUES(tags)) USING 'fulltext_index'",
                "Full-text indexes are only supported on columns of text, varchar or ascii, not \
                 on values(tags)",
            ),
            (
                "CREATE CUSTOM INDEX ON t (tenant) USING 'fulltext_index'",
                "Full-text indexes are not supported on partition key columns (column tenant): \
                 keep the text in another column, too",
            ),
            (
                "CREATE CUSTOM INDEX ON t (body, v) USING 'fulltext_index'",
                "Unsupported full-text index filtering column v of type vector<float, 3>",
            ),
            (
                "CREATE CUSTOM INDEX ON t ((note), body) USING 'fulltext_index'",
                "Unsupported full-text index filtering column note: a static column can't be in \
                 the key of a local index",
            ),
            (
                "CREATE CUSTOM INDEX ON t (body, body) USING 'fulltext_index'",
                "Duplicate column body in index target list",
            ),
            (
                "CREATE CUSTOM INDEX ON t (body) USING 'vector_index'",
                "Vector indexes are only supported on columns of vectors of floats (column body \
                 is of type text)",
            ),
            (
                "CREATE CUSTOM INDEX ON counters (n) USING 'fulltext_index'",
                "Secondary indexes on counter tables aren't supported",
            ),
        ],
    );
}

#[test]
fn wrong_options_are_explained() {
    let create = "CREATE CUSTOM INDEX ON t (body) USING 'fulltext_index' WITH OPTIONS = ";
    for (given, expected) in [
        (
            "{'analyzer': 'klingon'}",
            "Invalid value in option 'analyzer' for full-text index: 'klingon'. Supported are",
        ),
        (
            "{'analyzer': 'chinese'}",
            "Invalid value in option 'analyzer' for full-text index: 'chinese'. Use cjk, which",
        ),
        (
            "{'positions': 'maybe'}",
            "Invalid value in option 'positions' for full-text index: 'maybe'. Supported are",
        ),
        (
            "{'quantization': 'f32'}",
            "Unsupported option quantization for full-text index",
        ),
        (
            "{'target': 'body'}",
            "Cannot specify target as a CUSTOM option",
        ),
    ] {
        let refused = error(&fixture(), &format!("{create}{given}"));
        assert!(refused.message.starts_with(expected), "{}", refused.message);
    }
}

#[test]
fn the_change_log_serves_the_index_as_long_as_there_is_one() {
    let f = fixture().with(&["ALTER TABLE t WITH cdc = {'enabled': false}"]);
    let create = "CREATE CUSTOM INDEX words ON t (body) USING 'fulltext_index'";
    all_invalid(
        &f,
        &[(
            create,
            "Cannot create the full-text index when CDC is explicitly disabled: set cdc = \
             {'enabled': true} on the table first",
        )],
    );
    f.run("ALTER TABLE t WITH cdc = {'enabled': true}");
    f.run(create);
    all_invalid(
        &f,
        &[
            (
                "ALTER TABLE t WITH cdc = {'enabled': false}",
                "Cannot disable CDC when Full-Text Search is enabled on the table. Drop the \
                 full-text index first, then disable CDC",
            ),
            (
                "ALTER TABLE t WITH cdc = {'enabled': true, 'ttl': 3600}",
                "CDC log must meet the minimal requirements of Full-Text Search: its TTL must be \
                 0 or at least 86400 seconds (24 hours), but is 3600",
            ),
        ],
    );
    f.run("DROP INDEX words");
    f.run("ALTER TABLE t WITH cdc = {'enabled': false}");
}

#[test]
fn a_column_that_an_index_needs_stays_and_follows_its_new_name() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX i ON t ((tenant, year), body, tags) USING 'fulltext_index'",
        "CREATE CUSTOM INDEX by_place ON t (c) USING 'fulltext_index'",
    ]);
    for column in ["body", "year", "tags"] {
        let expected =
            format!("Cannot drop column {column} because it has dependent secondary indexes (i)");
        let drop = format!("ALTER TABLE t DROP {column}");
        all_invalid(&f, &[(&*drop, &*expected)]);
    }
    f.run("ALTER TABLE t RENAME tenant TO owner AND c TO \"Place\"");
    assert_eq!(
        described(&f, "DESCRIBE INDEX i")[0][3],
        "CREATE CUSTOM INDEX i ON ks.t((owner, year), body, tags) USING 'fulltext_index';"
    );
    assert_eq!(
        described(&f, "DESCRIBE INDEX by_place")[0][3],
        "CREATE CUSTOM INDEX by_place ON ks.t(\"Place\") USING 'fulltext_index';"
    );
    let catalog = f.database.storage.catalog();
    let index = &catalog.table("ks", "t").unwrap().indexes["by_place"];
    assert_eq!((&*index.column, &*index.target), ("Place", "Place"));
    f.run("DROP INDEX i");
    f.run("ALTER TABLE t DROP (body, tags)");
}

#[test]
fn every_text_can_be_written_to_an_indexed_column() {
    let f = fixture().with(&[
        "CREATE CUSTOM INDEX ON t (body) USING 'fulltext_index'",
        "INSERT INTO t (tenant, c, body) VALUES ('a', 'b', '')",
        "UPDATE t SET body = 'some words' WHERE tenant = 'a' AND c = 'b'",
    ]);
    assert_eq!(f.rows("SELECT body FROM t"), ["'some words'"]);
}

#[test]
fn words_of_a_text_are_taken_as_they_are() {
    let f = fixture().with(&["INSERT INTO other (k, body) VALUES (1, 'C++ AND (tea)')"]);
    assert_eq!(
        f.rows("SELECT bm25_words(body) FROM other"),
        [r"'C\+\+ \AND \(tea\)'"]
    );
    f.run("INSERT INTO other (k) VALUES (1)");
    f.run("DELETE body FROM other WHERE k = 1");
    assert_eq!(f.rows("SELECT bm25_words(body) FROM other"), ["null"]);
}

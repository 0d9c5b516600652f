use bytes::Buf;
use cql::ast::Statement;
use schema::{Catalog, CdcOptions, DeltaMode, ImageMode};

use super::*;
use crate::fixtures;
use crate::system::SystemTables;

fn system() -> SystemTables {
    SystemTables::new()
}

/// Executes a DESCRIBE statement on the schema of the fixtures.
fn describe(text: &str, in_use: Option<&str>) -> Result<Vec<Vec<String>>, CqlError> {
    let catalog = fixtures::catalog();
    let system = system();
    let schema = CombinedSchema {
        catalog: &catalog,
        system: &system,
    };
    let parsed = cql::parser::parse_statement(text)?;
    let Statement::Describe(describe) = parsed.statement else {
        panic!("{text}");
    };
    let plan = plan(resolve(&schema, in_use, &describe)?, describe.internals);
    let rows = rows(&schema, &plan)?;
    // Encoded as for the wire, and decoded again.
    let ExecutionOutcome::Rows(answer) = answer(&plan, &rows).outcome else {
        panic!("no rows");
    };
    let mut body = answer.body.freeze();
    let mut read = Vec::new();
    for _ in 0..answer.count {
        let mut row = Vec::new();
        for _ in answer.columns.iter() {
            let length = body.get_i32() as usize;
            row.push(String::from_utf8(body.split_to(length).to_vec()).unwrap());
        }
        read.push(row);
    }
    assert!(body.is_empty());
    assert_eq!(read, rows);
    Ok(read)
}

fn statement(text: &str) -> String {
    describe(text, None).unwrap()[0][3].clone()
}

fn names(rows: &[Vec<String>]) -> Vec<&str> {
    rows.iter().map(|row| row[2].as_str()).collect()
}

#[test]
fn a_table_is_described_whole() {
    let rows = describe("DESCRIBE TABLE shop.films", None).unwrap();
    assert_eq!(rows[0][..3], ["shop", "table", "films"]);
    assert_eq!(
        rows[0][3],
        "CREATE TABLE shop.films (
    studio text,
    year int,
    released timestamp,
    id int,
    founder text static,
    plot vector<float, 3>,
    tags set<text>,
    PRIMARY KEY ((studio, year), released, id)
) WITH CLUSTERING ORDER BY (released DESC, id ASC)
    AND bloom_filter_fp_chance = 0.5
    AND cdc = {'delta': 'full', 'enabled': 'true', 'postimage': 'false', 'preimage': 'full', 'ttl': '86400'}
    AND comment = 'it''s all'
    AND compaction = {'class': 'LeveledCompactionStrategy'}
    AND default_time_to_live = 0
    AND gc_grace_seconds = 864000;"
    );
    assert_eq!(rows[1][..3], ["shop", "index", "films_plot"]);
    assert_eq!(
        rows[1][3],
        "CREATE CUSTOM INDEX films_plot ON shop.films((studio, year), plot, id, tags) \
         USING 'vector_index' WITH OPTIONS = {'similarity_function': 'COSINE'};"
    );
}

#[test]
fn odd_names_are_quoted() {
    assert_eq!(
        statement("DESCRIBE TABLE shop.\"Odd Names\""),
        "CREATE TABLE shop.\"Odd Names\" (
    \"select\" int PRIMARY KEY,
    \"Value \"\"x\"\"\" text
) WITH comment = ''
    AND default_time_to_live = 0
    AND gc_grace_seconds = 864000;"
    );
}

#[test]
fn the_option_cdc_is_described_where_there_is_a_log() {
    let mut catalog = fixtures::catalog();
    let described =
        |catalog: &Catalog| create::table(catalog.table("shop", "Odd Names").unwrap(), false);
    let mut set = |enabled| {
        let mut table = (**catalog.table("shop", "Odd Names").unwrap()).clone();
        table.cdc = Some(CdcOptions {
            enabled,
            preimage: ImageMode::Off,
            postimage: false,
            delta: DeltaMode::Full,
            ttl_s: 86_400,
        });
        catalog.put_table(table);
        described(&catalog)
    };
    // Cassandra refuses the map, and its own DESCRIBE writes `cdc = false` for each table.
    let never = set(false);
    assert!(!never.contains("cdc"), "{never}");
    let on = set(true);
    assert!(
        on.contains("cdc = {'delta': 'full', 'enabled': 'true'"),
        "{on}"
    );
    // The log is there still, and can be read.
    let off = set(false);
    assert!(
        off.contains("cdc = {'delta': 'full', 'enabled': 'false'"),
        "{off}"
    );
}

#[test]
fn internals_show_the_id() {
    let text = statement("DESCRIBE TABLE shop.\"Odd Names\" WITH INTERNALS");
    assert!(
        text.contains(") WITH ID = 00000000-0000-0000-0000-0000000000dd\n"),
        "{text}"
    );
}

#[test]
fn internals_are_shown_of_each_table_that_is_described() {
    for (what, in_use) in [
        ("SCHEMA", None),
        ("FULL SCHEMA", None),
        ("KEYSPACE shop", None),
        ("KEYSPACE", Some("shop")),
        ("shop", None),
        ("shop.films", None),
        ("films", Some("shop")),
        ("TABLE shop.films", None),
    ] {
        let tables = |text: &str| -> Vec<String> {
            let rows = describe(text, in_use).unwrap().into_iter();
            let rows = rows.filter(|row| row[1] == "table");
            rows.map(|mut row| row.remove(3)).collect()
        };
        let plain = tables(&format!("DESCRIBE {what}"));
        let whole = tables(&format!("DESCRIBE {what} WITH INTERNALS"));
        assert!(!plain.is_empty() && plain.len() == whole.len(), "{what}");
        for (plain, whole) in plain.iter().zip(&whole) {
            assert!(!plain.contains(" WITH ID = "), "{what}: {plain}");
            assert!(whole.contains(" WITH ID = "), "{what}: {whole}");
        }
    }
}

#[test]
fn keyspaces_tell_replication_and_tablets() {
    assert_eq!(
        statement("DESCRIBE ONLY KEYSPACE old"),
        "CREATE KEYSPACE old WITH replication = \
         {'class': 'NetworkTopologyStrategy', 'replication_factor': '3'} \
         AND durable_writes = true;"
    );
    let whole = describe("DESCRIBE KEYSPACE shop", None).unwrap();
    // Without the CDC log, which is created with its table.
    assert_eq!(
        names(&whole),
        ["shop", "films", "films_plot", "\"Odd Names\""]
    );
    let in_use = describe("DESCRIBE KEYSPACE", Some("shop")).unwrap();
    assert_eq!(in_use, whole);
}

#[test]
fn the_schema_is_the_users_unless_it_is_full() {
    let rows = describe("DESCRIBE SCHEMA", None).unwrap();
    assert!(rows.iter().all(|row| row[0] == "shop" || row[0] == "old"));
    assert_eq!(rows.len(), 5);
    let full = describe("DESCRIBE FULL SCHEMA", None).unwrap();
    assert!(
        full.iter()
            .any(|row| row[0] == "system" && row[2] == "local")
    );
    // Objects that cannot be created are described in comments, so that their text does nothing
    // when it is executed.
    for row in full.iter().filter(|row| row[0].starts_with("system")) {
        assert!(
            row[3].starts_with("/*") && row[3].ends_with("*/"),
            "{row:?}"
        );
    }
}

#[test]
fn a_cdc_log_is_shown_but_not_to_be_executed() {
    let text = statement("DESCRIBE TABLE shop.films_scylla_cdc_log");
    assert!(text.starts_with("/*") && text.ends_with("*/"), "{text}");
    assert!(text.contains("\"cdc$stream_id\" blob"), "{text}");
}

#[test]
fn lists_name_everything() {
    let keyspaces = describe("DESCRIBE KEYSPACES", None).unwrap();
    assert!(names(&keyspaces).is_sorted());
    for name in [
        "old",
        "shop",
        "system",
        "system_schema",
        "system_virtual_schema",
    ] {
        assert!(names(&keyspaces).contains(&name), "{name}");
    }
    let tables = describe("DESCRIBE TABLES", Some("shop")).unwrap();
    // Without CDC logs, which come with their tables.
    assert_eq!(names(&tables), ["films", "\"Odd Names\""]);
    let everywhere = describe("DESCRIBE TABLES", None).unwrap();
    assert!(names(&everywhere).contains(&"local"));
    assert!(describe("DESCRIBE TYPES", None).unwrap().is_empty());
    let cluster = describe("DESCRIBE CLUSTER", None).unwrap();
    assert_eq!(
        cluster,
        [["Test Cluster", "Murmur3Partitioner", "SimpleSnitch"]]
    );
}

#[test]
fn a_bare_name_is_whatever_is_found() {
    assert_eq!(describe("DESCRIBE shop", None).unwrap()[0][1], "keyspace");
    assert_eq!(
        describe("DESCRIBE films", Some("shop")).unwrap()[0][1],
        "table"
    );
    assert_eq!(
        describe("DESCRIBE shop.films_plot", None).unwrap()[0][1],
        "index"
    );
}

#[test]
fn an_unknown_object_is_an_error() {
    for (text, in_use, message) in [
        (
            "DESCRIBE KEYSPACE none",
            None,
            "'none' not found in keyspaces",
        ),
        (
            "DESCRIBE TABLE films",
            None,
            "No keyspace specified and no current keyspace",
        ),
        (
            "DESCRIBE TABLE shop.none",
            None,
            "Table 'none' not found in keyspace 'shop'",
        ),
        (
            "DESCRIBE INDEX shop.none",
            None,
            "Index 'none' not found in keyspace 'shop'",
        ),
        ("DESCRIBE none", None, "'none' not found in keyspaces"),
        (
            "DESCRIBE none",
            Some("shop"),
            "'none' not found in keyspace 'shop'",
        ),
        (
            "DESCRIBE TYPE none",
            Some("shop"),
            "User defined type 'none' not found in 'shop'",
        ),
    ] {
        let error = describe(text, in_use).unwrap_err();
        assert_eq!(error.kind, cql::error::ErrorKind::Invalid);
        assert_eq!(error.message, message, "{text}");
    }
}

#[test]
fn every_statement_parses() {
    for row in describe("DESCRIBE SCHEMA", None).unwrap() {
        cql::parser::parse_statement(&row[3]).unwrap_or_else(|error| panic!("{error}: {}", row[3]));
    }
}

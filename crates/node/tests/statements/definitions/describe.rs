//! DESCRIBE writes every name in the form in which a statement needs it.

use bytes::Buf;
use cql::ast::Statement;
use cql::parser::parse_statement;
use cql::quote::Identifier;
use node::statement::{ExecutionOutcome, ExecutionParameters};

use crate::fixture::Fixture;

/// Names of keyspaces, tables and indexes that need quotes, each for another reason.
const AWKWARD_WORDS: [&str; 5] = ["Mixed", "1st", "_x", "select", "Infinity"];

/// Names of columns, which may hold any characters.
const AWKWARD_COLUMNS: [&str; 12] = [
    "Mixed",
    "1st",
    "_x",
    "select",
    "nan",
    "a b",
    "say \"hi\"",
    "\"",
    "it's",
    "a.b",
    "ä",
    "a$b",
];

/// The rows of a DESCRIBE.
pub(crate) fn described(f: &Fixture, cql: &str) -> Vec<Vec<String>> {
    let ExecutionOutcome::Rows(rows) = f
        .execute(cql, ExecutionParameters::default())
        .unwrap()
        .outcome
    else {
        panic!("{cql}: no rows");
    };
    let mut body = &rows.body[..];
    let mut cell = || {
        let length = body.get_i32() as usize;
        let (text, rest) = body.split_at(length);
        body = rest;
        String::from_utf8(text.to_vec()).unwrap()
    };
    (0..rows.count)
        .map(|_| rows.columns.iter().map(|_| cell()).collect())
        .collect()
}

fn id(name: &str) -> String {
    Identifier(name).to_string()
}

/// A schema with awkward names wherever a name can stand.
fn awkward() -> Fixture {
    let f = Fixture::new();
    for keyspace in AWKWARD_WORDS {
        f.run(&format!(
            "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
            id(keyspace)
        ));
        for table in AWKWARD_WORDS {
            let [p, q, c, d, s, v, others @ ..] = AWKWARD_COLUMNS.map(id);
            let others = others.map(|column| format!("{column} int, ")).concat();
            let name = format!("{}.{}", id(keyspace), id(table));
            f.run(&format!(
                "CREATE TABLE {name} ({p} int, {q} int, {c} int, {d} int, {s} int STATIC, \
                 {v} vector<float, 2>, {others} PRIMARY KEY (({p}, {q}), {c}, {d})) \
                 WITH CLUSTERING ORDER BY ({c} DESC, {d} ASC) AND comment = 'it''s'"
            ));
            f.run(&format!(
                "CREATE CUSTOM INDEX {} ON {name}({v}) USING 'vector_index'",
                id(&format!("I{table}"))
            ));
        }
        f.run(&format!(
            "CREATE TABLE {}.{} ({} int PRIMARY KEY)",
            id(keyspace),
            id("TABLE"),
            id("KEY")
        ));
    }
    f
}

#[test]
fn described_statements_make_the_same_schema_again() {
    let f = awkward();
    let told = described(&f, "DESCRIBE SCHEMA");
    let again = Fixture::new();
    again.run("DROP KEYSPACE ks");
    for row in &told {
        again.run(&row[3]);
    }
    assert_eq!(described(&again, "DESCRIBE SCHEMA"), told);
    assert_eq!(
        told.len(),
        1 + AWKWARD_WORDS.len() * (2 + 2 * AWKWARD_WORDS.len())
    );
}

/// Every name in a list or description can be pasted where a statement wants a name.
#[test]
fn every_name_told_is_read_as_the_name_meant() {
    let f = awkward();
    let meant = |told: &str| match parse_statement(&format!("USE {told}")).unwrap().statement {
        Statement::Use { keyspace } => keyspace,
        other => panic!("{told}: {other:?}"),
    };
    for list in [
        "DESCRIBE KEYSPACES",
        "DESCRIBE KEYSPACE \"select\"",
        "DESCRIBE FULL SCHEMA",
    ] {
        let names: Vec<String> = described(&f, list)
            .iter()
            .flat_map(|row| [row[0].clone(), row[2].clone()])
            .inspect(|told| assert_eq!(&id(&meant(told)), told, "{list}"))
            .map(|told| meant(&told))
            .collect();
        for name in AWKWARD_WORDS {
            assert!(names.iter().any(|told| told == name), "{list}: {name}");
        }
    }
}

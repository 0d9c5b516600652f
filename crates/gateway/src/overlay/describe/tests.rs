use std::collections::BTreeMap;

use index::target::StoredTarget;
use uuid::Uuid;

use super::*;

fn snapshot() -> IndexCatalogSnapshot {
    let index = |table: &str, name: &str, target: &str| {
        Arc::new(DefinedIndex {
            keyspace: "k".to_owned(),
            table: table.to_owned(),
            name: name.to_owned(),
            class_name: "vector_index".to_owned(),
            target: StoredTarget::decode(target),
            options: BTreeMap::new(),
            version: Uuid::nil(),
            table_id: Uuid::nil(),
        })
    };
    let local = r#"{"tc":"v","pk":["p","Q"],"fc":["f"]}"#;
    IndexCatalogSnapshot::new([], [index("T", "one", "v"), index("u", "two", local)])
}

fn answer(columns: &[&str], rows: &[&[&str]]) -> EncodedRows {
    let column = |name: &&str| ColumnSpec {
        keyspace: "system".into(),
        table: "describe".into(),
        name: (*name).into(),
        cql_type: CqlType::Text,
    };
    let columns = ColumnsMetadata {
        columns: columns.iter().map(column).collect(),
    };
    let mut encoder = RowsEncoder::new(&columns, false);
    for row in rows {
        row.iter()
            .for_each(|cell| encoder.cell(Some(cell.as_bytes())));
        encoder.end_row();
    }
    encoder.finish(None)
}

fn texts(rows: &EncodedRows) -> Vec<Vec<String>> {
    let text = |cell: Option<bytes::Bytes>| String::from_utf8(cell.unwrap().to_vec()).unwrap();
    let rows = rows.decode().unwrap().rows;
    let rows = rows.into_iter();
    rows.map(|row| row.into_iter().map(text).collect())
        .collect()
}

const ONE: [&str; 4] = [
    "k",
    "index",
    "one",
    "CREATE CUSTOM INDEX one ON k.\"T\"(v) USING 'vector_index';",
];

#[test]
fn indexes_come_after_their_tables() {
    let description = ParsedDescribe::read("DESCRIBE KEYSPACE k", None).unwrap();
    let keyspace: &[&str] = &["k", "keyspace", "k", "CREATE KEYSPACE k ..."];
    let table: &[&str] = &["k", "table", "\"T\"", "CREATE TABLE ..."];
    let other: &[&str] = &["k", "table", "t", "CREATE TABLE ..."];
    let node = answer(&COLUMNS, &[keyspace, table, other]);
    let told = description.add_to(&node, &snapshot()).unwrap().unwrap();
    assert_eq!(texts(&told), [keyspace, table, &ONE, other]);
}

#[test]
fn lists_of_names_stay() {
    let description = ParsedDescribe::read("DESC TABLES", None).unwrap();
    let node = answer(&COLUMNS[..3], &[&["k", "table", "u"]]);
    assert_eq!(description.add_to(&node, &snapshot()).unwrap(), None);
}

#[test]
fn an_index_that_the_node_does_not_know_is_described() {
    let instead = |text, in_use| {
        let description = ParsedDescribe::read(text, in_use).unwrap();
        description.instead(&snapshot())
    };
    for (text, in_use) in [
        ("DESCRIBE INDEX k.one", None),
        ("DESC one;", Some("k")),
        ("DESCRIBE k.one", Some("other")),
    ] {
        assert_eq!(texts(&instead(text, in_use).unwrap()), [ONE], "{text}");
    }
    let local = texts(&instead("DESCRIBE INDEX k.two", None).unwrap());
    assert_eq!(
        local[0][3],
        "CREATE CUSTOM INDEX two ON k.u((p, \"Q\"), v, f) USING 'vector_index';"
    );
    assert_eq!(instead("DESCRIBE INDEX k.nothing", None), None);
    assert_eq!(instead("DESCRIBE INDEX one", None), None);
    assert_eq!(instead("DESCRIBE TABLE k.u", None), None);
}

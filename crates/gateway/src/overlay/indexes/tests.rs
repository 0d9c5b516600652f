use bytes::Bytes;
use cql::wire::ColumnSpec;
use index::target::StoredTarget;
use uuid::Uuid;
use value::CqlType;

use super::*;

fn index(keyspace: &str, table: &str, name: &str) -> Arc<DefinedIndex> {
    Arc::new(DefinedIndex {
        keyspace: keyspace.to_owned(),
        table: table.to_owned(),
        name: name.to_owned(),
        class_name: "vector_index".to_owned(),
        target: StoredTarget::decode("v"),
        options: BTreeMap::from([("quantization".to_owned(), "f32".to_owned())]),
        version: Uuid::nil(),
        table_id: Uuid::nil(),
    })
}

fn snapshot() -> IndexCatalogSnapshot {
    let indexes = [
        index("k", "t", "one"),
        index("k", "t", "two"),
        index("k", "other", "three"),
        index("l", "t", "four"),
    ];
    IndexCatalogSnapshot::new([], indexes)
}

fn columns(names: &[&str]) -> ColumnsMetadata {
    let column = |name: &&str| ColumnSpec {
        keyspace: "system_schema".into(),
        table: "indexes".into(),
        name: (*name).into(),
        cql_type: CqlType::Text,
    };
    ColumnsMetadata {
        columns: names.iter().map(column).collect(),
    }
}

fn values(texts: &[&str]) -> MarkerValues {
    let value = |text: &&str| BoundValue::Value(Bytes::copy_from_slice(text.as_bytes()));
    MarkerValues::Positional(texts.iter().map(value).collect())
}

/// The names of the indexes whose rows are added to an answer without rows.
fn added(text: &str, values: &MarkerValues) -> Vec<String> {
    let read = IndexesRead::read(text, None).expect("it is of the table of indexes");
    let rows = read.rows(values, None, &snapshot());
    let node = RowsEncoder::new(&columns(&["index_name"]), false).finish(None);
    let Some(told) = rows.add_to(&node).unwrap() else {
        return Vec::new();
    };
    let cell = |row: Vec<Option<Bytes>>| String::from_utf8(row[0].as_deref().unwrap().to_vec());
    let rows = told.decode().unwrap().rows;
    rows.into_iter().map(|row| cell(row).unwrap()).collect()
}

#[test]
fn rows_are_those_that_the_restrictions_allow() {
    const FROM: &str = "SELECT index_name FROM system_schema.indexes";
    let none = values(&[]);
    assert_eq!(added(FROM, &none), ["one", "three", "two", "four"]);
    let custom = format!("{FROM} WHERE kind = 'CUSTOM' ALLOW FILTERING");
    assert_eq!(added(&custom, &none).len(), 4);
    let composites = format!("{FROM} WHERE kind = 'COMPOSITES' ALLOW FILTERING");
    assert_eq!(added(&composites, &none), [""; 0]);
    let of_table = format!("{FROM} WHERE keyspace_name = 'k' AND table_name = 't'");
    assert_eq!(added(&of_table, &none), ["one", "two"]);
    let limited = format!("{of_table} LIMIT 1");
    assert_eq!(added(&limited, &none), ["one"]);
    let one = format!("{FROM} WHERE keyspace_name = ? AND table_name = ? AND index_name = ?");
    assert_eq!(added(&one, &values(&["k", "t", "two"])), ["two"]);
    assert_eq!(added(&one, &values(&["l", "t", "two"])), [""; 0]);
    let some = format!("{FROM} WHERE keyspace_name IN ('l', 'm')");
    assert_eq!(added(&some, &none), ["four"]);
}

#[test]
fn a_marker_may_stand_for_a_list_or_have_a_name() {
    const FROM: &str = "SELECT index_name FROM system_schema.indexes WHERE keyspace_name";
    let list = Value::List(vec![
        Value::Text("l".to_owned()),
        Value::Text("m".to_owned()),
    ]);
    let list = MarkerValues::Positional(vec![BoundValue::Value(list.serialize())]);
    assert_eq!(added(&format!("{FROM} IN ?"), &list), ["four"]);
    let named = BoundValue::Value(Bytes::from_static(b"l"));
    let named = MarkerValues::Named(vec![("ks".to_owned(), named)]);
    assert_eq!(added(&format!("{FROM} = :ks"), &named), ["four"]);
}

#[test]
fn a_query_that_cannot_be_answered_here_passes() {
    for text in [
        "SELECT count(*) FROM system_schema.indexes",
        "SELECT JSON * FROM system_schema.indexes",
        "SELECT * FROM system_schema.indexes WHERE keyspace_name > 'k' ALLOW FILTERING",
        "SELECT * FROM system_schema.indexes WHERE token(keyspace_name) > 0",
        "SELECT * FROM system_schema.tables",
        "SELECT * FROM indexes",
        "SELECT * FROM shop.indexes",
    ] {
        assert_eq!(IndexesRead::read(text, None), None, "{text}");
    }
    let in_use = IndexesRead::read("SELECT * FROM indexes", Some("system_schema"));
    assert!(in_use.is_some());
}

#[test]
fn rows_have_the_columns_of_the_answer_and_come_after_the_nodes() {
    let names = ["options", "kind", "index_name", "something_new"];
    let columns = columns(&names);
    for skip_metadata in [false, true] {
        let mut node = RowsEncoder::new(&columns, skip_metadata);
        (0..4).for_each(|_| node.cell(Some(b"theirs")));
        node.end_row();
        let node = node.finish(None);
        let text = "SELECT * FROM system_schema.indexes WHERE keyspace_name = 'l'";
        let read = IndexesRead::read(text, None).unwrap();
        let prepared = skip_metadata.then(|| Arc::new(columns.clone()));
        let told = read.rows(&values(&[]), prepared, &snapshot());
        let told = told.add_to(&node).unwrap().unwrap().decode().unwrap();
        assert_eq!(told.metadata.is_none(), skip_metadata);
        let [theirs, ours] = <[_; 2]>::try_from(told.rows).unwrap();
        assert_eq!(theirs[0].as_deref(), Some(&b"theirs"[..]));
        assert_eq!(ours[1].as_deref(), Some(&b"CUSTOM"[..]));
        assert_eq!(ours[2].as_deref(), Some(&b"four"[..]));
        assert_eq!(ours[3], None);
        let map = CqlType::Map {
            key: Box::new(CqlType::Text),
            value: Box::new(CqlType::Text),
            frozen: true,
        };
        let options = Value::deserialize(&map, ours[0].as_deref().unwrap()).unwrap();
        assert_eq!(
            options.to_literal(),
            "{'class_name': 'vector_index', \
             'index_version': '00000000-0000-0000-0000-000000000000', \
             'quantization': 'f32', 'target': 'v'}"
        );
    }
}

#[test]
fn a_full_text_index_is_shown_with_its_class() {
    let index = DefinedIndex {
        class_name: "fulltext_index".to_owned(),
        options: BTreeMap::from([("analyzer".to_owned(), "german".to_owned())]),
        ..DefinedIndex::clone(&index("k", "t", "i"))
    };
    let bytes = options(&index);
    let shown = String::from_utf8_lossy(&bytes);
    assert!(
        shown.contains("fulltext_index") && shown.contains("german"),
        "{shown}"
    );
    assert!(!shown.contains("vector_index"), "{shown}");
}

#[test]
fn a_target_of_several_columns_is_shown_as_scylladb_keeps_it() {
    let index = DefinedIndex {
        target: StoredTarget::decode(r#"{"tc":"v","pk":["p"],"fc":["f"]}"#),
        ..DefinedIndex::clone(&index("k", "t", "i"))
    };
    let bytes = options(&index);
    let shown = String::from_utf8_lossy(&bytes);
    assert!(
        shown.contains(r#"{"tc":"v","pk":["p"],"fc":["f"]}"#),
        "{shown}"
    );
}

#[test]
fn rows_come_with_the_last_page() {
    let read = IndexesRead::read("SELECT index_name FROM system_schema.indexes", None).unwrap();
    let rows = read.rows(&values(&[]), None, &snapshot());
    let page = RowsEncoder::new(&columns(&["index_name"]), false);
    let page = page.finish(Some(Bytes::from_static(b"more")));
    assert_eq!(rows.add_to(&page).unwrap(), None);
}

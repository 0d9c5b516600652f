//! Tests of the forms of a target, and of what is refused.

use super::*;

fn target(column: &str, local_key: &[&str], filter_columns: &[&str]) -> StoredTarget {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    StoredTarget {
        column: column.to_owned(),
        local_key: owned(local_key),
        filter_columns: owned(filter_columns),
    }
}

/// The targets of a CREATE INDEX with this list.
fn parsed(list: &str) -> Vec<IndexTarget> {
    let text = format!("CREATE CUSTOM INDEX ON t ({list}) USING 'vector_index'");
    match cql::parser::parse_statement(&text).unwrap().statement {
        cql::ast::Statement::CreateIndex(create) => create.targets,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_form_is_read_kept_and_shown() {
    for (list, expected, kept) in [
        ("v", target("v", &[], &[]), "v"),
        (
            "v, f1, \"F 2\"",
            target("v", &[], &["f1", "F 2"]),
            r#"{"tc":"v","fc":["f1","F 2"]}"#,
        ),
        (
            "(p1, p2), v",
            target("v", &["p1", "p2"], &[]),
            r#"{"tc":"v","pk":["p1","p2"]}"#,
        ),
        (
            "(p), v, f",
            target("v", &["p"], &["f"]),
            r#"{"tc":"v","pk":["p"],"fc":["f"]}"#,
        ),
        (
            r#""{""tc"":""w""}""#,
            target(r#"{"tc":"w"}"#, &[], &[]),
            r#"{"tc":"{\"tc\":\"w\"}"}"#,
        ),
        (
            "\"{odd name}\"",
            target("{odd name}", &[], &[]),
            "{odd name}",
        ),
    ] {
        let read = StoredTarget::of(&parsed(list), SearchClass::Vector).unwrap();
        assert_eq!(read, expected, "{list}");
        assert_eq!(read.encode(), kept, "{list}");
        assert_eq!(StoredTarget::decode(kept), expected, "{list}");
        assert_eq!(read.to_string(), list);
    }
    // The form of ScyllaDB 2026.1.0.
    assert_eq!(
        StoredTarget::decode(r#"{"tc":"v","pk":["p"],"ck":["f"]}"#),
        target("v", &["p"], &["f"])
    );
    let all = target("v", &["p", "q"], &["f"]);
    assert_eq!(all.columns().collect::<Vec<_>>(), ["p", "q", "v", "f"]);
}

#[test]
fn lists_that_are_no_target_are_explained() {
    for (list, expected) in [
        ("v, v", "Duplicate column v in index target list"),
        ("v, f, f", "Duplicate column f in index target list"),
        ("(p), v, p", "Duplicate column p in index target list"),
        ("(v), v", "Duplicate column v in index target list"),
        (
            "(p, p), v",
            "Duplicate column definition in local vector index: p",
        ),
        ("(p)", "An index needs a column to index"),
        (
            "v, (p)",
            "The key of a local vector index comes first in the list, before the vector column",
        ),
        (
            "KEYS(m)",
            "Vector indexes are only supported on columns of vectors of floats, not on keys(m)",
        ),
        (
            "v, ENTRIES(m)",
            "Unsupported vector index filtering column entries(m): name the column alone",
        ),
    ] {
        let error = StoredTarget::of(&parsed(list), SearchClass::Vector).unwrap_err();
        assert_eq!(error.message, expected, "{list}");
    }
    assert!(StoredTarget::of(&[], SearchClass::Vector).is_err());
}

/// A table with a column for each type and kind: its name is its type's text.
fn column(name: &str) -> Option<TargetColumn> {
    let (type_text, irregular) = match name.split_once(' ') {
        Some(("static", of)) => (of, Some("static")),
        Some(("key" | "partition", of)) => (of, Some("PRIMARY KEY")),
        _ => (name, None),
    };
    let cql_type = cql::parser::parse_type(type_text).ok();
    (type_text != "gone").then(|| TargetColumn {
        type_text: type_text.to_owned(),
        cql_type,
        irregular,
        is_partition_key: name.starts_with("partition "),
    })
}

const VECTOR: &str = "vector<float, 3>";

#[test]
fn the_vector_column_is_a_regular_one_of_floats() {
    let check = |column_name: &str| {
        let checked = target(column_name, &[], &[]).check(column);
        checked.map_err(|error| error.message)
    };
    assert_eq!(check(VECTOR), Ok(3));
    for of in [
        "int",
        "vector<int, 3>",
        "vector<double, 3>",
        "vector<text, 3>",
        "list<float>",
    ] {
        assert_eq!(
            check(of),
            Err(format!(
                "Vector indexes are only supported on columns of vectors of floats (column {of} \
                 is of type {of})"
            ))
        );
    }
    for kind in ["static", "PRIMARY KEY"] {
        let name = format!(
            "{} {VECTOR}",
            kind.split(' ').next_back().unwrap().to_lowercase()
        );
        assert_eq!(
            check(&name),
            Err(format!(
                "Vector indexes are not supported on {kind} columns (column {name})"
            ))
        );
    }
    assert_eq!(
        check("gone"),
        Err("No column definition found for column gone".to_owned())
    );
}

#[test]
fn filter_columns_are_of_types_that_can_be_compared() {
    let check = |local_key: &[&str], filter_columns: &[&str]| {
        let checked = target(VECTOR, local_key, filter_columns).check(column);
        checked.map(|_| ()).map_err(|error| error.message)
    };
    let scalars = "ascii bigint blob boolean date decimal double float inet int smallint text time \
                   timestamp timeuuid tinyint uuid varchar varint";
    for of in scalars.split_whitespace() {
        let key = format!("key {of}");
        let fixed = format!("static {of}");
        assert_eq!(check(&[], &[of, &key, &fixed]), Ok(()), "{of}");
        assert_eq!(check(&[of, &key], &[]), Ok(()), "{of}");
        for collection in [
            format!("list<{of}>"),
            format!("frozen<set<{of}>>"),
            format!("map<text, {of}>"),
        ] {
            assert_eq!(check(&[], &[&collection]), Ok(()), "{collection}");
            assert_eq!(check(&[], &[&format!("static {collection}")]), Ok(()));
        }
    }
    let refused = |of: &str| {
        Err(format!(
            "Unsupported vector index filtering column {of} of type {of}"
        ))
    };
    for of in [
        "counter",
        "duration",
        "frozen<tuple<int, text>>",
        "vector<int, 2>",
        "list<frozen<list<int>>>",
        "map<text, duration>",
        "address",
    ] {
        assert_eq!(check(&[], &[of]), refused(of));
    }
    assert_eq!(check(&["set<int>"], &[]), refused("set<int>"));
    assert_eq!(
        check(&["static int"], &[]),
        Err(
            "Unsupported vector index filtering column static int: a static column can't be in the \
             key of a local index"
                .to_owned()
        )
    );
    for (local_key, filters) in [(&["gone"][..], &[][..]), (&[], &["gone"])] {
        assert_eq!(
            check(local_key, filters),
            Err("No column definition found for column gone".to_owned())
        );
    }
}

#[test]
fn full_text_lists_have_the_same_forms_and_words_of_their_own() {
    let of = |list: &str| {
        let read = StoredTarget::of(&parsed(list), SearchClass::FullText);
        read.map_err(|error| error.message)
    };
    for (list, expected) in [
        ("body", target("body", &[], &[])),
        ("body, year, tags", target("body", &[], &["year", "tags"])),
        ("(tenant), body", target("body", &["tenant"], &[])),
        ("(tenant), body, f", target("body", &["tenant"], &["f"])),
    ] {
        assert_eq!(of(list), Ok(expected), "{list}");
    }
    for (list, expected) in [
        ("body, body", "Duplicate column body in index target list"),
        (
            "(p, p), body",
            "Duplicate column definition in local full-text index: p",
        ),
        (
            "body, (p)",
            "The key of a local full-text index comes first in the list, before the text column",
        ),
        (
            "KEYS(m)",
            "Full-text indexes are only supported on columns of text, varchar or ascii, not on \
             keys(m)",
        ),
        (
            "body, VALUES(m)",
            "Unsupported full-text index filtering column values(m): name the column alone",
        ),
    ] {
        assert_eq!(of(list), Err(expected.to_owned()), "{list}");
    }
}

#[test]
fn the_text_column_is_of_any_place_but_the_partition_key() {
    let check = |on: &str, local_key: &[&str], filter_columns: &[&str]| {
        let checked = target(on, local_key, filter_columns).check_text(column);
        checked.map_err(|error| error.message)
    };
    for of in ["text", "varchar", "ascii", "static text", "key text"] {
        assert_eq!(check(of, &[], &[]), Ok(()), "{of}");
    }
    assert_eq!(check("text", &["key int"], &["set<text>", "date"]), Ok(()));
    for of in ["int", "blob", "list<text>", "frozen<set<text>>", VECTOR] {
        assert_eq!(
            check(of, &[], &[]),
            Err(format!(
                "Full-text indexes are only supported on columns of text, varchar or ascii \
                 (column {of} is of type {of})"
            ))
        );
    }
    for (on, local_key, filters, expected) in [
        (
            "partition text",
            &[][..],
            &[][..],
            "Full-text indexes are not supported on partition key columns (column partition text)",
        ),
        (
            "text",
            &["static int"],
            &[],
            "Unsupported full-text index filtering column static int: a static column",
        ),
        (
            "text",
            &[],
            &[VECTOR],
            "Unsupported full-text index filtering column vector<float, 3> of type vector",
        ),
        (
            "gone",
            &[],
            &[],
            "No column definition found for column gone",
        ),
    ] {
        let error = check(on, local_key, filters).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

//! Tests that bind markers are numbered in the order of the text, whatever clause they stand in.

use cql::error::ErrorKind;
use cql::parser::parse_statement;

fn markers(statement: &str) -> Vec<Option<String>> {
    parse_statement(statement).unwrap().markers
}

/// The indexes of the markers in the tree, in the order of the tree's fields.
fn indexes(statement: &str) -> Vec<u16> {
    let tree = format!("{:?}", parse_statement(statement).unwrap().statement);
    tree.split("index: ")
        .skip(1)
        .map(|rest| {
            let digits = rest.split(',').next().unwrap();
            digits.parse().unwrap()
        })
        .collect()
}

#[test]
fn a_select_numbers_its_markers_from_left_to_right() {
    let statement = "SELECT f(a, ?), m[?] FROM t WHERE a IN ? AND (b, c) > (?, ?) AND m[?] = ? \
                     ORDER BY v ANN OF ? PER PARTITION LIMIT ? LIMIT ? USING TIMEOUT ?";
    assert_eq!(markers(statement).len(), 11);
    assert_eq!(indexes(statement), (0..11).collect::<Vec<_>>());
}

#[test]
fn an_insert_numbers_values_before_attributes() {
    let statement =
        "INSERT INTO t (a, b, c) VALUES (?, [?, ?], {?: ?}) USING TTL ? AND TIMESTAMP ?";
    // The timestamp comes last in the text, but in the tree it is the first field of the
    // attributes.
    assert_eq!(indexes(statement), [0, 1, 2, 3, 4, 6, 5]);
}

#[test]
fn an_update_numbers_attributes_before_values() {
    let statement =
        "UPDATE t USING TTL ? SET a = ?, b[?] = ?, c = c + ?, d = ? + d WHERE k = ? IF e = ?";
    assert_eq!(indexes(statement), (0..8).collect::<Vec<_>>());
}

#[test]
fn a_batch_numbers_through_all_its_statements() {
    let statement = "BEGIN BATCH USING TIMESTAMP ? INSERT INTO t (a) VALUES (?); \
                     DELETE a[?] FROM t WHERE k = ?; APPLY BATCH";
    assert_eq!(indexes(statement), [0, 1, 2, 3]);
}

#[test]
fn names_of_markers_fold_like_other_names() {
    assert_eq!(
        markers("SELECT * FROM t WHERE a = :Abc AND b = ? AND c = :\"Abc\" AND d = :Abc"),
        [
            Some("abc".to_owned()),
            None,
            Some("Abc".to_owned()),
            Some("abc".to_owned())
        ]
    );
}

#[test]
fn there_are_no_more_markers_than_the_protocol_can_number() {
    let statement = |count: usize| {
        let list = vec!["?"; count].join(",");
        parse_statement(&format!("SELECT * FROM t WHERE a IN ({list})"))
    };
    assert_eq!(statement(65_535).unwrap().markers.len(), 65_535);
    let error = statement(65_536).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(
        error.message,
        "a statement can have at most 65535 bind markers"
    );
}

//! Tests of the plans that the texts of statements give.

use cql::ast::Statement;
use cql::parser::parse_statement;

use super::super::test_tables::{events, products};
use super::*;

fn plan(text: &str, table: LoggedTable) -> Result<LoggedWritePlan, UnplannableWrite> {
    let table = Arc::new(table);
    match parse_statement(text).unwrap().statement {
        Statement::Insert(insert) => LoggedWritePlan::of_insert(&insert, table),
        Statement::Update(update) => LoggedWritePlan::of_update(&update, table),
        Statement::Delete(delete) => LoggedWritePlan::of_delete(&delete, table),
        other => panic!("{other:?}"),
    }
}

/// The action and the extent of a statement on `shop.events (PRIMARY KEY ((tenant, day), hour,
/// seq))`.
fn of_events(rest: &str) -> (RowChangeKind, &'static str) {
    let plan = plan(rest, events()).unwrap();
    let extent = match plan.extent {
        PartitionExtent::Rows(parts) => match parts.iter().map(|part| part.columns.len()).sum() {
            2 => "rows",
            _ => "rows that are not",
        },
        PartitionExtent::Static => "static",
        PartitionExtent::Partition => "partition",
        PartitionExtent::Range => "range",
    };
    (plan.action, extent)
}

#[test]
fn the_extent_follows_from_the_clustering_key() {
    use RowChangeKind::{Delete, Insert, Update};
    const KEY: &str = "tenant = 1 AND day = ?";
    for (text, expected) in [
        (
            "INSERT INTO events (seq, hour, day, tenant) VALUES (1, 2, ?, ?)".to_owned(),
            (Insert, "rows"),
        ),
        (
            "INSERT INTO events (tenant, day, owner) VALUES (1, ?, 'x')".to_owned(),
            (Insert, "static"),
        ),
        (
            format!("UPDATE events SET v = ? WHERE {KEY} AND hour = 1 AND seq IN (1, 2)"),
            (Update, "rows"),
        ),
        (
            format!("UPDATE events SET owner = 'x' WHERE {KEY}"),
            (Update, "static"),
        ),
        (
            format!("DELETE v FROM events WHERE {KEY} AND (hour, seq) = (1, 2)"),
            (Update, "rows"),
        ),
        (
            format!("DELETE owner FROM events WHERE {KEY}"),
            (Update, "static"),
        ),
        (
            format!("DELETE FROM events WHERE {KEY} AND (hour, seq) IN ?"),
            (Delete, "rows"),
        ),
        (
            format!("DELETE FROM events WHERE {KEY}"),
            (Delete, "partition"),
        ),
        (
            format!("DELETE FROM events WHERE {KEY} AND hour = 1"),
            (Delete, "range"),
        ),
        (
            format!("DELETE FROM events WHERE {KEY} AND hour > 1"),
            (Delete, "range"),
        ),
        (
            format!("DELETE FROM events WHERE {KEY} AND hour = 1 AND seq >= 1"),
            (Delete, "range"),
        ),
        (
            format!("DELETE FROM events WHERE {KEY} AND (hour, seq) < (1, 2)"),
            (Delete, "range"),
        ),
    ] {
        assert_eq!(of_events(&text), expected, "{text}");
    }
}

#[test]
fn a_row_without_a_clustering_key_is_a_row() {
    let plan = plan("DELETE FROM products WHERE id IN (1, 2)", products()).unwrap();
    assert_eq!(plan.extent, PartitionExtent::Rows(Vec::new()));
    assert!(!plan.conditional);
}

#[test]
fn conditions_and_changing_calls_are_seen() {
    for (text, conditional, calls) in [
        (
            "INSERT INTO products (id, name) VALUES (1, ?) IF NOT EXISTS",
            true,
            false,
        ),
        (
            "UPDATE products SET name = 'x' WHERE id = 1 IF EXISTS",
            true,
            false,
        ),
        (
            "DELETE FROM products WHERE id = 1 IF name = 'x'",
            true,
            false,
        ),
        (
            "INSERT INTO products (id, name) VALUES (now(), 'x')",
            false,
            true,
        ),
        (
            "INSERT INTO products (id, name) VALUES (1, uuid())",
            false,
            false,
        ),
        (
            "DELETE FROM products WHERE id IN (1, f(system.uuid()))",
            false,
            true,
        ),
    ] {
        let plan = plan(text, products()).unwrap();
        assert_eq!(plan.conditional, conditional, "{text}");
        assert_eq!(plan.has_changing_calls(), calls, "{text}");
    }
}

#[test]
fn statements_that_cassandra_refuses_are_left_to_it() {
    for text in [
        "INSERT INTO events (tenant, hour) VALUES (1, 2)",
        "INSERT INTO events (tenant, day) VALUES (1)",
        "UPDATE events SET v = ? WHERE tenant = 1",
        "UPDATE events SET v = ? WHERE tenant = 1 AND day > 2",
        "DELETE FROM events WHERE token(tenant, day) > 1",
        "DELETE FROM events WHERE tenant = 1 AND day = 1 AND owner = 'x'",
        "DELETE FROM events WHERE tenant = 1 AND (day, hour) = (1, 2)",
    ] {
        assert_eq!(
            plan(text, events()),
            Err(UnplannableWrite::Refused),
            "{text}"
        );
    }
    assert!(matches!(
        plan("INSERT INTO products JSON ?", products()),
        Err(UnplannableWrite::Unreadable(_))
    ));
}

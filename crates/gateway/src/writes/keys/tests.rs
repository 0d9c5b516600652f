//! Tests of the hints that a plan and its values give.

use std::sync::Arc;

use cql::ast::Statement;
use cql::parser::parse_statement;
use value::{Value, join_elements};

use super::super::test_tables::{events, products};
use super::*;

fn int(number: i32) -> Bytes {
    Value::Int(number).serialize()
}

fn bound(values: &[Bytes]) -> Vec<BoundValue> {
    values.iter().cloned().map(BoundValue::Value).collect()
}

fn hints_of(text: &str, values: &[Bytes]) -> Result<Vec<WriteHint>, UnplannableWrite> {
    let events = Arc::new(events());
    let products = Arc::new(products());
    let plan = match parse_statement(text).unwrap().statement {
        Statement::Insert(insert) if insert.table.name == "products" => {
            LoggedWritePlan::of_insert(&insert, products)
        }
        Statement::Insert(insert) => LoggedWritePlan::of_insert(&insert, events),
        Statement::Update(update) => LoggedWritePlan::of_update(&update, events),
        Statement::Delete(delete) if delete.table.name == "products" => {
            LoggedWritePlan::of_delete(&delete, products)
        }
        Statement::Delete(delete) => LoggedWritePlan::of_delete(&delete, events),
        other => panic!("{other:?}"),
    };
    hints(&plan?, &bound(values), 0)
}

/// The operation, partition key and clustering key of each hint. All key columns are of type int.
fn keys_of(text: &str, values: &[Bytes]) -> Vec<(i8, Vec<i32>, Vec<i32>)> {
    let numbers = |key: &[Bytes]| {
        key.iter()
            .map(|value| i32::from_be_bytes(value[..].try_into().unwrap()))
            .collect()
    };
    hints_of(text, values)
        .unwrap()
        .iter()
        .map(|hint| {
            (
                hint.operation,
                numbers(&hint.partition),
                numbers(&hint.clustering),
            )
        })
        .collect()
}

fn list(numbers: &[i32]) -> Bytes {
    let elements: Vec<Bytes> = numbers.iter().copied().map(int).collect();
    join_elements(elements.iter().map(|element| &element[..]))
}

fn pairs(pairs: &[(i32, i32)]) -> Bytes {
    let tuples: Vec<Vec<u8>> = pairs
        .iter()
        .map(|(a, b)| {
            [
                &4i32.to_be_bytes()[..],
                &int(*a),
                &4i32.to_be_bytes(),
                &int(*b),
            ]
            .concat()
        })
        .collect();
    join_elements(tuples.iter().map(|tuple| &tuple[..]))
}

#[test]
fn every_form_of_statement_has_its_operation() {
    for (text, expected) in [
        (
            "INSERT INTO events (day, tenant, seq, hour) VALUES (2, 1, 4, 3)",
            vec![(2, vec![1, 2], vec![3, 4])],
        ),
        (
            "INSERT INTO events (tenant, day, owner) VALUES (1, 2, 'x')",
            vec![(1, vec![1, 2], vec![])],
        ),
        (
            "UPDATE events SET v = null WHERE tenant = 1 AND day = 2 AND hour = 3 AND seq = 4",
            vec![(1, vec![1, 2], vec![3, 4])],
        ),
        (
            "DELETE v FROM events WHERE tenant = 1 AND day = 2 AND hour = 3 AND seq = 4",
            vec![(1, vec![1, 2], vec![3, 4])],
        ),
        (
            "DELETE FROM events WHERE tenant = 1 AND day = 2 AND hour = 3 AND seq = 4",
            vec![(3, vec![1, 2], vec![3, 4])],
        ),
        (
            "DELETE FROM events WHERE tenant = 1 AND day = 2",
            vec![(4, vec![1, 2], vec![])],
        ),
        (
            "DELETE FROM events WHERE tenant = 1 AND day = 2 AND hour < 3",
            vec![(5, vec![1, 2], vec![]), (7, vec![1, 2], vec![])],
        ),
        (
            "DELETE FROM products WHERE id = 9",
            vec![(4, vec![9], vec![])],
        ),
    ] {
        assert_eq!(keys_of(text, &[]), expected, "{text}");
    }
}

#[test]
fn static_columns_beside_rows_have_a_hint_of_their_own() {
    const KEY: &str = "tenant IN (1, 5) AND day = 2 AND hour = 3 AND seq IN (4, 6)";
    for (text, expected) in [
        (
            "INSERT INTO events (day, tenant, seq, hour, v, owner) VALUES (2, 1, 4, 3, 'v', 'x')"
                .to_owned(),
            vec![(2, vec![1, 2], vec![3, 4]), (1, vec![1, 2], vec![])],
        ),
        (
            format!("UPDATE events SET v = 'v', owner = 'x' WHERE {KEY}"),
            vec![
                (1, vec![1, 2], vec![3, 4]),
                (1, vec![1, 2], vec![3, 6]),
                (1, vec![1, 2], vec![]),
                (1, vec![5, 2], vec![3, 4]),
                (1, vec![5, 2], vec![3, 6]),
                (1, vec![5, 2], vec![]),
            ],
        ),
        (
            "DELETE v, owner FROM events WHERE tenant = 1 AND day = 2 AND hour = 3 AND seq = 4"
                .to_owned(),
            vec![(1, vec![1, 2], vec![3, 4]), (1, vec![1, 2], vec![])],
        ),
        (
            "UPDATE events SET owner = 'x' WHERE tenant = 1 AND day = 2".to_owned(),
            vec![(1, vec![1, 2], vec![])],
        ),
    ] {
        assert_eq!(keys_of(&text, &[]), expected, "{text}");
    }
}

#[test]
fn lists_are_multiplied_and_tuples_are_not() {
    let written = keys_of(
        "UPDATE events SET v = ? WHERE tenant IN (1, ?) AND day = 5 AND hour = 3 AND seq IN ?",
        &[int(0), int(2), list(&[7, 8])],
    );
    let expected = |tenant, seq| (1, vec![tenant, 5], vec![3, seq]);
    assert_eq!(
        written,
        [
            expected(1, 7),
            expected(1, 8),
            expected(2, 7),
            expected(2, 8)
        ]
    );
    for (condition, values) in [
        ("(hour, seq) IN ((3, 7), (4, ?))", vec![int(8)]),
        ("(hour, seq) IN ?", vec![pairs(&[(3, 7), (4, 8)])]),
    ] {
        let text = format!("DELETE FROM events WHERE tenant = 1 AND day = 5 AND {condition}");
        let expected = [(3, vec![1, 5], vec![3, 7]), (3, vec![1, 5], vec![4, 8])];
        assert_eq!(keys_of(&text, &values), expected, "{text}");
    }
    let one = pairs(&[(3, 7)]).slice(8..);
    let text = "DELETE FROM events WHERE tenant = 1 AND day = 5 AND (hour, seq) = ?";
    assert_eq!(keys_of(text, &[one]), [(3, vec![1, 5], vec![3, 7])]);
}

#[test]
fn no_rows_are_no_rows_however_many_they_would_be() {
    let none = keys_of(
        "DELETE FROM events WHERE tenant IN ? AND day IN ? AND hour IN ? AND seq = 1",
        &[list(&[0; 1_000]), list(&[0; 1_000]), list(&[])],
    );
    assert_eq!(none, []);
}

#[test]
fn an_invalid_key_is_left_to_cassandra_and_an_unknown_one_is_refused() {
    let refused = "INSERT INTO products (id, name) VALUES (?, 'x')";
    assert_eq!(hints_of(refused, &[]), Err(UnplannableWrite::Refused));
    let not_a_list = "DELETE FROM products WHERE id IN ?";
    assert_eq!(
        hints_of(not_a_list, &[int(9)]),
        Err(UnplannableWrite::Refused)
    );
    for (text, values) in [
        ("INSERT INTO products (id, name) VALUES (f(1), 'x')", vec![]),
        (
            "UPDATE events SET v = 1 WHERE tenant IN ? AND day IN ? AND hour = 1 AND seq = 1",
            vec![list(&vec![0; 101]), list(&vec![0; 100])],
        ),
        (
            "DELETE FROM events WHERE tenant = 1 AND day IN ? AND hour IN ? AND seq = 1",
            vec![list(&vec![0; 101]), list(&vec![0; 100])],
        ),
        (
            "DELETE FROM products WHERE id IN ?",
            vec![list(&vec![0; 10_001])],
        ),
    ] {
        assert!(
            matches!(
                hints_of(text, &values),
                Err(UnplannableWrite::Unreadable(_))
            ),
            "{text}"
        );
    }
}

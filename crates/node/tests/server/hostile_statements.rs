//! Statements and values that make no sense: the node answers each with a result or an error, and
//! never runs into a bug.

use cql::error::ErrorKind;
use cql::wire::{BoundValue, MarkerValues, QueryParameters, Response};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use value::{CqlType, Value};

use crate::client::Client;
use crate::real::{RealNode, start_with_keyspace};

const SCHEMA: &[&str] = &[
    "CREATE TABLE t (p int, q text, c timestamp, d int, s text static, l list<int>, m map<text, int>, z set<int>, v vector<float, 3>, b blob, PRIMARY KEY ((p, q), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)",
    "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'",
    "INSERT INTO t (p, q, c, d, s, l, m, z, v) VALUES (1, 'a', 1, 1, 's', [1, 2], {'x': 1}, {3}, [1, 2, 3])",
    "INSERT INTO t (p, q, c, d) VALUES (1, 'a', 2, 2)",
];

/// Words that statements are made of.
const WORDS: &[&str] = &[
    "SELECT",
    "*",
    "FROM",
    "t",
    "WHERE",
    "p",
    "q",
    "c",
    "d",
    "s",
    "l",
    "m",
    "z",
    "v",
    "b",
    "=",
    "<",
    ">=",
    "IN",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    ":x",
    "1",
    "-5",
    "'a'",
    "0xff",
    "NaN",
    "null",
    "AND",
    "ORDER",
    "BY",
    "ANN",
    "OF",
    "LIMIT",
    "ALLOW",
    "FILTERING",
    "token",
    "count(*)",
    "writetime(v)",
    "ttl(s)",
    "INSERT",
    "INTO",
    "VALUES",
    "UPDATE",
    "SET",
    "+",
    "-",
    "USING",
    "TTL",
    "TIMESTAMP",
    "DELETE",
    "BEGIN",
    "BATCH",
    "APPLY",
    "IF",
    "NOT",
    "EXISTS",
    "ALTER",
    "TABLE",
    "ADD",
    "DROP",
    "DESCRIBE",
    "GROUP",
    "PER",
    "PARTITION",
    "DISTINCT",
    "JSON",
    "CAST",
    "AS",
    "similarity_cosine",
    "minTimeuuid",
    "now()",
    "k",
    ".",
    "system",
    "local",
    "\"",
    ";",
    "CONTAINS",
    "CUSTOM",
    "INDEX",
    "ON",
];

/// Correct statements, with bind markers for any values.
const STATEMENTS: &[&str] = &[
    "SELECT * FROM t WHERE p = ? AND q = ? AND c > ? AND d = ? ALLOW FILTERING",
    "SELECT * FROM t WHERE p IN ? AND q IN (?, ?) LIMIT ?",
    "SELECT token(p, q), writetime(v), ttl(v) FROM t WHERE token(p, q) > ? AND token(p, q) <= ? PER PARTITION LIMIT ?",
    "SELECT * FROM t WHERE p = ? AND q = ? AND (c, d) >= (?, ?) ORDER BY c ASC LIMIT ?",
    "SELECT p FROM t ORDER BY v ANN OF ? LIMIT ?",
    "SELECT similarity_cosine(v, ?), similarity_euclidean(?, v) FROM t",
    "SELECT m[?], count(l) FROM t WHERE m CONTAINS KEY ? ALLOW FILTERING",
    "INSERT INTO t (p, q, c, d, l, m, z, v, b) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ? AND TIMESTAMP ?",
    "UPDATE t USING TTL ? SET l = l + ?, m = m - ?, z = z + ?, v = ? WHERE p = ? AND q = ? AND c = ? AND d = ?",
    "UPDATE t SET l[?] = ?, m[?] = ?, s = ? WHERE p = ? AND q = ? AND c = ? AND d = ?",
    "DELETE l[?], m[?], v FROM t USING TIMESTAMP ? WHERE p = ? AND q = ? AND c = ? AND d = ?",
    "DELETE FROM t WHERE p = ? AND q = ? AND c >= ? AND c < ?",
    "INSERT INTO t (p, q, c, d) VALUES (?, ?, ?, ?) IF NOT EXISTS",
    "SELECT * FROM system_schema.columns WHERE keyspace_name = ? AND table_name > ? LIMIT ?",
];

fn soup() -> impl Strategy<Value = String> {
    let start = select(
        &[
            "SELECT * FROM t",
            "INSERT INTO t",
            "UPDATE t SET",
            "DELETE",
            "",
        ][..],
    );
    let words = prop::collection::vec(select(WORDS), 0..25);
    (start, words).prop_map(|(start, words)| format!("{start} {}", words.join(" ")))
}

/// A correct statement with a piece cut out or doubled.
fn mutilated() -> impl Strategy<Value = String> {
    (
        select(STATEMENTS),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(|(statement, from, to, double)| {
            let (from, to) = (from.index(statement.len()), to.index(statement.len()));
            let (from, to) = (from.min(to), from.max(to));
            let piece = if double { &statement[from..to] } else { "" };
            format!("{}{piece}{piece}{}", &statement[..from], &statement[to..])
        })
}

fn value() -> impl Strategy<Value = BoundValue> {
    let bytes = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..20),
        1 => Just(vec![0, 0, 0, 1]),
        1 => Just(vec![0, 0, 0, 0, 0, 0, 0, 1]),
        1 => Just(vec![0xff; 4]),
        1 => Just(b"a".to_vec()),
        // A list of one int, and a list that states more elements than it has bytes.
        1 => Just(vec![0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1]),
        1 => Just(vec![0x7f, 0xff, 0xff, 0xff]),
        1 => Just([0x3f, 0x80, 0, 0].repeat(3)),
        1 => Just([0x7f, 0xc0, 0, 0].repeat(3)),
    ];
    prop_oneof![
        8 => bytes.prop_map(|bytes| BoundValue::Value(bytes.into())),
        1 => Just(BoundValue::Null),
        1 => Just(BoundValue::Unset),
    ]
}

/// A small value of a type.
fn fitting(cql_type: &CqlType, n: u8) -> Value {
    let small = i32::from(n % 4);
    match cql_type {
        CqlType::Bigint => Value::Bigint(small.into()),
        CqlType::Timestamp => Value::Timestamp(small.into()),
        CqlType::Text => Value::Text(if n.is_multiple_of(2) { "a" } else { "x" }.to_owned()),
        CqlType::List { element, .. } => Value::List(vec![fitting(element, n); usize::from(n % 3)]),
        CqlType::Set { element, .. } => Value::Set(vec![fitting(element, n)]),
        CqlType::Map { key, value, .. } => Value::Map(vec![(fitting(key, n), fitting(value, n))]),
        CqlType::Vector { .. } => Value::FloatVector(vec![f32::from(n), 1.0, 2.0]),
        CqlType::Blob => Value::Blob(vec![n].into()),
        _ => Value::Int(small),
    }
}

/// Replaces most of the values by values that fit their types.
fn made_to_fit(values: &mut Vec<BoundValue>, types: &[CqlType], fits: &[u8]) {
    values.resize(types.len(), BoundValue::Unset);
    for ((value, cql_type), n) in values.iter_mut().zip(types).zip(fits) {
        if !n.is_multiple_of(16) {
            *value = BoundValue::Value(fitting(cql_type, *n).serialize());
        }
    }
}

fn parameters() -> impl Strategy<Value = QueryParameters> {
    let paging_state = prop::option::weighted(0.2, prop::collection::vec(any::<u8>(), 0..40));
    (
        prop::collection::vec(value(), 0..14),
        prop::option::of(1u32..5),
        paging_state,
        prop::option::weighted(0.2, any::<i64>()),
    )
        .prop_map(
            |(values, page_size, paging_state, timestamp)| QueryParameters {
                values: MarkerValues::Positional(values),
                page_size,
                paging_state: paging_state.map(Into::into),
                timestamp,
                ..QueryParameters::default()
            },
        )
}

fn check<T: std::fmt::Debug>(
    cases: u32,
    strategy: impl Strategy<Value = T>,
    request: impl Fn(&T) -> (String, Option<(QueryParameters, Vec<u8>)>),
) -> u32 {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (node, client): (RealNode, Client) = runtime.block_on(async {
        let (node, mut client) = start_with_keyspace().await;
        for statement in SCHEMA {
            client.run(statement).await;
        }
        (node, client)
    });
    let client = tokio::sync::Mutex::new(client);
    let succeeded = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&strategy, |case| {
            let (statement, parameters) = request(&case);
            let answer = runtime.block_on(async {
                let mut client = client.lock().await;
                match parameters {
                    None => client.ask(&statement).await,
                    Some((mut parameters, fits)) => {
                        let prepared = client.prepare(&statement).await;
                        let columns = prepared.bind.columns.into_iter();
                        let types: Vec<CqlType> = columns.map(|column| column.cql_type).collect();
                        if let MarkerValues::Positional(values) = &mut parameters.values {
                            made_to_fit(values, &types, &fits);
                        }
                        let id = prepared.id;
                        client.execute(&id, parameters).await
                    }
                }
            });
            match &answer {
                Response::Error(error) => prop_assert_ne!(
                    &error.kind,
                    &ErrorKind::ServerError,
                    "{}: {}",
                    statement,
                    error
                ),
                _ => succeeded.set(succeeded.get() + 1),
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(node.node.counters()[0].1.panics, 0);
    succeeded.get()
}

#[test]
fn word_soup_is_refused() {
    check(1500, prop_oneof![soup(), mutilated()], |text| {
        (text.clone(), None)
    });
}

#[test]
fn any_values_are_taken_or_refused() {
    let fits = prop::collection::vec(any::<u8>(), 14);
    let cases = (select(STATEMENTS), parameters(), fits);
    let taken = check(1500, cases, |(text, parameters, fits)| {
        let values = (parameters.clone(), fits.clone());
        ((*text).to_owned(), Some(values))
    });
    // Enough of the statements are executed, and not refused at first sight.
    assert!(taken > 200, "{taken}");
}

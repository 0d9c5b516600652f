//! Whatever bytes a client binds, a write succeeds or is refused as invalid, and the written rows
//! can be read.

use bytes::Bytes;
use cql::error::ErrorKind;
use node::planner::StatementPlan;
use node::statement::{BoundValue, ExecutionParameters};
use proptest::prelude::*;
use value::{CqlType, Value};

use crate::fixture::Fixture;

const STATEMENTS: [&str; 9] = [
    "INSERT INTO t (k, a, b, v, l, s, m, e) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "INSERT INTO t (k, a, b) VALUES (?, ?, ?) USING TTL ? AND TIMESTAMP ?",
    "INSERT INTO t (k, a, b, f) VALUES (?, ?, ?, ?) IF NOT EXISTS",
    "UPDATE t SET l[?] = ?, m[?] = ? WHERE k = ? AND a = ? AND b = ?",
    "UPDATE t SET l = l + ?, s = s - ?, m = m - ?, e = [?, ?] WHERE k IN ? AND (a, b) IN ?",
    "UPDATE t SET l = ? + l WHERE k = ? AND (a, b) = ?",
    "DELETE l[?], s[?], m[?] FROM t WHERE k = ? AND a = ? AND b = ?",
    "DELETE FROM t WHERE k = ? AND (a, b) > ? AND (a, b) <= ?",
    "DELETE FROM t USING TIMESTAMP ? WHERE k = ? AND a = ? AND b < ?",
];

/// Any bound value.
fn wild() -> impl Strategy<Value = BoundValue> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        1 => Just(BoundValue::Null),
        1 => Just(BoundValue::Unset),
        4 => bytes.prop_map(|bytes| BoundValue::Value(Bytes::from(bytes))),
    ]
}

/// A value of a type, made from numbers.
fn well_formed(cql_type: &CqlType, numbers: &[i8]) -> Value {
    let first = numbers.first().copied().unwrap_or(0);
    let each = |element: &CqlType| {
        numbers
            .iter()
            .map(|number| well_formed(element, &[*number]))
            .collect::<Vec<Value>>()
    };
    match cql_type {
        CqlType::Int => Value::Int(i32::from(first)),
        CqlType::Bigint => Value::Bigint(i64::from(first)),
        CqlType::Text => Value::Text(first.to_string()),
        CqlType::Float => Value::Float(f32::from(first)),
        CqlType::List { element, .. } => Value::List(each(element)),
        // The elements are out of order and repeated, as a client may send them.
        CqlType::Set { element, .. } => Value::List(each(element)),
        CqlType::Map { key, value, .. } => {
            Value::Map(each(key).into_iter().zip(each(value)).collect())
        }
        CqlType::Tuple(types) => Value::Tuple(
            types
                .iter()
                .map(|cql_type| Some(well_formed(cql_type, &[first])))
                .collect(),
        ),
        CqlType::Vector { dimensions, .. } => {
            Value::FloatVector(vec![f32::from(first); usize::from(*dimensions)])
        }
        other => panic!("no statement here has a marker of type {other}"),
    }
}

#[test]
fn no_bytes_do_harm() {
    let f = Fixture::new().with(&[
        "CREATE TABLE t (k int, a int, b int, v text, l list<int>, s set<int>, m map<int, int>, e \
         vector<float, 2>, f frozen<map<int, int>>, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER \
         BY (a ASC, b DESC) AND cdc = {'enabled': true, 'preimage': true, 'postimage': true}",
    ]);
    let plans: Vec<StatementPlan> = STATEMENTS.iter().map(|cql| f.plan(cql).unwrap()).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let numbers = proptest::collection::vec(-1..4_i8, 0..5);
    let value = (proptest::option::weighted(0.1, wild()), numbers);
    let strategy = (0..plans.len(), proptest::collection::vec(value, 8));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1500)
    });
    let written = std::cell::Cell::new(0);
    runner
        .run(&strategy, |(at, values)| {
            let values = plans[at].variables().iter().zip(values);
            let parameters = ExecutionParameters {
                values: values
                    .map(|(variable, (wild, numbers))| match wild {
                        Some(wild) => wild,
                        None => {
                            BoundValue::Value(well_formed(&variable.cql_type, &numbers).serialize())
                        }
                    })
                    .collect(),
                ..ExecutionParameters::default()
            };
            match runtime.block_on(plans[at].execute(&f.database, parameters)) {
                Ok(_) => written.set(written.get() + 1),
                Err(error) => prop_assert_eq!(error.kind, ErrorKind::Invalid, "{}", error.message),
            }
            Ok(())
        })
        .unwrap();
    // Otherwise this test would have seen refusals only.
    assert!(
        written.get() > 200,
        "{} statements succeeded",
        written.get()
    );
    f.rows("SELECT * FROM t");
    f.rows("SELECT count(*) FROM t_scylla_cdc_log");
}

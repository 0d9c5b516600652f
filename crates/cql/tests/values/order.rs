//! Tests that the order of serialised values is total, and the same as that of the decoded values.

use std::cmp::Ordering;

use bytes::Bytes;
use proptest::prelude::*;
use value::{CqlType, Value, canonical, compare, from_literal, join_elements, timeuuid};

use crate::strategies::{inner_type, sortable_scalar, stored};

fn typed_values<const N: usize>(
    types: impl Strategy<Value = CqlType>,
) -> impl Strategy<Value = (CqlType, [Bytes; N])> {
    types.prop_flat_map(|cql_type| {
        let values = std::array::from_fn(|_| stored(&cql_type).boxed());
        (Just(cql_type), values)
    })
}

/// The right order of two decoded values. `None` where the order depends on the bytes.
fn expected(a: &Value, b: &Value) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::Bigint(a), Value::Bigint(b)) | (Value::Timestamp(a), Value::Timestamp(b)) => {
            a.cmp(b)
        }
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Smallint(a), Value::Smallint(b)) => a.cmp(b),
        (Value::Tinyint(a), Value::Tinyint(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) | (Value::Ascii(a), Value::Ascii(b)) => {
            a.as_bytes().cmp(b.as_bytes())
        }
        (Value::Blob(a), Value::Blob(b)) => a.cmp(b),
        (Value::Varint(a), Value::Varint(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).filter(|order| order.is_ne())?,
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).filter(|order| order.is_ne())?,
        (Value::FloatVector(a), Value::FloatVector(b)) => {
            a.partial_cmp(b).filter(|order| order.is_ne())?
        }
        (Value::List(a), Value::List(b))
        | (Value::Set(a), Value::Set(b))
        | (Value::Vector(a), Value::Vector(b)) => {
            for (a, b) in a.iter().zip(b) {
                match expected(a, b)? {
                    Ordering::Equal => {}
                    order => return Some(order),
                }
            }
            a.len().cmp(&b.len())
        }
        _ => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn it_is_that_of_the_decoded_values(
        (cql_type, [a, b]) in typed_values(prop_oneof![sortable_scalar(), inner_type()]),
    ) {
        let order = compare(&cql_type, &a, &b);
        prop_assert_eq!(compare(&cql_type, &b, &a), order.reverse());
        if a == b {
            prop_assert_eq!(order, Ordering::Equal);
        }
        let decoded = [&a, &b].map(|bytes| Value::deserialize(&cql_type, bytes).unwrap());
        if let Some(expected) = expected(&decoded[0], &decoded[1]) {
            prop_assert_eq!(order, expected, "{:?}", decoded);
        }
    }

    #[test]
    fn it_is_transitive(
        (cql_type, mut values) in typed_values::<3>(prop_oneof![3 => sortable_scalar(), 1 => inner_type()]),
    ) {
        values.sort_by(|a, b| compare(&cql_type, a, b));
        let [a, b, c] = &values;
        prop_assert!(compare(&cql_type, a, b).is_le());
        prop_assert!(compare(&cql_type, b, c).is_le());
        prop_assert!(compare(&cql_type, a, c).is_le());
        // Equal values compare alike with any other.
        if compare(&cql_type, a, b).is_eq() {
            prop_assert_eq!(compare(&cql_type, a, c), compare(&cql_type, b, c));
        }
    }

    #[test]
    fn sets_are_kept_in_it((element, values) in typed_values::<4>(inner_type())) {
        let set = CqlType::Set { element: Box::new(element.clone()), frozen: false };
        let sent = join_elements(values.iter().map(Bytes::as_ref));
        let stored = canonical(&set, &sent).unwrap();
        let elements = value::split_elements(&stored).unwrap();
        prop_assert!(elements.is_sorted_by(|a, b| compare(&element, a, b).is_lt()));
        for value in &values {
            prop_assert!(elements.iter().any(|kept| compare(&element, kept, value).is_eq()));
        }
    }
}

/// Checks that serialised values of a type are in strictly rising order.
fn rising(cql_type: &CqlType, values: &[Bytes]) {
    for (left, a) in values.iter().enumerate() {
        for (right, b) in values.iter().enumerate() {
            assert_eq!(
                compare(cql_type, a, b),
                left.cmp(&right),
                "{cql_type}: {left} and {right}"
            );
        }
    }
}

fn uuids(texts: &[&str]) -> Vec<Bytes> {
    texts
        .iter()
        .map(|text| {
            let uuid = text.parse().unwrap();
            from_literal(&CqlType::Uuid, &value::Literal::Uuid(uuid)).unwrap()
        })
        .collect()
}

#[test]
fn timeuuids_go_by_time_and_then_by_signed_bytes() {
    rising(
        &CqlType::Timeuuid,
        &uuids(&[
            // The text has the highest part of the time last: this is the lowest time.
            "ffffffff-ffff-1000-8000-000000000000",
            "00000000-0000-1001-8080-808080808080",
            "00000000-0000-1001-80ff-000000000000",
            "00000000-0000-1001-8000-000000000080",
            "00000000-0000-1001-8000-000000000000",
            "00000000-0000-1001-8000-00000000007f",
            "00000000-0000-1001-bf7f-7f7f7f7f7f7f",
            "00000000-0000-1001-7f7f-7f7f7f7f7f7f",
        ]),
    );
}

#[test]
fn uuids_go_by_version_and_then_by_time_or_bytes() {
    rising(
        &CqlType::Uuid,
        &uuids(&[
            "ffffffff-ffff-0fff-ffff-ffffffffffff",
            "ffffffff-ffff-1000-8000-000000000000",
            "00000000-0000-1001-8000-000000000000",
            // These bytes compare unsigned, unlike those of a timeuuid.
            "00000000-0000-1001-8000-000000000080",
            "00000000-0000-4000-8000-000000000000",
            "00000001-0000-4000-0000-000000000000",
            "80000000-0000-4000-8000-000000000000",
        ]),
    );
}

#[test]
fn floats_go_from_infinity_to_infinity_and_then_nan() {
    let values: Vec<Bytes> = [
        f64::NEG_INFINITY,
        -1.0,
        -0.0,
        0.0,
        f64::MIN_POSITIVE,
        1.0,
        f64::INFINITY,
        f64::NAN,
    ]
    .map(|number| Value::Double(number).serialize())
    .to_vec();
    rising(&CqlType::Double, &values);
    let quiet = Value::Double(f64::NAN).serialize();
    let negative = Value::Double(-f64::NAN).serialize();
    assert!(compare(&CqlType::Double, &quiet, &negative).is_eq());
}

#[test]
fn empty_values_come_first() {
    let least = [
        (CqlType::Int, Value::Int(i32::MIN)),
        (CqlType::Timestamp, Value::Timestamp(i64::MIN)),
        (CqlType::Double, Value::Double(f64::NEG_INFINITY)),
        (CqlType::Varint, Value::Varint((-1).into())),
        (CqlType::Decimal, Value::Decimal((-1).into())),
        (CqlType::Boolean, Value::Boolean(false)),
        (CqlType::Uuid, Value::Uuid(uuid::Uuid::nil())),
        (
            CqlType::Timeuuid,
            Value::Timeuuid(timeuuid::min_for_millis(0).unwrap()),
        ),
        (CqlType::Inet, Value::Inet([0, 0, 0, 0].into())),
    ];
    for (cql_type, value) in least {
        rising(&cql_type, &[Bytes::new(), value.serialize()]);
    }
}

#[test]
fn tuples_go_field_by_field_with_nulls_first() {
    let tuple = CqlType::Tuple(vec![CqlType::Int, CqlType::Int]);
    let of = |fields: &[Option<i32>]| {
        Value::Tuple(fields.iter().map(|field| field.map(Value::Int)).collect()).serialize()
    };
    rising(
        &tuple,
        &[
            of(&[None]),
            of(&[None, Some(1)]),
            of(&[Some(-1), Some(5)]),
            of(&[Some(1)]),
            of(&[Some(1), Some(0)]),
        ],
    );
    assert!(compare(&tuple, &of(&[Some(1)]), &of(&[Some(1), None])).is_eq());
}

#[test]
fn maps_go_by_key_then_value_then_length() {
    let map = CqlType::Map {
        key: Box::new(CqlType::Int),
        value: Box::new(CqlType::Int),
        frozen: true,
    };
    let of = |entries: &[(i32, i32)]| {
        let entry = |(key, value): &(i32, i32)| (Value::Int(*key), Value::Int(*value));
        Value::Map(entries.iter().map(entry).collect()).serialize()
    };
    rising(
        &map,
        &[
            of(&[]),
            of(&[(-1, 9)]),
            of(&[(1, 1)]),
            of(&[(1, 1), (2, 2)]),
            of(&[(1, 2)]),
            of(&[(2, -5)]),
        ],
    );
}

//! Tests that no bytes make validating, decoding or comparing panic, and that validating, decoding
//! and canonicalising accept the same bytes.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use value::{
    CqlType, Value, canonical, compare, finite_vector, split_elements, split_entries, validate,
};

use crate::strategies::{column_type, sent};

/// A type, and a value of it with a few bytes changed, cut off or added.
fn damaged_value() -> impl Strategy<Value = (CqlType, Vec<u8>)> {
    let change = (
        any::<Index>(),
        prop_oneof![any::<u8>(), Just(0), Just(0x7f), Just(0xff)],
    );
    (
        column_type(),
        vec(change, 0..4),
        any::<Index>(),
        vec(any::<u8>(), 0..5),
    )
        .prop_flat_map(|(cql_type, changes, cut, added)| {
            let value = sent(&cql_type);
            (Just(cql_type), value).prop_map(move |(cql_type, bytes)| {
                let mut bytes = bytes.to_vec();
                for (position, byte) in &changes {
                    if !bytes.is_empty() {
                        let position = position.index(bytes.len());
                        bytes[position] = *byte;
                    }
                }
                if added.len() == 4 {
                    bytes.truncate(cut.index(bytes.len() + 1));
                } else if added.len() < 3 {
                    bytes.extend_from_slice(&added);
                }
                (cql_type, bytes)
            })
        })
}

fn arbitrary_bytes() -> impl Strategy<Value = (CqlType, Vec<u8>)> {
    (
        column_type(),
        vec(prop_oneof![any::<u8>(), Just(0), Just(1)], 0..60),
    )
}

fn agree(cql_type: &CqlType, bytes: &[u8]) -> Result<(), TestCaseError> {
    let valid = validate(cql_type, bytes);
    let decoded = Value::deserialize(cql_type, bytes);
    prop_assert_eq!(valid.clone().err(), decoded.clone().err());
    let canonical = canonical(cql_type, &Bytes::copy_from_slice(bytes));
    prop_assert_eq!(valid.err(), canonical.clone().err());
    let _ = (split_elements(bytes), split_entries(bytes));
    if let (Ok(value), Ok(canonical)) = (decoded, canonical) {
        let again = Value::deserialize(cql_type, &canonical);
        prop_assert_eq!(
            again.map(|again| again.to_literal()),
            Ok(value.to_literal())
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn arbitrary((cql_type, bytes) in arbitrary_bytes()) {
        agree(&cql_type, &bytes)?;
    }

    #[test]
    fn damaged((cql_type, bytes) in damaged_value()) {
        agree(&cql_type, &bytes)?;
    }

    #[test]
    fn comparing((cql_type, a) in damaged_value(), b in vec(any::<u8>(), 0..40)) {
        let order = compare(&cql_type, &a, &b);
        prop_assert_eq!(compare(&cql_type, &b, &a), order.reverse());
        prop_assert!(compare(&cql_type, &a, &a).is_eq());
    }
}

#[test]
fn vectors_are_refused_with_the_reason() {
    let vector = CqlType::Vector {
        element: Box::new(CqlType::Float),
        dimensions: 3,
    };
    let refused = |elements: &[f32]| {
        let bytes = Value::FloatVector(elements.to_vec()).serialize();
        validate(&vector, &bytes).unwrap_err().0
    };
    assert_eq!(
        refused(&[1.0, 2.0]),
        "a vector<float, 3> takes exactly 3 elements of 4 bytes, got 2 elements"
    );
    assert_eq!(
        refused(&[1.0, 2.0, 3.0, 4.0]),
        "a vector<float, 3> takes exactly 3 elements of 4 bytes, got 4 elements"
    );
    assert_eq!(
        validate(&vector, &[0; 13]).unwrap_err().0,
        "a vector<float, 3> takes exactly 3 elements of 4 bytes, got 13 bytes, which is no whole \
         number of elements"
    );
    let not_finite = |elements: &[f32]| {
        let bytes = Value::FloatVector(elements.to_vec()).serialize();
        // A table without an index keeps the vector.
        assert_eq!(validate(&vector, &bytes), Ok(()));
        finite_vector(&bytes).unwrap_err().0
    };
    assert_eq!(
        not_finite(&[1.0, f32::NAN, 3.0]),
        "element 1 of a vector<float, 3> is NaN: the elements of a vector that is indexed or searched by must be \
         finite numbers, as no distance to anything else is defined"
    );
    assert!(not_finite(&[1.0, 2.0, f32::NEG_INFINITY]).starts_with("element 2 of"));
}

#[test]
fn errors_name_the_type_and_the_bytes() {
    let refused = |cql_type: &str, bytes: &[u8]| {
        let cql_type = cql::parser::parse_type(cql_type).unwrap();
        validate(&cql_type, bytes).unwrap_err().0
    };
    assert_eq!(
        refused("int", &[1, 2, 3]),
        "a value of type int takes 4 bytes, got 3"
    );
    assert_eq!(
        refused("inet", &[1, 2, 3]),
        "a value of type inet takes 4 or 16 bytes, got 3"
    );
    assert_eq!(
        refused("text", &[b'a', 0xff]),
        "a value of type text is not UTF-8 from offset 1"
    );
    assert_eq!(
        refused("ascii", &[b'a', 0xff]),
        "a value of type ascii has a byte beyond ASCII, 0xff, at offset 1"
    );
    assert_eq!(
        refused("timeuuid", &[0; 16]),
        "a value of type timeuuid is a UUID of version 1, got version 0"
    );
    assert_eq!(
        refused("time", &[0xff; 8]),
        "a value of type time lies between 0 and 86399999999999 nanoseconds, got -1"
    );
    assert_eq!(
        refused("decimal", &[0; 4]),
        "a value of type decimal takes at least 5 bytes, got 4"
    );
    assert_eq!(
        refused("list<int>", &[0, 0, 0, 1, 0, 0, 0, 1, 7]),
        "in a list<int>: a value of type int takes 4 bytes, got 1"
    );
    assert_eq!(
        refused("tuple<int>", &[0, 0, 0, 0, 7]),
        "in a frozen<tuple<int>>: 1 bytes are left over after the tuple"
    );
    assert_eq!(
        refused("vector<int, 2>", &[0; 4]),
        "in a vector<int, 2>: the vector is cut short: 1 more elements were expected"
    );
    assert_eq!(
        refused("varint", &[1; 16_385]),
        "a varint of 16385 bytes is longer than the 16384 bytes allowed"
    );
}

#[test]
fn counts_are_not_believed() {
    let set = cql::parser::parse_type("set<text>").unwrap();
    let refused = validate(&set, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0])
        .unwrap_err()
        .0;
    assert_eq!(
        refused,
        "in a set<text>: the set says it has 2147483647 elements, which 4 bytes can't hold"
    );
}

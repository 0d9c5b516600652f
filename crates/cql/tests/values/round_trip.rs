//! Tests that values survive being written as bytes and as text.

use bytes::Bytes;
use cql::ast::{Insert, InsertValues, Statement, Term};
use cql::parser::parse_statement;
use proptest::prelude::*;
use value::{
    CqlType, Value, canonical, from_literal, join_elements, join_entries, split_elements,
    split_entries, validate,
};

use crate::strategies::{column_type, scalar, sent, stored};

/// A type and a value of it, as a client may send it.
fn typed_value() -> impl Strategy<Value = (CqlType, Bytes)> {
    column_type().prop_flat_map(|cql_type| {
        let value = sent(&cql_type);
        (Just(cql_type), value)
    })
}

/// A type without parameters and a value of it.
fn typed_scalar() -> impl Strategy<Value = (CqlType, Bytes)> {
    scalar().prop_flat_map(|cql_type| {
        let value = stored(&cql_type);
        (Just(cql_type), value)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn a_value_survives_its_bytes((cql_type, sent) in typed_value()) {
        prop_assert_eq!(validate(&cql_type, &sent), Ok(()));
        let stored = canonical(&cql_type, &sent).unwrap();
        let value = Value::deserialize(&cql_type, &sent).unwrap();
        prop_assert_eq!(&value.serialize(), &stored);
        prop_assert_eq!(Value::deserialize(&cql_type, &stored).unwrap().serialize(), stored.clone());
        prop_assert_eq!(canonical(&cql_type, &stored).unwrap(), stored);
    }

    #[test]
    fn a_scalar_survives_its_literal((cql_type, bytes) in typed_scalar()) {
        let text = Value::deserialize(&cql_type, &bytes).unwrap().to_literal();
        let statement = format!("INSERT INTO t (a) VALUES ({text})");
        let Ok(Statement::Insert(Insert { values: InsertValues::Columns { terms, .. }, .. })) =
            parse_statement(&statement).map(|parsed| parsed.statement)
        else {
            panic!("{statement}");
        };
        let [Term::Literal(literal)] = &terms[..] else {
            panic!("{statement}");
        };
        let read = from_literal(&cql_type, literal);
        if text == "NaN" {
            // All NaNs have the same literal.
            let read = Value::deserialize(&cql_type, &read.unwrap()).unwrap();
            prop_assert_eq!(read.to_literal(), "NaN");
        } else {
            prop_assert_eq!(read, Ok(bytes), "{}", text);
        }
    }

    #[test]
    fn collections_come_apart_and_together((cql_type, sent) in typed_value()) {
        match cql_type {
            CqlType::List { .. } | CqlType::Set { .. } => {
                let elements = split_elements(&sent).unwrap();
                prop_assert_eq!(join_elements(elements.iter().map(Bytes::as_ref)), sent);
            }
            CqlType::Map { .. } => {
                let entries = split_entries(&sent).unwrap();
                prop_assert_eq!(
                    join_entries(entries.iter().map(|(key, value)| (&key[..], &value[..]))),
                    sent
                );
            }
            _ => {}
        }
    }
}

/// The bytes come from the specification or the tests of a driver.
#[test]
fn known_values_have_known_bytes() {
    let vector = |element, dimensions| CqlType::Vector {
        element: Box::new(element),
        dimensions,
    };
    let duration = Value::Duration {
        months: 1,
        days: 2,
        nanoseconds: 3,
    };
    let cases: Vec<(CqlType, Value, &[u8])> = vec![
        (
            CqlType::Bigint,
            Value::Bigint(-2),
            &[255, 255, 255, 255, 255, 255, 255, 254],
        ),
        (CqlType::Varint, Value::Varint(128.into()), &[0x00, 0x80]),
        (CqlType::Varint, Value::Varint((-129).into()), &[0xff, 0x7f]),
        (CqlType::Varint, Value::Varint(0.into()), &[0x00]),
        (
            CqlType::Decimal,
            Value::Decimal("1.28".parse().unwrap()),
            &[0, 0, 0, 2, 0x00, 0x80],
        ),
        (CqlType::Duration, duration, &[0x02, 0x04, 0x06]),
        (CqlType::Date, Value::Date(1 << 31), &[0x80, 0, 0, 0]),
        (CqlType::Float, Value::Float(1.0), &[0x3f, 0x80, 0, 0]),
        (
            CqlType::Inet,
            Value::Inet([127, 0, 0, 1].into()),
            &[127, 0, 0, 1],
        ),
        (
            vector(CqlType::Float, 2),
            Value::FloatVector(vec![1.0, -2.0]),
            &[0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0],
        ),
        (
            vector(CqlType::Text, 2),
            Value::Vector(vec![Value::Text("ab".into()), Value::Text(String::new())]),
            &[2, b'a', b'b', 0],
        ),
        // Every smallint has two bytes, but Cassandra treats the type as one of variable length.
        (
            vector(CqlType::Smallint, 2),
            Value::Vector(vec![Value::Smallint(1), Value::Smallint(2)]),
            &[2, 0, 1, 2, 0, 2],
        ),
        (
            CqlType::Tuple(vec![CqlType::Int, CqlType::Text, CqlType::Int]),
            Value::Tuple(vec![None, Some(Value::Text("a".into()))]),
            &[255, 255, 255, 255, 0, 0, 0, 1, b'a'],
        ),
    ];
    for (cql_type, value, bytes) in cases {
        assert_eq!(value.serialize().as_ref(), bytes, "{cql_type}");
        assert_eq!(
            Value::deserialize(&cql_type, bytes),
            Ok(value),
            "{cql_type}"
        );
    }
}

#[test]
fn the_empty_value_is_kept_where_the_protocol_allows_it() {
    for cql_type in [
        CqlType::Int,
        CqlType::Uuid,
        CqlType::Varint,
        CqlType::Decimal,
        CqlType::Boolean,
    ] {
        assert_eq!(Value::deserialize(&cql_type, &[]), Ok(Value::Empty));
    }
    for cql_type in [
        CqlType::Tinyint,
        CqlType::Smallint,
        CqlType::Date,
        CqlType::Time,
        CqlType::Duration,
    ] {
        assert!(validate(&cql_type, &[]).is_err(), "{cql_type}");
    }
    assert_eq!(
        Value::deserialize(&CqlType::Text, &[]),
        Ok(Value::Text(String::new()))
    );
    assert_eq!(Value::Empty.serialize(), Bytes::new());
}

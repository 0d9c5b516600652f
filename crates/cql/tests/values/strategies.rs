//! Strategies for arbitrary types, and for arbitrary values of a type.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use bytes::Bytes;
use num_bigint::BigInt;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;
use value::{CqlType, UserType, Value, canonical, timeuuid};

/// A type without parameters that may lie in any other type and has an order.
pub fn sortable_scalar() -> impl Strategy<Value = CqlType> {
    select(
        &[
            CqlType::Ascii,
            CqlType::Bigint,
            CqlType::Blob,
            CqlType::Boolean,
            CqlType::Date,
            CqlType::Decimal,
            CqlType::Double,
            CqlType::Float,
            CqlType::Inet,
            CqlType::Int,
            CqlType::Smallint,
            CqlType::Text,
            CqlType::Time,
            CqlType::Timestamp,
            CqlType::Timeuuid,
            CqlType::Tinyint,
            CqlType::Uuid,
            CqlType::Varint,
        ][..],
    )
}

/// Any type without parameters.
pub fn scalar() -> impl Strategy<Value = CqlType> {
    prop_oneof![
        18 => sortable_scalar(),
        1 => Just(CqlType::Counter),
        1 => Just(CqlType::Duration),
    ]
}

/// A type that may lie in any other: its collections are frozen.
pub fn inner_type() -> impl Strategy<Value = CqlType> {
    sortable_scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|element| CqlType::List {
                element: Box::new(element),
                frozen: true
            }),
            inner.clone().prop_map(|element| CqlType::Set {
                element: Box::new(element),
                frozen: true
            }),
            (inner.clone(), inner.clone()).prop_map(|(key, value)| CqlType::Map {
                key: Box::new(key),
                value: Box::new(value),
                frozen: true
            }),
            vec(inner.clone(), 1..4).prop_map(CqlType::Tuple),
            vec(inner.clone(), 1..4).prop_map(user_type),
            (inner, 1..5_u16, any::<bool>()).prop_map(|(element, dimensions, is_thawed)| {
                CqlType::Vector {
                    element: Box::new(if is_thawed { thawed(element) } else { element }),
                    dimensions,
                }
            }),
        ]
    })
}

/// Any type that a column can have.
pub fn column_type() -> impl Strategy<Value = CqlType> {
    prop_oneof![scalar(), inner_type(), inner_type().prop_map(thawed)]
}

/// A user type with fields of these types. Types with other fields have another name.
fn user_type(field_types: Vec<CqlType>) -> CqlType {
    let texts: Vec<String> = field_types.iter().map(CqlType::to_string).collect();
    let definition = UserType {
        keyspace: "Ks".to_owned(),
        name: format!("Of {}", texts.join(" \"")),
        field_names: (0..field_types.len())
            .map(|position| format!("Field{position}"))
            .collect(),
        field_types,
    };
    CqlType::UserType {
        definition: Arc::new(definition),
        frozen: true,
    }
}

/// The type with its outermost collection or user type not frozen.
fn thawed(mut cql_type: CqlType) -> CqlType {
    if let CqlType::List { frozen, .. }
    | CqlType::UserType { frozen, .. }
    | CqlType::Set { frozen, .. }
    | CqlType::Map { frozen, .. } = &mut cql_type
    {
        *frozen = false;
    }
    cql_type
}

/// A number. Small ones come often, so that equal ones come often too.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-2..3_i64, any::<i64>(), any::<i32>().prop_map(i64::from)]
}

fn big_number() -> impl Strategy<Value = BigInt> {
    prop_oneof![
        number().prop_map(BigInt::from),
        vec(any::<u8>(), 1..40).prop_map(|bytes| BigInt::from_signed_bytes_be(&bytes)),
    ]
}

fn float() -> impl Strategy<Value = f32> {
    prop_oneof![
        select(
            &[
                0.0,
                -0.0,
                1.0,
                -1.0,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::NAN
            ][..]
        ),
        any::<f32>(),
    ]
}

fn short_text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab']{0,2}", ".{0,12}"]
}

fn uuid() -> impl Strategy<Value = Uuid> {
    prop_oneof![
        any::<[u8; 16]>().prop_map(Uuid::from_bytes),
        version_1(),
        // UUIDs of several versions that differ in single bytes.
        (0..16_usize, 0..3_u8, 0..6_u8).prop_map(|(position, byte, version)| {
            let mut bytes = [0; 16];
            bytes[6] = version << 4;
            bytes[position] |= byte;
            Uuid::from_bytes(bytes)
        }),
    ]
}

fn version_1() -> impl Strategy<Value = Uuid> {
    let micros = prop_oneof![
        0..3_i64,
        -12_219_292_800_000_000..103_072_857_660_684_697_i64
    ];
    let clock_and_node = prop_oneof![any::<u64>(), select(&[0, 0x80, 0x8000, 0x7f7f][..])];
    (micros, clock_and_node).prop_map(|(micros, bits)| timeuuid::from_micros(micros, bits).unwrap())
}

/// A value of the type. Sets and maps may be out of order and hold repeats.
#[expect(
    clippy::too_many_lines,
    reason = "one match: each type with its values"
)]
fn raw_value(cql_type: &CqlType) -> BoxedStrategy<Value> {
    match cql_type {
        CqlType::Ascii => "[a-c ']{0,6}".prop_map(Value::Ascii).boxed(),
        CqlType::Bigint => number().prop_map(Value::Bigint).boxed(),
        CqlType::Blob => vec(any::<u8>(), 0..10)
            .prop_map(|bytes| Value::Blob(Bytes::from(bytes)))
            .boxed(),
        CqlType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        CqlType::Counter => number().prop_map(Value::Counter).boxed(),
        CqlType::Date => prop_oneof![any::<u32>(), (1 << 31)..(1 << 31) + 3_u32]
            .prop_map(Value::Date)
            .boxed(),
        CqlType::Decimal => (big_number(), prop_oneof![-3..4_i32, any::<i32>()])
            .prop_map(|(unscaled, scale)| {
                Value::Decimal(BigDecimal::new(unscaled, i64::from(scale)))
            })
            .boxed(),
        CqlType::Double => float()
            .prop_map(|number| Value::Double(f64::from(number) * 1.1))
            .boxed(),
        CqlType::Duration => (0..i32::MAX, 0..i32::MAX, 0..i64::MAX, any::<bool>())
            .prop_map(|(months, days, nanoseconds, negative)| {
                let sign = if negative { -1 } else { 1 };
                Value::Duration {
                    months: sign * months,
                    days: sign * days,
                    nanoseconds: i64::from(sign) * nanoseconds,
                }
            })
            .boxed(),
        CqlType::Float => float().prop_map(Value::Float).boxed(),
        CqlType::Inet => prop_oneof![
            any::<[u8; 4]>().prop_map(|bytes| Value::Inet(bytes.into())),
            any::<[u8; 16]>().prop_map(|bytes| Value::Inet(bytes.into())),
        ]
        .boxed(),
        CqlType::Int => number().prop_map(|n| Value::Int(n as i32)).boxed(),
        CqlType::Smallint => number().prop_map(|n| Value::Smallint(n as i16)).boxed(),
        CqlType::Text => short_text().prop_map(Value::Text).boxed(),
        CqlType::Time => prop_oneof![0..3_i64, 0..86_400_000_000_000_i64]
            .prop_map(Value::Time)
            .boxed(),
        CqlType::Timestamp => number().prop_map(Value::Timestamp).boxed(),
        CqlType::Timeuuid => version_1().prop_map(Value::Timeuuid).boxed(),
        CqlType::Tinyint => number().prop_map(|n| Value::Tinyint(n as i8)).boxed(),
        CqlType::Uuid => uuid().prop_map(Value::Uuid).boxed(),
        CqlType::Varint => big_number().prop_map(Value::Varint).boxed(),
        CqlType::List { element, .. } => {
            vec(raw_value(element), 0..4).prop_map(Value::List).boxed()
        }
        CqlType::Set { element, .. } => vec(raw_value(element), 0..4).prop_map(Value::Set).boxed(),
        CqlType::Map { key, value, .. } => vec((raw_value(key), raw_value(value)), 0..4)
            .prop_map(Value::Map)
            .boxed(),
        CqlType::Tuple(types) => fields(types).prop_map(Value::Tuple).boxed(),
        CqlType::UserType { definition, .. } => {
            let definition = definition.clone();
            fields(&definition.field_types)
                .prop_map(move |fields| Value::UserType {
                    definition: definition.clone(),
                    fields,
                })
                .boxed()
        }
        CqlType::Vector {
            element,
            dimensions,
        } => {
            let count = usize::from(*dimensions);
            match **element {
                CqlType::Float => vec(-100.0..100.0_f32, count)
                    .prop_map(Value::FloatVector)
                    .boxed(),
                _ => vec(raw_value(element), count)
                    .prop_map(Value::Vector)
                    .boxed(),
            }
        }
    }
}

/// The fields of a tuple, of which the last may be left out.
fn fields(types: &[CqlType]) -> impl Strategy<Value = Vec<Option<Value>>> + use<> {
    let fields: Vec<_> = types
        .iter()
        .map(|cql_type| prop::option::weighted(0.8, raw_value(cql_type)).boxed())
        .collect();
    (fields, 0..=types.len()).prop_map(|(mut fields, written)| {
        fields.truncate(written);
        fields
    })
}

/// The serialised form of a value of the type, as a client may send it.
pub fn sent(cql_type: &CqlType) -> impl Strategy<Value = Bytes> + use<> {
    raw_value(cql_type).prop_map(|value| value.serialize())
}

/// The serialised form of a value of the type, as it is stored.
pub fn stored(cql_type: &CqlType) -> impl Strategy<Value = Bytes> + use<> {
    let cql_type = cql_type.clone();
    sent(&cql_type).prop_map(move |bytes| {
        canonical(&cql_type, &bytes).unwrap_or_else(|error| panic!("{cql_type}: {error}"))
    })
}

//! Tests that the encoded order is the order of the values, for every type that a key may have.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use value::{CqlType, UserType, canonical, compare, join_elements, join_entries};

use super::component::{AFTER_PREFIX, decode, encode};

fn scalars() -> impl Strategy<Value = CqlType> {
    prop::sample::select(vec![
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
    ])
}

fn types() -> impl Strategy<Value = CqlType> {
    scalars().prop_recursive(2, 6, 2, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed().prop_map(|element| CqlType::List {
                element,
                frozen: true
            }),
            boxed().prop_map(|element| CqlType::Set {
                element,
                frozen: true
            }),
            (boxed(), boxed()).prop_map(|(key, value)| CqlType::Map {
                key,
                value,
                frozen: true
            }),
            vec(inner.clone(), 1..3).prop_map(CqlType::Tuple),
            vec(inner.clone(), 1..3).prop_map(user_type),
            (boxed(), 1..3_u16).prop_map(|(element, dimensions)| CqlType::Vector {
                element,
                dimensions
            }),
        ]
    })
}

fn user_type(field_types: Vec<CqlType>) -> CqlType {
    let definition = UserType {
        keyspace: "k".to_owned(),
        name: "u".to_owned(),
        field_names: vec![String::new(); field_types.len()],
        field_types,
    };
    CqlType::UserType {
        definition: Arc::new(definition),
        frozen: true,
    }
}

/// Bytes of few different values, awkward ones among them, so that many strings share beginnings.
fn bytes(length: impl Into<proptest::collection::SizeRange>) -> BoxedStrategy<Vec<u8>> {
    vec(
        prop::sample::select(vec![0, 1, 2, 0x7f, 0x80, 0xfe, 0xff]),
        length,
    )
    .boxed()
}

fn concat(parts: Vec<Vec<u8>>) -> Bytes {
    parts.concat().into()
}

#[expect(
    clippy::too_many_lines,
    reason = "one match: each type with its values"
)]
fn values(cql_type: &CqlType) -> BoxedStrategy<Bytes> {
    let fixed = |length: usize| {
        prop_oneof![bytes(length), vec(any::<u8>(), length)]
            .prop_map(Bytes::from)
            .boxed()
    };
    let exact = match cql_type {
        CqlType::Ascii => vec(prop::sample::select(vec![0_u8, 1, b'a', 0x7f]), 0..4)
            .prop_map(Bytes::from)
            .boxed(),
        CqlType::Text => vec(
            prop::sample::select(vec!['\0', '\u{1}', 'a', 'ÿ', '𐍈']),
            0..4,
        )
        .prop_map(|chars| Bytes::from(chars.into_iter().collect::<String>()))
        .boxed(),
        CqlType::Blob => bytes(0..4).prop_map(Bytes::from).boxed(),
        CqlType::Tinyint | CqlType::Boolean => fixed(1),
        CqlType::Smallint => fixed(2),
        CqlType::Int | CqlType::Date => fixed(4),
        CqlType::Bigint | CqlType::Timestamp => fixed(8),
        CqlType::Float => prop_oneof![
            fixed(4),
            any::<f32>().prop_map(|n| Bytes::copy_from_slice(&n.to_be_bytes())),
            prop::sample::select(vec![0.0_f32, -0.0, f32::NAN, -f32::NAN, f32::INFINITY])
                .prop_map(|n| Bytes::copy_from_slice(&n.to_be_bytes())),
        ]
        .boxed(),
        CqlType::Double => prop_oneof![
            fixed(8),
            any::<f64>().prop_map(|n| Bytes::copy_from_slice(&n.to_be_bytes())),
            prop::sample::select(vec![0.0_f64, -0.0, f64::NAN, -f64::NAN, f64::NEG_INFINITY])
                .prop_map(|n| Bytes::copy_from_slice(&n.to_be_bytes())),
        ]
        .boxed(),
        CqlType::Time => (0..86_400_000_000_000_i64)
            .prop_map(|n| Bytes::copy_from_slice(&n.to_be_bytes()))
            .boxed(),
        CqlType::Inet => prop_oneof![fixed(4), fixed(16)].boxed(),
        CqlType::Timeuuid => fixed(16)
            .prop_map(|id| {
                let mut id = id.to_vec();
                id[6] = id[6] & 0x0f | 0x10;
                id.into()
            })
            .boxed(),
        CqlType::Uuid => fixed(16),
        CqlType::Varint => bytes(1..5).prop_map(Bytes::from).boxed(),
        CqlType::Decimal => {
            let scale = prop_oneof![-3..4_i32, any::<i32>(), Just(i32::MIN), Just(i32::MAX)];
            let unscaled = prop_oneof![
                bytes(1..4),
                (-2000..2000_i32).prop_map(|n| n.to_be_bytes().to_vec()),
                (-3..4_i64, 0..18_u32)
                    .prop_map(|(n, e)| (n * 10_i64.pow(e)).to_be_bytes().to_vec()),
            ];
            (scale, unscaled)
                .prop_map(|(scale, unscaled)| concat(vec![scale.to_be_bytes().to_vec(), unscaled]))
                .boxed()
        }
        CqlType::List { element, .. } | CqlType::Set { element, .. } => vec(values(element), 0..3)
            .prop_map(|elements| join_elements(elements.iter().map(Bytes::as_ref)))
            .boxed(),
        CqlType::Map { key, value, .. } => vec((values(key), values(value)), 0..3)
            .prop_map(|entries| join_entries(entries.iter().map(|(k, v)| (&k[..], &v[..]))))
            .boxed(),
        CqlType::Tuple(types) => fields(types),
        CqlType::UserType { definition, .. } => fields(&definition.field_types),
        CqlType::Vector {
            element,
            dimensions,
        } => {
            let is_fixed = element.fixed_length().is_some();
            vec(values(element), usize::from(*dimensions))
                .prop_map(move |elements| {
                    let mut out = Vec::new();
                    for element in &elements {
                        if !is_fixed {
                            // A vint of one byte.
                            out.push(element.len() as u8);
                        }
                        out.extend_from_slice(element);
                    }
                    out.into()
                })
                .boxed()
        }
        other => panic!("{other} is not a key type"),
    };
    let holds_empty = matches!(
        cql_type,
        CqlType::Bigint
            | CqlType::Boolean
            | CqlType::Decimal
            | CqlType::Double
            | CqlType::Float
            | CqlType::Inet
            | CqlType::Int
            | CqlType::Timestamp
            | CqlType::Timeuuid
            | CqlType::Uuid
            | CqlType::Varint
    );
    let checked = cql_type.clone();
    let exact = exact
        .prop_filter_map("a valid value", move |value| {
            canonical(&checked, &value).ok()
        })
        .boxed();
    if holds_empty {
        prop_oneof![19 => exact, 1 => Just(Bytes::new())].boxed()
    } else {
        exact
    }
}

/// Fields of which at least one is written.
fn fields(types: &[CqlType]) -> BoxedStrategy<Bytes> {
    let fields: Vec<_> = types
        .iter()
        .map(|t| prop::option::of(values(t)).boxed())
        .collect();
    (fields, 0..=types.len())
        .prop_map(|(fields, written)| {
            let mut out = Vec::new();
            for field in &fields[..written.max(1)] {
                match field {
                    Some(field) => {
                        out.extend_from_slice(&(field.len() as i32).to_be_bytes());
                        out.extend_from_slice(field);
                    }
                    None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                }
            }
            out.into()
        })
        .boxed()
}

fn encoded(cql_type: &CqlType, descending: bool, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, cql_type, descending, value).expect("a valid value");
    out
}

fn two_values() -> impl Strategy<Value = (CqlType, Bytes, Bytes)> {
    types().prop_flat_map(|t| {
        let (a, b) = (values(&t), values(&t));
        (Just(t), a, b)
    })
}

fn directed(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn encoded_order_is_value_order((t, a, b) in two_values(), descending: bool) {
        let (ea, eb) = (encoded(&t, descending, &a), encoded(&t, descending, &b));
        prop_assert_eq!(ea.cmp(&eb), directed(compare(&t, &a, &b), descending));
        // Neither is the beginning of the other.
        prop_assert!(ea == eb || !(ea.starts_with(&eb) || eb.starts_with(&ea)));
        prop_assert!(ea[0] != AFTER_PREFIX);
    }

    #[test]
    fn decoding_gives_an_equal_value((t, a, _) in two_values(), descending: bool) {
        let key = encoded(&t, descending, &a);
        let followed = [&key[..], b"rest"].concat();
        let mut input = &followed[..];
        let decoded = decode(&mut input, &t, descending).expect("an encoded value");
        prop_assert_eq!(input, b"rest");
        prop_assert!(compare(&t, &a, &decoded).is_eq());
        prop_assert_eq!(encoded(&t, descending, &decoded), key);
        if !super::component::is_lossy(&t) {
            prop_assert_eq!(decoded, a);
        }
    }

    #[test]
    fn a_user_type_in_keys_may_get_fields(
        (types, value) in vec(types(), 1..4).prop_flat_map(|types| {
            let value = fields(&types);
            (Just(types), value)
        }),
        descending: bool,
    ) {
        let wider = user_type([&types[..], &[CqlType::Int]].concat());
        let key = encoded(&user_type(types), descending, &value);
        prop_assert_eq!(&encoded(&wider, descending, &value), &key);
        let decoded = decode(&mut &key[..], &wider, descending).expect("an encoded value");
        prop_assert!(compare(&wider, &value, &decoded).is_eq());
    }

    #[test]
    fn several_columns_order_as_the_first_that_differs(
        columns in vec((two_values(), any::<bool>()), 2..4),
        shared in 0..3_usize,
    ) {
        let mut expected = Ordering::Equal;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (position, ((t, a, b), descending)) in columns.iter().enumerate() {
            // The first columns are the same, so that the later ones matter.
            let b = if position < shared { a } else { b };
            expected = expected.then(directed(compare(t, a, b), *descending));
            encode(&mut left, t, *descending, a).expect("valid");
            encode(&mut right, t, *descending, b).expect("valid");
        }
        prop_assert_eq!(left.cmp(&right), expected);
    }

    #[test]
    fn keys_after_a_prefix_sort_before_its_end(
        ((t, a, b), descending) in (two_values(), any::<bool>()),
        ((u, c, _), other_descending) in (two_values(), any::<bool>()),
    ) {
        let prefix = encoded(&t, descending, &a);
        let mut key = prefix.clone();
        encode(&mut key, &u, other_descending, &c).expect("valid");
        let end = [&prefix[..], &[AFTER_PREFIX]].concat();
        prop_assert!(prefix < key && key < end);
        let other = encoded(&t, descending, &b);
        if other > prefix {
            prop_assert!(other > end);
        }
    }

    #[test]
    fn damaged_bytes_never_panic(t in types(), damaged in vec(any::<u8>(), 0..40), descending: bool) {
        let _ = decode(&mut &damaged[..], &t, descending);
    }
}

#[test]
fn decimals_of_any_scale_are_ordered_and_equal_ones_share_a_key() {
    let decimal = |scale: i32, unscaled: i64| {
        concat(vec![
            scale.to_be_bytes().to_vec(),
            unscaled.to_be_bytes().to_vec(),
        ])
    };
    let key = |value: &Bytes| encoded(&CqlType::Decimal, false, value);
    assert_eq!(key(&decimal(1, 10)), key(&decimal(2, 100)));
    assert_eq!(key(&decimal(0, 0)), key(&decimal(-7, 0)));
    let ascending = [
        decimal(i32::MIN, -100),
        decimal(i32::MIN, -99),
        decimal(0, -100),
        decimal(1, -999),
        decimal(i32::MAX, -1),
        decimal(3, 0),
        decimal(i32::MAX, 1),
        decimal(2, 99),
        decimal(1, 10),
        decimal(1, 11),
        decimal(-2, 1),
        decimal(i32::MIN, 9),
        decimal(i32::MIN, 10),
    ];
    assert!(ascending.is_sorted_by(|a, b| key(a) < key(b)));
    for value in &ascending {
        let decoded = decode(&mut &key(value)[..], &CqlType::Decimal, false).unwrap();
        assert!(compare(&CqlType::Decimal, value, &decoded).is_eq());
    }
}

//! Tests of each predicate, for each kind of type.

use std::net::Ipv4Addr;

use uuid::Uuid;

use super::*;
use crate::{Value, join_elements, join_entries};

/// A value that is no non-frozen collection.
type Whole<'v> = ColumnObservation<'v, std::iter::Empty<(&'v [u8], &'v [u8])>>;

fn whole(value: &Bytes) -> Whole<'_> {
    ColumnObservation::Value(value)
}

fn elements(
    pairs: &[(Bytes, Bytes)],
) -> ColumnObservation<'_, impl Iterator<Item = (&'_ [u8], &'_ [u8])>> {
    ColumnObservation::Elements(pairs.iter().map(|(path, value)| (&path[..], &value[..])))
}

fn int(value: i32) -> Bytes {
    Value::Int(value).serialize()
}

fn text(value: &str) -> Bytes {
    Value::Text(value.to_owned()).serialize()
}

fn list_of(element: CqlType) -> CqlType {
    CqlType::List {
        element: Box::new(element),
        frozen: true,
    }
}

fn uuid_at(time: u32, clock: u8) -> Uuid {
    Uuid::from_fields(time, 0, 0x1000, &[clock, 0, 0, 0, 0, 0, 0, 0])
}

/// Each scalar type with three values in CQL's order. Where the order of the bytes is another, the
/// values show it.
fn ascending_scalars() -> Vec<(CqlType, [Value; 3])> {
    let texts = |of: fn(String) -> Value| ["", "Z", "a"].map(|text| of(text.to_owned()));
    vec![
        (CqlType::Ascii, texts(Value::Ascii)),
        (CqlType::Text, texts(Value::Text)),
        (CqlType::Bigint, [-1, 0, 256].map(Value::Bigint)),
        (CqlType::Counter, [-1, 0, 256].map(Value::Counter)),
        (CqlType::Int, [-1, 0, 256].map(Value::Int)),
        (CqlType::Smallint, [-1, 0, 256].map(Value::Smallint)),
        (CqlType::Tinyint, [-128, 0, 127].map(Value::Tinyint)),
        (
            CqlType::Varint,
            [-300, 0, 300].map(|n: i32| Value::Varint(n.into())),
        ),
        (
            CqlType::Decimal,
            [-1, 0, 9].map(|n: i32| Value::Decimal(n.into())),
        ),
        (CqlType::Double, [-0.0, 0.0, f64::NAN].map(Value::Double)),
        (
            CqlType::Float,
            [-2.0, -1.0, f32::INFINITY].map(Value::Float),
        ),
        (CqlType::Timestamp, [-1, 0, 1].map(Value::Timestamp)),
        (CqlType::Date, [0, 1 << 31, u32::MAX].map(Value::Date)),
        (CqlType::Time, [0, 255, 256].map(Value::Time)),
        (
            CqlType::Blob,
            [&b""[..], b"\0", b"\xff"].map(|bytes| Value::Blob(bytes.into())),
        ),
        (
            CqlType::Inet,
            [1, 2, 255].map(|last| Value::Inet(Ipv4Addr::new(10, 0, 0, last).into())),
        ),
        (
            CqlType::Timeuuid,
            // The bytes of the clock sequence are signed.
            [uuid_at(1, 0x80), uuid_at(1, 0x00), uuid_at(2, 0x80)].map(Value::Timeuuid),
        ),
        (
            CqlType::Uuid,
            // The version comes first.
            [
                Uuid::from_fields(9, 0, 0x1000, &[0; 8]),
                Uuid::from_fields(1, 0, 0x4000, &[0; 8]),
                Uuid::from_fields(2, 0, 0x4000, &[0; 8]),
            ]
            .map(Value::Uuid),
        ),
        (
            CqlType::Duration,
            [1, 2, 3].map(|days| Value::Duration {
                months: 0,
                days,
                nanoseconds: 0,
            }),
        ),
    ]
}

/// Each kind of composed type with three values in CQL's order.
fn ascending_composed() -> Vec<(CqlType, [Value; 3])> {
    let set = CqlType::Set {
        element: Box::new(CqlType::Text),
        frozen: true,
    };
    let map = CqlType::Map {
        key: Box::new(CqlType::Int),
        value: Box::new(CqlType::Text),
        frozen: true,
    };
    let vector = |element| CqlType::Vector {
        element: Box::new(element),
        dimensions: 2,
    };
    let texts = |texts: &[&str]| {
        let texts = texts.iter().map(|text| Value::Text((*text).to_owned()));
        texts.collect::<Vec<_>>()
    };
    let entry = |key, value: &str| (Value::Int(key), Value::Text(value.to_owned()));
    vec![
        (
            list_of(CqlType::Int),
            [vec![-1], vec![-1, -2], vec![0]]
                .map(|list: Vec<i32>| Value::List(list.into_iter().map(Value::Int).collect())),
        ),
        (
            set,
            [&["a"][..], &["a", "b"], &["b"]].map(|set| Value::Set(texts(set))),
        ),
        (
            map,
            [
                Value::Map(vec![entry(-1, "z")]),
                Value::Map(vec![entry(0, "a")]),
                Value::Map(vec![entry(0, "b")]),
            ],
        ),
        (
            CqlType::Tuple(vec![CqlType::Int, CqlType::Int]),
            [
                Value::Tuple(vec![None, Some(Value::Int(9))]),
                Value::Tuple(vec![Some(Value::Int(-1)), Some(Value::Int(0))]),
                Value::Tuple(vec![Some(Value::Int(0)), None]),
            ],
        ),
        (
            vector(CqlType::Float),
            [[-1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]
                .map(|vector: [f32; 2]| Value::FloatVector(vector.to_vec())),
        ),
        (
            vector(CqlType::Text),
            [["a", "b"], ["a", "c"], ["b", "a"]].map(|vector| Value::Vector(texts(&vector))),
        ),
    ]
}

fn ascending() -> Vec<(CqlType, [Bytes; 3])> {
    let mut all = ascending_scalars();
    all.extend(ascending_composed());
    all.into_iter()
        .map(|(cql_type, values)| (cql_type, values.map(|value| value.serialize())))
        .collect()
}

const COMPARISONS: [ComparisonOperator; 5] = [
    ComparisonOperator::Eq,
    ComparisonOperator::Lt,
    ComparisonOperator::LtEq,
    ComparisonOperator::Gt,
    ComparisonOperator::GtEq,
];

fn compares(cql_type: &CqlType, comparison: ComparisonOperator, value: &Bytes) -> Predicate {
    Predicate::Compare {
        cql_type: cql_type.clone(),
        comparison,
        value: value.clone(),
    }
}

#[test]
fn comparisons_follow_the_order_of_each_type() {
    for (cql_type, values) in ascending() {
        for comparison in COMPARISONS {
            let passing = values
                .each_ref()
                .map(|got| compares(&cql_type, comparison, &values[1]).holds(whole(got)));
            let expected = match comparison {
                ComparisonOperator::Eq => [false, true, false],
                ComparisonOperator::Lt => [true, false, false],
                ComparisonOperator::LtEq => [true, true, false],
                ComparisonOperator::Gt => [false, false, true],
                ComparisonOperator::GtEq => [false, true, true],
            };
            assert_eq!(passing, expected, "{cql_type} {comparison:?}");
        }
    }
}

#[test]
fn not_equal_holds_for_all_other_values_of_each_type() {
    for (cql_type, values) in ascending() {
        let predicate = Predicate::NotEqual {
            cql_type: cql_type.clone(),
            value: values[1].clone(),
        };
        let passing = values.each_ref().map(|got| predicate.holds(whole(got)));
        assert_eq!(passing, [true, false, true], "{cql_type}");
    }
}

#[test]
fn in_holds_for_the_values_of_its_list_for_each_type() {
    for (cql_type, values) in ascending() {
        let [low, middle, high] = values;
        let predicate = |values| Predicate::In(OneOf::new(cql_type.clone(), values));
        let both = predicate(vec![high.clone(), low.clone()]);
        let passing = [&low, &middle, &high].map(|got| both.holds(whole(got)));
        assert_eq!(passing, [true, false, true], "{cql_type}");
        assert!(!predicate(Vec::new()).holds(whole(&low)), "{cql_type}");
    }
}

#[test]
fn values_that_differ_in_bytes_alone_are_equal() {
    let decimal = |unscaled: u8, scale: u8| Bytes::copy_from_slice(&[0, 0, 0, scale, unscaled]);
    let (one, one_point_zero) = (decimal(1, 0), decimal(10, 1));
    let is_one = compares(&CqlType::Decimal, ComparisonOperator::Eq, &one);
    assert!(is_one.holds(whole(&one_point_zero)));
    let is_other = Predicate::NotEqual {
        cql_type: CqlType::Decimal,
        value: one.clone(),
    };
    assert!(!is_other.holds(whole(&one_point_zero)));
    let is_in = Predicate::In(OneOf::new(CqlType::Decimal, vec![decimal(7, 0), one]));
    assert!(is_in.holds(whole(&one_point_zero)));
    let contains = Predicate::Contains {
        collection: SearchedCollection::List(CqlType::Decimal),
        value: decimal(1, 0),
    };
    let list = join_elements([&one_point_zero[..]].into_iter());
    assert!(contains.holds(whole(&list)));
}

#[test]
fn an_empty_value_comes_before_all_others() {
    let empty = Bytes::new();
    for cql_type in [CqlType::Int, CqlType::Double, CqlType::Uuid] {
        let before_empty = compares(&cql_type, ComparisonOperator::Lt, &empty);
        let from_empty = compares(&cql_type, ComparisonOperator::GtEq, &empty);
        assert!(!before_empty.holds(whole(&empty)), "{cql_type}");
        assert!(from_empty.holds(whole(&empty)), "{cql_type}");
    }
    assert!(compares(&CqlType::Int, ComparisonOperator::Lt, &int(i32::MIN)).holds(whole(&empty)));
}

/// One predicate of each kind, all of which hold for some collection or value of text.
fn one_of_each() -> Vec<Predicate> {
    let cql_type = CqlType::Text;
    let mut all = COMPARISONS
        .map(|comparison| compares(&cql_type, comparison, &text("a")))
        .to_vec();
    all.push(Predicate::NotEqual {
        cql_type: cql_type.clone(),
        value: text("a"),
    });
    all.push(Predicate::In(OneOf::new(cql_type, vec![text("a")])));
    for collection in [
        SearchedCollection::List,
        SearchedCollection::Set,
        SearchedCollection::MapValues,
    ] {
        all.push(Predicate::Contains {
            collection: collection(CqlType::Text),
            value: text("a"),
        });
    }
    all.push(Predicate::Like(LikePattern::new(b"%").unwrap()));
    all.push(contains_key(1));
    all.push(has_entry(1, "a"));
    all
}

fn contains_key(key: i32) -> Predicate {
    Predicate::ContainsKey {
        key_type: CqlType::Int,
        key: int(key),
    }
}

fn has_entry(key: i32, value: &str) -> Predicate {
    Predicate::Entry {
        key_type: CqlType::Int,
        value_type: CqlType::Text,
        key: int(key),
        value: text(value),
    }
}

#[test]
fn null_satisfies_nothing() {
    for predicate in one_of_each() {
        let null: Whole<'_> = ColumnObservation::Null;
        assert!(!predicate.holds(null), "{predicate:?}");
    }
}

#[test]
fn a_non_frozen_collection_satisfies_only_predicates_on_elements() {
    let pairs = [(int(1), text("a"))];
    for predicate in one_of_each() {
        let is_on_elements = matches!(
            predicate,
            Predicate::Contains { .. } | Predicate::ContainsKey { .. } | Predicate::Entry { .. }
        );
        // As a set the collection holds its paths, which are numbers.
        let is_on_paths = matches!(
            predicate,
            Predicate::Contains {
                collection: SearchedCollection::Set(_),
                ..
            }
        );
        let holds = predicate.holds(elements(&pairs));
        assert_eq!(holds, is_on_elements && !is_on_paths, "{predicate:?}");
    }
}

#[test]
fn contains_finds_elements_of_lists_and_sets_and_values_of_maps() {
    let frozen_list = join_elements([&text("a")[..], &text("b")].into_iter());
    let frozen_map = join_entries([(&text("k")[..], &text("a")[..])].into_iter());
    let list = [(text("path"), text("a"))];
    let set = [(text("a"), Bytes::new())];
    let map = [(text("k"), text("a"))];
    for (collection, frozen, cells) in [
        (SearchedCollection::List(CqlType::Text), &frozen_list, &list),
        (SearchedCollection::Set(CqlType::Text), &frozen_list, &set),
        (
            SearchedCollection::MapValues(CqlType::Text),
            &frozen_map,
            &map,
        ),
    ] {
        for (value, expected) in [("a", true), ("k", false), ("path", false), ("", false)] {
            let predicate = Predicate::Contains {
                collection: collection.clone(),
                value: text(value),
            };
            // A set's cells have no values, so an empty text must not be found there either.
            assert_eq!(predicate.holds(whole(frozen)), expected, "{predicate:?}");
            assert_eq!(predicate.holds(elements(cells)), expected, "{predicate:?}");
        }
    }
}

#[test]
fn contains_compares_elements_of_each_type() {
    for (cql_type, [low, middle, high]) in ascending() {
        let list = join_elements([&low[..], &high].into_iter());
        for (value, expected) in [(&low, true), (&middle, false), (&high, true)] {
            let predicate = Predicate::Contains {
                collection: SearchedCollection::List(cql_type.clone()),
                value: value.clone(),
            };
            assert_eq!(predicate.holds(whole(&list)), expected, "{cql_type}");
        }
    }
}

#[test]
fn keys_and_entries_of_maps_are_found() {
    let cells = [(int(1), text("a")), (int(2), text("b"))];
    let frozen = join_entries(cells.iter().map(|(key, value)| (&key[..], &value[..])));
    for (predicate, expected) in [
        (contains_key(2), true),
        (contains_key(3), false),
        (has_entry(2, "b"), true),
        (has_entry(2, "a"), false),
        (has_entry(3, "b"), false),
    ] {
        assert_eq!(predicate.holds(whole(&frozen)), expected, "{predicate:?}");
        assert_eq!(predicate.holds(elements(&cells)), expected, "{predicate:?}");
    }
}

#[test]
fn keys_and_entries_compare_by_each_type() {
    for (cql_type, [low, middle, high]) in ascending() {
        let map = join_entries([(&low[..], &high[..])].into_iter());
        for (sought, expected) in [(&low, true), (&middle, false), (&high, false)] {
            let has_key = Predicate::ContainsKey {
                key_type: cql_type.clone(),
                key: sought.clone(),
            };
            assert_eq!(has_key.holds(whole(&map)), expected, "{cql_type}");
            let entry = |key: &Bytes, value: &Bytes| Predicate::Entry {
                key_type: cql_type.clone(),
                value_type: cql_type.clone(),
                key: key.clone(),
                value: value.clone(),
            };
            assert_eq!(
                entry(sought, &high).holds(whole(&map)),
                expected,
                "{cql_type}"
            );
            let is_value = sought == &high;
            assert_eq!(
                entry(&low, sought).holds(whole(&map)),
                is_value,
                "{cql_type}"
            );
        }
    }
}

#[test]
fn a_malformed_collection_holds_nothing() {
    let list = join_elements([&int(1)[..], &int(2)].into_iter());
    let map = join_entries([(&int(1)[..], &text("a")[..])].into_iter());
    let contains =
        |collection: SearchedCollection, value| Predicate::Contains { collection, value };
    let in_list = contains(SearchedCollection::List(CqlType::Int), int(1));
    let in_map = contains(SearchedCollection::MapValues(CqlType::Text), text("a"));
    assert!(in_list.holds(whole(&list)) && in_map.holds(whole(&map)));
    for (bytes, predicates) in [
        (&list, vec![in_list]),
        (&map, vec![in_map, contains_key(1), has_entry(1, "a")]),
    ] {
        let cut = bytes.slice(..bytes.len() - 1);
        let longer = Bytes::from([&bytes[..], b"x"].concat());
        for predicate in predicates {
            assert!(predicate.holds(whole(bytes)), "{predicate:?}");
            for malformed in [&cut, &longer, &Bytes::new()] {
                assert!(!predicate.holds(whole(malformed)), "{predicate:?}");
            }
        }
    }
}

#[test]
fn tuples_compare_column_by_column() {
    let types = vec![CqlType::Int, CqlType::Text];
    let columns = [int(-1), text("b")];
    for (values, order) in [
        ([int(-2), text("z")], Ordering::Greater),
        ([int(-1), text("a")], Ordering::Greater),
        ([int(-1), text("b")], Ordering::Equal),
        ([int(-1), text("c")], Ordering::Less),
        ([int(0), text("a")], Ordering::Less),
    ] {
        for comparison in COMPARISONS {
            let predicate = TuplePredicate::Compare {
                types: types.clone(),
                comparison,
                values: values.to_vec(),
            };
            let holds = predicate.holds(|at| Some(&columns[at][..]));
            assert_eq!(holds, comparison.accepts(order), "{predicate:?}");
        }
    }
}

#[test]
fn a_tuple_is_in_a_list_if_all_its_columns_are_equal() {
    let columns = [int(1), text("b")];
    let holds = |tuples: &[(i32, &str)]| {
        let tuples = tuples.iter().map(|(a, b)| vec![int(*a), text(b)]);
        let types = vec![CqlType::Int, CqlType::Text];
        let predicate = TuplePredicate::In(OneOfTuples::new(types, tuples.collect()));
        predicate.holds(|at| Some(&columns[at][..]))
    };
    assert!(holds(&[(2, "b"), (1, "b")]));
    assert!(!holds(&[(1, "a"), (2, "b")]));
    assert!(!holds(&[]));
}

#[test]
fn a_null_column_satisfies_no_tuple_unless_a_column_before_it_decides() {
    let first = int(1);
    let columns = [Some(&first[..]), None];
    let greater_than = |value| TuplePredicate::Compare {
        types: vec![CqlType::Int, CqlType::Int],
        comparison: ComparisonOperator::Gt,
        values: vec![int(value), int(0)],
    };
    assert!(greater_than(0).holds(|at| columns[at]));
    assert!(!greater_than(1).holds(|at| columns[at]));
    let types = vec![CqlType::Int, CqlType::Int];
    let tuples = vec![vec![int(1), int(0)]];
    let is_in = TuplePredicate::In(OneOfTuples::new(types, tuples));
    assert!(!is_in.holds(|at| columns[at]));
}

#[test]
fn bounds_are_told_from_other_comparisons() {
    let lower = COMPARISONS.map(ComparisonOperator::as_lower);
    assert_eq!(lower, [None, None, None, Some(false), Some(true)]);
    let upper = COMPARISONS.map(ComparisonOperator::as_upper);
    assert_eq!(upper, [None, Some(false), Some(true), None, None]);
}

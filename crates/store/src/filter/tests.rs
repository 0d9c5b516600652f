mod trees;

use std::cmp::Ordering;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use store_api::types::{Filter, FilterNode, Restriction};
use value::{CqlType, from_key_json};

use super::*;
use crate::identity::{FilterColumn, IndexIdentity};
use crate::indexes::tests::{identity, in_memory, insert};
use crate::indexes::{IndexHandle, IndexSearch};
use crate::keys::{self, KeyColumn, KeySchema};
use crate::metrics::ServiceMetrics;

/// A row by the JSON of its columns `p`, `c`, `n` and `t`. The last two may be null.
type Row = [Json; 4];

const COLUMNS: [&str; 4] = ["p", "c", "n", "t"];

/// An index with the keys `p` and `c` and the filter columns `n` and `t`, of which `c` and `n` are
/// ints and the others texts.
fn with_columns() -> IndexIdentity {
    let key = |name: &str, cql_type| KeyColumn {
        name: name.to_owned(),
        cql_type,
    };
    let filter = |name: &str, cql_type| FilterColumn {
        name: name.to_owned(),
        cql_type,
        is_static: false,
    };
    IndexIdentity {
        keys: KeySchema {
            partition: vec![key("p", CqlType::Text)],
            clustering: vec![key("c", CqlType::Int)],
        },
        filter_columns: vec![filter("n", CqlType::Int), filter("t", CqlType::Text)],
        ..identity("idx")
    }
}

fn type_of(column: &str) -> CqlType {
    match column {
        "c" | "n" => CqlType::Int,
        _ => CqlType::Text,
    }
}

/// Makes an index of these rows. The row at position `i` has the vector `[i, 0]`.
fn index(rows: &[Row]) -> IndexHandle {
    let identity = with_columns();
    let metrics = ServiceMetrics::new().index(&identity.name);
    let index = IndexHandle::new(identity, &in_memory(), metrics).unwrap();
    for (id, row) in (0..).zip(rows) {
        let bytes = |at: usize| from_key_json(&type_of(COLUMNS[at]), &row[at]);
        let key = [bytes(0).unwrap(), bytes(1).unwrap()];
        let mut keys = index.content.keys_mut();
        let encoded = index
            .identity
            .keys
            .encode(key.iter().map(|value| &value[..]));
        if keys.id(encoded.as_bytes()).is_some() {
            continue;
        }
        keys.insert(id, encoded);
        keys.set_filters(id, &[bytes(2), bytes(3)]);
        drop(keys);
        insert(&index.content, id, &[id as f32, 0.0]);
    }
    index
}

/// The positions of the rows that a filter finds, the nearest to the origin first.
fn found(index: &IndexHandle, limit: usize, filter: &Filter) -> Vec<u32> {
    let filter = SearchFilter::new(&index.identity, Some(filter), &[]).unwrap();
    let found = index.content.search(&IndexSearch {
        filter: filter.as_deref(),
        ..IndexSearch::new(&[0.0, 0.0], limit)
    });
    let rows = store_api::binary::AnswerRows::read(found.unwrap().binary()).unwrap();
    rows.distances
        .iter()
        .map(|distance| distance.sqrt().round() as u32)
        .collect()
}

/// The order of two values of a column; `None` if one is null.
fn order(a: &Json, b: &Json) -> Option<Ordering> {
    match (a, b) {
        (Json::String(a), Json::String(b)) => Some(a.cmp(b)),
        (Json::Number(a), Json::Number(b)) => Some(a.as_i64().cmp(&b.as_i64())),
        _ => None,
    }
}

fn order_of_tuples(row: &Row, columns: &[String], values: &[Json]) -> Option<Ordering> {
    for (column, value) in columns.iter().zip(values) {
        match order(of(row, column), value)? {
            Ordering::Equal => {}
            decided => return Some(decided),
        }
    }
    Some(Ordering::Equal)
}

fn of<'a>(row: &'a Row, column: &str) -> &'a Json {
    let at = COLUMNS.iter().position(|name| *name == column).unwrap();
    &row[at]
}

/// Whether a row satisfies a restriction, computed without an index.
fn satisfies(row: &Row, restriction: &Restriction) -> bool {
    use Restriction::*;
    let one = |lhs: &str, rhs: &Json| order(of(row, lhs), rhs);
    match restriction {
        Eq { lhs, rhs } => one(lhs, rhs).is_some_and(Ordering::is_eq),
        Lt { lhs, rhs } => one(lhs, rhs).is_some_and(Ordering::is_lt),
        Le { lhs, rhs } => one(lhs, rhs).is_some_and(Ordering::is_le),
        Gt { lhs, rhs } => one(lhs, rhs).is_some_and(Ordering::is_gt),
        Ge { lhs, rhs } => one(lhs, rhs).is_some_and(Ordering::is_ge),
        In { lhs, rhs } => rhs
            .iter()
            .any(|rhs| one(lhs, rhs).is_some_and(Ordering::is_eq)),
        EqTuple { lhs, rhs } => order_of_tuples(row, lhs, rhs).is_some_and(Ordering::is_eq),
        LtTuple { lhs, rhs } => order_of_tuples(row, lhs, rhs).is_some_and(Ordering::is_lt),
        LeTuple { lhs, rhs } => order_of_tuples(row, lhs, rhs).is_some_and(Ordering::is_le),
        GtTuple { lhs, rhs } => order_of_tuples(row, lhs, rhs).is_some_and(Ordering::is_gt),
        GeTuple { lhs, rhs } => order_of_tuples(row, lhs, rhs).is_some_and(Ordering::is_ge),
        InTuple { lhs, rhs } => rhs
            .iter()
            .any(|rhs| order_of_tuples(row, lhs, rhs).is_some_and(Ordering::is_eq)),
        other => panic!("{other:?} is not tried here"),
    }
}

fn value(column: &'static str) -> BoxedStrategy<Json> {
    match type_of(column) {
        CqlType::Int => (0..12_i32).prop_map(|number| json!(number)).boxed(),
        _ => prop::sample::select(vec!["a", "b", "c", "d"])
            .prop_map(|text| json!(text))
            .boxed(),
    }
}

fn row() -> impl Strategy<Value = Row> {
    let or_null = |column| prop_oneof![4 => value(column), 1 => Just(Json::Null)];
    (value("p"), value("c"), or_null("n"), or_null("t")).prop_map(|(p, c, n, t)| [p, c, n, t])
}

fn restriction() -> impl Strategy<Value = Restriction> {
    let single = prop::sample::select(COLUMNS.to_vec()).prop_flat_map(|column| {
        let values = prop::collection::vec(value(column), 1..4);
        (Just(column.to_owned()), values, 0..6)
    });
    let single = single.prop_map(|(lhs, values, kind)| {
        let rhs = values[0].clone();
        match kind {
            0 => Restriction::Eq { lhs, rhs },
            1 => Restriction::Lt { lhs, rhs },
            2 => Restriction::Le { lhs, rhs },
            3 => Restriction::Gt { lhs, rhs },
            4 => Restriction::Ge { lhs, rhs },
            _ => Restriction::In { lhs, rhs: values },
        }
    });
    let pairs = vec![("c", "n"), ("n", "t"), ("p", "c"), ("t", "p")];
    let tuple = prop::sample::select(pairs).prop_flat_map(|(a, b)| {
        let pair = (value(a), value(b)).prop_map(|(a, b)| vec![a, b]);
        let lhs = vec![a.to_owned(), b.to_owned()];
        (Just(lhs), prop::collection::vec(pair, 1..4), 0..6)
    });
    let tuple = tuple.prop_map(|(lhs, tuples, kind)| {
        let rhs = tuples[0].clone();
        match kind {
            0 => Restriction::EqTuple { lhs, rhs },
            1 => Restriction::LtTuple { lhs, rhs },
            2 => Restriction::LeTuple { lhs, rhs },
            3 => Restriction::GtTuple { lhs, rhs },
            4 => Restriction::GeTuple { lhs, rhs },
            _ => Restriction::InTuple { lhs, rhs: tuples },
        }
    });
    prop_oneof![2 => single, 1 => tuple]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_search_finds_the_nearest_rows_that_satisfy_its_filter(
        rows in prop::collection::vec(row(), 0..120),
        filters in prop::collection::vec(prop::collection::vec(restriction(), 1..4), 1..8),
        limit in 1..40_usize,
    ) {
        let index = index(&rows);
        for restrictions in filters {
            let held = (0..).zip(&rows).filter(|(id, _)| index.content.keys().key(*id).is_some());
            let matching = held.filter(|(_, row)| {
                restrictions.iter().all(|restriction| satisfies(row, restriction))
            });
            let expected: Vec<u32> = matching.map(|(id, _)| id).take(limit).collect();
            let filter = Filter { restrictions, ..Filter::default() };
            prop_assert_eq!(found(&index, limit, &filter), expected, "{:?}", filter);
        }
    }
}

#[test]
fn a_local_index_is_searched_by_its_key() {
    let local = IndexIdentity {
        local_key: vec!["p".to_owned()],
        ..with_columns()
    };
    let filter = |restrictions| Filter {
        restrictions,
        allow_filtering: false,
        condition: None,
    };
    let by_key = filter(vec![Restriction::Eq {
        lhs: "p".into(),
        rhs: json!("a"),
    }]);
    let by_another = filter(vec![Restriction::Eq {
        lhs: "n".into(),
        rhs: json!(1),
    }]);
    for (filter, fits_local, left) in [
        (None, false, 0),
        (Some(&by_key), true, 0),
        (Some(&by_another), false, 1),
    ] {
        let needed = SearchRequirements::by(filter, None);
        assert_eq!(needed.fits(&local), fits_local, "{filter:?}");
        assert!(needed.fits(&with_columns()), "{filter:?}");
        assert_eq!(needed.left_by(&local).count(), left, "{filter:?}");
    }
    let unknown = filter(vec![Restriction::Eq {
        lhs: "x".into(),
        rhs: json!(1),
    }]);
    assert!(!SearchRequirements::by(Some(&unknown), None).fits(&with_columns()));
    for (column, is_stored) in [("n", true), ("c", true), ("v", true), ("x", false)] {
        let returned = [column.to_owned()];
        let needed = SearchRequirements::by(None, Some(&returned));
        assert_eq!(needed.fits(&with_columns()), is_stored, "{column}");
    }
}

#[test]
fn numbers_of_a_partition_key_are_the_same_if_their_bytes_are() {
    let mut identity = with_columns();
    identity.keys.partition[0].cql_type = CqlType::Decimal;
    identity.keys.clustering[0].cql_type = CqlType::Decimal;
    let metrics = ServiceMetrics::new().index(&identity.name);
    let index = IndexHandle::new(identity, &in_memory(), metrics).unwrap();
    let decimal = |text: &str| from_key_json(&CqlType::Decimal, &json!(text)).unwrap();
    for (id, p) in [(0, "1.0"), (1, "1.00")] {
        let key: [Bytes; 2] = [decimal(p), decimal("2.50")];
        let key = index
            .identity
            .keys
            .encode(key.iter().map(|value| &value[..]));
        index.content.keys_mut().insert(id, key);
        insert(&index.content, id, &[id as f32, 0.0]);
    }
    let by = |lhs: &str, rhs| Filter {
        restrictions: vec![Restriction::Eq {
            lhs: lhs.to_owned(),
            rhs: json!(rhs),
        }],
        allow_filtering: true,
        condition: None,
    };
    assert_eq!(found(&index, 9, &by("p", "1.00")), [1]);
    assert_eq!(found(&index, 9, &by("c", "2.5")), [0, 1]);
}

/// An index of three rows whose first filter column is a set and whose second is a map.
fn index_of_collections() -> IndexHandle {
    let text = || Box::new(CqlType::Text);
    let mut identity = with_columns();
    identity.filter_columns[0].cql_type = CqlType::Set {
        element: text(),
        frozen: false,
    };
    identity.filter_columns[1].cql_type = CqlType::Map {
        key: text(),
        value: Box::new(CqlType::Int),
        frozen: false,
    };
    let metrics = ServiceMetrics::new().index(&identity.name);
    let index = IndexHandle::new(identity, &in_memory(), metrics).unwrap();
    let parts = |parts: &[&[u8]], count: i32| {
        let mut bytes = count.to_be_bytes().to_vec();
        for part in parts {
            bytes.extend((part.len() as i32).to_be_bytes());
            bytes.extend(*part);
        }
        Some(Bytes::from(bytes))
    };
    let two = 2_i32.to_be_bytes();
    for (id, p, set, map) in [
        (0, "a", parts(&[b"x", b"y"], 2), parts(&[b"k", &two], 1)),
        (1, "b", parts(&[b"y"], 1), parts(&[b"l", &two], 1)),
        (2, "c", None, None),
    ] {
        let key = index.identity.keys.encode([p.as_bytes(), &[0, 0, 0, 1]]);
        let mut keys = index.content.keys_mut();
        keys.insert(id, key);
        keys.set_filters(id, &[set, map]);
        drop(keys);
        insert(&index.content, id, &[id as f32, 0.0]);
    }
    index
}

#[test]
fn collections_and_tokens_are_looked_into() {
    let index = index_of_collections();
    let contains = |lhs: &str, rhs| Restriction::Contains {
        lhs: lhs.to_owned(),
        rhs,
    };
    let has_key = |rhs| Restriction::ContainsKey {
        lhs: "t".to_owned(),
        rhs,
    };
    let entry = |key, rhs| Restriction::Entry {
        lhs: "t".to_owned(),
        key,
        rhs,
    };
    let token = keys::token(
        &index.identity.keys,
        index.content.keys().key(1).expect("a key"),
    );
    let lhs = vec!["p".to_owned()];
    for (restriction, expected) in [
        (contains("n", json!("y")), &[0, 1][..]),
        (contains("n", json!("x")), &[0]),
        (contains("t", json!(2)), &[0, 1]),
        (has_key(json!("l")), &[1]),
        (entry(json!("k"), json!(2)), &[0]),
        (entry(json!("k"), json!(3)), &[]),
        (Restriction::TokenEq { lhs, rhs: token }, &[1]),
    ] {
        let filter = Filter {
            restrictions: vec![restriction],
            allow_filtering: true,
            condition: None,
        };
        assert_eq!(found(&index, 9, &filter), expected, "{filter:?}");
    }
    let refused = |restriction| {
        let filter = Filter {
            restrictions: vec![restriction],
            allow_filtering: true,
            condition: None,
        };
        SearchFilter::new(&index.identity, Some(&filter), &[]).unwrap_err()
    };
    assert!(matches!(
        refused(contains("c", json!(1))),
        UnsupportedRestriction::Kind { .. }
    ));
    assert!(matches!(
        refused(contains("n", json!(1))),
        UnsupportedRestriction::Value { .. }
    ));
    let lhs = vec!["c".to_owned()];
    assert_eq!(
        refused(Restriction::TokenLt { lhs, rhs: 0 }),
        UnsupportedRestriction::Token
    );
}

//! The answers of columns are those of a model that looks at each value.

use std::collections::BTreeMap;

use bytes::Bytes;
use filter_columns::{FilterColumns, FilterCondition};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use value::predicate::{
    ColumnObservation, ComparisonOperator, OneOf, OneOfTuples, Predicate, SearchedCollection,
    TuplePredicate,
};
use value::{CqlType, Value, join_elements, join_entries, validate};

/// Number of ids, more than a page of a set has room to list.
const IDS: u32 = 6_000;

fn list_of(element: CqlType) -> CqlType {
    let element = Box::new(element);
    CqlType::List {
        element,
        frozen: true,
    }
}

fn set_of(element: CqlType) -> CqlType {
    let element = Box::new(element);
    CqlType::Set {
        element,
        frozen: false,
    }
}

fn map_of(key: CqlType, value: CqlType) -> CqlType {
    CqlType::Map {
        key: Box::new(key),
        value: Box::new(value),
        frozen: true,
    }
}

fn types() -> Vec<CqlType> {
    vec![
        CqlType::Int,
        CqlType::Text,
        CqlType::Decimal,
        CqlType::Uuid,
        CqlType::Boolean,
        CqlType::Double,
        set_of(CqlType::Decimal),
        list_of(CqlType::Text),
        map_of(CqlType::Decimal, CqlType::Boolean),
        map_of(CqlType::Text, CqlType::Int),
        CqlType::Tuple(vec![CqlType::Int, CqlType::Text]),
    ]
}

/// Few values of a type, so that many rows share one. Some are equal but differ in bytes.
fn value(cql_type: &CqlType) -> BoxedStrategy<Bytes> {
    let values = |values: Vec<Value>| {
        let values = values.iter().map(Value::serialize);
        select(values.collect::<Vec<_>>()).boxed()
    };
    let bytes =
        |values: &'static [&'static [u8]]| select(values).prop_map(Bytes::from_static).boxed();
    match cql_type {
        CqlType::Int => prop_oneof![
            1 => Just(Bytes::new()),
            9 => (-4i32..500).prop_map(|n| Value::Int(n % 5).serialize()),
            9 => (0i32..1 << 17).prop_map(|n| Value::Int(n).serialize()),
        ]
        .boxed(),
        CqlType::Text => prop_oneof!["[a-c]{0,2}", "[a-z]{300}"]
            .prop_map(Bytes::from)
            .boxed(),
        CqlType::Decimal => bytes(&[
            b"\0\0\0\0\x01",
            b"\0\0\0\x01\x0a",
            b"\0\0\0\x02\x64",
            b"\0\0\0\0\xfe",
            b"\0\0\0\0\0",
            b"\0\0\0\x03\0",
            b"\0\0\0\0\x07",
        ]),
        CqlType::Boolean => bytes(&[b"\0", b"\x01", b"\x02"]),
        CqlType::Double => values([-0.0, 0.0, f64::NAN, 1.5].map(Value::Double).to_vec()),
        CqlType::Uuid => (0u128..6, select(vec![1u128, 4]))
            .prop_map(|(n, version)| {
                Bytes::copy_from_slice(&(n << 96 | version << 76 | n).to_be_bytes())
            })
            .boxed(),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => vec(value(element), 0..4)
            .prop_map(|elements| join_elements(elements.iter().map(|element| &element[..])))
            .boxed(),
        CqlType::Map { key, value: of, .. } => vec((value(key), value(of)), 0..4)
            .prop_map(|entries| join_entries(entries.iter().map(|(k, v)| (&k[..], &v[..]))))
            .boxed(),
        CqlType::Tuple(types) => {
            let [first, second] = [&types[0], &types[1]].map(|of| option(value(of)));
            (first, second)
                .prop_map(|(first, second)| {
                    let mut bytes = Vec::new();
                    for field in [first, second] {
                        let field = field.as_ref();
                        let len = field.map_or(-1, |field| field.len() as i32);
                        bytes.extend(len.to_be_bytes());
                        bytes.extend(field.into_iter().flatten());
                    }
                    Bytes::from(bytes)
                })
                .boxed()
        }
        other => panic!("no values of {other}"),
    }
}

fn option(value: BoxedStrategy<Bytes>) -> impl Strategy<Value = Option<Bytes>> {
    prop_oneof![1 => Just(None), 5 => value.prop_map(Some)]
}

type Row = Vec<Option<Bytes>>;

fn row() -> impl Strategy<Value = Row> {
    let malformed = || Just(Some(Bytes::from_static(b"\0\0\0")));
    let values = types();
    let values = values
        .iter()
        .map(|cql_type| prop_oneof![30 => option(value(cql_type)), 1 => malformed()].boxed());
    values.collect::<Vec<_>>()
}

#[derive(Clone, Debug)]
enum Step {
    Set(u32, Row),
    /// Sets ids from the first one on, each to one of the rows. Of an even number of rows each id
    /// has a number of its own.
    Fill(u32, u32, Vec<Row>),
    Remove(u32),
    /// Removes ids from the first one on.
    Drain(u32, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let id = || prop_oneof![0u32..8, 0..IDS];
    prop_oneof![
        8 => (id(), row()).prop_map(|(id, row)| Step::Set(id, row)),
        8 => id().prop_map(Step::Remove),
        2 => (id(), 0..IDS, vec(row(), 1..8)).prop_map(|(at, n, rows)| Step::Fill(at, n, rows)),
        1 => (id(), 0..IDS).prop_map(|(at, n)| Step::Drain(at, n)),
    ]
}

fn comparison() -> impl Strategy<Value = ComparisonOperator> {
    use ComparisonOperator::{Eq, Gt, GtEq, Lt, LtEq};
    select(vec![Eq, Lt, LtEq, Gt, GtEq])
}

/// A predicate on a column of this type.
fn predicate(cql_type: CqlType) -> BoxedStrategy<Predicate> {
    let of = || {
        let cql_type = cql_type.clone();
        (Just(cql_type.clone()), value(&cql_type))
    };
    let compare =
        (of(), comparison()).prop_map(|((cql_type, value), comparison)| Predicate::Compare {
            cql_type,
            comparison,
            value,
        });
    let not_equal = of().prop_map(|(cql_type, value)| Predicate::NotEqual { cql_type, value });
    let member = prop_oneof![9 => value(&cql_type), 1 => Just(Bytes::from_static(b"\0\0\0"))];
    let is_in = (Just(cql_type.clone()), vec(member, 0..8))
        .prop_map(|(cql_type, values)| Predicate::In(OneOf::new(cql_type, values)));
    let whole = prop_oneof![compare, not_equal, is_in];
    let contains = |collection: SearchedCollection, element: &CqlType| {
        let value = value(element);
        value.prop_map(move |value| Predicate::Contains {
            collection: collection.clone(),
            value,
        })
    };
    match &cql_type {
        CqlType::List { element, .. } => {
            let contains = contains(SearchedCollection::List((**element).clone()), element);
            prop_oneof![whole, contains].boxed()
        }
        CqlType::Set { element, .. } => {
            let contains = contains(SearchedCollection::Set((**element).clone()), element);
            prop_oneof![whole, contains].boxed()
        }
        CqlType::Map { key, value: of, .. } => {
            let contains = contains(SearchedCollection::MapValues((**of).clone()), of);
            let (key_type, value_type) = ((**key).clone(), (**of).clone());
            let entry = (value(key), value(of)).prop_map(move |(key, value)| Predicate::Entry {
                key_type: key_type.clone(),
                value_type: value_type.clone(),
                key,
                value,
            });
            let key_type = (**key).clone();
            let contains_key = value(key).prop_map(move |key| Predicate::ContainsKey {
                key_type: key_type.clone(),
                key,
            });
            prop_oneof![whole, contains, entry, contains_key].boxed()
        }
        _ => whole.boxed(),
    }
}

fn tuple_condition() -> impl Strategy<Value = FilterCondition> {
    let columns = vec(0..6usize, 1..4);
    columns.prop_flat_map(|columns| {
        let types: Vec<_> = columns
            .iter()
            .map(|column| types()[*column].clone())
            .collect();
        let values = || types.iter().map(value).collect::<Vec<_>>();
        let compared = types.clone();
        let compare = (comparison(), values()).prop_map(move |(comparison, values)| {
            TuplePredicate::Compare {
                types: compared.clone(),
                comparison,
                values,
            }
        });
        let types = types.clone();
        let is_in = vec(values(), 0..6)
            .prop_map(move |tuples| TuplePredicate::In(OneOfTuples::new(types.clone(), tuples)));
        prop_oneof![compare, is_in].prop_map(move |predicate| FilterCondition::Tuple {
            columns: columns.clone(),
            predicate,
        })
    })
}

fn condition() -> impl Strategy<Value = FilterCondition> {
    let of_column = |column: usize| {
        let predicate = predicate(types()[column].clone());
        predicate.prop_map(move |predicate| FilterCondition::Column { column, predicate })
    };
    let fitting = (0..types().len()).prop_flat_map(of_column);
    // A predicate of one column put to another.
    let unfit = (0..types().len(), 0..types().len()).prop_flat_map(|(column, other)| {
        let predicate = predicate(types()[other].clone());
        predicate.prop_map(move |predicate| FilterCondition::Column { column, predicate })
    });
    prop_oneof![6 => fitting, 1 => unfit, 2 => tuple_condition()]
}

/// Whether a row satisfies a condition.
fn holds(condition: &FilterCondition, row: &Row) -> bool {
    match condition {
        FilterCondition::Column { column, predicate } => {
            let value = row[*column].as_deref();
            predicate.holds(value.map_or(
                ColumnObservation::Null,
                ColumnObservation::<std::iter::Empty<_>>::Value,
            ))
        }
        FilterCondition::Tuple { columns, predicate } => {
            predicate.holds(|position| row[columns[position]].as_deref())
        }
    }
}

/// Whether the estimate of a condition is exact.
fn is_counted(condition: &FilterCondition) -> bool {
    let FilterCondition::Column { column, predicate } = condition else {
        return false;
    };
    let cql_type = match predicate {
        Predicate::Compare { cql_type, .. } | Predicate::NotEqual { cql_type, .. } => cql_type,
        Predicate::In(list) => list.cql_type(),
        _ => return false,
    };
    let of_column = &types()[*column];
    cql_type == of_column && !of_column.is_collection()
}

fn check(columns: &FilterColumns, model: &BTreeMap<u32, Row>, conditions: &[FilterCondition]) {
    let passing = model.iter().filter(|(_, row)| {
        let mut conditions = conditions.iter();
        conditions.all(|condition| holds(condition, row))
    });
    let expected = passing.map(|(id, _)| *id).collect::<Vec<_>>();
    let resolved = columns.resolve(conditions);
    let selected = resolved.select();
    assert_eq!(selected.len(), expected.len());
    assert!(selected.iter().eq(expected.iter().copied()));
    match conditions {
        [condition] if is_counted(condition) => assert_eq!(resolved.estimate(), expected.len()),
        _ => assert!(resolved.estimate() >= expected.len()),
    }
    for id in (0..10).chain((0..IDS * 2).step_by(101)) {
        let is_expected = expected.binary_search(&id).is_ok();
        assert_eq!(resolved.matches(id), is_expected, "{id}");
        assert_eq!(columns.matches(id, conditions), is_expected, "{id}");
    }
}

fn apply(columns: &mut FilterColumns, model: &mut BTreeMap<u32, Row>, step: Step) {
    let mut set = |columns: &mut FilterColumns, id: u32, row: &Row| {
        let values: Vec<_> = row.iter().map(Option::as_deref).collect();
        columns.set(id, &values);
        let types = types();
        let values = row.iter().zip(&types);
        let kept = values.map(|(value, cql_type)| {
            let value = value.as_ref();
            value
                .filter(|value| validate(cql_type, value).is_ok())
                .cloned()
        });
        model.insert(id, kept.collect());
    };
    match step {
        Step::Set(id, row) => set(columns, id, &row),
        Step::Fill(at, len, rows) => {
            for id in at..at + len {
                // Neither in turn nor in runs.
                let number = id.wrapping_mul(2_654_435_761) >> 15;
                let mut row = rows[number as usize % rows.len()].clone();
                if rows.len() % 2 == 0 {
                    row[0] = Some(Value::Int(number as i32).serialize());
                }
                set(columns, id, &row);
            }
        }
        Step::Remove(id) => {
            columns.remove(id);
            model.remove(&id);
        }
        Step::Drain(at, len) => {
            for id in at..at + len {
                columns.remove(id);
                model.remove(&id);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn columns_answer_as_a_look_at_each_value(
        rounds in vec((vec(step(), 0..20), vec(vec(condition(), 0..4), 1..12)), 1..4),
    ) {
        let mut columns = FilterColumns::new(types());
        let mut model = BTreeMap::new();
        for (steps, questions) in rounds {
            for step in steps {
                apply(&mut columns, &mut model, step);
            }
            for id in 0..IDS * 2 {
                for column in 0..types().len() {
                    let expected = model.get(&id).and_then(|row| row[column].as_deref());
                    prop_assert!(columns.value(column, id).as_deref() == expected, "{column}, {id}");
                }
            }
            for conditions in questions {
                check(&columns, &model, &conditions);
            }
        }
        prop_assert!(columns.ids().iter().eq(model.keys().copied()));
    }
}

#[test]
fn bytes_that_are_no_value_of_a_lists_type_equal_themselves() {
    let (mut columns, mut model) = (FilterColumns::new(types()), BTreeMap::new());
    let bytes = Bytes::from_static(b"\0\0\0");
    let mut row = vec![None; types().len()];
    // A text, and no tuple.
    row[1] = Some(bytes.clone());
    apply(&mut columns, &mut model, Step::Set(7, row));
    let predicate = Predicate::In(OneOf::new(types()[10].clone(), vec![bytes]));
    check(
        &columns,
        &model,
        &[FilterCondition::Column {
            column: 1,
            predicate,
        }],
    );
}

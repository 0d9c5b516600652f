//! The memory that a row takes, and the time of questions.

use std::time::Instant;

use bytes::Bytes;
use filter_columns::{FilterColumns, FilterCondition};
use value::predicate::{ComparisonOperator, OneOf, Predicate, SearchedCollection};
use value::{CqlType, join_entries};

const ROWS: u32 = 100_000;

/// A number without order.
fn shuffled(id: u32) -> u64 {
    u64::from(id)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

fn columns_of(cql_type: CqlType, rows: u32, value: impl Fn(u32) -> Bytes) -> FilterColumns {
    let mut columns = FilterColumns::new(vec![cql_type]);
    for id in 0..rows {
        columns.set(id, &[Some(&value(id))]);
    }
    columns
}

fn bytes_a_row(columns: &FilterColumns) -> usize {
    columns.memory_bytes() / columns.ids().len()
}

/// One of `of` texts.
fn text(id: u32, of: u64) -> Bytes {
    format!("value {:03}", shuffled(id) % of).into()
}

/// A text of 16 bytes that no other id has.
fn unique(id: u32) -> Bytes {
    format!("{:016x}", shuffled(id)).into()
}

fn map_type() -> CqlType {
    CqlType::Map {
        key: Box::new(CqlType::Text),
        value: Box::new(CqlType::Text),
        frozen: false,
    }
}

/// A map of 10 entries with the keys of all others, and one of 50 values each.
fn map(id: u32) -> Bytes {
    let entries = (0..10)
        .map(|key| (format!("key {key}"), text(id + key, 50)))
        .collect::<Vec<_>>();
    join_entries(
        entries
            .iter()
            .map(|(key, value)| (key.as_bytes(), &value[..])),
    )
}

#[test]
fn a_row_of_few_values_takes_few_bytes() {
    let columns = columns_of(CqlType::Text, ROWS, |id| text(id, 20));
    assert!(bytes_a_row(&columns) <= 8, "{}", bytes_a_row(&columns));
}

#[test]
fn a_unique_text_of_16_bytes_takes_five_times_its_length_at_most() {
    let columns = columns_of(CqlType::Text, ROWS, unique);
    assert!(bytes_a_row(&columns) <= 80, "{}", bytes_a_row(&columns));
}

#[test]
fn a_map_of_shared_entries_takes_half_its_own_bytes() {
    let columns = columns_of(map_type(), ROWS, map);
    let own = map(0).len();
    assert!(
        bytes_a_row(&columns) <= own / 2,
        "{}",
        bytes_a_row(&columns)
    );
}

#[test]
fn memory_does_not_grow_with_changes() {
    let mut columns = columns_of(CqlType::Text, ROWS / 10, unique);
    let before = columns.memory_bytes();
    for change in 1..=50 {
        for id in 0..ROWS / 10 {
            columns.set(id, &[Some(&unique(id + change * ROWS))]);
        }
    }
    let after = columns.memory_bytes();
    assert!(after < before * 2, "{before} to {after} bytes");
    (0..ROWS / 10).for_each(|id| columns.remove(id));
    let (after, ids) = (columns.memory_bytes(), columns.ids().len());
    assert!(after < before && ids == 0, "{after} bytes for {ids} rows");
}

fn compare(column: usize, comparison: ComparisonOperator, value: Bytes) -> FilterCondition {
    FilterCondition::Column {
        column,
        predicate: Predicate::Compare {
            cql_type: CqlType::Text,
            comparison,
            value,
        },
    }
}

/// Prints the time of a call of `ask` in microseconds, the least of twenty.
fn time<T>(what: &str, mut ask: impl FnMut() -> T) {
    let call = |_| {
        let start = Instant::now();
        drop(std::hint::black_box(ask()));
        start.elapsed()
    };
    let least = (0..20).map(call).min().expect("a call");
    println!("{:9.2} µs  {what}", least.as_nanos() as f64 / 1000.0);
}

#[test]
#[ignore = "prints figures for the module's doc"]
fn the_bytes_of_a_row() {
    let unique_values = |id| {
        let values = (0..10).map(|key| (format!("key {key}"), unique(id * 10 + key)));
        let entries = values.collect::<Vec<_>>();
        join_entries(
            entries
                .iter()
                .map(|(key, value)| (key.as_bytes(), &value[..])),
        )
    };
    let texts = |value: &dyn Fn(u32) -> Bytes| columns_of(CqlType::Text, ROWS, value);
    for (what, columns) in [
        ("20 values", texts(&|id| text(id, 20))),
        ("pairs of equal values", texts(&|id| unique(id / 2))),
        ("10 of each value", texts(&|id| unique(id % (ROWS / 10)))),
        ("unique texts of 16 bytes", texts(&unique)),
        (
            "maps of 10 of 500 entries",
            columns_of(map_type(), ROWS, map),
        ),
        (
            "maps of 10 unique entries",
            columns_of(map_type(), ROWS / 10, unique_values),
        ),
    ] {
        println!("{:5} bytes a row: {what}", bytes_a_row(&columns));
    }
    let [shared, own] = [map(0), unique_values(0)].map(|map| map.len());
    println!("a map has {shared} bytes, with unique entries {own}");
}

/// Conditions on a text of 100, a text of 5, a unique text and a map.
fn questions() -> Vec<(&'static str, Vec<FilterCondition>)> {
    use ComparisonOperator::{Eq, Lt};
    let rare = || compare(0, Eq, text(0, 100));
    let frequent = || compare(1, Eq, text(0, 5));
    let range = |end: &'static str| compare(2, Lt, end.into());
    let on_map = |predicate| FilterCondition::Column {
        column: 3,
        predicate,
    };
    let entry = |key: &'static str, value: Bytes| {
        on_map(Predicate::Entry {
            key_type: CqlType::Text,
            value_type: CqlType::Text,
            key: key.into(),
            value,
        })
    };
    let contains = on_map(Predicate::Contains {
        collection: SearchedCollection::MapValues(CqlType::Text),
        value: text(0, 50),
    });
    let listed = (0..100_000).map(|id| unique(id * 3)).collect();
    let is_in = Predicate::In(OneOf::new(CqlType::Text, listed));
    let is_in = FilterCondition::Column {
        column: 2,
        predicate: is_in,
    };
    let entries = vec![entry("key 3", text(3, 50)), entry("key 5", text(5, 50))];
    vec![
        ("equality, 1 %", vec![rare()]),
        ("equality, 20 %", vec![frequent()]),
        ("1 % and 20 %", vec![rare(), frequent()]),
        (
            "range of 100 values",
            vec![compare(0, Lt, "value 010".into())],
        ),
        ("range of unique values, 10 %", vec![range("1999")]),
        ("range of unique values, 50 %", vec![range("8")]),
        ("range of unique values, 90 %", vec![range("e666")]),
        ("20 % and a range of 10 %", vec![frequent(), range("1999")]),
        ("1 % and a range of 10 %", vec![rare(), range("1999")]),
        ("unique", vec![compare(2, Eq, unique(5))]),
        ("entry of a map", vec![entry("key 3", text(0, 50))]),
        ("two entries", entries),
        ("CONTAINS in a map", vec![contains]),
        ("IN of 100,000", vec![is_in]),
    ]
}

#[test]
#[ignore = "prints times, for a release build"]
fn the_time_of_questions() {
    for rows in [ROWS, ROWS * 10] {
        let start = Instant::now();
        let types = vec![CqlType::Text, CqlType::Text, CqlType::Text, map_type()];
        let mut columns = FilterColumns::new(types);
        for id in 0..rows {
            let (a, b, c, d) = (text(id, 100), text(id + 7, 5), unique(id), map(id));
            columns.set(id, &[Some(&a), Some(&b), Some(&c), Some(&d)]);
        }
        println!("{rows} rows, {:?} to set one", start.elapsed() / rows);
        for (what, conditions) in questions() {
            let resolved = columns.resolve(&conditions);
            let (ids, estimate) = (resolved.select().len(), resolved.estimate());
            let what = format!("{what}: {ids} ids, {estimate} estimated");
            time(&what, || columns.resolve(&conditions).select());
            time("  estimate", || columns.resolve(&conditions).estimate());
            time("  1000 matches", || {
                let ids = (0..rows).step_by((rows / 1000) as usize);
                ids.filter(|id| resolved.matches(*id)).count()
            });
        }
    }
}

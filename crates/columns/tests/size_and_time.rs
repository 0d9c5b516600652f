//! The memory that a row takes, and the time of questions.

use std::time::Instant;

use bytes::Bytes;
use columns::{Columns, Condition};
use value::predicate::{Comparison, Predicate};
use value::{CqlType, join_entries};

const ROWS: u32 = 100_000;

/// A number without order.
fn shuffled(id: u32) -> u64 {
    u64::from(id)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

fn columns_of(cql_type: CqlType, rows: u32, value: impl Fn(u32) -> Bytes) -> Columns {
    let mut columns = Columns::new(vec![cql_type]);
    for id in 0..rows {
        columns.set(id, &[Some(&value(id))]);
    }
    columns
}

fn bytes_a_row(columns: &Columns) -> usize {
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
    let entries = Vec::from_iter((0..10).map(|key| (format!("key {key}"), text(id + key, 50))));
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

fn compare(column: usize, comparison: Comparison, value: Bytes) -> Condition {
    Condition::Column {
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
    println!("{:9.2} us  {what}", least.as_nanos() as f64 / 1000.0);
}

#[test]
#[ignore = "prints times, for a release build"]
fn the_time_of_questions() {
    let maps = columns_of(map_type(), ROWS, map);
    let own_keys = columns_of(map_type(), ROWS / 10, |id| {
        let values = Vec::from_iter((0..10).map(|key| unique(id * 10 + key)));
        let entries = values.iter().enumerate();
        let entries = Vec::from_iter(entries.map(|(key, value)| (format!("key {key}"), value)));
        join_entries(
            entries
                .iter()
                .map(|(key, value)| (key.as_bytes(), &value[..])),
        )
    });
    for (what, columns) in [
        (
            "20 values",
            columns_of(CqlType::Text, ROWS, |id| text(id, 20)),
        ),
        (
            "pairs of equal values",
            columns_of(CqlType::Text, ROWS, |id| unique(id / 2)),
        ),
        (
            "10 of each value",
            columns_of(CqlType::Text, ROWS, |id| unique(id % (ROWS / 10))),
        ),
        (
            "unique texts of 16 bytes",
            columns_of(CqlType::Text, ROWS, unique),
        ),
        ("maps of 10 of 500 entries", maps),
        ("maps of 10 entries, unique values of 16 bytes", own_keys),
    ] {
        println!("{:5} bytes a row: {what}", bytes_a_row(&columns));
    }
    println!("a map has {} bytes", map(0).len());
    for rows in [ROWS, ROWS * 10] {
        let start = Instant::now();
        let types = vec![CqlType::Text, CqlType::Text, CqlType::Text, map_type()];
        let mut columns = Columns::new(types);
        for id in 0..rows {
            let (a, b, c, d) = (text(id, 100), text(id + 7, 5), unique(id), map(id));
            columns.set(id, &[Some(&a), Some(&b), Some(&c), Some(&d)]);
        }
        let each = start.elapsed() / rows;
        println!("{rows} rows, {each:?} to set one");
        let ask = |what: &str, conditions: &[Condition]| {
            let ids = columns.resolve(conditions).select().len();
            let estimate = columns.resolve(conditions).estimate();
            let what = format!("{what}: {ids} ids, {estimate} estimated");
            time(&what, || columns.resolve(conditions).select());
            time("  estimate", || columns.resolve(conditions).estimate());
            let resolved = columns.resolve(conditions);
            time("  1000 matches", || {
                let step = (rows / 1000) as usize;
                (0..rows)
                    .step_by(step)
                    .filter(|id| resolved.matches(*id))
                    .count()
            });
        };
        use Comparison::{Eq, Lt};
        let rare = || compare(0, Eq, text(0, 100));
        let frequent = || compare(1, Eq, text(0, 5));
        ask("equality, 1 %", &[rare()]);
        ask("equality, 20 %", &[frequent()]);
        ask(
            "range of 100 values, 10 %",
            &[compare(0, Lt, "value 010".into())],
        );
        ask(
            "range of unique values, 10 %",
            &[compare(2, Lt, "1999".into())],
        );
        ask(
            "range of unique values, 50 %",
            &[compare(2, Lt, "8".into())],
        );
        ask(
            "range of unique values, 90 %",
            &[compare(2, Lt, "e666".into())],
        );
        ask("1 % and 20 %", &[rare(), frequent()]);
        let range = || compare(2, Lt, "1999".into());
        ask("20 % and a range of 10 %", &[frequent(), range()]);
        ask("1 % and a range of 10 %", &[rare(), range()]);
        ask("unique", &[compare(2, Eq, unique(5))]);
        let entry = |key: &str, value: Bytes| Condition::Column {
            column: 3,
            predicate: Predicate::Entry {
                key_type: CqlType::Text,
                value_type: CqlType::Text,
                key: Bytes::copy_from_slice(key.as_bytes()),
                value,
            },
        };
        ask("entry of a map, 2 %", &[entry("key 3", text(0, 50))]);
        let entries = [entry("key 3", text(3, 50)), entry("key 5", text(5, 50))];
        ask("two entries", &entries);
        let contains = Condition::Column {
            column: 3,
            predicate: Predicate::Contains {
                collection: value::predicate::Collection::MapValues(CqlType::Text),
                value: text(0, 50),
            },
        };
        ask("CONTAINS in a map", &[contains]);
        let values = (0..100_000).map(|id| unique(id * 3)).collect();
        let predicate = Predicate::In {
            cql_type: CqlType::Text,
            values,
        };
        ask(
            "IN of 100,000",
            &[Condition::Column {
                column: 2,
                predicate,
            }],
        );
    }
}

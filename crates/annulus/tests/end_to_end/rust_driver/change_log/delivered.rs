//! A check of the rows that the CDC library delivers: each group of log rows once or more often,
//! and those of a partition in their order.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::log::LogRow;

/// The log rows of each partition.
type Partitions<T> = BTreeMap<String, Vec<T>>;

/// The partition that the text of a log row names.
fn partition(text: &str) -> String {
    let mut words = text.split(' ');
    let word = words.find(|word| word.starts_with("p="));
    word.expect("a log row names its partition").to_owned()
}

/// Checks that the library has delivered each group of log rows once or more often, and one group
/// after the other.
pub fn check(delivered: &[LogRow], groups: &[Vec<String>]) {
    let mut expected: Partitions<Vec<String>> = BTreeMap::new();
    for group in groups {
        let mut of: Partitions<String> = BTreeMap::new();
        for line in group {
            of.entry(partition(line)).or_default().push(line.clone());
        }
        for (partition, lines) in of {
            expected.entry(partition).or_default().push(lines);
        }
    }
    let mut found: Partitions<String> = BTreeMap::new();
    for row in delivered {
        let lines = found.entry(partition(&row.text)).or_default();
        lines.push(row.text.clone());
    }
    let strange: Vec<_> = found
        .keys()
        .filter(|key| !expected.contains_key(*key))
        .collect();
    assert!(strange.is_empty(), "nothing was written to {strange:?}");
    for (partition, groups) in expected {
        let mut rest = found.get(&partition).map_or(&[][..], Vec::as_slice);
        for group in groups {
            assert!(
                rest.starts_with(&group),
                "{partition}: {group:?} is due, and next comes {:?}",
                &rest[..rest.len().min(group.len() + 2)]
            );
            while let Some(after) = rest.strip_prefix(group.as_slice()) {
                rest = after;
            }
        }
        assert!(
            rest.is_empty(),
            "{partition}: more than was written: {rest:?}"
        );
    }
}

fn delivered(lines: &[&str]) -> Vec<LogRow> {
    let row = |line: &&str| LogRow {
        stream: String::new(),
        time: Uuid::nil(),
        batch_sequence: 0,
        end_of_batch: true,
        text: (*line).to_owned(),
    };
    lines.iter().map(row).collect()
}

fn due() -> Vec<Vec<String>> {
    let groups = [
        &["insert c=1 p=1", "update c=2 p=1"][..],
        &["insert c=1 p=2"],
        &["delete-row c=1 p=1"],
    ];
    groups
        .map(|lines| lines.iter().map(ToString::to_string).collect())
        .to_vec()
}

#[test]
fn a_group_may_come_twice_and_beside_those_of_other_partitions() {
    let first = ["insert c=1 p=1", "update c=2 p=1"];
    let rest = ["delete-row c=1 p=1", "insert c=1 p=2"];
    check(&delivered(&[first, rest].concat()), &due());
    check(&delivered(&[first, first, rest].concat()), &due());
}

#[test]
#[should_panic(expected = "is due")]
fn a_group_that_is_missing_is_noticed() {
    check(
        &delivered(&["insert c=1 p=2", "delete-row c=1 p=1"]),
        &due(),
    );
}

#[test]
#[should_panic(expected = "is due")]
fn another_order_is_noticed() {
    let swapped = [
        "update c=2 p=1",
        "insert c=1 p=1",
        "delete-row c=1 p=1",
        "insert c=1 p=2",
    ];
    check(&delivered(&swapped), &due());
}

#[test]
#[should_panic(expected = "more than was written")]
fn more_than_was_written_is_noticed() {
    let all = [
        "insert c=1 p=1",
        "update c=2 p=1",
        "delete-row c=1 p=1",
        "insert c=1 p=2",
        "insert c=3 p=2",
    ];
    check(&delivered(&all), &due());
}

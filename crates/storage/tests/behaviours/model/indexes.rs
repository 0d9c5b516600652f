//! Secondary indexes: what each of them finds, against the rows of the model.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use schema::{ColumnId, IndexedPart, SecondaryIndex, Table};
use storage::read::{IndexRequest, IndexedValues};
use storage::{REPAIR_COUNTERS, Storage, TableView};
use tasks::{TaskRegistry, TaskScope, TaskSpec};
use uuid::Uuid;

use super::oracle::{ShownColumn, ShownRow};
use super::{A, B, LIST, MAP, S, S_SET};
use crate::support::{block_on, eventually, int, text};

/// The place of a row: partition, and clustering or `None` for the whole partition.
type Place = (Bytes, Option<Vec<Bytes>>);

/// A value, with the key of the map that holds it in an index on entries.
type Indexed = (Option<Bytes>, Bytes);

/// The columns `p` and `c1`.
const P: ColumnId = ColumnId(0);
const C1: ColumnId = ColumnId(1);

/// The columns and parts that have an index.
const INDEXED: [(ColumnId, IndexedPart); 10] = [
    (A, IndexedPart::Value),
    (B, IndexedPart::Value),
    (LIST, IndexedPart::Values),
    (MAP, IndexedPart::Keys),
    (MAP, IndexedPart::Values),
    (MAP, IndexedPart::Entries),
    (S, IndexedPart::Value),
    (S_SET, IndexedPart::Values),
    (C1, IndexedPart::Value),
    (P, IndexedPart::Value),
];

/// The number of indexes that a table may have.
pub const COUNT: usize = INDEXED.len();

/// An index by its number.
fn index(number: usize) -> SecondaryIndex {
    let (column, part) = INDEXED[number];
    SecondaryIndex {
        name: format!("i{number}"),
        column,
        part,
        is_local: false,
        class_name: Some("sai".to_owned()),
        options: BTreeMap::new(),
        version: Uuid::new_v4(),
    }
}

/// Makes an index, or drops it if it is there.
pub fn toggle(table: &mut Table, number: usize) {
    let index = index(number);
    if table.secondary_indexes.remove(&index.name).is_none() {
        let name = index.name.clone();
        table.secondary_indexes.insert(name, Arc::new(index));
    }
}

/// Compares what the indexes find with the rows. `b_is_dropped` says whether the column `b`, whose
/// cells still keep rows in the indexes on key columns, was dropped.
pub fn check(storage: &Storage, table: &Table, rows: &[ShownRow], b_is_dropped: bool) {
    let catalog = storage.catalog();
    let present = catalog
        .table(&table.keyspace, &table.name)
        .expect("the table");
    for index in present.secondary_indexes.values() {
        block_on(storage.index_built(index.version));
    }
    eventually("deleted rows are swept", || {
        storage.statistics().sweeps_waiting == 0
    });
    let view = storage.view(table.id).expect("a view");
    for index in present.secondary_indexes.values() {
        let of_key = index.column == C1 || index.column == P;
        if index.column == B && b_is_dropped {
            assert!(view.is_index_ready(index.version).is_err());
            continue;
        }
        assert!(view.is_index_ready(index.version).expect("it exists"));
        let mut expected: BTreeMap<Indexed, BTreeSet<Place>> = BTreeMap::new();
        for row in rows {
            for (value, place) in places(index, row) {
                expected.entry(value).or_default().insert(place);
            }
        }
        for value in probes(index) {
            let found = found(&view, index, one(&value));
            let wanted = expected.get(&value).cloned().unwrap_or_default();
            if of_key && b_is_dropped {
                assert!(found.is_superset(&wanted), "{index:?} {value:?}");
            } else {
                assert_eq!(found, wanted, "{index:?} {value:?}");
            }
        }
        if index.part != IndexedPart::Entries && !of_key {
            check_ranges(&view, index, &expected);
        }
        check_repair(storage, table, index);
    }
}

/// Repairs an index, which has no fault.
fn check_repair(storage: &Storage, table: &Table, index: &SecondaryIndex) {
    let task = TaskRegistry::default().start(TaskSpec {
        kind: "repair",
        scope: TaskScope::default(),
        units: "keys",
        total: None,
        counters: REPAIR_COUNTERS,
        abortable: true,
    });
    let repair = storage.repair_index(table.id, index.version, &task);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let is_whole = runtime.expect("a runtime").block_on(repair);
    assert!(is_whole.expect("a repair"));
    for counter in ["entries_added", "entries_mended", "entries_removed"] {
        assert_eq!(task.counter(counter), 0, "{counter} of {index:?}");
    }
}

/// Looks for the values between any two.
fn check_ranges(
    view: &TableView,
    index: &SecondaryIndex,
    expected: &BTreeMap<Indexed, BTreeSet<Place>>,
) {
    let probes = probes(index);
    for (at, (_, low)) in probes.iter().enumerate() {
        for (_, high) in &probes[at..] {
            let values = IndexedValues {
                key: None,
                low: Bound::Excluded(low.clone()),
                high: Bound::Included(high.clone()),
            };
            let wanted = expected
                .iter()
                .filter(|((_, value), _)| value > low && value <= high);
            let wanted = wanted.flat_map(|(_, places)| places.clone()).collect();
            assert_eq!(
                found(view, index, values),
                wanted,
                "{index:?} {low:?} {high:?}"
            );
        }
    }
}

/// Values that occur, in their order.
fn probes(index: &SecondaryIndex) -> Vec<Indexed> {
    let words = || ["", "a", "ab", "b"].map(text);
    let ints = || [0, 1, 2].map(int);
    let alone = |value| (None, value);
    match (index.column, index.part) {
        (A, _) | (MAP, IndexedPart::Keys) => words().map(alone).to_vec(),
        (MAP, IndexedPart::Entries) => {
            let of_key = |key: Bytes| ints().map(|value| (Some(key.clone()), value));
            words().into_iter().flat_map(of_key).collect()
        }
        _ => ints().map(alone).to_vec(),
    }
}

fn one((key, value): &Indexed) -> IndexedValues {
    IndexedValues {
        key: key.clone(),
        ..IndexedValues::one(value.clone())
    }
}

/// The values of a row in an index, each with the place that it stands for.
fn places(index: &SecondaryIndex, row: &ShownRow) -> Vec<(Indexed, Place)> {
    let partition = row.partition.clone();
    let whole = (partition.clone(), None);
    let place = (partition.clone(), row.clustering.clone());
    let values = match index.column {
        // Static cells stand for the partition, with all its rows.
        P if !row.statics.is_empty() => return vec![((None, partition), whole)],
        P => return vec![((None, partition), place)],
        C1 => {
            let value = row.clustering.as_ref().map(|values| values[0].clone());
            let value = value.map(|value| ((None, value), place));
            return value.into_iter().collect();
        }
        S | S_SET => row.statics.get(&index.column.0),
        other => row.cells.get(&other.0),
    };
    let place = match index.column {
        S | S_SET => whole,
        _ => place,
    };
    let values: Vec<Indexed> = match values {
        None => Vec::new(),
        Some(ShownColumn::One((value, ..))) => vec![(None, value.clone())],
        Some(ShownColumn::Many(elements)) => {
            let elements = elements.iter();
            let values = elements.map(|(path, (value, ..))| match index.part {
                IndexedPart::Keys => (None, path.clone()),
                IndexedPart::Entries => (Some(path.clone()), value.clone()),
                _ if index.column == S_SET => (None, path.clone()),
                _ => (None, value.clone()),
            });
            values.collect()
        }
    };
    values
        .into_iter()
        .map(|value| (value, place.clone()))
        .collect()
}

/// The places that an index finds, read in one go and, if it is one value, row by row.
fn found(view: &TableView, index: &SecondaryIndex, values: IndexedValues) -> BTreeSet<Place> {
    let is_one = values.low == values.high;
    let mut request = IndexRequest {
        index: index.version,
        values,
        tokens: (Bound::Unbounded, Bound::Unbounded),
        from: None,
    };
    let positions = view.positions(&request).expect("a read");
    let positions: Vec<_> = positions.collect::<Result<_, _>>().expect("positions");
    // A stream that is let go between two positions goes on where it was.
    let mut stream = view.positions(&request).expect("a read");
    let mut in_slices = Vec::new();
    while let Some(position) = stream.next() {
        in_slices.push(position.expect("a position"));
        stream.let_go();
    }
    assert_eq!(in_slices, positions);
    let places = positions.iter().map(|position| {
        let key = view.key_at(position).expect("a key");
        (key.partition_key[0].clone(), key.clustering)
    });
    let places = places.collect();
    if is_one {
        assert!(positions.is_sorted());
        let mut again = Vec::new();
        loop {
            let mut rest = view.positions(&request).expect("a read");
            if let Some(last) = again.last() {
                // A read begins with the position that it is to begin at.
                let first = rest.next().expect("the last position").expect("a position");
                assert_eq!(first, *last);
            }
            let Some(next) = rest.next() else { break };
            let next = next.expect("a position");
            again.push(next.clone());
            request.from = Some(next);
        }
        assert_eq!(again, positions);
        if let Some(position) = positions.get(positions.len() / 2) {
            let token = view.key_at(position).expect("a key").token;
            let count = |tokens| {
                let request = IndexRequest {
                    tokens,
                    from: None,
                    ..request.clone()
                };
                view.positions(&request).expect("a read").count()
            };
            let before = count((Bound::Unbounded, Bound::Excluded(token)));
            let here = count((Bound::Included(token), Bound::Included(token)));
            let behind = count((Bound::Excluded(token), Bound::Unbounded));
            assert_eq!(before + here + behind, positions.len());
            assert!(here > 0 && positions[before..before + here].contains(position));
        }
    }
    places
}

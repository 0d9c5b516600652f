//! Tests counters: each update counts once, whatever it waits beside, and also after a kill.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use schema::{ColumnId, Table};
use storage::Storage;
use storage::mutation::{CellOperation, PartitionChange};
use storage::read::{Cell, ClusteringBound};
use value::CqlType;

use crate::disk;
use crate::support::*;

const STATIC: ColumnId = ColumnId(2);
const COUNTER: ColumnId = ColumnId(3);
const OTHER: ColumnId = ColumnId(4);

fn table() -> Table {
    TableBuilder::new("ks", "counted")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .statics("s", CqlType::Counter)
        .regular("n", CqlType::Counter)
        .regular("m", CqlType::Counter)
        .build()
}

fn add(delta: i64, timestamp: i64) -> PartitionChange {
    let cells = vec![cell(COUNTER, CellOperation::AddToCounter(delta))];
    update(vec![int(1)], cells, timestamp)
}

fn add_to_static(delta: i64, timestamp: i64) -> PartitionChange {
    PartitionChange::Static {
        cells: vec![cell(STATIC, CellOperation::AddToCounter(delta))],
        timestamp,
        ttl_s: None,
    }
}

fn number(bytes: Option<Bytes>) -> Option<i64> {
    bytes.map(|bytes| i64::from_be_bytes(bytes[..].try_into().expect("a counter")))
}

/// The counters `n` and `m` of each row of the partition 1.
fn totals(storage: &Storage, table: &Table) -> Vec<(Option<i64>, Option<i64>)> {
    let rows = read_partition(storage, table, vec![int(1)]);
    rows.iter()
        .map(|row| {
            (
                number(simple_value(row, COUNTER)),
                number(simple_value(row, OTHER)),
            )
        })
        .collect()
}

fn static_total(storage: &Storage, table: &Table) -> Option<i64> {
    let rows = read_partition(storage, table, vec![int(1)]);
    let statics = &rows.first()?.partition.static_cells;
    statics.iter().find_map(|(id, cell)| match cell {
        Cell::Simple(cell) if *id == STATIC => number(Some(cell.value.clone())),
        _ => None,
    })
}

fn opened() -> (tempfile::TempDir, Storage, Table) {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = table();
    create(&storage, &table, true);
    (directory, storage, table)
}

#[test]
fn updates_of_one_write_all_count_whatever_their_timestamps() {
    let (_directory, storage, table) = opened();
    let changes = vec![
        add(1, 10),
        add(2, 10),
        add(-10, 5),
        add_to_static(4, 10),
        add_to_static(5, 1),
    ];
    write(&storage, &table, vec![int(1)], changes);
    assert_eq!(totals(&storage, &table), [(Some(-7), None)]);
    assert_eq!(static_total(&storage, &table), Some(9));
    // The other counter of the row is another one.
    let cells = vec![
        cell(OTHER, CellOperation::AddToCounter(3)),
        cell(COUNTER, CellOperation::AddToCounter(5)),
        cell(COUNTER, CellOperation::AddToCounter(2)),
    ];
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![update(vec![int(1)], cells, 2)],
    );
    assert_eq!(totals(&storage, &table), [(Some(0), Some(3))]);
}

#[test]
fn sums_wrap_round() {
    let (_directory, storage, table) = opened();
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![add(i64::MAX, 1), add(2, 2)],
    );
    assert_eq!(totals(&storage, &table), [(Some(i64::MIN + 1), None)]);
}

#[test]
fn a_deletion_resets_a_counter() {
    let (_directory, storage, table) = opened();
    let deletions = [
        update(vec![int(1)], vec![cell(COUNTER, CellOperation::Delete)], 1),
        PartitionChange::DeleteRow {
            clustering: vec![int(1)],
            timestamp: 1,
        },
        PartitionChange::DeleteRange {
            start: ClusteringBound::Inclusive(vec![int(0)]),
            end: ClusteringBound::Unbounded,
            timestamp: 1_000,
        },
        PartitionChange::DeletePartition { timestamp: 10_000 },
    ];
    for deletion in deletions {
        write(&storage, &table, vec![int(1)], vec![add(5, 3)]);
        assert_eq!(totals(&storage, &table), [(Some(5), None)], "{deletion:?}");
        // Of the same write, too.
        write(
            &storage,
            &table,
            vec![int(1)],
            vec![deletion.clone(), add(2, 1)],
        );
        assert_eq!(totals(&storage, &table), [(Some(2), None)], "{deletion:?}");
        let last = PartitionChange::DeleteRow {
            clustering: vec![int(1)],
            timestamp: 1,
        };
        write(&storage, &table, vec![int(1)], vec![last]);
        assert_eq!(totals(&storage, &table), []);
    }
    // The deletion of the partition reaches the static counter.
    let delete = PartitionChange::DeletePartition { timestamp: 20_000 };
    let changes = vec![add_to_static(5, 1), delete, add_to_static(1, 1)];
    write(&storage, &table, vec![int(1)], changes);
    assert_eq!(static_total(&storage, &table), Some(1));
}

#[test]
fn many_at_once_all_count() {
    let (directory, storage, table) = opened();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (storage, table) = (storage.clone(), table.clone());
                tokio::spawn(async move {
                    for _ in 0..50 {
                        // Several wait together, so that one commit takes them.
                        let write = |delta| {
                            let change = vec![add(delta, 1)];
                            storage.write(write_of(&table, vec![int(1)], change))
                        };
                        let (one, two) = tokio::join!(write(3), write(-1));
                        one.unwrap();
                        two.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(totals(&storage, &table), [(Some(800), None)]);
    drop(storage);
    let storage = open(directory.path());
    assert_eq!(totals(&storage, &table), [(Some(800), None)]);
    write(&storage, &table, vec![int(1)], vec![add(1, 1)]);
    assert_eq!(totals(&storage, &table), [(Some(801), None)]);
}

/// Adds 1 again and again, and notes each acknowledgement as one byte of a file.
#[test]
#[ignore = "run by the test below as a process of its own"]
fn counts() {
    let path = |name| PathBuf::from(std::env::var_os(name).expect("set by the test below"));
    let storage = open(&path("COUNT_DIRECTORY"));
    let catalog = storage.catalog();
    let table = catalog.table("ks", "counted").expect("made below");
    let mut notes = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path("COUNT_ACKNOWLEDGED"))
        .unwrap();
    loop {
        write(&storage, table, vec![int(1)], vec![add(1, 1)]);
        notes.write_all(b"+").unwrap();
    }
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

#[test]
fn a_kill_neither_loses_nor_doubles_what_was_counted() {
    const ROUNDS: u64 = 5;
    let home = tempfile::tempdir().unwrap();
    let (directory, acknowledged) = (home.path().join("data"), home.path().join("acknowledged"));
    let table = table();
    create(&open(&directory), &table, true);
    // Of each kill at most one update is on the disk that was not acknowledged.
    let mut unacknowledged = 0;
    for round in 0..ROUNDS {
        let before = size(&acknowledged);
        let environment: [(&str, &Path); 2] = [
            ("COUNT_DIRECTORY", &directory),
            ("COUNT_ACKNOWLEDGED", &acknowledged),
        ];
        let mut child = disk::spawn_test("counters::counts", &environment);
        eventually("it counts", || size(&acknowledged) > before + 3);
        child.kill_after(Duration::from_micros(round * round * 3_719));
        let storage = open(&directory);
        let found = totals(&storage, &table)[0].0.unwrap();
        let surplus = found - size(&acknowledged) as i64 - unacknowledged;
        assert!((0..=1).contains(&surplus), "round {round}: {surplus}");
        unacknowledged += surplus;
        drop(storage);
        assert_eq!(totals(&open(&directory), &table), [(Some(found), None)]);
    }
}

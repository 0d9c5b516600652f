//! Tables that are held in memory: their room, and what readers see while they are written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cpu_scheduler::{CpuScheduler, SchedulerOptions, WorkClass};
use futures::executor;
use futures::future::{join_all, poll_immediate};
use schema::{ColumnId, IndexedPart, SecondaryIndex, Table};
use storage::mutation::PartitionChange;
use storage::read::{IndexRequest, IndexedValues};
use storage::{Durability, Storage, StorageError, StorageOptions};
use uuid::Uuid;
use value::CqlType;

use crate::support::*;

const ROOM: u64 = 1 << 20;

fn options(resident_bytes: u64) -> StorageOptions {
    StorageOptions {
        durability: Durability::Buffered {
            sync_interval: std::time::Duration::from_secs(60),
        },
        resident_bytes,
        ..crate::support::options()
    }
}

fn in_memory() -> Table {
    let mut table = simple_table();
    table.name = "m".to_owned();
    hold_in_memory(&mut table);
    table
}

/// Inserts rows of a kilobyte until there is no room. Returns how many, and the error.
fn fill(storage: &Storage, table: &Table) -> (i32, StorageError) {
    let value = text(&"x".repeat(1_000));
    for p in 0..10_000 {
        let row = insert(vec![int(0)], vec![set(V, value.clone())], 1);
        if let Err(error) = try_write(storage, table, vec![int(p)], vec![row]) {
            return (p, error);
        }
    }
    panic!("there is no end of room");
}

fn delete(storage: &Storage, table: &Table, p: i32) {
    let change = PartitionChange::DeleteRow {
        clustering: vec![int(0)],
        timestamp: 2,
    };
    write(storage, table, vec![int(p)], vec![change]);
}

#[test]
fn a_full_table_says_so_and_takes_rows_again_once_others_are_gone() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path(), options(ROOM)).unwrap();
    let (table, beside) = (in_memory(), simple_table());
    create(&storage, &table, true);
    create(&storage, &beside, true);
    let (rows, error) = fill(&storage, &table);
    assert!((500..1_000).contains(&rows), "{rows}");
    let text_of = error.to_string();
    assert!(matches!(error, StorageError::Invalid(_)));
    assert!(
        text_of.contains("no room left: they take up to 1 MiB"),
        "{text_of}"
    );
    assert!(text_of.contains("--in-memory-storage-size-mb"), "{text_of}");
    // A refused write is in no table, and others go on.
    assert_eq!(read_all(&storage, &table).len(), rows as usize);
    write(
        &storage,
        &beside,
        vec![int(1)],
        vec![insert(vec![int(1)], vec![set(V, text("v"))], 1)],
    );
    // Deletions are taken, and make room.
    for p in 0..rows / 2 {
        delete(&storage, &table, p);
    }
    for p in 0..rows / 4 {
        let row = insert(vec![int(0)], vec![set(V, text(&"y".repeat(1_000)))], 3);
        write(&storage, &table, vec![int(p)], vec![row]);
    }
    let left = read_all(&storage, &table);
    assert_eq!(left.len(), (rows - rows / 2 + rows / 4) as usize);

    // The same rows are there after a restart, and are refused room that is too small for them.
    drop(storage);
    let error = Storage::open(directory.path(), options(ROOM / 8)).err();
    assert!(
        error
            .unwrap()
            .to_string()
            .contains("--in-memory-storage-size-mb")
    );
    let storage = Storage::open(directory.path(), options(ROOM)).unwrap();
    assert_eq!(read_all(&storage, &table), left);
    assert_eq!(read_all(&storage, &beside).len(), 1);

    // TRUNCATE gives all room back.
    block_on(storage.truncate(table.id)).unwrap();
    assert_eq!(read_all(&storage, &table).len(), 0);
    assert_eq!(fill(&storage, &table).0, rows);
}

#[test]
fn rows_dead_for_long_make_room() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let shared: Arc<dyn storage::clock::Clock> = clock.clone();
    let storage = Storage::open_with_clock(directory.path(), options(ROOM), shared).unwrap();
    let mut table = in_memory();
    table.gc_grace_s = 10;
    create(&storage, &table, true);
    let round = |p: i32| {
        let mut rows = 0;
        loop {
            let row = PartitionChange::Row {
                clustering: vec![int(rows)],
                cells: vec![set(V, text(&"x".repeat(1_000)))],
                timestamp: clock.now_s(),
                ttl_s: Some(5),
                marker: true,
            };
            match try_write(&storage, &table, vec![int(p)], vec![row]) {
                Ok(_) => rows += 1,
                Err(_) => return rows,
            }
        }
    };
    let first = round(1);
    assert!(first > 500);
    assert_eq!(round(2), 0);
    clock.advance_seconds(100);
    assert_eq!(round(3), first);
}

/// Hands writes of one row of each partition over, so that they are one batch. Returns how many of
/// them were taken.
fn write_at_once(
    storage: &Storage,
    turns: &CpuScheduler,
    table: &Table,
    rows: Vec<(i32, PartitionChange)>,
) -> usize {
    let held = turns.try_acquire(WorkClass::Query).unwrap();
    let writes = rows.into_iter();
    let writes = writes.map(|(p, row)| storage.write(write_of(table, vec![int(p)], vec![row])));
    let mut writes = Box::pin(join_all(writes));
    // Not in a runtime, which would let only some of them go on at a time.
    assert!(executor::block_on(poll_immediate(&mut writes)).is_none());
    eventually("a write waits", || {
        turns.counts(WorkClass::Write).waiting > 0
    });
    drop(held);
    let outcomes = executor::block_on(writes);
    outcomes.iter().filter(|outcome| outcome.is_ok()).count()
}

#[test]
fn a_write_is_measured_behind_those_of_its_batch() {
    const ROOM: u64 = 128 << 10;
    let directory = tempfile::tempdir().unwrap();
    let turns = CpuScheduler::new(SchedulerOptions {
        at_once_max: Some(1),
        ..SchedulerOptions::of_threads(1)
    });
    let options = StorageOptions {
        cpu_scheduler: turns.clone(),
        ..options(ROOM)
    };
    let storage = Storage::open(directory.path(), options).unwrap();
    let table = in_memory();
    create(&storage, &table, true);
    let row = |p: i32, timestamp| {
        let value = text(&"x".repeat(1_000));
        (p, insert(vec![int(0)], vec![set(V, value)], timestamp))
    };
    // A new row counts once, however often the batch writes it.
    let same = (0..500).map(|at| row(0, at));
    assert_eq!(write_at_once(&storage, &turns, &table, same.collect()), 500);
    // A row that the batch deletes makes room once, too.
    let rows = (0..300).flat_map(|at| {
        let deletion = PartitionChange::DeleteRow {
            clustering: vec![int(0)],
            timestamp: 1_000 + 2 * i64::from(at),
        };
        [
            (0, deletion),
            row(0, 1_001 + 2 * i64::from(at)),
            row(1 + at, 1),
        ]
    });
    let taken = write_at_once(&storage, &turns, &table, rows.collect());
    assert!(taken < 900, "{taken}");
    let held = read_all(&storage, &table).len();
    assert!((80..128).contains(&held), "{held}");
    let used = storage.statistics().resident_bytes;
    assert!(used <= ROOM / 8 * 9, "{used}");
}

#[test]
fn a_reader_sees_rows_and_index_entries_of_one_moment() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path(), options(64 << 20)).unwrap();
    let mut table = TableBuilder::new("ks", "m")
        .partition("p", CqlType::Int)
        .regular("v", CqlType::Int)
        .build();
    hold_in_memory(&mut table);
    let index = SecondaryIndex {
        name: "i".to_owned(),
        column: ColumnId(1),
        part: IndexedPart::Value,
        is_local: false,
        class_name: None,
        options: BTreeMap::new(),
        version: Uuid::new_v4(),
    };
    let version = index.version;
    table
        .secondary_indexes
        .insert("i".to_owned(), Arc::new(index));
    create(&storage, &table, true);
    let row = |v: i32, timestamp| insert(vec![], vec![set(ColumnId(1), int(v))], timestamp);
    write(&storage, &table, vec![int(7)], vec![row(0, 0)]);

    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for timestamp in 1..2_000_i64 {
                let v = (timestamp % 2) as i32;
                write(&storage, &table, vec![int(7)], vec![row(v, timestamp)]);
            }
            ended.store(true, Ordering::Release);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    let view = storage.view(table.id).unwrap();
                    let row = view.row(vec![int(7)], &[]).unwrap().unwrap();
                    let value = simple_value(&row, ColumnId(1)).unwrap();
                    for v in [int(0), int(1)] {
                        let request = IndexRequest {
                            index: version,
                            values: IndexedValues::one(v.clone()),
                            tokens: (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded),
                            from: None,
                        };
                        let found = view.positions(&request).unwrap().count();
                        assert_eq!(found, usize::from(v == value), "{v:?} {value:?}");
                    }
                }
            });
        }
    });
}

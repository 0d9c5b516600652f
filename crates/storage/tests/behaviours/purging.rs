//! Tests that dead cells leave the disk after `gc_grace_seconds`, and that no read misses what it
//! may see.
//!
//! A late write with an old timestamp shows whether an expired row is still on the disk: the write
//! loses to it.

use schema::{ColumnId, Table};
use storage::Storage;
use storage::mutation::PartitionChange;
use value::CqlType;

use crate::support::*;

const GC_GRACE_S: i64 = 100;
const TTL_S: u32 = 50;

fn expiring_insert(c: i32, value: &str) -> PartitionChange {
    PartitionChange::Row {
        clustering: vec![int(c)],
        cells: vec![set(V, text(value))],
        timestamp: 1,
        ttl_s: Some(TTL_S),
        marker: true,
    }
}

fn table() -> Table {
    TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .regular(
            "vector",
            CqlType::Vector {
                element: Box::new(CqlType::Float),
                dimensions: 1000,
            },
        )
        .gc_grace(GC_GRACE_S as u32)
        .build()
}

const VECTOR: ColumnId = ColumnId(3);

/// The number of expired rows of these partitions that are still stored, as a late write loses to
/// these. A write itself forgets only what has been dead for a second longer than the grace period.
fn stored(storage: &Storage, table: &Table, partitions: std::ops::Range<i32>) -> usize {
    let mut stored = 0;
    for p in partitions {
        let late = |c| insert(vec![int(c)], vec![set(V, text("late"))], 0);
        write(storage, table, vec![int(p)], vec![late(0), late(1)]);
        stored += 3 - read_partition(storage, table, vec![int(p)]).len();
    }
    stored
}

fn with_vector(c: i32) -> PartitionChange {
    let mut insert = expiring_insert(c, "with a large value");
    if let PartitionChange::Row { cells, .. } = &mut insert {
        cells.push(set(VECTOR, vec![1; 4000].into()));
    }
    insert
}

fn filled(storage: &Storage, table: &Table) {
    create(storage, table, true);
    for p in 0..10 {
        write(
            storage,
            table,
            vec![int(p)],
            vec![expiring_insert(0, "a"), with_vector(1)],
        );
        write(
            storage,
            table,
            vec![int(p)],
            vec![insert(vec![int(2)], vec![], 1)],
        );
    }
}

#[test]
fn expired_rows_go_after_the_grace_period_and_not_before() {
    let directory = tempfile::tempdir().unwrap();
    let table = table();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    filled(&storage, &table);
    clock.advance_seconds(i64::from(TTL_S) + GC_GRACE_S - 1);
    storage.compact(table.id).unwrap();
    assert_eq!(read_all(&storage, &table).len(), 10);
    assert_eq!(stored(&storage, &table, 0..5), 10);
    drop(storage);

    let storage = open_at(directory.path(), &clock);
    clock.advance_seconds(1);
    storage.compact(table.id).unwrap();
    assert_eq!(read_all(&storage, &table).len(), 10);
    assert_eq!(stored(&storage, &table, 5..10), 0);
}

#[test]
fn a_read_under_way_keeps_what_it_may_see() {
    let directory = tempfile::tempdir().unwrap();
    let table = table();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    filled(&storage, &table);
    let mut stream = storage.read(request(&table, whole_ring())).unwrap();
    assert!(stream.next().is_some());
    clock.advance_seconds(i64::from(TTL_S) + GC_GRACE_S);
    storage.compact(table.id).unwrap();
    assert_eq!(stored(&storage, &table, 0..5), 10);
    assert_eq!(stream.count(), 29, "the rows that were alive when it began");

    // Once the read has ended, the rows are forgotten.
    storage.compact(table.id).unwrap();
    assert_eq!(stored(&storage, &table, 5..10), 0);
}

#[test]
fn a_tombstone_guards_against_late_writes_until_it_is_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let table = table();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    create(&storage, &table, true);
    let delete = PartitionChange::DeleteRow {
        clustering: vec![int(1)],
        timestamp: 10,
    };
    let late = || vec![insert(vec![int(1)], vec![set(V, text("late"))], 5)];
    write(&storage, &table, vec![int(1)], vec![delete]);
    clock.advance_seconds(GC_GRACE_S - 1);
    storage.compact(table.id).unwrap();
    write(&storage, &table, vec![int(1)], late());
    assert_eq!(read_all(&storage, &table), []);
    clock.advance_seconds(1);
    storage.compact(table.id).unwrap();
    write(&storage, &table, vec![int(1)], late());
    assert_eq!(read_all(&storage, &table).len(), 1);
}

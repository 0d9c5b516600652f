//! Tests of the memory of rows that wait to be written out: all tables have one bound for it.

use schema::{Catalog, Table};
use storage::{Storage, StorageOptions};
use value::CqlType;

use crate::support::*;

const VALUE_BYTES: usize = 2_000;
/// The bytes of a batch of rows, at most.
const BATCH_BYTES: u64 = 300_000;

fn open(directory: &std::path::Path, write_buffer_bytes: u64) -> Storage {
    let options = StorageOptions {
        write_buffer_bytes,
        ..options()
    };
    Storage::open(directory, options).expect("the directory opens")
}

fn table(number: i32) -> Table {
    TableBuilder::new("ks", &format!("t{number}"))
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .build()
}

/// Writes a hundred rows of a partition in one batch.
fn fill(storage: &Storage, table: &Table, partition: i32) {
    let value = "x".repeat(VALUE_BYTES);
    let row = |c| insert(vec![int(c)], vec![set(V, text(&value))], 10);
    let rows = (0..100).map(row).collect();
    write(storage, table, vec![int(partition)], rows);
}

fn change(storage: &Storage, edit: impl FnOnce(&mut Catalog) + Send + 'static) {
    block_on(storage.change_catalog(|catalog| {
        edit(catalog);
        Ok::<(), ()>(())
    }))
    .unwrap();
}

#[test]
fn rows_of_thirty_tables_stay_within_one_bound() {
    const BOUND: u64 = 4 << 20;
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path(), BOUND);
    let tables: Vec<Table> = (0..30).map(table).collect();
    for table in &tables {
        create(&storage, table, true);
    }
    let mut most = 0;
    for partition in 0..4 {
        for table in &tables {
            fill(&storage, table, partition);
            most = most.max(storage.statistics().write_buffer_bytes);
        }
    }
    assert!(
        most <= BOUND + 2 * BATCH_BYTES,
        "{most} bytes, of {BOUND} at most"
    );
    for table in &tables {
        let rows =
            (0..4).map(|partition| read_partition(&storage, table, vec![int(partition)]).len());
        assert_eq!(rows.sum::<usize>(), 400, "{}", table.name);
    }
    drop(storage);
    let storage = open(directory.path(), BOUND);
    for table in &tables {
        let rows = read_partition(&storage, table, vec![int(3)]);
        assert_eq!(rows.len(), 100, "{}", table.name);
    }
}

#[test]
fn a_dropped_table_gives_its_memory_back() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path(), 64 << 20);
    let table = table(0);
    create(&storage, &table, true);
    for partition in 0..20 {
        fill(&storage, &table, partition);
    }
    let before = storage.statistics().write_buffer_bytes;
    assert!(before > 4_000_000, "{before}");
    change(&storage, |catalog| catalog.remove_table("ks", "t0"));
    eventually("the memory of its rows is free", || {
        storage.statistics().write_buffer_bytes < 1_000_000
    });
}

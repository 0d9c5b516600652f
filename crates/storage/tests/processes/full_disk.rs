//! Tests a full disk: reads go on and writes are refused with the reason. When there is room again,
//! the same open storage takes writes again, and no acknowledged write is lost.

use std::fs;
use std::path::{Path, PathBuf};

use schema::Table;
use storage::read::PartitionSelection;
use storage::{CatalogChangeError, Storage, StorageError, StorageOptions, WriteAvailability};

use crate::disk;
use crate::support::*;

fn path(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(name).expect("set by the test below"))
}

fn insert_row(storage: &Storage, table: &Table, c: i32) -> Result<(), StorageError> {
    let cells = vec![set(V, text(&"x".repeat(1000)))];
    try_write(
        storage,
        table,
        vec![int(c % 3)],
        vec![insert(vec![int(c)], cells, 1)],
    )
    .map(drop)
}

/// Waits until the storage has tried to write to the full disk twice more, once after the other.
fn wait_for_tries(refused: &Path) {
    let count = || fs::metadata(refused).map_or(0, |file| file.len());
    for _ in 0..2 {
        let before = count();
        eventually("another try", || count() > before);
    }
}

/// Fills and frees the disk twice: once while writes come, once while only the engine's own threads
/// write.
#[test]
#[ignore = "run by the test below as a process of its own"]
fn on_a_disk_that_fills() {
    let (directory, full) = (path("DISK_ROOT"), path("DISK_FULL"));
    let refused = path("DISK_REFUSED");
    let options = StorageOptions {
        memtable_bytes: 1 << 20,
        ..options()
    };
    let storage = open_with(&directory, options.clone()).unwrap();
    let table = simple_table();
    create(&storage, &table, true);
    let mut written = 0;
    let mut write_some = |storage: &Storage, rows: i32| {
        for _ in 0..rows {
            insert_row(storage, &table, written)?;
            written += 1;
        }
        Ok::<i32, StorageError>(written)
    };
    for _ in 0..2 {
        let before = write_some(&storage, 200).unwrap();
        let stream = storage.read(request(&table, whole_ring())).unwrap();

        fs::write(&full, []).unwrap();
        let error = write_some(&storage, 1).unwrap_err();
        assert!(matches!(&error, StorageError::ReadOnly(text)
            if text.contains(directory.to_str().unwrap()) && text.contains("No space left")));
        assert!(matches!(storage.health(), WriteAvailability::ReadOnly(_)));
        let again = write_some(&storage, 1);
        assert!(matches!(again, Err(StorageError::ReadOnly(_))));
        let change = block_on(storage.change_catalog(|catalog| {
            catalog.cluster_name.push('!');
            Ok::<(), ()>(())
        }));
        assert!(matches!(
            change,
            Err(CatalogChangeError::Storage(StorageError::ReadOnly(_)))
        ));
        assert_eq!(read_all(&storage, &table).len(), before as usize);
        assert_eq!(stream.count(), before as usize);
        // Writes are refused for as long as the disk is full, however often it is looked at.
        wait_for_tries(&refused);
        assert!(matches!(storage.health(), WriteAvailability::ReadOnly(_)));
        assert_eq!(read_all(&storage, &table).len(), before as usize);

        fs::remove_file(&full).unwrap();
        eventually("writes are taken again", || {
            storage.health() == WriteAvailability::Writable
        });
        // A refused write does not take effect later, as readers of a log may have passed its time.
        assert_eq!(read_all(&storage, &table).len(), before as usize);
        write_some(&storage, 200).unwrap();
    }

    let in_memory = tables_in_memory(&storage, &full);
    // No write of the test fails, but the engine can't write out what it holds in memory.
    fs::write(&full, []).unwrap();
    assert!(storage.compact(table.id).is_err());
    eventually("it is noticed", || {
        storage.health() != WriteAvailability::Writable
    });
    fs::remove_file(&full).unwrap();
    eventually("writes are taken again", || {
        storage.health() == WriteAvailability::Writable
    });
    let total = write_some(&storage, 10).unwrap();

    let one = request(&table, PartitionSelection::One(vec![int(0)]));
    assert!(!read(&storage, one).is_empty());
    block_on(storage.close()).unwrap();
    drop(storage);
    let storage = open_with(&directory, options).unwrap();
    assert_eq!(read_all(&storage, &table).len(), total as usize);
    assert_eq!(read_all(&storage, &in_memory).len(), 61);
}

/// Makes a table in memory while the disk is full, and again once it has room, and has writes of it
/// refused. Returns the table, with 61 rows.
fn tables_in_memory(storage: &Storage, full: &Path) -> Table {
    let in_memory = |name: &str| {
        let mut table = simple_table();
        table.name = name.to_owned();
        hold_in_memory(&mut table);
        table
    };
    let table = in_memory("m");
    let try_create = || {
        let table = table.clone();
        block_on(storage.change_catalog(move |catalog| {
            catalog.put_table(table);
            Ok::<(), ()>(())
        }))
    };
    let fill = || fs::write(full, []).unwrap();
    let make_room = || {
        fs::remove_file(full).unwrap();
        eventually("writes are taken again", || {
            storage.health() == WriteAvailability::Writable
        });
    };
    fill();
    assert!(try_create().is_err());
    make_room();
    try_create().unwrap();
    let held = || storage.statistics().resident_bytes;
    let before = held();
    for c in 0..60 {
        insert_row(storage, &table, c).unwrap();
    }
    assert!(held() >= before + 60_000, "{} and {before}", held());
    // A refused row is neither in memory nor in the files.
    fill();
    assert!(insert_row(storage, &table, 60).is_err());
    assert_eq!(read_all(storage, &table).len(), 60);
    make_room();
    assert_eq!(read_all(storage, &table).len(), 60);
    assert!(held() >= before + 60_000, "{} and {before}", held());
    insert_row(storage, &table, 61).unwrap();
    assert_eq!(read_all(storage, &table).len(), 61);
    table
}

#[test]
fn reads_go_on_and_writes_come_back() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let library = disk::compile_shim(home.path());
    let environment: [(&str, &Path); 4] = [
        ("LD_PRELOAD", &library),
        ("DISK_ROOT", &at("data")),
        ("DISK_FULL", &at("full")),
        ("DISK_REFUSED", &at("refused")),
    ];
    let status = disk::spawn_test("full_disk::on_a_disk_that_fills", &environment)
        .0
        .wait()
        .unwrap();
    assert!(status.success());
}

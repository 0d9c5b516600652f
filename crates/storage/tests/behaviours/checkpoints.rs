//! Checkpoints: what was acknowledged before is in them, each write whole, whatever goes on
//! meanwhile. They are data directories of their own.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use schema::{ColumnId, Table};
use storage::mutation::{AtomicWrite, PartitionMutation};
use storage::{CheckpointReport, Storage, StorageError, StorageOptions, renew_identity};
use value::CqlType;

use crate::support::*;

const WRITERS: i32 = 4;
const CHECKPOINTS: usize = 20;
/// The rows that each writer may write in addition for each checkpoint.
const ROWS_A_ROUND: i32 = 300;
/// The most rows of a writer, so that it ends whatever happens.
const ROWS_MAX: i32 = 200_000;
/// Bytes of a vector, which is stored apart from its key.
const VECTOR_BYTES: usize = 1_600;
const VECTOR: ColumnId = ColumnId(3);

/// Options by which rows are written out all the time.
fn small_buffers() -> StorageOptions {
    StorageOptions {
        memtable_bytes: 128 << 10,
        write_buffer_bytes: 1 << 20,
        ..options()
    }
}

/// Two tables: one of texts, one that keeps large values apart.
fn tables() -> [Table; 2] {
    let mut texts = simple_table();
    texts.name = "texts".to_owned();
    let vectors = TableBuilder::new("ks", "vectors")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .regular(
            "vector",
            CqlType::Vector {
                element: Box::new(CqlType::Float),
                dimensions: (VECTOR_BYTES / 4) as u16,
            },
        )
        .build();
    [texts, vectors]
}

/// A write of the same row to both tables.
fn both([texts, vectors]: &[Table; 2], p: i32, c: i32) -> AtomicWrite {
    let value = set(V, text(&format!("{p}:{c} {}", "x".repeat(200))));
    let vector = set(VECTOR, vec![1; VECTOR_BYTES].into());
    let of = |table: &Table, cells| PartitionMutation {
        table: table.id,
        partition_key: vec![int(p)],
        changes: vec![insert(vec![int(c)], cells, 1)],
    };
    AtomicWrite {
        mutations: vec![
            of(texts, vec![value.clone()]),
            of(vectors, vec![value, vector]),
        ],
        condition: None,
    }
}

/// The rows of each writer in a table. Fails if they are not the first ones.
fn rows_of_writers(storage: &Storage, table: &Table) -> Vec<i32> {
    let rows = |p| {
        let rows = read_partition(storage, table, vec![int(p)]);
        let found = rows.iter().map(|row| shown(row).1);
        let count = rows.len() as i32;
        assert!(found.eq((0..count).map(Some)), "a row is missing");
        count
    };
    (0..WRITERS).map(rows).collect()
}

fn checkpoint(storage: &Storage, target: &Path) -> CheckpointReport {
    block_on(storage.checkpoint(target)).expect("the checkpoint is made")
}

fn read_only(directory: &Path) -> Storage {
    Storage::open_read_only(directory, options()).expect("the directory opens")
}

/// Lets the writers write some rows at a time, so that the test ends soon on a fast disk.
#[derive(Default)]
struct WriterGate {
    /// The number of rows of each writer, and whether they are to end.
    state: Mutex<(i32, bool)>,
    changed: Condvar,
}

impl WriterGate {
    fn set(&self, change: impl FnOnce(&mut (i32, bool))) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until a writer may write a row. Returns whether it goes on.
    fn lets(&self, row: i32) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |state: &mut (i32, bool)| row >= state.0 && !state.1;
        let state = self.changed.wait_while(state, waits);
        !state.unwrap_or_else(PoisonError::into_inner).1
    }
}

/// Ends the writers, also if the test fails.
struct EndOnDrop<'a>(&'a WriterGate);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set(|state| state.1 = true);
    }
}

/// The rows that a writer has begun and that were acknowledged.
#[derive(Default)]
struct WriterProgress {
    begun: AtomicI32,
    acknowledged: AtomicI32,
}

/// Writes rows of a partition until the gate ends it.
fn write_rows(
    storage: &Storage,
    tables: &[Table; 2],
    p: i32,
    at: &WriterProgress,
    gate: &WriterGate,
) {
    for c in (0..ROWS_MAX).take_while(|c| gate.lets(*c)) {
        at.begun.store(c + 1, Ordering::SeqCst);
        block_on(storage.write(both(tables, p, c))).unwrap();
        at.acknowledged.store(c + 1, Ordering::SeqCst);
    }
}

#[test]
fn checkpoints_under_writes_and_compactions_have_what_was_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let storage = open_with(&home.path().join("data"), small_buffers()).unwrap();
    let tables = tables();
    for table in &tables {
        create(&storage, table, true);
    }
    let progress: Vec<_> = (0..WRITERS).map(|_| WriterProgress::default()).collect();
    let count = |of: fn(&WriterProgress) -> &AtomicI32| -> Vec<i32> {
        let progress = progress.iter();
        progress.map(|at| of(at).load(Ordering::SeqCst)).collect()
    };
    let acknowledged = || count(|at| &at.acknowledged);
    let gate = WriterGate::default();
    thread::scope(|scope| {
        let _ends = EndOnDrop(&gate);
        for (p, at) in (0..WRITERS).zip(&progress) {
            let (storage, tables, gate) = (&storage, &tables, &gate);
            scope.spawn(move || write_rows(storage, tables, p, at, gate));
        }
        let (of, compacted, until) = (&storage, tables[1].id, &gate);
        scope.spawn(move || {
            for round in 0..ROWS_MAX {
                // No row waits at the gate, unless all is to end.
                if !until.lets(-1) {
                    return;
                }
                of.compact(compacted)
                    .unwrap_or_else(|error| panic!("{round}: {error}"));
            }
        });
        for number in 0..CHECKPOINTS {
            let goal = acknowledged().iter().sum::<i32>() + ROWS_A_ROUND / 4;
            gate.set(|state| state.0 += ROWS_A_ROUND);
            eventually("the writers go on", || {
                acknowledged().iter().sum::<i32>() > goal
            });
            let target = home.path().join(format!("checkpoint-{number}"));
            let before = acknowledged();
            let report = checkpoint(&storage, &target);
            let begun = count(|at| &at.begun);
            assert_eq!(report.tables.len(), 2);
            assert!(report.files > 0 && report.bytes > 0);
            let copy = read_only(&target);
            let found = rows_of_writers(&copy, &tables[0]);
            let of_vectors = rows_of_writers(&copy, &tables[1]);
            assert_eq!(found, of_vectors, "batches are whole");
            for ((found, before), begun) in found.iter().zip(&before).zip(&begun) {
                assert!(before <= found && found <= begun, "{number}: {found}");
            }
        }
    });
    // A directory of its own: it is served when its source is no more.
    let expected = rows_of_writers(&read_only(&home.path().join("checkpoint-3")), &tables[0]);
    block_on(storage.close()).unwrap();
    fs::remove_dir_all(home.path().join("data")).unwrap();
    let served = open_with(&home.path().join("checkpoint-3"), small_buffers()).unwrap();
    assert_eq!(rows_of_writers(&served, &tables[1]), expected);
    block_on(served.write(both(&tables, 0, expected[0]))).unwrap();
    assert_eq!(rows_of_writers(&served, &tables[0])[0], expected[0] + 1);
}

/// The tables that a folder of the engine's has as files, with their inodes.
fn inodes(folder: &Path) -> Vec<u64> {
    let entries = fs::read_dir(folder.join("tables")).unwrap();
    let inodes = entries.map(|entry| entry.unwrap().metadata().unwrap().ino());
    let mut inodes: Vec<u64> = inodes.collect();
    inodes.sort_unstable();
    inodes
}

#[test]
fn a_checkpoint_and_its_source_go_separate_ways() {
    let home = tempfile::tempdir().unwrap();
    let (data, target) = (home.path().join("data"), home.path().join("copy"));
    let storage = open(&data);
    let tables = tables();
    for table in &tables {
        create(&storage, table, true);
    }
    block_on(storage.write(both(&tables, 0, 0))).unwrap();
    storage.compact(tables[1].id).unwrap();
    block_on(storage.write(both(&tables, 0, 1))).unwrap();
    let report = checkpoint(&storage, &target);
    let of_vectors = report.tables.iter().find(|of| of.table == "vectors");
    let folder = &of_vectors.unwrap().rows;
    let linked = inodes(&target.join(folder));
    // The source may have a file, too, that a reader of an older state still holds.
    let of_source = inodes(&data.join(folder));
    let is_linked = linked.iter().all(|inode| of_source.contains(inode));
    assert!(
        is_linked && linked.len() == 1,
        "{linked:?}: no byte is copied"
    );

    let copy = open(&target);
    for c in 2..50 {
        block_on(copy.write(both(&tables, 0, c))).unwrap();
    }
    copy.compact(tables[1].id).unwrap();
    assert_eq!(rows_of_writers(&copy, &tables[1])[0], 50);
    block_on(copy.close()).unwrap();
    block_on(storage.write(both(&tables, 0, 2))).unwrap();
    storage.compact(tables[1].id).unwrap();
    drop(storage);
    let storage = open(&data);
    for table in &tables {
        assert_eq!(rows_of_writers(&storage, table)[0], 3);
        assert_eq!(rows_of_writers(&open(&target), table)[0], 50);
    }
}

#[test]
fn tables_in_memory_are_in_a_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let (data, target) = (home.path().join("data"), home.path().join("copy"));
    let mut table = simple_table();
    hold_in_memory(&mut table);
    let storage = open(&data);
    create(&storage, &table, true);
    for c in 0..100 {
        let change = insert(vec![int(c)], vec![set(V, text("here"))], 1);
        write(&storage, &table, vec![int(1)], vec![change]);
    }
    checkpoint(&storage, &target);
    let without_room = StorageOptions {
        resident_bytes: 0,
        ..options()
    };
    let copy = Storage::open_read_only(&target, without_room).unwrap();
    assert_eq!(read_all(&copy, &table), read_all(&storage, &table));
    drop(copy);
    assert_eq!(read_all(&open(&target), &table).len(), 100);
}

#[test]
fn a_copy_without_some_tables_is_read() {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("copy");
    let storage = open(&home.path().join("data"));
    let tables = tables();
    for table in &tables {
        create(&storage, table, true);
    }
    block_on(storage.write(both(&tables, 0, 0))).unwrap();
    storage.compact(tables[1].id).unwrap();
    block_on(storage.write(both(&tables, 0, 1))).unwrap();
    let report = checkpoint(&storage, &target);
    let left_out = report.tables.iter().find(|of| of.table == "texts").unwrap();
    assert!(left_out.indexes.is_empty());
    fs::remove_dir_all(target.join(&left_out.rows)).unwrap();
    // Files without content may be lost on the way, too.
    fs::remove_file(target.join("db/lock")).unwrap();
    let copy = read_only(&target);
    assert_eq!(rows_of_writers(&copy, &tables[1])[0], 2);
    let missing = copy.read(request(&tables[0], whole_ring()));
    assert!(matches!(missing.err(), Some(StorageError::NoSuchTable(_))));
}

#[test]
fn a_directory_that_is_read_only_takes_no_writes() {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("copy");
    let storage = open(&home.path().join("data"));
    let tables = tables();
    for table in &tables {
        create(&storage, table, true);
    }
    checkpoint(&storage, &target);
    let copy = read_only(&target);
    let refused = block_on(copy.write(both(&tables, 0, 0)));
    assert!(matches!(refused, Err(StorageError::ReadOnly(_))));
    let refused = block_on(copy.checkpoint(&home.path().join("further")));
    assert!(matches!(refused, Err(StorageError::Closed)));
    assert!(!home.path().join("further").exists());
}

#[test]
fn a_checkpoint_needs_a_place_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let storage = open(&home.path().join("data"));
    let taken = home.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("precious"), "").unwrap();
    let refused = block_on(storage.checkpoint(&taken)).unwrap_err();
    assert!(refused.to_string().contains("exists already"), "{refused}");
    assert!(taken.join("precious").exists());
    let nowhere = home.path().join("missing/copy");
    let refused = block_on(storage.checkpoint(&nowhere)).unwrap_err();
    assert!(refused.to_string().contains("parent"), "{refused}");
}

#[test]
fn a_restored_directory_gets_an_identity_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("copy");
    let storage = open(&home.path().join("data"));
    create(&storage, &simple_table(), true);
    let report = checkpoint(&storage, &target);
    let before = storage.catalog();
    assert_eq!(report.catalog.version, before.version);
    let renewed = renew_identity(&target).unwrap();
    assert_ne!(renewed, before.host_id);
    let copy = open(&target);
    let catalog = copy.catalog();
    assert_eq!(catalog.host_id, renewed);
    assert_eq!(catalog.keyspaces, before.keyspaces);
    assert!(matches!(
        renew_identity(&target),
        Err(StorageError::Locked(_))
    ));
}

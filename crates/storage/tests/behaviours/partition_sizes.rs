//! Walks over the partitions of a table: the sizes are right whatever the length of a step, and the
//! tombstones of a partition are counted.

use std::path::Path;

use schema::Table;
use storage::mutation::{CellOperation, PartitionChange};
use storage::read::ClusteringBound;
use storage::{Durability, PartitionSize, PartitionWalk, SizedPartition, Storage, StorageOptions};

use crate::support::*;

/// A length of values that lie in files of their own, once they are written out.
const LARGE: usize = 50_000;

fn filled(directory: &Path, in_memory: bool) -> (Storage, Table) {
    let options = StorageOptions {
        durability: Durability::Buffered {
            sync_interval: std::time::Duration::from_secs(60),
        },
        ..options()
    };
    let storage = Storage::open(directory, options).unwrap();
    let mut table = simple_table();
    if in_memory {
        hold_in_memory(&mut table);
    }
    create(&storage, &table, true);
    for p in 0..20 {
        let rows = (0..=p).map(|c| {
            let value = match c {
                7 => "x".repeat(LARGE),
                _ => "short".to_owned(),
            };
            insert(vec![int(c)], vec![set(V, text(&value))], 1)
        });
        write(&storage, &table, vec![int(p)], rows.collect());
    }
    (storage, table)
}

/// All partitions, by steps of so many keys.
fn walked(
    storage: &Storage,
    table: &Table,
    counts_tombstones: bool,
    keys_a_step: usize,
) -> Vec<SizedPartition> {
    let mut walk = PartitionWalk::new(counts_tombstones);
    let mut found = Vec::new();
    let mut entries = 0;
    for _ in 0..1_000 {
        let view = storage.view(table.id).unwrap();
        let step = view.walk(&mut walk, keys_a_step, |_| true).unwrap();
        assert!(step.entries <= keys_a_step as u64);
        assert_eq!(step.partitions, step.wanted.len() as u64);
        entries += step.entries;
        found.extend(step.wanted);
        if step.is_done {
            let rows: u64 = found.iter().map(|partition| partition.size.rows).sum();
            assert!(entries >= rows);
            found.sort_by(|a, b| a.key.cmp(&b.key));
            return found;
        }
    }
    panic!("a walk does not end");
}

#[test]
fn a_walk_finds_the_size_of_every_partition() {
    for in_memory in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (storage, table) = filled(directory.path(), in_memory);
        let whole = walked(&storage, &table, false, 100_000);
        assert_eq!(whole.len(), 20);
        for (p, partition) in (0..).zip(&whole) {
            assert_eq!(partition.key, [int(p)]);
            assert_eq!(partition.size.rows, p as u64 + 1);
            let large = if p >= 7 { LARGE as u64 } else { 0 };
            let bytes = partition.size.bytes - large;
            assert!(
                (20 * (p as u64 + 1)..200 * (p as u64 + 1)).contains(&bytes),
                "{bytes}"
            );
        }
        for keys_a_step in [1, 3, 7] {
            assert_eq!(walked(&storage, &table, false, keys_a_step), whole);
        }
        // Values are read to count tombstones, of which there are none.
        assert_eq!(walked(&storage, &table, true, 7), whole);
        block_on(storage.close()).unwrap();
    }
}

#[test]
fn the_size_is_that_of_values_in_files_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let (storage, table) = filled(directory.path(), false);
    let before = walked(&storage, &table, false, 50);
    block_on(storage.close()).unwrap();
    // Recovery writes out what was in memory.
    let storage = open(directory.path());
    assert_eq!(walked(&storage, &table, false, 50), before);
    block_on(storage.close()).unwrap();
}

#[test]
fn tombstones_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (storage, table) = filled(directory.path(), false);
    let delete = |c| PartitionChange::DeleteRow {
        clustering: vec![int(c)],
        timestamp: 2,
    };
    let null = update(vec![int(9)], vec![cell(V, CellOperation::Delete)], 2);
    let range = PartitionChange::DeleteRange {
        start: ClusteringBound::Inclusive(vec![int(12)]),
        end: ClusteringBound::Unbounded,
        timestamp: 2,
    };
    write(
        &storage,
        &table,
        vec![int(19)],
        vec![delete(0), delete(1), null, range],
    );
    let whole = PartitionChange::DeletePartition { timestamp: 2 };
    write(&storage, &table, vec![int(5)], vec![whole]);
    let found = walked(&storage, &table, true, 3);
    let of = |p: i32| -> PartitionSize {
        let found = found.iter().find(|partition| partition.key == [int(p)]);
        found.unwrap().size
    };
    assert_eq!(of(19).tombstones, 4);
    assert_eq!(of(5).tombstones, 1);
    assert_eq!(of(6).tombstones, 0);
    block_on(storage.close()).unwrap();
}

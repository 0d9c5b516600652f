//! Secondary indexes: builds over restarts, values without room, and what is left on the disk. What
//! an index finds is compared with a model in `model/indexes.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use schema::{IndexedPart, SecondaryIndex, Table};
use storage::mutation::PartitionChange;
use storage::read::{IndexRequest, IndexedValues, NextRow};
use storage::{Storage, StorageError};
use uuid::Uuid;

use crate::support::*;

const ROWS: i32 = 1_000;

fn index(options: &[(&str, &str)]) -> SecondaryIndex {
    let options = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    SecondaryIndex {
        name: "i".to_owned(),
        column: V,
        part: IndexedPart::Value,
        is_local: false,
        class_name: Some("sai".to_owned()),
        options: options.collect(),
        version: Uuid::new_v4(),
    }
}

/// Changes the secondary indexes of the table.
fn alter(
    storage: &Storage,
    change: impl FnOnce(&mut BTreeMap<String, Arc<SecondaryIndex>>) + Send + 'static,
) {
    block_on(storage.change_catalog(|catalog| {
        let mut table = Table::clone(catalog.table("ks", "t").unwrap());
        change(&mut table.secondary_indexes);
        catalog.put_table(table);
        Ok::<(), ()>(())
    }))
    .unwrap();
}

fn add(storage: &Storage, index: &SecondaryIndex) {
    let index = Arc::new(index.clone());
    alter(storage, |indexes| {
        indexes.insert("i".to_owned(), index);
    });
}

fn fill(storage: &Storage, table: &Table) {
    for p in 0..ROWS / 100 {
        let row = |c| insert(vec![int(c)], vec![set(V, text(&format!("v{}", c % 10)))], 1);
        write(storage, table, vec![int(p)], (0..100).map(row).collect());
    }
}

/// The number of rows that the index has under these values.
fn count(storage: &Storage, table: &Table, index: &SecondaryIndex, values: IndexedValues) -> usize {
    let request = IndexRequest {
        index: index.version,
        values,
        tokens: (Bound::Unbounded, Bound::Unbounded),
        from: None,
    };
    let view = storage.view(table.id).unwrap();
    let positions = view.positions(&request).unwrap();
    positions.map(Result::unwrap).collect::<Vec<_>>().len()
}

fn one(value: &str) -> IndexedValues {
    IndexedValues::one(text(value))
}

fn all() -> IndexedValues {
    IndexedValues {
        key: None,
        low: Bound::Unbounded,
        high: Bound::Unbounded,
    }
}

/// The folders of spaces: one for the schema, one for each table and index.
fn spaces(directory: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(directory.join("db/keyspaces")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_build_goes_on_after_a_restart_and_takes_in_what_is_written_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let table = simple_table();
    let index = index(&[]);
    let storage = open(directory.path());
    create(&storage, &table, true);
    fill(&storage, &table);
    add(&storage, &index);
    // Closed wherever the build is.
    block_on(storage.close()).unwrap();
    drop(storage);
    let storage = open(directory.path());
    write(
        &storage,
        &table,
        vec![int(0)],
        vec![
            PartitionChange::DeleteRow {
                clustering: vec![int(3)],
                timestamp: 2,
            },
            update(vec![int(13)], vec![set(V, text("new"))], 2),
        ],
    );
    block_on(storage.index_built(index.version));
    let view = storage.view(table.id).unwrap();
    assert!(view.is_index_ready(index.version).unwrap());
    assert_eq!(count(&storage, &table, &index, one("v3")), 98);
    assert_eq!(count(&storage, &table, &index, one("new")), 1);
    assert_eq!(count(&storage, &table, &index, all()), ROWS as usize - 1);
    // A position leads to its row.
    let request = IndexRequest {
        index: index.version,
        values: one("new"),
        tokens: (Bound::Unbounded, Bound::Unbounded),
        from: None,
    };
    let position = view.positions(&request).unwrap().next().unwrap().unwrap();
    let (next, _) = view.row_at(&position, usize::MAX).unwrap();
    let NextRow::Row(row) = next else {
        panic!("{next:?}");
    };
    assert_eq!(shown(&row), (0, Some(13), Some("new".to_owned())));
    assert_eq!(view.row_at(&position, 3).unwrap(), (NextRow::Large, 0));
}

#[test]
fn an_index_ends_with_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let (table, index) = (simple_table(), index(&[]));
    let storage = open(directory.path());
    create(&storage, &table, true);
    let before = spaces(directory.path());
    add(&storage, &index);
    block_on(storage.index_built(index.version));
    assert_eq!(spaces(directory.path()).len(), before.len() + 1);
    fill(&storage, &table);
    assert_eq!(count(&storage, &table, &index, all()), ROWS as usize);
    block_on(storage.truncate(table.id)).unwrap();
    assert_eq!(count(&storage, &table, &index, all()), 0);
    let view = storage.view(table.id).unwrap();
    alter(&storage, BTreeMap::clear);
    // Who reads it still can.
    assert!(view.is_index_ready(index.version).unwrap());
    drop(view);
    let view = storage.view(table.id).unwrap();
    assert!(matches!(
        view.is_index_ready(index.version),
        Err(StorageError::NoSuchIndex(_))
    ));
    drop(view);
    block_on(storage.close()).unwrap();
    drop(storage);
    drop(open(directory.path()));
    assert_eq!(spaces(directory.path()).len(), before.len());
}

#[test]
fn values_that_begin_alike_for_long_share_a_term() {
    let directory = tempfile::tempdir().unwrap();
    let (table, index) = (simple_table(), index(&[]));
    let storage = open(directory.path());
    create(&storage, &table, true);
    add(&storage, &index);
    let long = |end: &str| format!("{}{end}", "x".repeat(2_000));
    for (c, value) in ["a", "b"].iter().enumerate() {
        let row = insert(vec![int(c as i32)], vec![set(V, text(&long(value)))], 1);
        write(&storage, &table, vec![int(0)], vec![row]);
    }
    assert_eq!(count(&storage, &table, &index, one(&long("a"))), 2);
    let behind = |low: &str| IndexedValues {
        low: Bound::Excluded(text(low)),
        ..all()
    };
    assert_eq!(count(&storage, &table, &index, behind(&long("a"))), 2);
    assert_eq!(count(&storage, &table, &index, behind("y")), 0);
    assert_eq!(count(&storage, &table, &index, one("x")), 0);
}

#[test]
fn a_row_whose_key_leaves_no_room_for_an_entry_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let table = TableBuilder::new("ks", "t")
        .partition("p", value::CqlType::Blob)
        .clustering("c", value::CqlType::Int, false)
        .regular("v", value::CqlType::Text)
        .build();
    let storage = open(directory.path());
    create(&storage, &table, true);
    add(&storage, &index(&[]));
    let key = vec![Bytes::from(vec![1_u8; 65_000])];
    let row = |value: &str| insert(vec![int(0)], vec![set(V, text(value))], 1);
    write(&storage, &table, key.clone(), vec![row("short")]);
    let refused = try_write(&storage, &table, key.clone(), vec![row(&"x".repeat(900))]);
    assert!(
        matches!(refused, Err(StorageError::Invalid(_))),
        "{refused:?}"
    );
    assert_eq!(read_partition(&storage, &table, key).len(), 1);
}

#[test]
fn texts_that_an_option_makes_alike_are_one_value() {
    let directory = tempfile::tempdir().unwrap();
    let table = simple_table();
    let index = index(&[("case_sensitive", "false")]);
    let storage = open(directory.path());
    create(&storage, &table, true);
    add(&storage, &index);
    for (c, value) in ["Word", "WORD", "other"].iter().enumerate() {
        let row = insert(vec![int(c as i32)], vec![set(V, text(value))], 1);
        write(&storage, &table, vec![int(0)], vec![row]);
    }
    assert_eq!(count(&storage, &table, &index, one("wORD")), 2);
}

#[test]
fn entries_of_expired_values_leave_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let (table, index) = (simple_table(), index(&[]));
    let storage = open_at(directory.path(), &clock);
    create(&storage, &table, true);
    let before = spaces(directory.path());
    add(&storage, &index);
    block_on(storage.index_built(index.version));
    let of_index = spaces(directory.path());
    let [of_index] = &of_index.difference(&before).collect::<Vec<_>>()[..] else {
        panic!("one space");
    };
    let row = |c: i32, ttl_s| PartitionChange::Row {
        clustering: vec![int(c)],
        cells: vec![set(V, text(&format!("{c}{}", "x".repeat(500))))],
        timestamp: 1,
        ttl_s,
        marker: true,
    };
    let mut rows: Vec<PartitionChange> = (0..ROWS).map(|c| row(c, Some(10))).collect();
    rows.push(row(ROWS, None));
    write(&storage, &table, vec![int(0)], rows);
    storage.compact(table.id).unwrap();
    let full = bytes(of_index);

    let reader = storage.view(table.id).unwrap();
    clock.advance_seconds(20);
    assert_eq!(count(&storage, &table, &index, all()), 1);
    storage.compact(table.id).unwrap();
    // Who reads since before still finds them.
    let request = IndexRequest {
        index: index.version,
        values: all(),
        tokens: (Bound::Unbounded, Bound::Unbounded),
        from: None,
    };
    assert_eq!(
        reader.positions(&request).unwrap().count(),
        ROWS as usize + 1
    );
    drop(reader);
    write(&storage, &table, vec![int(1)], vec![row(0, None)]);
    storage.compact(table.id).unwrap();
    eventually("the expired entries are gone", || {
        bytes(of_index) < full / 2
    });
    assert_eq!(count(&storage, &table, &index, all()), 2);
}

/// Bytes of the files in a folder and below it.
fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap());
    let sizes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => bytes(&entry.path()),
        false => entry.metadata().map_or(0, |metadata| metadata.len()),
    });
    sizes.sum()
}

//! Tests that the schema changes whole or not at all, and that the files of dropped tables are
//! removed when no one reads them.

use std::path::Path;
use std::sync::Arc;

use schema::{Catalog, Column, ColumnId, ColumnKind};
use storage::{CatalogChangeError, Storage, StorageError};
use value::CqlType;

use crate::support::*;

fn change(storage: &Storage, edit: impl FnOnce(&mut Catalog) + Send + 'static) {
    block_on(storage.change_catalog(|catalog| {
        edit(catalog);
        Ok::<(), ()>(())
    }))
    .unwrap();
}

/// The folders that hold tables.
fn spaces(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("db/keyspaces"))
        .unwrap()
        .count()
}

fn wait_for_spaces(directory: &Path, storage: &Storage, count: usize) {
    eventually(&format!("{count} spaces"), || {
        // Files are removed between two requests.
        let nothing = storage::mutation::AtomicWrite {
            mutations: vec![],
            condition: None,
        };
        block_on(storage.write(nothing)).unwrap();
        spaces(directory) == count
    });
}

#[test]
fn versions_rise_with_every_change_and_only_then() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let time = |catalog: &Catalog| value::timeuuid::unix_micros(&catalog.version);
    let mut last = time(&storage.catalog());
    for n in 0..5 {
        // The clock stands still or goes back.
        clock.set_micros(START_MICROS - n);
        change(&storage, move |catalog| {
            catalog.cluster_name = n.to_string();
        });
        let next = time(&storage.catalog());
        assert!(next > last);
        last = next;
        change(&storage, |_| {});
        assert_eq!(time(&storage.catalog()), last, "nothing changed");
    }
}

#[test]
fn a_refused_or_panicking_change_leaves_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let before = storage.catalog();
    let refused = block_on(storage.change_catalog(|catalog| {
        catalog
            .keyspaces
            .insert("half".to_owned(), Arc::new(keyspace("half", true)));
        Err::<(), _>("no")
    }));
    assert!(matches!(refused, Err(CatalogChangeError::Refused("no"))));
    let panicked = block_on(storage.change_catalog(|catalog| -> Result<(), ()> {
        catalog
            .keyspaces
            .insert("half".to_owned(), Arc::new(keyspace("half", true)));
        catalog.put_table(simple_table());
        unreachable!("the keyspace is missing, so `put_table` panics");
    }));
    assert!(matches!(
        panicked,
        Err(CatalogChangeError::Storage(StorageError::Invalid(_)))
    ));
    assert!(Arc::ptr_eq(&before, &storage.catalog()));
    create(&storage, &simple_table(), true);
}

#[test]
fn a_dropped_table_takes_no_writes_and_is_read_to_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = simple_table();
    let before = spaces(directory.path());
    create(&storage, &table, true);
    let rows = (0..1000).map(|c| insert(vec![int(c)], vec![], 1)).collect();
    write(&storage, &table, vec![int(1)], rows);
    storage.compact(table.id).unwrap();
    let mut stream = storage.read(request(&table, whole_ring())).unwrap();
    assert!(stream.next().is_some());

    change(&storage, |catalog| catalog.remove_table("ks", "t"));
    let late = try_write(
        &storage,
        &table,
        vec![int(1)],
        vec![insert(vec![int(1)], vec![], 2)],
    );
    assert!(matches!(late, Err(StorageError::NoSuchTable(_))));
    let read = storage.read(request(&table, whole_ring()));
    assert!(matches!(read.err(), Some(StorageError::NoSuchTable(_))));
    assert_eq!(spaces(directory.path()), before + 1, "it is being read");
    assert_eq!(stream.by_ref().map(Result::unwrap).count(), 999);
    drop(stream);
    wait_for_spaces(directory.path(), &storage, before);

    // A table of the same name is another table.
    create(&storage, &simple_table(), true);
    let table = storage.catalog().table("ks", "t").unwrap().clone();
    assert_eq!(read_all(&storage, &table), []);
}

#[test]
fn each_truncate_has_a_time_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let table = simple_table();
    create(&storage, &table, true);
    let times = (0..3).map(|_| {
        block_on(storage.truncate(table.id)).unwrap();
        let catalog = storage.catalog();
        catalog.table("ks", "t").unwrap().truncated_at_ms.unwrap()
    });
    let first = START_MICROS / 1000;
    assert_eq!(times.collect::<Vec<_>>(), [first, first + 1, first + 2]);
}

#[test]
fn truncate_empties_the_table_at_once_and_keeps_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let mut table = simple_table();
    table.cdc = Some(cdc_options());
    create(&storage, &table, true);
    let spaces_before = spaces(directory.path());
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![insert(vec![int(1)], vec![], 1)],
    );
    let version = storage.catalog().version;
    let stream = storage.read(request(&table, whole_ring())).unwrap();
    clock.advance_seconds(1);
    block_on(storage.truncate(table.id)).unwrap();
    assert_eq!(read_all(&storage, &table), []);
    assert_eq!(
        stream.map(Result::unwrap).count(),
        1,
        "a read that began before"
    );
    let catalog = storage.catalog();
    assert_ne!(catalog.version, version);
    let emptied = catalog.table("ks", "t").unwrap();
    assert_eq!(emptied.truncated_at_ms, Some(START_MICROS / 1000 + 1000));
    let log = catalog.table("ks", "t_scylla_cdc_log").unwrap();
    assert_eq!(read_all(&storage, log).len(), 1);
    wait_for_spaces(directory.path(), &storage, spaces_before);

    write(
        &storage,
        &table,
        vec![int(2)],
        vec![insert(vec![int(2)], vec![], 1)],
    );
    drop(storage);
    let storage = open_at(directory.path(), &clock);
    assert_eq!(
        read_all(&storage, &table)
            .iter()
            .map(shown)
            .collect::<Vec<_>>(),
        [(2, Some(2), None)]
    );
    assert!(matches!(
        block_on(storage.truncate(schema::TableId(uuid::Uuid::nil()))),
        Err(StorageError::NoSuchTable(_))
    ));
}

#[test]
fn a_column_added_again_does_not_show_what_was_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = simple_table();
    create(&storage, &table, true);
    let cells = vec![set(V, text("old"))];
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![insert(vec![int(1)], cells, 1)],
    );
    change(&storage, |catalog| {
        let mut table = (**catalog.table("ks", "t").unwrap()).clone();
        table.columns.retain(|column| column.id != V);
        table.columns.push(Column {
            id: ColumnId(3),
            name: "v".to_owned(),
            kind: ColumnKind::Regular,
            cql_type: CqlType::Int,
        });
        catalog.put_table(table);
    });
    let row = &read_all(&storage, &table)[0];
    assert_eq!(row.cells, []);
    // A write that was planned before the change is harmless.
    let cells = vec![set(V, text("late"))];
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![insert(vec![int(1)], cells, 2)],
    );
    assert_eq!(read_all(&storage, &table)[0].cells, []);
}

//! Tests that the CDC log is created, changed and dropped with its table, its options and its
//! indexes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use schema::{
    CdcLog, CdcOptions, Column, ColumnId, ColumnKind, DeltaMode, RING_TOKENS, SearchIndexMetadata,
    Table,
};
use storage::Storage;
use value::{
    CqlType,
    token::{Partitioner, Token},
};

use crate::support::*;

fn log_of(storage: &Storage) -> Option<Arc<Table>> {
    storage.catalog().table("ks", "t_scylla_cdc_log").cloned()
}

fn table_of(storage: &Storage) -> Arc<Table> {
    storage
        .catalog()
        .table("ks", "t")
        .expect("the table exists")
        .clone()
}

fn log_entry(storage: &Storage) -> CdcLog {
    table_of(storage).log.clone().expect("the table has a log")
}

fn alter(storage: &Storage, edit: impl FnOnce(&mut Table) + Send + 'static) {
    block_on(storage.change_catalog(move |catalog| {
        let mut table = (**catalog.table("ks", "t").expect("it exists")).clone();
        edit(&mut table);
        catalog.put_table(table);
        Ok::<(), ()>(())
    }))
    .expect("the table is altered");
}

fn index() -> Arc<SearchIndexMetadata> {
    Arc::new(SearchIndexMetadata {
        name: "i".to_owned(),
        target: "v".to_owned(),
        column: "v".to_owned(),
        local_key: Vec::new(),
        filter_columns: Vec::new(),
        options: BTreeMap::new(),
        class_name: "vector_index".to_owned(),
        version: uuid::Uuid::nil(),
    })
}

#[test]
fn an_index_alone_needs_keys_only_and_takes_the_log_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    create(&storage, &simple_table(), true);
    assert!(log_of(&storage).is_none());

    alter(&storage, |table| {
        table.indexes.insert("i".to_owned(), index());
    });
    let first = log_of(&storage).expect("an index needs a log");
    assert_eq!(log_entry(&storage).options.delta, DeltaMode::Keys);
    assert_eq!(log_entry(&storage).table, first.id);
    assert_eq!(first.log_of, Some(table_of(&storage).id));

    alter(&storage, |table| table.cdc = Some(cdc_options()));
    assert_eq!(
        log_entry(&storage).options,
        cdc_options(),
        "the user's options count"
    );
    assert_eq!(log_of(&storage).unwrap().id, first.id, "the log goes on");

    alter(&storage, |table| table.indexes.clear());
    assert_eq!(log_of(&storage).unwrap().id, first.id);

    let disabled = CdcOptions {
        enabled: false,
        ..cdc_options()
    };
    let write_row = |c: i32| {
        let change = insert(vec![int(c)], vec![set(V, text("x"))], START_MICROS);
        write(&storage, &table_of(&storage), vec![int(1)], vec![change]);
    };
    let rows = || read_all(&storage, &log_of(&storage).unwrap()).len();
    write_row(1);
    alter(&storage, |table| table.cdc = Some(disabled));
    assert_eq!(log_of(&storage).unwrap().id, first.id, "its rows are there");
    write_row(2);
    assert_eq!(rows(), 1, "and no more come");

    alter(&storage, |table| table.cdc = Some(cdc_options()));
    assert_eq!(log_of(&storage).unwrap().id, first.id, "the log goes on");
    write_row(3);
    assert_eq!(rows(), 2);
    block_on(storage.change_catalog(|catalog| {
        catalog.remove_table("ks", "t");
        Ok::<(), ()>(())
    }))
    .unwrap();
    assert!(storage.catalog().keyspaces["ks"].tables.is_empty());
}

#[test]
fn columns_follow_and_ids_are_never_used_twice() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let mut table = simple_table();
    table.cdc = Some(cdc_options());
    create(&storage, &table, true);
    let id_of = |name: &str| {
        log_of(&storage)
            .unwrap()
            .column(name)
            .map(|column| column.id)
    };
    let (old_v, kept) = (id_of("v").unwrap(), id_of("p").unwrap());

    alter(&storage, |table| {
        table.columns.retain(|column| column.name != "v");
    });
    assert_eq!(id_of("v"), None);
    assert_eq!(id_of("cdc$deleted_v"), None);

    alter(&storage, |table| {
        table.columns.push(Column {
            id: ColumnId(3),
            name: "v".to_owned(),
            kind: ColumnKind::Regular,
            cql_type: CqlType::Int,
        });
    });
    assert!(id_of("v").unwrap() > old_v);
    assert_eq!(id_of("p"), Some(kept));
    // A write to the new column is logged.
    let cells = vec![set(ColumnId(3), int(8))];
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![insert(vec![int(1)], cells, 5)],
    );
    let rows = read_all(&storage, &log_of(&storage).unwrap());
    assert_eq!(simple_value(&rows[0], id_of("v").unwrap()), Some(int(8)));
}

#[test]
fn with_tablets_a_table_has_its_own_stream_at_the_end_of_the_ring() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let mut table = simple_table();
    table.cdc = Some(cdc_options());
    create(&storage, &table, true);
    let streams = log_entry(&storage).streams.expect("its own").streams;
    assert_eq!(streams.len(), 1);
    assert_eq!(Partitioner::Cdc.token(&streams[0]), Token(i64::MAX));
    check_rows_go_to(&storage, &table, &streams[0]);
}

#[test]
fn without_tablets_all_tables_share_the_streams_of_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let mut table = simple_table();
    table.cdc = Some(cdc_options());
    create(&storage, &table, false);
    assert_eq!(log_entry(&storage).streams, None);
    let catalog = storage.catalog();
    let streams = &catalog.vnode_streams.streams;
    assert_eq!(streams.len(), RING_TOKENS.len());
    assert_eq!(Partitioner::Cdc.token(&streams[0]), RING_TOKENS[0]);
    check_rows_go_to(&storage, &table, &streams[0]);
}

fn check_rows_go_to(storage: &Storage, table: &Table, stream: &Bytes) {
    for p in 0..20 {
        write(
            storage,
            table,
            vec![int(p)],
            vec![insert(vec![int(0)], vec![], 7)],
        );
    }
    let rows = read_all(storage, &log_of(storage).unwrap());
    assert_eq!(rows.len(), 20);
    for row in rows {
        assert_eq!(row.partition.key, std::slice::from_ref(stream));
        assert_eq!(row.partition.token, Partitioner::Cdc.token(stream));
    }
}

//! Tests that a deletion that loses in the table is no deletion in a log that only an index needs.
//! A reader that takes the time of the log row for that of the deletion would remove a live row.

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::{ColumnId, SearchIndexMetadata, Table};
use storage::Storage;
use storage::mutation::PartitionChange;
use value::CqlType;

use crate::support::*;

const UPDATE: u8 = 1;
const INSERT: u8 = 2;
const ROW_DELETE: u8 = 3;
const PARTITION_DELETE: u8 = 4;

fn indexed(builder: TableBuilder) -> Table {
    let mut table = builder
        .regular("a", CqlType::Text)
        .regular("b", CqlType::Text)
        .build();
    let index = SearchIndexMetadata {
        name: "i".to_owned(),
        target: "a".to_owned(),
        column: "a".to_owned(),
        local_key: Vec::new(),
        filter_columns: Vec::new(),
        options: BTreeMap::new(),
        class_name: "vector_index".to_owned(),
        version: uuid::Uuid::from_u128(1),
    };
    table.indexes.insert("i".to_owned(), Arc::new(index));
    table
}

/// The operations in the log, each with the columns that it marks as deleted.
fn logged(storage: &Storage) -> Vec<(u8, String)> {
    let catalog = storage.catalog();
    let log = catalog.table("ks", "t_scylla_cdc_log").unwrap();
    let value =
        |row: &storage::read::Row, name: &str| simple_value(row, log.column(name).unwrap().id);
    read_all(storage, log)
        .iter()
        .map(|row| {
            let deleted = ["a", "b"]
                .into_iter()
                .filter(|name| value(row, &format!("cdc$deleted_{name}")).is_some());
            (value(row, "cdc$operation").unwrap()[0], deleted.collect())
        })
        .collect()
}

fn run(table: &Table, changes: impl IntoIterator<Item = PartitionChange>) -> Vec<(u8, String)> {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    create(&storage, table, true);
    for change in changes {
        write(&storage, table, vec![int(1)], vec![change]);
    }
    logged(&storage)
}

fn expected_deletes(rows: &[(u8, &str)]) -> Vec<(u8, String)> {
    rows.iter()
        .map(|(code, names)| (*code, (*names).to_owned()))
        .collect()
}

#[test]
fn a_row_that_stays_alive_is_not_logged_as_deleted() {
    let with_clustering = || {
        TableBuilder::new("ks", "t")
            .partition("p", CqlType::Int)
            .clustering("c", CqlType::Int, false)
    };
    let table = indexed(with_clustering());
    let (a, b) = (ColumnId(2), ColumnId(3));
    let row = |column, timestamp| insert(vec![int(1)], vec![set(column, text("x"))], timestamp);
    let delete = |timestamp| PartitionChange::DeleteRow {
        clustering: vec![int(1)],
        timestamp,
    };
    let lost = run(&table, [row(a, 100), delete(50)]);
    assert_eq!(lost, expected_deletes(&[(INSERT, "")]));
    let nulled = run(&table, [row(a, 100), row(b, 200), delete(150)]);
    assert_eq!(
        nulled,
        expected_deletes(&[(INSERT, ""), (INSERT, ""), (UPDATE, "a")])
    );
    let won = run(&table, [row(a, 100), delete(100)]);
    assert_eq!(won, expected_deletes(&[(INSERT, ""), (ROW_DELETE, "")]));

    // A log that the user enabled has all deletions.
    let mut of_user = table;
    of_user.cdc = Some(cdc_options());
    let lost = run(&of_user, [row(a, 100), delete(50)]);
    assert_eq!(lost, expected_deletes(&[(INSERT, ""), (ROW_DELETE, "")]));
}

#[test]
fn a_partition_of_one_row_is_a_row() {
    let table = indexed(TableBuilder::new("ks", "t").partition("p", CqlType::Int));
    let row = |timestamp| insert(vec![], vec![set(ColumnId(1), text("x"))], timestamp);
    let delete = |timestamp| PartitionChange::DeletePartition { timestamp };
    let lost = run(&table, [row(100), delete(50)]);
    assert_eq!(lost, expected_deletes(&[(INSERT, "")]));
    let won = run(&table, [row(100), delete(150)]);
    assert_eq!(
        won,
        expected_deletes(&[(INSERT, ""), (PARTITION_DELETE, "")])
    );
}

//! Tests INSERT IF NOT EXISTS: one of many writes wins, and its row is seen.

use schema::Table;
use storage::mutation::{
    AtomicWrite, PartitionChange, RowCondition, RowPredicate, WriteCondition, WriteOutcome,
};

use crate::support::*;

fn insert_once(table: &Table, value: &str, timestamp: i64) -> AtomicWrite {
    let change = insert(vec![int(1)], vec![set(V, text(value))], timestamp);
    AtomicWrite {
        condition: Some(WriteCondition {
            table: table.id,
            partition_key: vec![int(1)],
            rows: vec![RowCondition {
                clustering: vec![int(1)],
                predicate: RowPredicate::NotExists,
            }],
            columns: None,
        }),
        ..write_of(table, vec![int(1)], vec![change])
    }
}

#[test]
fn one_of_many_concurrent_writes_is_applied_and_the_others_see_it() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = simple_table();
    create(&storage, &table, true);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let outcomes = runtime.block_on(async {
        let tasks: Vec<_> = (0..50)
            .map(|n: i64| {
                let (storage, write) = (storage.clone(), insert_once(&table, &n.to_string(), n));
                tokio::spawn(async move { storage.write(write).await.unwrap() })
            })
            .collect();
        let mut outcomes = Vec::new();
        for task in tasks {
            outcomes.push(task.await.unwrap());
        }
        outcomes
    });
    let row = &read_all(&storage, &table)[0];
    let refused = outcomes.iter().filter(|outcome| match outcome {
        WriteOutcome::NotApplied { standing } => standing[..] == [row.clone()],
        WriteOutcome::Applied => false,
    });
    assert_eq!(refused.count(), 49);
}

#[test]
fn an_applied_insert_is_seen_though_a_deletion_came_from_the_future() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = simple_table();
    create(&storage, &table, true);
    let delete = PartitionChange::DeletePartition { timestamp: 1_000 };
    write(&storage, &table, vec![int(1)], vec![delete]);
    let outcome = block_on(storage.write(insert_once(&table, "seen", 5))).unwrap();
    assert!(matches!(outcome, WriteOutcome::Applied));
    let seen: Vec<_> = read_all(&storage, &table).iter().map(shown).collect();
    assert_eq!(seen, [(1, Some(1), Some("seen".to_owned()))]);
}

#[test]
fn conditions_look_at_so_many_bytes_of_rows() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = simple_table();
    create(&storage, &table, true);
    let large = "x".repeat(10 << 20);
    for key in [1, 2] {
        let row = insert(vec![int(key)], vec![set(V, text(&large))], 1);
        write(&storage, &table, vec![int(1)], vec![row]);
    }
    let exists = |key| RowCondition {
        clustering: vec![int(key)],
        predicate: RowPredicate::Exists,
    };
    let outcome = |rows| {
        let change = insert(vec![int(3)], vec![set(V, text("small"))], 1);
        block_on(storage.write(AtomicWrite {
            condition: Some(WriteCondition {
                table: table.id,
                partition_key: vec![int(1)],
                rows,
                columns: None,
            }),
            ..write_of(&table, vec![int(1)], vec![change])
        }))
    };
    let error = outcome(vec![exists(1), exists(2)]).unwrap_err().to_string();
    assert!(error.contains("more than 16 MiB"), "{error}");
    let applied = outcome(vec![exists(1)]);
    assert!(matches!(applied, Ok(WriteOutcome::Applied)));
}

#[test]
fn refused_writes_that_show_large_rows_are_all_answered() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = simple_table();
    create(&storage, &table, true);
    let large = "x".repeat(12 << 20);
    let row = insert(vec![int(1)], vec![set(V, text(&large))], 1);
    write(&storage, &table, vec![int(1)], vec![row]);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    // More than one batch may show.
    let refused = runtime.block_on(async {
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let (storage, write) = (storage.clone(), insert_once(&table, "late", 5));
                tokio::spawn(async move { storage.write(write).await.unwrap() })
            })
            .collect();
        let mut refused = 0;
        for task in tasks {
            match task.await.unwrap() {
                WriteOutcome::NotApplied { standing } => refused += standing.len(),
                WriteOutcome::Applied => {}
            }
        }
        refused
    });
    assert_eq!(refused, 16);
}

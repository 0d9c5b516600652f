//! Tests positions, which come from clients' paging states. Whatever bytes a position has, a read
//! goes on or is refused.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use schema::Table;
use storage::read::{PartitionSelection, RowPosition};
use storage::{Storage, StorageError};
use value::CqlType;

use crate::support::*;

fn world() -> (tempfile::TempDir, Storage, Table) {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = TableBuilder::new("ks", "t")
        .partition("p", CqlType::Text)
        .clustering("c", CqlType::Decimal, true)
        .clustering(
            "d",
            CqlType::List {
                element: Box::new(CqlType::Text),
                frozen: true,
            },
            false,
        )
        .statics("s", CqlType::Int)
        .build();
    create(&storage, &table, true);
    for p in 0..5_u8 {
        let one = |n: u8| {
            insert(
                vec![vec![0, 0, 0, n, 1].into(), Bytes::from_static(&[0; 4])],
                vec![],
                1,
            )
        };
        let statics = storage::mutation::PartitionChange::Static {
            cells: vec![set(schema::ColumnId(3), int(1))],
            timestamp: 1,
            ttl_s: None,
        };
        write(
            &storage,
            &table,
            vec![vec![p; 3].into()],
            vec![one(1), one(2), statics],
        );
    }
    (directory, storage, table)
}

fn try_resume(storage: &Storage, table: &Table, partitions: PartitionSelection, position: Vec<u8>) {
    for reversed in [false, true] {
        let mut request = request(table, partitions.clone());
        request.reversed = reversed;
        request.resume_after = Some(RowPosition(position.clone().into()));
        match storage.read(request) {
            Ok(stream) => drop(stream.collect::<Result<Vec<_>, _>>().expect("it reads on")),
            Err(StorageError::Invalid(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn tampered_positions_are_refused_or_harmless() {
    let (_directory, storage, table) = world();
    let rows = read_all(&storage, &table);
    let config = ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..Default::default()
    };
    let damage = (
        0..rows.len(),
        vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        0..20_usize,
    );
    proptest!(config, |((row, edits, cut) in damage, garbage in vec(any::<u8>(), 0..60))| {
        let mut position = rows[row].position.0.to_vec();
        for (at, byte) in edits {
            let at = at.index(position.len());
            position[at] = byte;
        }
        position.truncate(position.len().saturating_sub(cut.saturating_sub(8)));
        let one = PartitionSelection::One(rows[row].partition.key.clone());
        try_resume(&storage, &table, one.clone(), position.clone());
        try_resume(&storage, &table, whole_ring(), position);
        try_resume(&storage, &table, one, garbage.clone());
        try_resume(&storage, &table, whole_ring(), garbage);
    });
}

#[test]
fn positions_of_other_partitions_and_before_the_range_are_refused() {
    let (_directory, storage, table) = world();
    let rows = read_all(&storage, &table);
    let (first, last) = (&rows[0], &rows[rows.len() - 1]);
    let mut elsewhere = request(&table, PartitionSelection::One(last.partition.key.clone()));
    elsewhere.resume_after = Some(first.position.clone());
    assert!(matches!(
        storage.read(elsewhere),
        Err(StorageError::Invalid(_))
    ));
    use std::ops::Bound::{Included, Unbounded};
    let mut before = request(
        &table,
        PartitionSelection::Tokens(Included(last.partition.token), Unbounded),
    );
    before.resume_after = Some(first.position.clone());
    assert!(matches!(
        storage.read(before),
        Err(StorageError::Invalid(_))
    ));
}

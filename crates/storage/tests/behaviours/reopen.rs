//! Tests that everything acknowledged is there after closing and opening again, the schema
//! included.

use storage::StorageError;
use storage::mutation::PartitionChange;

use crate::support::*;

#[test]
fn rows_and_schema_survive() {
    let directory = tempfile::tempdir().unwrap();
    let table = simple_table();
    let before = {
        let storage = open(directory.path());
        create(&storage, &table, true);
        for p in 0..20 {
            for c in [3, -1, 2] {
                let cells = vec![set(V, text(&format!("{p}:{c}")))];
                write(
                    &storage,
                    &table,
                    vec![int(p)],
                    vec![insert(vec![int(c)], cells, 10)],
                );
            }
        }
        let delete = PartitionChange::DeleteRow {
            clustering: vec![int(2)],
            timestamp: 11,
        };
        write(&storage, &table, vec![int(7)], vec![delete]);
        assert_eq!(
            read_partition(&storage, &table, vec![int(7)])
                .iter()
                .map(shown)
                .collect::<Vec<_>>(),
            [
                (7, Some(-1), Some("7:-1".to_owned())),
                (7, Some(3), Some("7:3".to_owned())),
            ]
        );
        let rows = read_all(&storage, &table);
        assert_eq!(rows.len(), 59);
        assert!(rows.is_sorted_by_key(|row| row.partition.token));
        (rows, (*storage.catalog()).clone())
    };
    let storage = open(directory.path());
    assert_eq!(read_all(&storage, &table), before.0);
    let catalog = storage.catalog();
    assert_eq!(catalog.keyspaces, before.1.keyspaces);
    assert_eq!(catalog.version, before.1.version);
    assert_eq!(catalog.host_id, before.1.host_id);
    assert_eq!(catalog.vnode_streams, before.1.vnode_streams);
}

#[test]
fn a_closed_storage_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let table = simple_table();
    let storage = open(directory.path());
    create(&storage, &table, true);
    block_on(storage.close()).unwrap();
    let refused = try_write(
        &storage,
        &table,
        vec![int(1)],
        vec![insert(vec![int(1)], vec![], 1)],
    );
    assert!(matches!(refused, Err(StorageError::Closed)));
    // The directory is free again although a clone is alive.
    open(directory.path());
}

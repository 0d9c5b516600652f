//! Tests that a request that can't be carried out is refused with a clear text, and spoils nothing
//! else.

use bytes::Bytes;
use schema::{ColumnId, Table, TableId};
use storage::mutation::{AtomicWrite, CellOperation, PartitionChange, PartitionMutation};
use storage::read::{ClusteringBound, PartitionSelection};
use storage::{Storage, StorageError, StorageOptions};
use value::CqlType;

use crate::support::*;

fn world() -> (tempfile::TempDir, Storage, Table) {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = TableBuilder::new("ks", "t")
        .partition("p", CqlType::Blob)
        .clustering("c", CqlType::Blob, false)
        .statics("s", CqlType::Int)
        .regular("v", CqlType::Text)
        .regular(
            "list",
            CqlType::List {
                element: Box::new(CqlType::Int),
                frozen: false,
            },
        )
        .build();
    create(&storage, &table, true);
    (directory, storage, table)
}

const STATIC: ColumnId = ColumnId(2);
const VALUE: ColumnId = ColumnId(3);
const LIST: ColumnId = ColumnId(4);

fn bytes(length: usize) -> Bytes {
    vec![7; length].into()
}

fn refusal(result: Result<storage::mutation::WriteOutcome, StorageError>) -> String {
    match result {
        Err(StorageError::Invalid(text)) => text,
        other => panic!("{other:?} is no refusal"),
    }
}

#[test]
fn keys_are_taken_up_to_the_limit_and_refused_beyond_it() {
    let (_directory, storage, table) = world();
    // The bytes beside the value: token 8, partition key 1 + 1 + 2, kind 1, clustering column 1 and
    // 2.
    let longest = 65_535 - 16;
    let at = |length| vec![insert(vec![bytes(length)], vec![], 1)];
    write(&storage, &table, vec![bytes(1)], at(longest));
    let rows = read_partition(&storage, &table, vec![bytes(1)]);
    assert_eq!(rows[0].clustering, Some(vec![bytes(longest)]));
    let text = refusal(try_write(&storage, &table, vec![bytes(1)], at(longest + 1)));
    assert!(
        text.contains("65536 bytes") && text.contains("65535"),
        "{text}"
    );
    refusal(try_write(&storage, &table, vec![bytes(70_000)], at(1)));
    refusal(try_write(&storage, &table, vec![bytes(1)], at(5_000_000)));
    let delete = PartitionChange::DeleteRange {
        start: ClusteringBound::Inclusive(vec![bytes(longest)]),
        end: ClusteringBound::Inclusive(vec![bytes(longest + 1)]),
        timestamp: 1,
    };
    refusal(try_write(&storage, &table, vec![bytes(1)], vec![delete]));
    let one = request(&table, PartitionSelection::One(vec![bytes(70_000)]));
    assert!(matches!(storage.read(one), Err(StorageError::Invalid(_))));
}

#[test]
fn a_write_beyond_the_size_limit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        max_write_bytes: 1_000,
        ..options()
    };
    let storage = Storage::open(directory.path(), options).unwrap();
    let table = simple_table();
    create(&storage, &table, true);
    let sized = |length| vec![insert(vec![int(1)], vec![set(V, bytes(length))], 1)];
    write(&storage, &table, vec![int(1)], sized(900));
    let text = refusal(try_write(&storage, &table, vec![int(1)], sized(1_001)));
    assert!(
        text.contains("1009 bytes") && text.contains("1000"),
        "{text}"
    );
}

#[test]
fn operations_that_do_not_fit_their_column_are_refused() {
    let (_directory, storage, table) = world();
    let with = |column, change| {
        let change = update(vec![bytes(1)], vec![cell(column, change)], 1);
        refusal(try_write(&storage, &table, vec![bytes(1)], vec![change]))
    };
    assert!(with(VALUE, CellOperation::PutElements(vec![])).contains("column v of type text"));
    assert!(with(LIST, CellOperation::Set(bytes(1))).contains("column list of type list<int>"));
    assert!(with(STATIC, CellOperation::Set(int(1))).contains("column s"));
    let empty = with(LIST, CellOperation::DeleteListIndex { index: 0 });
    assert!(empty.contains("list which is null"), "{empty}");

    let path = Bytes::from_static(&[0, 0, 0, 1, 0, 0, 0x10, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    let put = cell(LIST, CellOperation::PutElements(vec![(path, int(1))]));
    write(
        &storage,
        &table,
        vec![bytes(1)],
        vec![update(vec![bytes(1)], vec![put], 1)],
    );
    let beyond = with(
        LIST,
        CellOperation::SetListIndex {
            index: 1,
            value: int(2),
        },
    );
    assert_eq!(beyond, "List index 1 out of bound, list has size 1");

    let row =
        |p: Vec<Bytes>, c: Vec<Bytes>| try_write(&storage, &table, p, vec![insert(c, vec![], 1)]);
    assert!(refusal(row(vec![], vec![bytes(1)])).contains("partition key has 1 columns, got 0"));
    assert!(refusal(row(vec![bytes(1)], vec![])).contains("clustering key has 1 columns, got 0"));
}

/// The path of an element.
fn path(at: u32) -> Bytes {
    let mut path = [0, 0, 0, 1, 0, 0, 0x10, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
    path[..4].copy_from_slice(&at.to_be_bytes());
    Bytes::copy_from_slice(&path)
}

#[test]
fn an_element_that_is_put_below_a_newer_deletion_has_no_index() {
    let put = || cell(LIST, CellOperation::PutElements(vec![(path(1), int(0))]));
    let delete_element = cell(LIST, CellOperation::DeleteElements(vec![path(1)]));
    let deletions = [
        PartitionChange::DeleteRow {
            clustering: vec![bytes(1)],
            timestamp: 3,
        },
        update(vec![bytes(1)], vec![cell(LIST, CellOperation::Delete)], 3),
        update(vec![bytes(1)], vec![delete_element], 3),
    ];
    for deletion in deletions {
        let (_directory, storage, table) = world();
        write(&storage, &table, vec![bytes(1)], vec![deletion]);
        let at_0 = cell(LIST, CellOperation::DeleteListIndex { index: 0 });
        let older = update(vec![bytes(1)], vec![put(), at_0], 1);
        let refused = refusal(try_write(&storage, &table, vec![bytes(1)], vec![older]));
        assert!(refused.contains("list which is null"), "{refused}");
    }
}

#[test]
fn operations_on_a_long_list_are_bounded_together() {
    let (_directory, storage, table) = world();
    let change = |cells| vec![update(vec![bytes(1)], cells, 1)];
    let elements = (0..8_192).map(|at| (path(at), int(0))).collect();
    let list = cell(LIST, CellOperation::PutElements(elements));
    write(&storage, &table, vec![bytes(1)], change(vec![list]));
    let sets = |count| {
        let set = || CellOperation::SetListIndex {
            index: 8_191,
            value: int(1),
        };
        // With an element that comes by its path, the list is changed as a whole.
        let one = vec![(path(8_192), int(0))];
        let one = cell(LIST, CellOperation::PutElements(one));
        let sets = (0..count).map(|_| cell(LIST, set()));
        change(std::iter::once(one).chain(sets).collect())
    };
    write(&storage, &table, vec![bytes(1)], sets(16));
    let refused = refusal(try_write(&storage, &table, vec![bytes(1)], sets(513)));
    assert!(refused.contains("more than 4194304 elements"), "{refused}");
}

#[test]
fn a_refused_write_leaves_the_others_of_its_batch_alone() {
    let (_directory, storage, table) = world();
    let good = |n: u8| {
        write_of(
            &table,
            vec![bytes(1)],
            vec![insert(vec![vec![n].into()], vec![], 1)],
        )
    };
    let bad = |n: u8| {
        // The first change of the write is valid, the second is not.
        let changes = vec![
            insert(vec![vec![n].into()], vec![], 1),
            update(
                vec![vec![n].into()],
                vec![cell(LIST, CellOperation::DeleteListIndex { index: 9 })],
                1,
            ),
        ];
        write_of(&table, vec![bytes(1)], changes)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..100_u8 {
            let (storage, write) = (storage.clone(), if n % 3 == 0 { bad(n) } else { good(n) });
            tasks.spawn(async move { (n, storage.write(write).await.is_ok()) });
        }
        while let Some(done) = tasks.join_next().await {
            let (n, applied) = done.unwrap();
            assert_eq!(applied, n % 3 != 0, "write {n}");
        }
    });
    let found: Vec<u8> = read_all(&storage, &table)
        .iter()
        .map(|row| row.clustering.as_ref().unwrap()[0][0])
        .collect();
    assert_eq!(found, (0..100).filter(|n| n % 3 != 0).collect::<Vec<u8>>());
    let batches = storage.statistics();
    assert!(
        batches.batches < batches.writes,
        "they shared batches: {batches:?}"
    );
}

#[test]
fn an_unknown_table_is_named() {
    let (_directory, storage, table) = world();
    let id = uuid::Uuid::new_v4();
    let unknown = AtomicWrite {
        mutations: vec![
            PartitionMutation {
                table: table.id,
                partition_key: vec![bytes(1)],
                changes: vec![insert(vec![bytes(1)], vec![], 1)],
            },
            PartitionMutation {
                table: TableId(id),
                partition_key: vec![],
                changes: vec![],
            },
        ],
        condition: None,
    };
    match block_on(storage.write(unknown)) {
        Err(StorageError::NoSuchTable(text)) => assert_eq!(text, id.to_string()),
        other => panic!("{other:?}"),
    }
    assert_eq!(read_all(&storage, &table), [], "all or nothing");
}

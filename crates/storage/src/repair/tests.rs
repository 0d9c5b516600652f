//! Repairs of indexes that were damaged below the storage, and of some that are written meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use schema::{Column, ColumnId, ColumnKind, IndexedPart, Keyspace, SecondaryIndex, Table, TableId};
use tasks::{Task, TaskRegistry, TaskScope, TaskSpec};
use uuid::Uuid;
use value::CqlType;
use value::token::Partitioner;

use super::REPAIR_COUNTERS;
use crate::clock::{Clock, ManualClock};
use crate::commit::IndexRepairRequest;
use crate::engine::{EntryBatch, SpaceId, SyncTarget};
use crate::entries::SuspectKey;
use crate::key::term::{StoredEntry, entry_value};
use crate::mutation::{AtomicWrite, CellChange, CellOperation, PartitionChange, PartitionMutation};
use crate::read::{IndexRequest, IndexedValues, PartitionSelection, ReadRequest};
use crate::{Storage, StorageError, StorageOptions};

const P1: ColumnId = ColumnId(0);
const C: ColumnId = ColumnId(2);
const S: ColumnId = ColumnId(3);
const V: ColumnId = ColumnId(4);
const MAP: ColumnId = ColumnId(5);
const TAGS: ColumnId = ColumnId(6);

/// Every kind of index that the table can have.
const INDEXED: [(ColumnId, IndexedPart, bool); 8] = [
    (V, IndexedPart::Value, false),
    (V, IndexedPart::Value, true),
    (P1, IndexedPart::Value, false),
    (C, IndexedPart::Value, false),
    (S, IndexedPart::Value, false),
    (MAP, IndexedPart::Keys, false),
    (MAP, IndexedPart::Entries, false),
    (TAGS, IndexedPart::Values, false),
];

/// `ks.t (p1 int, p2 int, c int, s text static, v text, m map<text, int>, tags set<text>)`.
fn table(is_in_memory: bool) -> Table {
    let text = || Box::new(CqlType::Text);
    let map = CqlType::Map {
        key: text(),
        value: Box::new(CqlType::Int),
        frozen: false,
    };
    let tags = CqlType::Set {
        element: text(),
        frozen: false,
    };
    let key = |position| ColumnKind::PartitionKey { position };
    let clustering = ColumnKind::Clustering {
        position: 0,
        descending: false,
    };
    let columns = [
        ("p1", key(0), CqlType::Int),
        ("p2", key(1), CqlType::Int),
        ("c", clustering, CqlType::Int),
        ("s", ColumnKind::Static, CqlType::Text),
        ("v", ColumnKind::Regular, CqlType::Text),
        ("m", ColumnKind::Regular, map),
        ("tags", ColumnKind::Regular, tags),
    ];
    let columns = (0..)
        .zip(columns)
        .map(|(id, (name, kind, cql_type))| Column {
            id: ColumnId(id),
            name: name.to_owned(),
            kind,
            cql_type,
        });
    let options = is_in_memory.then(|| ("in_memory".to_owned(), "true".to_owned()));
    let indexes = INDEXED
        .iter()
        .enumerate()
        .map(|(number, &(column, part, is_local))| {
            let index = SecondaryIndex {
                name: format!("i{number}"),
                column,
                part,
                is_local,
                class_name: (number % 2 == 0).then(|| "sai".to_owned()),
                options: BTreeMap::new(),
                version: Uuid::new_v4(),
            };
            (index.name.clone(), Arc::new(index))
        });
    Table {
        id: TableId(Uuid::new_v4()),
        keyspace: "ks".to_owned(),
        name: "t".to_owned(),
        columns: columns.collect(),
        next_column: ColumnId(7),
        dropped_columns: BTreeMap::new(),
        partitioner: Partitioner::Murmur3,
        default_ttl_s: 0,
        row_ttl: None,
        gc_grace_s: 864_000,
        options: options.into_iter().collect(),
        indexes: BTreeMap::new(),
        secondary_indexes: indexes.collect(),
        cdc: None,
        log: None,
        log_of: None,
        truncated_at_ms: None,
    }
}

async fn open(directory: &Path, clock: &Arc<ManualClock>, table: &Table) -> Storage {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let storage = Storage::open_with_clock(directory, StorageOptions::default(), clock).unwrap();
    let made = table.clone();
    let change = storage.change_catalog(move |catalog| {
        let keyspace = Keyspace {
            name: "ks".to_owned(),
            replication: BTreeMap::new(),
            durable_writes: true,
            tablets: true,
            types: Default::default(),
            tables: BTreeMap::new(),
        };
        catalog
            .keyspaces
            .insert("ks".to_owned(), Arc::new(keyspace));
        catalog.put_table(made);
        Ok::<(), ()>(())
    });
    change.await.unwrap();
    for index in table.secondary_indexes.values() {
        storage.index_built(index.version).await;
    }
    storage
}

fn clock() -> Arc<ManualClock> {
    ManualClock::new(1_700_000_000_000_000)
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

fn set(column: ColumnId, change: CellOperation) -> CellChange {
    CellChange { column, change }
}

/// A row with a value in each column.
fn row(c: i32, value: &str, timestamp: i64, ttl_s: Option<u32>) -> PartitionChange {
    let entries = vec![
        (text("a"), int(c % 7)),
        (text(&format!("k{}", c % 3)), int(1)),
    ];
    let tags = ["x", value].map(|tag| (text(tag), Bytes::new()));
    PartitionChange::Row {
        clustering: vec![int(c)],
        cells: vec![
            set(V, CellOperation::Set(text(value))),
            set(MAP, CellOperation::PutElements(entries)),
            set(TAGS, CellOperation::PutElements(tags.to_vec())),
        ],
        timestamp,
        ttl_s,
        marker: true,
    }
}

async fn write(storage: &Storage, table: &Table, p: i32, changes: Vec<PartitionChange>) {
    let write = AtomicWrite {
        mutations: vec![PartitionMutation {
            table: table.id,
            partition_key: vec![int(p), int(1)],
            changes,
        }],
        condition: None,
    };
    storage.write(write).await.unwrap();
}

/// Writes partitions of a hundred rows and a static value.
async fn fill(storage: &Storage, table: &Table, partitions: i32) {
    for p in 0..partitions {
        let rows = (0..100).map(|c| row(c, &format!("v{}", c % 10), 1, None));
        let statics = PartitionChange::Static {
            cells: vec![set(S, CellOperation::Set(text(&format!("s{}", p % 3))))],
            timestamp: 1,
            ttl_s: None,
        };
        write(storage, table, p, rows.chain([statics]).collect()).await;
    }
}

fn task(registry: &TaskRegistry) -> Task {
    registry.start(TaskSpec {
        kind: "repair",
        scope: TaskScope::default(),
        units: "keys",
        total: None,
        counters: REPAIR_COUNTERS,
        abortable: true,
    })
}

/// The counters of a whole repair: rows and entries compared; entries added, mended and removed.
async fn repair(storage: &Storage, table: &Table, index: Uuid) -> [u64; 5] {
    let task = task(&TaskRegistry::default());
    let repaired = storage.repair_index(table.id, index, &task).await;
    assert!(repaired.unwrap(), "it comes to its end");
    let counters: Vec<u64> = REPAIR_COUNTERS.iter().map(|of| task.counter(of)).collect();
    counters.try_into().unwrap()
}

fn space(storage: &Storage, table: &Table, index: Uuid) -> SpaceId {
    let schema = storage.shared().schema();
    schema.table(table.id).unwrap().index(index).unwrap().space
}

fn entries(storage: &Storage, space: SpaceId) -> BTreeMap<Bytes, Bytes> {
    let engine = &storage.shared().engine;
    let all = (Bound::Unbounded, Bound::Unbounded);
    let scan = engine.scan_at(&engine.snapshot().unwrap(), space, all);
    scan.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Changes what is stored, below all that keeps it right. Nothing else is written meanwhile.
fn damage(storage: &Storage, space: SpaceId, changes: Vec<(Bytes, Option<Bytes>)>) {
    let changes = changes.into_iter();
    let batch: EntryBatch = changes.map(|(key, value)| (space, key, value)).collect();
    let shared = storage.shared();
    let now_micros = shared.clock.now_micros();
    shared
        .engine
        .commit(batch, SyncTarget::Kernel, now_micros)
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_repaired_and_counted_in_every_kind_of_index() {
    for is_in_memory in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let table = table(is_in_memory);
        let storage = open(directory.path(), &clock(), &table).await;
        fill(&storage, &table, 20).await;
        let gone = PartitionChange::DeleteRow {
            clustering: vec![int(7)],
            timestamp: 2,
        };
        write(&storage, &table, 3, vec![gone]).await;
        for index in table.secondary_indexes.values() {
            let space = space(&storage, &table, index.version);
            let right = entries(&storage, space);
            let compared = [2_000, right.len() as u64];
            let found = repair(&storage, &table, index.version).await;
            assert_eq!(found[..2], compared, "{index:?}");
            assert_eq!(found[2..], [0, 0, 0], "{index:?}");

            let keys: Vec<&Bytes> = right.keys().collect();
            let some = |at: usize| keys[at * (keys.len() - 1) / 7].clone();
            let length_of = |key: &Bytes| StoredEntry::read(&right[key]).unwrap().term;
            // An entry of a row for a value that another row has.
            let row = &some(0)[length_of(&some(0))..];
            let mut of_others = keys.iter().rev().map(|other| {
                let stale = Bytes::from([&other[..length_of(other)], row].concat());
                (stale, right[*other].clone())
            });
            let stale = of_others.find(|(key, _)| !right.contains_key(key)).unwrap();
            let dies = entry_value(&some(5)[..length_of(&some(5))], Some(1_800_000_000));
            let has_died = entry_value(&some(6)[..length_of(&some(6))], Some(1));
            damage(
                &storage,
                space,
                vec![
                    (some(1), None),
                    (some(2), None),
                    (some(3), None),
                    // Entries that tell a wrong time, or nothing that can be read.
                    (some(4), Some(text("?"))),
                    (some(5), Some(dies)),
                    (some(6), Some(has_died)),
                    (stale.0, Some(stale.1)),
                    (text("no entry"), Some(text("\u{0}\u{3}"))),
                ],
            );
            let found = repair(&storage, &table, index.version).await;
            assert_eq!(found[2..], [3, 3, 2], "{index:?}");
            assert_eq!(entries(&storage, space), right, "{index:?}");
            let found = repair(&storage, &table, index.version).await;
            assert_eq!(found[2..], [0, 0, 0], "{index:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_without_entries_is_rebuilt() {
    let directory = tempfile::tempdir().unwrap();
    let (table, clock) = (table(false), clock());
    let storage = open(directory.path(), &clock, &table).await;
    fill(&storage, &table, 30).await;
    let index = table.secondary_indexes["i0"].version;
    let space = space(&storage, &table, index);
    let right = entries(&storage, space);
    let all = right.keys().map(|key| (key.clone(), None)).collect();
    damage(&storage, space, all);
    let found = repair(&storage, &table, index).await;
    assert_eq!(found, [3_000, 3_000, 3_000, 0, 0]);
    // What was mended is there after a restart.
    storage.close().await.unwrap();
    drop(storage);
    let storage = open(directory.path(), &clock, &table).await;
    assert_eq!(entries(&storage, space), right);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_rows_are_no_fault() {
    let directory = tempfile::tempdir().unwrap();
    let (table, clock) = (table(false), clock());
    let storage = open(directory.path(), &clock, &table).await;
    write(
        &storage,
        &table,
        0,
        vec![row(0, "dies", 1, Some(10)), row(1, "lives", 1, None)],
    )
    .await;
    let index = table.secondary_indexes["i0"].version;
    let space = space(&storage, &table, index);
    let right = entries(&storage, space);
    clock.advance_seconds(20);
    assert_eq!(repair(&storage, &table, index).await, [2, 2, 0, 0, 0]);
    let dead = right
        .keys()
        .find(|key| key.windows(4).any(|part| part == b"dies"));
    damage(&storage, space, vec![(dead.unwrap().clone(), None)]);
    assert_eq!(repair(&storage, &table, index).await, [2, 1, 0, 0, 0]);
}

/// The positions of the rows that have each value, as a scan finds them.
fn scanned(storage: &Storage, table: &Table) -> BTreeMap<Bytes, BTreeSet<Bytes>> {
    let request = ReadRequest {
        table: table.id,
        partitions: PartitionSelection::Tokens(Bound::Unbounded, Bound::Unbounded),
        slices: Vec::new(),
        reversed: false,
        resume_after: None,
        static_only_rows: false,
    };
    let mut found: BTreeMap<Bytes, BTreeSet<Bytes>> = BTreeMap::new();
    for row in storage.read(request).unwrap() {
        let row = row.unwrap();
        if let Some(crate::read::Cell::Simple(cell)) = row.cell(V) {
            let positions = found.entry(cell.value.clone()).or_default();
            positions.insert(row.position.0.clone());
        }
    }
    found
}

fn indexed(storage: &Storage, table: &Table, index: Uuid, value: &Bytes) -> BTreeSet<Bytes> {
    let request = IndexRequest {
        index,
        values: IndexedValues::one(value.clone()),
        tokens: (Bound::Unbounded, Bound::Unbounded),
        from: None,
    };
    let view = storage.view(table.id).unwrap();
    let positions = view.positions(&request).unwrap();
    positions.map(|position| position.unwrap().0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_written_meanwhile_keep_their_entries() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(false);
    let storage = open(directory.path(), &clock(), &table).await;
    fill(&storage, &table, 40).await;
    let index = table.secondary_indexes["i0"].version;
    let space = space(&storage, &table, index);
    for round in 0..3 {
        // Every other entry is away, and each row has one of a value that it does not have.
        let right = entries(&storage, space);
        let mut changes = Vec::new();
        for (at, (key, value)) in right.iter().enumerate() {
            if at % 2 == 0 {
                changes.push((key.clone(), None));
            }
            let mut other = key.to_vec();
            other[2] = b'w';
            changes.push((other.into(), Some(value.clone())));
        }
        damage(&storage, space, changes);
        let writers = (0..4).map(|writer| {
            let (storage, table) = (storage.clone(), table.clone());
            tokio::spawn(async move {
                for step in 0..250 {
                    let p = (step * 7 + writer) % 40;
                    let (c, timestamp) = ((step * 13) % 100, 10 + i64::from(round));
                    let change = match step % 3 {
                        0 => PartitionChange::DeleteRow {
                            clustering: vec![int(c)],
                            timestamp,
                        },
                        _ => row(c, &format!("v{}", (c + round) % 10), timestamp, None),
                    };
                    write(&storage, &table, p, vec![change]).await;
                }
            })
        });
        let repairs = repair(&storage, &table, index);
        let (found, written) = tokio::join!(repairs, join_all(writers));
        written.into_iter().for_each(|writer| writer.unwrap());
        assert!(found[2] > 0 && found[4] > 0, "{found:?}");
        let rows = scanned(&storage, &table);
        for (value, positions) in &rows {
            let found = indexed(&storage, &table, index, value);
            assert_eq!(found, *positions, "{value:?}");
        }
        let count: usize = rows.values().map(BTreeSet::len).sum();
        assert_eq!(entries(&storage, space).len(), count);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn suspects_that_changed_since_they_were_found_are_left_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(false);
    let storage = open(directory.path(), &clock(), &table).await;
    write(&storage, &table, 0, vec![row(0, "old", 1, None)]).await;
    let index = table.secondary_indexes["i0"].version;
    let space = space(&storage, &table, index);
    let entry_of = |value: &str| {
        let entries = entries(&storage, space);
        let mut entries = entries.into_keys();
        entries.find(|key| {
            key.windows(value.len())
                .any(|part| part == value.as_bytes())
        })
    };
    let old = entry_of("old").unwrap();
    let key = indexed(&storage, &table, index, &text("old"));
    let key = key.first().unwrap().clone();
    // The comparison found that the row lacks the entry, or that it is stale, and then the row was
    // written.
    damage(&storage, space, vec![(old.clone(), None)]);
    write(&storage, &table, 0, vec![row(0, "new", 2, None)]).await;
    write(&storage, &table, 1, vec![row(0, "old", 1, None)]).await;
    let new = entry_of("new").unwrap();
    let other = entry_of("old").unwrap();
    let mending = IndexRepairRequest {
        table: table.id,
        index,
        suspects: vec![
            SuspectKey::Row(key),
            SuspectKey::Entry(old),
            SuspectKey::Entry(new),
            SuspectKey::Entry(other),
        ],
    };
    let before = entries(&storage, space);
    let mended = storage.repair_entries(mending).await.unwrap();
    let nothing = crate::commit::IndexRepairOutcome {
        looked_at: 4,
        ..crate::commit::IndexRepairOutcome::default()
    };
    assert_eq!(mended, nothing);
    assert_eq!(entries(&storage, space), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_stops_when_it_is_asked_to_or_its_index_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(false);
    let storage = open(directory.path(), &clock(), &table).await;
    fill(&storage, &table, 100).await;
    let registry = TaskRegistry::default();
    let index = table.secondary_indexes["i0"].version;
    let begun = async |task: &Task| {
        let step = async {
            while task.status().progress_completed == 0 {
                tokio::task::yield_now().await;
            }
        };
        let within = tokio::time::timeout(std::time::Duration::from_secs(60), step).await;
        within.expect("a first step");
    };
    let aborted = task(&registry);
    let stop = async {
        begun(&aborted).await;
        registry.abort(aborted.id()).unwrap();
    };
    let (repaired, ()) = tokio::join!(storage.repair_index(table.id, index, &aborted), stop);
    assert!(!repaired.unwrap(), "it was asked to stop");
    assert!(aborted.counter("rows_compared") < 10_000);
    assert_eq!(aborted.counter("entries_compared"), 0);

    let of_dropped = task(&registry);
    let drop_index = async {
        begun(&of_dropped).await;
        let change = storage.change_catalog(|catalog| {
            let mut table = Table::clone(catalog.table("ks", "t").unwrap());
            table.secondary_indexes.remove("i0");
            catalog.put_table(table);
            Ok::<(), ()>(())
        });
        change.await.unwrap();
    };
    let repair = storage.repair_index(table.id, index, &of_dropped);
    let (repaired, ()) = tokio::join!(repair, drop_index);
    assert!(matches!(repaired, Err(StorageError::NoSuchIndex(_))));
}

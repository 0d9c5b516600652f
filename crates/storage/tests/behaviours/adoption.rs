//! Tables that are copied from another storage: they answer as the source does, and are there whole
//! or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bytes::Bytes;
use schema::{ColumnId, IndexedPart, SecondaryIndex, Table, TableId};
use storage::mutation::{CellOperation, PartitionChange};
use storage::read::ClusteringBound;
use storage::{
    AdoptProgress, AdoptedTable, AdoptedTableName, CellTime, Storage, StorageError, StoredCell,
};
use uuid::Uuid;
use value::{CqlType, UserType};

use crate::support::*;

const S: ColumnId = ColumnId(2);
const VALUE: ColumnId = ColumnId(3);
const TAGS: ColumnId = ColumnId(4);
const TTL_S: u32 = 5_000;
/// More than a step of a copy takes.
const ROWS: i32 = 9_000;

/// Ends the copy once it has passed so many rows.
struct EndAfter(u64, AtomicU64);

impl AdoptProgress for EndAfter {
    fn copied(&self, rows: u64, _bytes: u64) {
        self.1.store(rows, Ordering::Relaxed);
    }

    fn is_wanted(&self) -> bool {
        self.1.load(Ordering::Relaxed) < self.0
    }
}

fn to_the_end() -> EndAfter {
    EndAfter(u64::MAX, AtomicU64::new(0))
}

fn table() -> Table {
    let ints = CqlType::Set {
        element: Box::new(CqlType::Int),
        frozen: false,
    };
    TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, true)
        .statics("s", CqlType::Text)
        .regular("v", CqlType::Text)
        .regular("tags", ints)
        .build()
}

fn name(keyspace: &str, table: &str) -> AdoptedTableName {
    AdoptedTableName {
        keyspace: keyspace.to_owned(),
        table: table.to_owned(),
    }
}

fn make_keyspace(storage: &Storage, name: &'static str) {
    block_on(storage.change_catalog(move |catalog| {
        let keyspace = Arc::new(keyspace(name, true));
        catalog.keyspaces.insert(name.to_owned(), keyspace);
        Ok::<(), ()>(())
    }))
    .unwrap();
}

fn adopt(
    target: &Storage,
    source: &Storage,
    table: &Table,
    to: AdoptedTableName,
) -> Result<AdoptedTable, StorageError> {
    let id = TableId(Uuid::new_v4());
    block_on(target.adopt_table(source, table.id, id, to, &to_the_end()))
}

fn row(c: i32, value: &str, ttl_s: Option<u32>) -> PartitionChange {
    PartitionChange::Row {
        clustering: vec![int(c)],
        cells: vec![set(VALUE, text(value))],
        timestamp: 10,
        ttl_s,
        marker: true,
    }
}

/// Writes rows of every kind: with times to live, static, of collections, deleted in each way.
fn fill(storage: &Storage, table: &Table) {
    let tags = CellOperation::PutElements(vec![(int(1), Bytes::new()), (int(2), Bytes::new())]);
    let no_tag = CellOperation::DeleteElements(vec![int(1)]);
    let statics = PartitionChange::Static {
        cells: vec![set(S, text("of all"))],
        timestamp: 11,
        ttl_s: None,
    };
    let deleted_row = PartitionChange::DeleteRow {
        clustering: vec![int(3)],
        timestamp: 20,
    };
    let deleted_range = PartitionChange::DeleteRange {
        start: ClusteringBound::Inclusive(vec![int(40)]),
        end: ClusteringBound::Inclusive(vec![int(30)]),
        timestamp: 20,
    };
    let changes = (0..50).map(|c| row(c, "live", None)).chain([
        row(60, "expires", Some(TTL_S)),
        update(vec![int(5)], vec![cell(TAGS, tags)], 12),
        update(vec![int(5)], vec![cell(TAGS, no_tag)], 13),
        update(vec![int(6)], vec![cell(VALUE, CellOperation::Delete)], 13),
        statics,
        deleted_row,
        deleted_range,
    ]);
    write(storage, table, vec![int(1)], changes.collect());
    write(storage, table, vec![int(2)], vec![row(1, "old", None)]);
    let deleted = PartitionChange::DeletePartition { timestamp: 20 };
    write(storage, table, vec![int(2)], vec![deleted]);
}

fn now_s(storage: &Storage) -> i64 {
    storage.clock().now_micros() / 1_000_000
}

/// Fails unless two tables have the same live rows, now and when some have expired.
fn assert_equal(storages: [&Storage; 2], tables: [TableId; 2], rows: u64) {
    for at_s in [
        now_s(storages[0]),
        now_s(storages[0]) + 2 * i64::from(TTL_S),
    ] {
        let digest = |of: usize| {
            let digest = storages[of].table_digest_at(tables[of], at_s, &|| true);
            digest.unwrap()
        };
        assert_eq!(digest(0), digest(1));
        assert!(digest(0).rows <= rows && digest(0).digest != 0);
    }
    let now = storages[0].table_digest(tables[0], &|| true).unwrap();
    assert_eq!(now.rows, rows);
}

#[test]
fn an_adopted_table_equals_its_source() {
    let home = tempfile::tempdir().unwrap();
    let (data, copy) = (home.path().join("data"), home.path().join("copy"));
    let live = open(&data);
    let table = table();
    create(&live, &table, true);
    fill(&live, &table);
    block_on(live.checkpoint(&copy)).unwrap();
    let source = Storage::open_read_only(&copy, options()).unwrap();
    // Into the storage that has the table, under another name.
    let adopted = adopt(&live, &source, &table, name("ks", "again")).unwrap();
    // 50 rows and one that expires, without one and eleven that are deleted.
    assert_equal([&source, &live], [table.id, adopted.id], 39);
    let catalog = live.catalog();
    let again = catalog.table("ks", "again").unwrap();
    assert_eq!(again.id, adopted.id);
    assert_eq!(again.columns, table.columns);
    // Deletions came along: an older write loses to them.
    write(&live, again, vec![int(1)], vec![row(35, "late", None)]);
    write(&live, again, vec![int(2)], vec![row(7, "late", None)]);
    assert_equal([&source, &live], [table.id, adopted.id], 39);
    // What a deletion covers goes from the disk, as it would have at the source.
    eventually("deletions are swept", || {
        live.statistics().sweeps_waiting == 0
    });
    drop(live);
    let live = open(&data);
    assert_equal([&source, &live], [table.id, adopted.id], 39);
}

#[test]
fn counters_come_along_with_their_totals() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| open(&home.path().join(name)));
    let table = TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .regular("n", CqlType::Counter)
        .build();
    create(&one, &table, true);
    make_keyspace(&other, "new");
    let add = |storage: &Storage, table: &Table, p| {
        let change = cell(ColumnId(1), CellOperation::AddToCounter(3));
        write(
            storage,
            table,
            vec![int(p)],
            vec![update(vec![], vec![change], 1)],
        );
    };
    (0..10).for_each(|p| add(&one, &table, p % 4));
    let adopted = adopt(&other, &one, &table, name("new", "t")).unwrap();
    assert_equal([&one, &other], [table.id, adopted.id], 4);
    let catalog = other.catalog();
    let again = catalog.table("new", "t").unwrap();
    add(&other, again, 0);
    let rows = read_partition(&other, again, vec![int(0)]);
    assert_eq!(simple_value(&rows[0], ColumnId(1)), Some(bigint(12)));
}

#[test]
fn secondary_indexes_are_built_and_names_are_checked() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| open(&home.path().join(name)));
    let mut table = table();
    table.cdc = Some(cdc_options());
    let index = SecondaryIndex {
        name: "i".to_owned(),
        column: VALUE,
        part: IndexedPart::Value,
        is_local: false,
        class_name: None,
        options: BTreeMap::new(),
        version: Uuid::new_v4(),
    };
    table
        .secondary_indexes
        .insert("i".to_owned(), Arc::new(index.clone()));
    create(&one, &table, true);
    fill(&one, &table);
    let missing = adopt(&other, &one, &table, name("new", "t")).unwrap_err();
    assert!(missing.to_string().contains("keyspace new"), "{missing}");
    make_keyspace(&other, "new");
    adopt(&other, &one, &table, name("new", "t")).unwrap();
    let catalog = other.catalog();
    let again = catalog.table("new", "t").unwrap();
    let version = again.secondary_indexes["i"].version;
    assert_ne!(version, index.version);
    block_on(other.index_built(version));
    let log = again.log.as_ref().unwrap().table;
    assert_eq!(
        other.table_digest(log, &|| true).unwrap().rows,
        0,
        "its log is empty"
    );
    for (to, taken) in [("t", "the table new.t"), ("u", "the index new.i")] {
        let refused = adopt(&other, &one, &table, name("new", to)).unwrap_err();
        assert!(refused.to_string().contains(taken), "{refused}");
    }
    let catalog = one.catalog();
    let log = catalog.table("ks", "t").unwrap().log.as_ref().unwrap();
    let log = catalog.table_by_id(log.table).unwrap();
    let refused = adopt(&other, &one, log, name("new", "log")).unwrap_err();
    assert!(refused.to_string().contains("CDC log"), "{refused}");
}

fn point_type(keyspace: &str, fields: &[&str]) -> UserType {
    UserType {
        keyspace: keyspace.to_owned(),
        name: "point".to_owned(),
        field_names: fields.iter().map(|&field| field.to_owned()).collect(),
        field_types: vec![CqlType::Int; fields.len()],
    }
}

fn put_type(storage: &Storage, definition: UserType) {
    block_on(storage.change_catalog(move |catalog| {
        catalog.put_type(definition);
        Ok::<(), ()>(())
    }))
    .unwrap();
}

/// A table with a column of a user type.
fn table_of_points() -> Table {
    let point = CqlType::UserType {
        definition: Arc::new(point_type("ks", &["x"])),
        frozen: true,
    };
    TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .regular("at", point)
        .build()
}

/// Makes the table of points with its keyspace and its type, and writes a row.
fn fill_points(storage: &Storage, table: &Table) {
    make_keyspace(storage, "ks");
    put_type(storage, point_type("ks", &["x"]));
    create(storage, table, true);
    let value = [&4_i32.to_be_bytes()[..], &7_i32.to_be_bytes()].concat();
    let change = insert(vec![], vec![set(ColumnId(1), value.into())], 1);
    write(storage, table, vec![int(1)], vec![change]);
}

#[test]
fn user_types_are_those_of_the_new_keyspace() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| open(&home.path().join(name)));
    let table = table_of_points();
    fill_points(&one, &table);
    make_keyspace(&other, "new");
    let missing = adopt(&other, &one, &table, name("new", "t")).unwrap_err();
    assert!(missing.to_string().contains("no type point"), "{missing}");
    put_type(&other, point_type("new", &["x"]));
    let adopted = adopt(&other, &one, &table, name("new", "t")).unwrap();
    assert_equal([&one, &other], [table.id, adopted.id], 1);
    let catalog = other.catalog();
    let column = &catalog.table("new", "t").unwrap().columns[1];
    assert_eq!(
        **column.cql_type.user_type().unwrap(),
        point_type("new", &["x"])
    );
}

/// Does something while rows are copied.
struct WhileCopied<'a>(&'a (dyn Fn() + Sync));

impl AdoptProgress for WhileCopied<'_> {
    fn copied(&self, _rows: u64, _bytes: u64) {
        // On a thread of its own, as the copy runs in a runtime.
        thread::scope(|scope| {
            scope.spawn(self.0);
        });
    }

    fn is_wanted(&self) -> bool {
        true
    }
}

#[test]
fn a_type_that_is_dropped_or_changed_during_a_copy_ends_it() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| home.path().join(name));
    let (source, target) = (open(&one), open(&other));
    let table = table_of_points();
    fill_points(&source, &table);
    make_keyspace(&target, "new");
    let drop_type = || {
        block_on(target.change_catalog(|catalog| {
            catalog.remove_type("new", "point");
            Ok::<(), ()>(())
        }))
        .unwrap();
    };
    let alter_type = || put_type(&target, point_type("new", &["x", "y"]));
    let changes: [(&(dyn Fn() + Sync), &str); 2] =
        [(&drop_type, "no type point"), (&alter_type, "differs")];
    for (change, said) in changes {
        put_type(&target, point_type("new", &["x"]));
        let id = TableId(Uuid::new_v4());
        let meanwhile = WhileCopied(change);
        let to = name("new", "t");
        let refused = block_on(target.adopt_table(&source, table.id, id, to, &meanwhile));
        let refused = refused.unwrap_err();
        assert!(refused.to_string().contains(said), "{refused}");
        assert!(target.catalog().table("new", "t").is_none());
    }
    drop(target);
    let target = open(&other);
    put_type(&target, point_type("new", &["x"]));
    adopt(&target, &source, &table, name("new", "t")).unwrap();
    drop(target);
    assert!(open(&other).catalog().table("new", "t").is_some());
}

#[test]
fn an_id_that_is_in_use_is_refused_and_its_table_stays() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| open(&home.path().join(name)));
    let table = table();
    create(&one, &table, true);
    fill(&one, &table);
    make_keyspace(&other, "new");
    let adopted = adopt(&other, &one, &table, name("new", "t")).unwrap();
    let (id, to) = (adopted.id, name("new", "u"));
    let again = block_on(other.adopt_table(&one, table.id, id, to, &to_the_end()));
    let refused = again.unwrap_err();
    assert!(refused.to_string().contains("in use"), "{refused}");
    assert_equal([&one, &other], [table.id, id], 39);
}

#[test]
fn later_writes_win_over_rows_of_a_source_whose_clock_is_ahead() {
    let home = tempfile::tempdir().unwrap();
    let [one, other, far] = ["one", "other", "far"].map(|name| home.path().join(name));
    let at = |ahead_micros| ManualClock::new(START_MICROS + ahead_micros);
    let source = open_at(&one, &at(3_000_000));
    let clock = at(0);
    let target = open_at(&other, &clock);
    let table = simple_table();
    create(&source, &table, true);
    let written_micros = source.clock().next_write_micros();
    let change = insert(vec![int(1)], vec![set(V, text("copied"))], written_micros);
    write(&source, &table, vec![int(1)], vec![change]);
    make_keyspace(&target, "new");
    assert!(target.clock().next_write_micros() < written_micros);
    adopt(&target, &source, &table, name("new", "t")).unwrap();
    assert!(target.clock().next_write_micros() > written_micros);
    drop(target);
    let target = open_at(&other, &clock);
    assert!(target.clock().next_write_micros() > written_micros);
    // A difference that no client would wait for is refused.
    let ahead = open_at(&far, &at(3_600_000_000));
    create(&ahead, &table, true);
    let change = insert(vec![int(1)], vec![set(V, text("copied"))], 1);
    write(&ahead, &table, vec![int(1)], vec![change]);
    let refused = adopt(&target, &ahead, &table, name("new", "u")).unwrap_err();
    assert!(refused.to_string().contains("s ahead"), "{refused}");
}

/// The number of the engine's spaces on the disk.
fn spaces(directory: &Path) -> usize {
    fs::read_dir(directory.join("db/keyspaces"))
        .unwrap()
        .count()
}

#[test]
fn a_copy_that_is_ended_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| home.path().join(name));
    let (source, target) = (open(&one), open(&other));
    let table = table();
    create(&source, &table, true);
    let rows = (0..ROWS).map(|c| row(c, "many", None)).collect();
    write(&source, &table, vec![int(1)], rows);
    make_keyspace(&target, "new");
    let before = spaces(&other);
    let end = EndAfter(1, AtomicU64::new(0));
    let id = TableId(Uuid::new_v4());
    let to = name("new", "t");
    let ended = block_on(target.adopt_table(&source, table.id, id, to, &end));
    assert!(matches!(ended, Err(StorageError::Invalid(_))), "{ended:?}");
    assert!(end.1.load(Ordering::Relaxed) > 0, "it had begun");
    assert!(target.catalog().table("new", "t").is_none());
    eventually("its files are removed", || spaces(&other) == before);
    let adopted = adopt(&target, &source, &table, name("new", "t")).unwrap();
    assert_eq!(adopted.rows, ROWS as u64);
    assert_equal([&source, &target], [table.id, adopted.id], ROWS as u64);
}

#[test]
fn cells_come_with_their_times() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let table = table();
    create(&storage, &table, true);
    let tags = CellOperation::PutElements(vec![(int(1), Bytes::new())]);
    let statics = PartitionChange::Static {
        cells: vec![set(S, text("of all"))],
        timestamp: 11,
        ttl_s: None,
    };
    let changes = vec![
        row(2, "expires", Some(TTL_S)),
        update(vec![int(1)], vec![cell(TAGS, tags)], 12),
        statics,
    ];
    write(&storage, &table, vec![int(9)], changes);
    let rows: Vec<_> = storage
        .cells(table.id)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let forever = |write_micros| CellTime {
        write_micros,
        expires_at_s: None,
    };
    let expiring = CellTime {
        write_micros: 10,
        expires_at_s: Some(START_MICROS / 1_000_000 + i64::from(TTL_S)),
    };
    let [statics, two, one] = &rows[..] else {
        panic!("{rows:?}");
    };
    assert!(statics.is_static && statics.key == [int(9)]);
    assert_eq!(statics.cells[0].time, forever(11));
    assert_eq!(two.key, [int(9), int(2)]);
    assert_eq!(two.marker, Some(expiring));
    assert_eq!(
        two.cells,
        [StoredCell {
            column: VALUE,
            path: None,
            value: text("expires"),
            time: expiring,
        }]
    );
    assert_eq!((one.marker, one.cells.len()), (None, 1));
    assert_eq!(one.cells[0].path, Some(int(1)));
    assert_eq!(one.cells[0].time, forever(12));
}

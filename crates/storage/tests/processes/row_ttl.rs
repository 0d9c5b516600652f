//! Tests the deletion of rows whose column for it tells that their time has come.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use schema::{ColumnId, RowTtl, Table};
use storage::Storage;
use storage::mutation::PartitionChange;
use value::CqlType;

use crate::disk;
use crate::support::*;

const START_S: i64 = START_MICROS / 1_000_000;
/// The columns of [`table`].
const AT: ColumnId = ColumnId(2);
const V: ColumnId = ColumnId(3);
const W: ColumnId = ColumnId(4);

fn row_ttl(column: ColumnId) -> Option<RowTtl> {
    Some(RowTtl {
        column,
        version: uuid::Uuid::new_v4(),
    })
}

fn builder(cql_type: CqlType) -> TableBuilder {
    TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("at", cql_type)
        .regular("v", CqlType::Text)
}

/// A table `ks.t` with an int key, an int clustering column, a time and two texts.
fn table(cql_type: CqlType) -> Table {
    let mut table = builder(cql_type).regular("w", CqlType::Text).build();
    table.row_ttl = row_ttl(AT);
    table
}

/// A time so many seconds after the start of the tests.
fn at(cql_type: &CqlType, seconds: i64) -> Bytes {
    let seconds = START_S + seconds;
    match cql_type {
        CqlType::Timestamp => bigint(seconds * 1_000),
        CqlType::Bigint => bigint(seconds),
        _ => int(i32::try_from(seconds).unwrap()),
    }
}

struct World {
    clock: Arc<ManualClock>,
    storage: Storage,
    table: Table,
}

impl World {
    fn new(directory: &Path, table: Table) -> World {
        let clock = ManualClock::new(START_MICROS);
        let storage = open_at(directory, &clock);
        create(&storage, &table, true);
        World {
            clock,
            storage,
            table,
        }
    }

    fn put(&self, c: i32, seconds: i64, timestamp: i64) {
        let time = at(&self.table.columns[2].cql_type, seconds);
        let row = insert(
            vec![int(c)],
            vec![set(AT, time), set(V, text("x"))],
            timestamp,
        );
        write(&self.storage, &self.table, vec![int(1)], vec![row]);
    }

    fn live(&self) -> Vec<i32> {
        let rows = read_all(&self.storage, &self.table);
        rows.iter().filter_map(shown_key).collect()
    }

    fn expired(&self) -> u64 {
        self.storage.statistics().rows_expired
    }

    /// Waits until so many rows have expired since the start.
    fn wait_for(&self, count: u64) {
        eventually("rows expire", || self.expired() >= count);
        assert_eq!(self.expired(), count);
    }

    /// Changes the column that tells when rows expire.
    fn alter(&mut self, row_ttl: Option<RowTtl>) {
        let mut table = (**self.storage.catalog().table("ks", "t").unwrap()).clone();
        table.row_ttl = row_ttl;
        create(&self.storage, &table, true);
        self.table = table;
    }
}

fn shown_key(row: &storage::read::Row) -> Option<i32> {
    let clustering = row.clustering.as_ref()?;
    Some(i32::from_be_bytes(clustering[0][..].try_into().ok()?))
}

#[test]
fn a_row_expires_at_its_time_and_not_before() {
    for cql_type in [CqlType::Timestamp, CqlType::Bigint, CqlType::Int] {
        let directory = tempfile::tempdir().unwrap();
        let world = World::new(directory.path(), table(cql_type));
        world.put(1, 100, 1);
        world.put(2, 50, 1);
        world.put(3, 101, 1);
        world.put(4, -1_000, 1);
        // A row without a time, or with none that is one.
        let empty = vec![set(AT, Bytes::new()), set(V, text("x"))];
        let others = vec![
            insert(vec![int(5)], vec![set(V, text("x"))], 1),
            insert(vec![int(6)], empty, 1),
        ];
        write(&world.storage, &world.table, vec![int(1)], others);
        world.wait_for(1);
        assert_eq!(world.live(), [1, 2, 3, 5, 6]);
        world.clock.advance_seconds(100);
        world.wait_for(3);
        assert_eq!(world.live(), [3, 5, 6]);
        world.clock.advance_seconds(1);
        world.wait_for(4);
        assert_eq!(world.live(), [5, 6]);
    }
}

#[test]
fn a_row_that_is_given_a_later_time_or_none_stays() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::new(directory.path(), table(CqlType::Timestamp));
    for c in 1..=4 {
        world.put(c, 10, 1);
    }
    world.put(9, 11, 1);
    let time = |c, change| update(vec![int(c)], vec![cell(AT, change)], 2);
    use storage::mutation::CellOperation::{Delete, Set};
    let later = Set(at(&CqlType::Timestamp, 1_000));
    let changes = vec![time(1, later), time(2, Delete)];
    write(&world.storage, &world.table, vec![int(1)], changes);
    world.clock.advance_seconds(11);
    // The row 9 is the last of those that are due, so all others were looked at.
    world.wait_for(3);
    assert_eq!(world.live(), [1, 2]);
}

#[test]
fn a_write_after_the_deletion_stays_whatever_its_clock() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::new(directory.path(), table(CqlType::Timestamp));
    world.put(1, -1, 5);
    world.wait_for(1);
    assert_eq!(world.live(), [] as [i32; 0]);
    // An older write stays hidden, a newer one does not, and expires in its turn though a pass has
    // gone by its place.
    world.put(1, 1_000, 4);
    assert_eq!(world.live(), [] as [i32; 0]);
    world.put(1, 1_000, 6);
    assert_eq!(world.live(), [1]);
    world.put(1, -1, 7);
    world.put(2, -5_000, 1);
    world.wait_for(3);
    assert_eq!(world.live(), [] as [i32; 0]);
}

#[test]
fn a_dead_row_from_the_future_hides_no_later_write() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::new(directory.path(), table(CqlType::Timestamp));
    let future = START_MICROS + 3_600_000_000;
    // The first row has a tombstone from the future, the second a cell that lives.
    for c in 1..=2 {
        world.put(c, 10, 1);
    }
    use storage::mutation::CellOperation::{Delete, Set};
    let changes = [(1, Delete), (2, Set(text("y")))];
    let changes = changes.map(|(c, change)| update(vec![int(c)], vec![cell(V, change)], future));
    write(&world.storage, &world.table, vec![int(1)], changes.into());
    // The third has a cell of a column that is dropped.
    world.put(3, 10, 1);
    let dropped = update(vec![int(3)], vec![set(W, text("z"))], future);
    write(&world.storage, &world.table, vec![int(1)], vec![dropped]);
    world.table.columns.retain(|column| column.id != W);
    create(&world.storage, &world.table, true);
    world.clock.advance_seconds(10);
    world.wait_for(3);
    assert_eq!(world.live(), [] as [i32; 0]);
    for c in 1..=3 {
        world.put(c, 1_000, START_MICROS + 10_000_000);
    }
    assert_eq!(world.live(), [1, 3]);
}

#[test]
fn a_row_that_comes_back_with_the_time_that_it_had_expires_again() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::new(directory.path(), table(CqlType::Timestamp));
    world.put(1, 10, 1);
    // Its entry may stay until it is swept.
    let deletion = vec![PartitionChange::DeletePartition { timestamp: 2 }];
    write(&world.storage, &world.table, vec![int(1)], deletion);
    world.put(9, 10, 3);
    world.clock.advance_seconds(10);
    world.wait_for(1);
    world.put(1, 10, 4);
    world.wait_for(2);
}

#[test]
fn more_rows_than_one_step_takes_expire_with_static_columns_left() {
    let directory = tempfile::tempdir().unwrap();
    let mut with_static = builder(CqlType::Timestamp)
        .statics("s", CqlType::Int)
        .build();
    with_static.row_ttl = row_ttl(AT);
    let world = World::new(directory.path(), with_static);
    let time = at(&CqlType::Timestamp, -1);
    let rows = (0..1_000).map(|c| insert(vec![int(c)], vec![set(AT, time.clone())], 1));
    let statics = PartitionChange::Static {
        cells: vec![set(ColumnId(4), int(7))],
        timestamp: 1,
        ttl_s: None,
    };
    let changes = rows.chain([statics]).collect();
    write(&world.storage, &world.table, vec![int(1)], changes);
    world.wait_for(1_000);
    assert_eq!(world.live(), [] as [i32; 0]);
    assert_eq!(read_all(&world.storage, &world.table).len(), 1, "static");
}

#[test]
fn alter_table_begins_and_ends_expiry_over_rows_that_are_there() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::new(directory.path(), builder(CqlType::Timestamp).build());
    for c in 0..500 {
        world.put(c, i64::from(c % 2) * 100, 1);
    }
    world.clock.advance_seconds(1);
    assert_eq!((world.live().len(), world.expired()), (500, 0));
    world.alter(row_ttl(AT));
    world.wait_for(250);
    assert!(world.live().iter().all(|c| c % 2 == 1));
    world.alter(None);
    world.clock.advance_seconds(1_000);
    world.put(-1, -1, 1);
    world.alter(row_ttl(AT));
    world.wait_for(501);
    assert_eq!(world.live(), [] as [i32; 0]);
}

#[test]
fn a_row_that_can_have_no_time_keeps_no_other_from_expiring() {
    let directory = tempfile::tempdir().unwrap();
    let without = TableBuilder::new("ks", "t")
        .partition("p", CqlType::Text)
        .regular("at", CqlType::Timestamp)
        .build();
    let mut world = World::new(directory.path(), without);
    let row = || {
        let time = at(&CqlType::Timestamp, -1);
        vec![insert(vec![], vec![set(ColumnId(1), time)], 1)]
    };
    // The longest key that a row can have, so that the key of its entry would be too long.
    let longest = (60_000..=65_535).rev().find(|length| {
        let key = vec![text(&"x".repeat(*length))];
        try_write(&world.storage, &world.table, key, row()).is_ok()
    });
    assert!(longest.is_some());
    for p in ["a", "b", "c"] {
        write(&world.storage, &world.table, vec![text(p)], row());
    }
    world.alter(row_ttl(ColumnId(1)));
    world.wait_for(3);
    let left = read_all(&world.storage, &world.table);
    assert_eq!(left.len(), 1);
    assert_eq!(Some(left[0].partition.key[0].len()), longest);
}

#[test]
fn times_outlive_a_restart_and_end_with_the_rows() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::new(directory.path(), table(CqlType::Bigint));
    world.put(1, 10, 1);
    world.put(2, 20, 1);
    block_on(world.storage.close()).unwrap();
    let World { clock, table, .. } = world;
    clock.advance_seconds(10);
    world = World {
        storage: open_at(directory.path(), &clock),
        clock,
        table,
    };
    let kept = world.storage.catalog().table("ks", "t").unwrap().row_ttl;
    assert_eq!(kept, world.table.row_ttl);
    world.wait_for(1);
    assert_eq!(world.live(), [2]);
    block_on(world.storage.truncate(world.table.id)).unwrap();
    world.put(3, 15, 1);
    world.clock.advance_seconds(10);
    world.wait_for(2);
    assert_eq!(world.live(), [] as [i32; 0]);
}

/// The operations in the log.
fn operations(storage: &Storage) -> Vec<i8> {
    let catalog = storage.catalog();
    let log = catalog.table("ks", "t_scylla_cdc_log").unwrap();
    let operation = log.column("cdc$operation").unwrap().id;
    let rows = read_all(storage, log);
    let operations = rows.iter().map(|row| simple_value(row, operation));
    operations.map(|value| value.unwrap()[0] as i8).collect()
}

#[test]
fn the_log_tells_expired_rows_apart_at_the_time_of_their_deletion() {
    let directory = tempfile::tempdir().unwrap();
    let mut logged = builder(CqlType::Timestamp).cdc(cdc_options()).build();
    logged.row_ttl = row_ttl(AT);
    let world = World::new(directory.path(), logged);
    world.put(1, 10, START_MICROS + 1);
    world.clock.advance_seconds(10);
    world.wait_for(1);
    assert_eq!(operations(&world.storage), [2, -3]);
    let catalog = world.storage.catalog();
    let log = catalog.table("ks", "t_scylla_cdc_log").unwrap();
    let rows = read_all(&world.storage, log);
    let time = &rows[1].clustering.as_ref().unwrap()[0];
    let time = value::timeuuid::unix_micros(&uuid::Uuid::from_slice(time).unwrap());
    assert!(time >= START_MICROS + 10_000_000, "{time}");

    let directory = tempfile::tempdir().unwrap();
    let mut logged = TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .regular("at", CqlType::Timestamp)
        .cdc(cdc_options())
        .build();
    logged.row_ttl = row_ttl(ColumnId(1));
    let world = World::new(directory.path(), logged);
    let time = at(&CqlType::Timestamp, -1);
    let row = insert(vec![], vec![set(ColumnId(1), time)], 1);
    write(&world.storage, &world.table, vec![int(1)], vec![row]);
    world.wait_for(1);
    assert_eq!(operations(&world.storage), [2, -4]);
}

const ROWS: i32 = 20_000;

#[test]
#[ignore = "run by the test below as a process of its own"]
fn expires_until_it_is_killed() {
    let path = |name| PathBuf::from(std::env::var_os(name).expect("set by the test below"));
    let storage = open(&path("WORK_DIRECTORY"));
    eventually("rows expire", || storage.statistics().rows_expired > 0);
    std::fs::write(path("WORK_BEGAN"), "").expect("the file is written");
    eventually("it is killed", || false);
}

#[test]
fn a_kill_while_rows_expire_loses_no_other_row_and_no_log_row() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("data");
    let mut logged = builder(CqlType::Timestamp).cdc(cdc_options()).build();
    logged.row_ttl = row_ttl(AT);
    {
        let storage = open(&directory);
        create(&storage, &logged, true);
        // Every other row is due from the year 1970 on.
        for some in (0..ROWS).collect::<Vec<_>>().chunks(1_000) {
            let rows = some.iter().map(|c| {
                let time = bigint(if c % 2 == 0 { 1 } else { i64::MAX / 2 });
                insert(vec![int(*c)], vec![set(AT, time)], 1)
            });
            write(&storage, &logged, vec![int(1)], rows.collect());
        }
        block_on(storage.close()).unwrap();
    }
    let count = |storage: &Storage| read_all(storage, &logged).len();
    let all = ROWS as usize;
    let began = home.path().join("began");
    for _ in 0..2 {
        let environment = [("WORK_DIRECTORY", &*directory), ("WORK_BEGAN", &*began)];
        let mut child = disk::spawn_test("row_ttl::expires_until_it_is_killed", &environment);
        eventually("some rows have expired", || began.exists());
        child.kill();
        std::fs::remove_file(&began).unwrap();
    }
    let storage = open(&directory);
    eventually("all are gone", || count(&storage) == all / 2);
    let rows = read_all(&storage, &logged);
    assert!(rows.iter().all(|row| shown_key(row).unwrap() % 2 == 1));
    let deletions = operations(&storage);
    let deletions = deletions.iter().filter(|code| **code == -3).count();
    assert_eq!(deletions, all / 2, "each deletion has its log row, once");
}
